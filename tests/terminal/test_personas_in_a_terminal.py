"""Personas, their cards and settings, and the user's own commands, at the keyboard and in the shell."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from chorus_cli.cards.rules.png import card_json
from tests.cards.rules.made_cards import card, picture, text_chunk
from tests.terminal.driver import PROMPT, Home
from tests.terminal.editors import editor

ADA = "Ada ❯"
QUOTE = "'"


def test_a_persona_lives_through_a_restart_and_leaves_by_the_archive(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with home.chat() as terminal:
        terminal.say("/persona Ada")
        terminal.await_text("There is no persona called 'Ada'. Create it? (y/n)")
        terminal.say("maybe")
        terminal.await_text("(y/n)", times=2)
        terminal.say("y")
        terminal.await_line(f"{ADA} maybe")
        terminal.ask("/model chorus/eliza", "Model: chorus/eliza (set by /model)", ADA)
        terminal.ask("/context 3 days", "Context window set to 72h", ADA)
        terminal.ask("I am Charles", "Charles", ADA)
        terminal.ask("/p chor", "Talking to Chorus")
        terminal.ask("/context", "Context window: 8h (default: 8h)")
        terminal.ask("/persona ADA", "Talking to Ada", ADA)
        terminal.ask("/context", "Context window: 72h (default: 8h)", ADA)
    with home.chat(ADA) as terminal:
        terminal.await_text("chorus/eliza answers (from system.jsonc:")
        terminal.ask("/context", "Context window: 72h (default: 8h)", ADA)
        assert home.seen()[0] == "I am Charles"
        terminal.ask("/persona archive chorus", "it stays", ADA)
        terminal.ask("/persona archive", "Archived Ada")
        terminal.ask("/persona ada", "ada is archived. /persona unarchive ada brings it back.")
        terminal.say("/persona delete ada")
        terminal.await_text("Delete Ada? Its folder moves to the backups; 2 messages stay in the log. (y/n)")
        terminal.ask("n", "Ada was not deleted.")
        terminal.say("/persona delete ada")
        terminal.await_text("(y/n)", times=2)
        terminal.ask("yes", "Deleted Ada")
    assert [path.name[:4] for path in (tmp_path / "backups" / "deleted").iterdir()] == ["ada-"]
    assert "I am Charles" in home.said()


def test_what_is_said_to_a_persona_whose_folder_is_gone_comes_back_to_the_prompt(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.run("ask", "/persona new Ada")
    with home.chat(ADA) as terminal:
        (tmp_path / "personas" / "ada").rename(tmp_path / "elsewhere")
        terminal.ask("Never lose me", "There is no persona called 'ada'.", f"{ADA} Never lose me")
        terminal.press("ctrl-c")
        terminal.ask("/persona chorus", "Talking to Chorus")
        terminal.ask("I am back", "back")
    assert home.said() == ["I am back"]


def test_where_nobody_can_be_asked_nothing_is_done(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.run("persona", "archive", "frodo")
    outcome = home.run("ask", "/persona delete frodo")
    assert (outcome.code, outcome.output) == (1, "")
    assert outcome.errors.endswith("stay in the log.\nFrodo was not deleted.\n")


@pytest.mark.parametrize(("arguments", "name"), [(("frob",), "frob"), (("kill", "frodo", "--yes"), "'kill frodo'")])
def test_a_shell_is_told_how_to_create_a_persona(tmp_path: Path, arguments: tuple[str, ...], name: str) -> None:
    outcome = Home(tmp_path).run("persona", *arguments)
    assert (outcome.code, outcome.output) == (1, "")
    told = f"There is no persona called '{name.strip(QUOTE)}'. Known personas: chorus, frodo, reviewer. "
    assert outcome.errors == f"{told}Create one with: chorus persona new {name}\n"
    assert not (tmp_path / "personas" / name.strip(QUOTE)).exists()


def test_the_chat_opens_with_what_the_window_has_emptied(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.run("ask", "Hello")
    home.sql("UPDATE messages SET timestamp = strftime('%Y-%m-%dT%H:%M:%fZ', timestamp, '-14 hours')")
    with home.chat() as terminal:
        terminal.await_text("Last talked 14 h ago; the 8h window holds 0 of 2 messages. /context 24h brings them back.")
        terminal.ask("/context 24h", "Context window set to 24h")
    assert home.seen()[0] == "Hello"


MIRA = "Mira ❯"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder whose files have paths that fit a line of the terminal."""
    with TemporaryDirectory() as made:
        yield Path(made)


