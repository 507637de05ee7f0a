"""Personas, cards and settings, and messages that are found, copied, kept and imported, in the real program."""

from __future__ import annotations

import base64
import json
import re
import sys
import unicodedata
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from chorus_cli.cards.rules.png import card_json
from tests.cards.rules.made_cards import card, picture, text_chunk
from tests.imports.service.foreign_talk import many
from tests.terminal.driver import PROMPT, Home

QUOTE = "'"


def test_a_persona_lives_through_a_restart_and_leaves_by_the_archive(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with home.chat() as terminal:
        terminal.say("/persona Ada")
        terminal.await_text("There is no persona called 'Ada'. Create it? (y/n)")
        terminal.say("maybe")
        terminal.await_text("(y/n)", times=2)
        terminal.say("y")
        terminal.await_line(PROMPT)
        terminal.ask("/model chorus/eliza", "Model: chorus/eliza (set by /model)")
        terminal.ask("/context all", "Messages of any age are in context.")
        terminal.await_bottom_line("all")
        terminal.ask("/context 3 days", "Context window set to 72h")
        terminal.ask("I am Charles", "Charles")
        terminal.ask("/settings set note Answer in rhyme.", "note is now")
        terminal.ask("/why", "4 messages before the end")
        terminal.ask("I am unhappy", "What has made you unhappy?")
        terminal.ask("/p chor", "You are now talking to Chorus")
        terminal.ask("/context", "Context window: 8h (default: 8h)")
        terminal.ask("/persona ADA", "You are now talking to Ada")
        terminal.await_prompt("Ada")
        # The answer to /why has the same words.
        terminal.ask("/context", "Context window: 72h (default: 8h)", times=2)
    with home.chat() as terminal:
        terminal.await_prompt("Ada")
        terminal.await_text("Model: chorus/eliza (from system.jsonc:")
        terminal.ask("/context", "Context window: 72h (default: 8h)")
        assert home.seen()[0] == "[Note: Answer in rhyme.]\n\nI am Charles"
        terminal.ask("/persona archive chorus", "cannot be archived")
        terminal.ask("/persona archive", "Archived Ada")
        terminal.ask("/persona ada", "ada is archived. /persona unarchive ada brings it back.")
        terminal.say("/persona delete ada")
        terminal.await_text("Delete Ada? Chorus will move its folder to the backups")
        terminal.ask("n", "Ada was not deleted.")
        terminal.say("/persona delete ada")
        terminal.await_text("(y/n)", times=2)
        terminal.ask("yes", "Deleted Ada")
    assert [path.name[:4] for path in (tmp_path / "backups" / "deleted").iterdir()] == ["ada-"]
    assert "I am Charles" in home.said()


def test_what_is_said_to_a_persona_whose_folder_is_gone_comes_back_to_the_prompt(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.run("ask", "/persona new Ada")
    with home.chat() as terminal:
        terminal.await_prompt("Ada")
        (tmp_path / "personas" / "ada").rename(tmp_path / "elsewhere")
        terminal.ask("Never lose me", "There is no persona called 'ada'.", f"{PROMPT} Never lose me")
        terminal.press("ctrl-c")
        terminal.ask("/persona chorus", "You are now talking to Chorus")
        terminal.ask("I am back", f"{PROMPT} I am back")
    assert home.said() == ["I am back"]


@pytest.mark.parametrize(("arguments", "name"), [(("frob",), "frob"), (("kill", "frodo", "--yes"), "'kill frodo'")])
def test_a_shell_is_told_how_to_create_a_persona(tmp_path: Path, arguments: tuple[str, ...], name: str) -> None:
    outcome = Home(tmp_path).run("persona", *arguments)
    assert (outcome.code, outcome.output) == (1, "")
    told = f"There is no persona called '{name.strip(QUOTE)}'. Known personas: chorus, frodo, reviewer. "
    assert outcome.errors == f"{told}Create one with: chorus persona new {name}\n"
    assert not (tmp_path / "personas" / name.strip(QUOTE)).exists()


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder whose files have paths that fit a line of the terminal."""
    with TemporaryDirectory() as made:
        yield Path(made)


def test_a_card_makes_a_persona_that_greets_talks_and_comes_out_again(tmp_path: Path, folder: Path) -> None:
    home = Home(tmp_path)
    made = card(2, creator="\x1b]0;owned\x07somebody", first_mes="\x1b[2J*Welcome*, {{user}}.\nCome in.")
    (tmp_path / "config.jsonc").write_text('{"defaults": {"model": "chorus/eliza"}}')
    (folder / "a mira.png").write_bytes(picture(text_chunk("chara", made)))
    with home.chat() as terminal:
        terminal.type(f"/persona import {folder}/a mi")
        terminal.await_text("/a mira.png")
        terminal.press("tab")
        terminal.await_text(f"/persona import {folder}/a mira.png")
        terminal.type("\r!echo ki''wi\r")
        terminal.await_text("What should Mira call you? (Enter: User)")
        terminal.say("/new")
        terminal.await_text('"/new" is not an answer, so it was not sent. Answer or press Ctrl-C.')
        terminal.say("Ada")
        terminal.await_text("Welcome, Ada.")
        terminal.await_text("\nkiwi")
        terminal.await_prompt("Mira")
        assert "The characters of cards now call you Ada (user_name in config.jsonc)." in terminal.screen_text()
        assert "Created Mira from a mira.png (by" in terminal.screen_text()
        assert terminal.screen_text().count("Welcome, Ada.") == 1
        assert "\n\nMira\n␛[2JWelcome, Ada.\nCome in.\n" in terminal.screen_text()
        terminal.ask("The lens is broken", "lens")
        assert re.search(r"^From memory.*\n\nMira\n\S", terminal.screen_text(), re.MULTILINE)
        assert "Memory:" not in home.seen()[-1]
        terminal.ask(f"/persona export Mira {tmp_path}/out.png", "Exported Mira to")
        terminal.say("/persona chorus")
        terminal.await_prompt("Chorus")
        terminal.press("up")
        terminal.await_line(f"{PROMPT} /new")
        terminal.press("ctrl-c")
        terminal.say("/persona Mira")
        terminal.await_prompt("Mira")
    with home.chat() as terminal:
        terminal.await_prompt("Mira")
        terminal.await_text("The lens is broken")
        recap = re.compile(r"❯ The lens is broken\nMira\n\S.*\n\n❯")
        terminal.until(lambda: recap.search(terminal.screen_text()) is not None, "the recap above the prompt")
        terminal.ask("/why", "recalled in message")
        terminal.ask("/search lens", "Ada: The «lens» is broken")
        terminal.ask("/new", "Welcome, Ada.")
        assert "\n\nMira\n␛[2JWelcome, Ada.\n" in terminal.screen_text()
        terminal.ask("/undo", "Undone: new conversation")
        terminal.ask("/context save scene", "Saved session")
        terminal.ask("/new", "Welcome, Ada.")
        before = terminal.screen_text().count("The lens is broken")
        terminal.ask("/context restore scene", "Restored session")
        assert terminal.screen_text().count("The lens is broken") == before + 1
    assert home.sql("SELECT preamble FROM messages WHERE role = 'user'")[0].endswith(
        "The lamp was made in Mira's youth."
    )
    data = made["data"] | {"group_only_greetings": []}
    assert json.loads(card_json((tmp_path / "out.png").read_bytes()) or b"")["data"] == data


def test_a_shell_in_a_terminal_is_asked_what_a_card_calls_the_user(tmp_path: Path) -> None:
    home, path = Home(tmp_path / "home"), tmp_path / "mira.png"
    path.write_bytes(picture(text_chunk("chara", card(2))))
    with home.shell_in_terminal() as shell:
        shell.say(f"{sys.executable} -m chorus_cli import {path}")
        shell.await_text("What should Mira call you? (Enter: User)")
        shell.say("Ada")
        shell.await_text("Created Mira from mira.png")
    assert home.sql("SELECT content FROM messages") == ["*Mira looks up.* You are wet, Ada."]
    outcome = Home(tmp_path / "other").run("import", str(path))
    assert (outcome.output.partition(" ")[0], outcome.errors) == ("Created", "")


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
        terminal.await_text("/new is a Chorus command; rename the file.")
        terminal.await_text("What has made you unhappy?")
        terminal.say("/undo")
        terminal.await_line(f"{PROMPT} I am unhappy")
        terminal.ask("/redo", "Redone")
        terminal.ask("/pin 1", 'Pinned: #1 "I am unhappy"')
        terminal.ask("/set temperature 0.3 --once", "temperature is 0.3 until you quit.")
    assert own.said() == ["I am unhappy"]


WHY_UNHAPPY = "That sounds hard. What has made you unhappy?"


def test_what_was_said_is_found_copied_and_exported(home: Home, tmp_path: Path) -> None:
    with home.chat(EDITOR="false") as chat:
        chat.ask("I am unhappy", WHY_UNHAPPY)
        home.say_by_sql("the ring\x1b[2J in 東京都", timedelta(days=3))
        chat.ask("/search ring", "Human: the «ring»␛[2J in 東京都")
        chat.ask("/search 東京 since 2 days ago", "Nothing was found since")
        chat.ask("/copy", "by your terminal, if it allows that (OSC 52)")
        assert b"\x1b]52;c;" + base64.b64encode(WHY_UNHAPPY.encode()) + b"\x1b\\" in chat.drawn
        path = tmp_path / "talk.md"
        chat.ask(f"/export {path}", "Exported the context, 2 messages, to")
        chat.say(f"/export {path} all")
        chat.await_text("(y/n)")
        chat.ask("y", "Exported the whole thread, 3 messages")
        assert "the ring" in path.read_text(encoding="utf-8")


def test_the_log_is_indexed_while_the_prompt_waits(home: Home) -> None:
    home.run("ask", "-c", "I am unhappy")
    with home.chat() as chat:
        through = "SELECT json_extract(value, '$.through') FROM meta WHERE key = 'search_index'"
        chat.until(lambda: home.sql(through) == [2], "an index of both messages")
        chat.leave()


def test_chorus_search_prints_what_is_found_as_text_or_as_one_json_value(home: Home) -> None:
    home.run("ask", "-c", "I am unhappy about the ring")
    home.run("ask", "--persona", "frodo", "What is the ring?")
    text = home.run("search", "ring")
    assert text.code == 0
    assert "Chorus, thread #1\nHuman: I am unhappy about the «ring»\n" in text.output
    assert text.output.startswith("#3  ")
    assert {sign for sign in text.output if unicodedata.category(sign) in {"Cc", "Cf"}} == {"\n"}
    value = json.loads(home.run("search", "--json", "about the ring", "--since", "1h").output)
    assert [(row["id"], row["persona"], row["excerpt"]) for row in value["results"]] == [
        (1, "chorus", "I am unhappy «about the ring»")
    ]
    assert (value["more"], value["more_is_least"]) == (0, False)
    nothing = home.run("search", "--json", "sword")
    none = {"threads": [], "more_threads": 0, "results": [], "more": 0, "more_is_least": False}
    assert (nothing.code, nothing.errors, json.loads(nothing.output)) == (1, "", none)
    assert json.loads(home.run("search", "--json", "ring", "--persona", "frodo").output)["results"][0]["id"] == 3


def test_ctrl_c_stops_an_import_between_two_conversations(home: Home, tmp_path: Path) -> None:
    path, number = many(tmp_path, 60), 60
    with home.chat() as terminal:
        terminal.say(f"/import {path}")
        terminal.until(lambda: home.sql("SELECT COUNT(*) FROM messages") > [2_000], "two conversations")
        terminal.press("ctrl-c")
        terminal.await_text("You stopped the import; the same command goes on from there.")
        left = home.sql("SELECT COUNT(*) FROM messages GROUP BY thread_id")
        assert set(left) == {1_000}
        assert len(left) < number
        terminal.await_line(PROMPT)
        terminal.ask("I am here", "here")