def test_a_card_makes_a_persona_that_greets_talks_and_comes_out_again(tmp_path: Path, folder: Path) -> None:
    home = Home(tmp_path)
    made = card(2, creator="\x1b]0;owned\x07somebody", first_mes="\x1b[2JWelcome, {{user}}.")
    (tmp_path / "config.jsonc").write_text('{"defaults": {"user_name": "Ada", "model": "chorus/eliza"}}')
    (folder / "a mira.png").write_bytes(picture(text_chunk("chara", made)))
    with home.chat() as terminal:
        terminal.type(f"/persona import {folder}/a mi")
        terminal.await_text("/a mira.png")
        terminal.press("tab")
        terminal.await_text(f"/persona import {folder}/a mira.png")
        terminal.press("enter")
        terminal.await_text("Welcome, Ada.")
        terminal.await_line(MIRA)
        assert "Made Mira of a mira.png by" in terminal.screen_text()
        assert terminal.screen_text().count("Welcome, Ada.") == 1
        terminal.ask("The lens is broken", "lens", MIRA)
        assert "Memory:" not in home.seen()[-1]
        terminal.ask(f"/persona export Mira {tmp_path}/out.png", "Exported Mira to", MIRA)
    with home.chat(MIRA) as terminal:
        terminal.await_text("The lens is broken")
        terminal.ask("/why", "recalled in message", MIRA)
    assert home.sql("SELECT preamble FROM messages WHERE role = 'user'")[0].endswith(
        "The lamp was made in Mira's youth."
    )
    data = made["data"] | {"group_only_greetings": []}
    assert json.loads(card_json((tmp_path / "out.png").read_bytes()) or b"")["data"] == data


def test_settings_are_edited_checked_mended_and_undone(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    tmp_path.joinpath("home").mkdir()
    settings = home.path / "personas" / "chorus" / "system.jsonc"
    wrong = """printf '{"context_hours": 500}\\n' > "$file" """
    right = """printf '// mended\\n{"name": "Chorus", "context_hours": 50}\\n' > "$file" """
    with home.chat(EDITOR=editor(tmp_path, wrong, right)) as terminal:
        before = settings.read_bytes()
        terminal.say("/settings edit")
        terminal.await_text("system.jsonc:1: context_hours is 500; it must be a whole number from 1 to 168.")
        terminal.await_text("Edit again? (y/n, or d to discard it)")
        assert settings.read_bytes() == before
        terminal.ask("y", "Context window set to 50h")
        terminal.ask("/settings context_hours", "Value: 50")
        terminal.ask("/context undo", "Undone: window default → 50h")
        terminal.ask("/context", "Context window: 8h (default: 8h)")
    assert settings.read_text() == '// mended\n{"name": "Chorus"}\n'
    assert list((home.path / "state" / "drafts").iterdir()) == []


def test_keys_and_values_are_completed(tmp_path: Path) -> None:
    with Home(tmp_path).chat() as terminal:
        terminal.type("/settings set on_i")
        terminal.await_text("What happens after")
        terminal.press("tab")
        terminal.await_line(f"{PROMPT} /settings set on_idle")
        terminal.type(" of")
        terminal.await_text(" off")
        terminal.press("tab")
        terminal.await_line(f"{PROMPT} /settings set on_idle off")
        terminal.press("enter")
        terminal.await_text("on_idle is now off")
        terminal.await_line(PROMPT)
        terminal.type("/p frod")
        terminal.await_text("A companion for a role-play")


@pytest.fixture
def own(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    assert home.run("paths").code == 0
    commands = home.path / "commands"
    commands.mkdir(parents=True)
    (commands / "feel.md").write_text("I am $ARGUMENTS")
    (commands / "new.md").write_text("never sent")
    return home


def test_a_command_of_ones_own_is_completed_and_sent_and_a_taken_name_is_told(own: Home) -> None:
    with own.chat() as terminal:
        terminal.type("/fee")
        terminal.await_text("I am $ARGUMENTS")
        terminal.press("tab")
        terminal.await_line(f"{PROMPT} /feel")
        terminal.say(" unhappy")
        terminal.await_text("/new is a command of Chorus; rename the file.")
        terminal.await_text("What has made you unhappy?")
        terminal.ask("/pin 1", 'Pinned: #1 "I am unhappy"')
        terminal.ask("/set temperature 0.3", "temperature is 0.3 until the end of this run.")
    assert own.said() == ["I am unhappy"]


def test_ask_sends_a_command_of_ones_own(own: Home) -> None:
    outcome = own.run("ask", "/feel unhappy")
    assert (outcome.code, outcome.output) == (0, "That sounds hard. What has made you unhappy?\n")
    assert own.said() == ["I am unhappy"]
