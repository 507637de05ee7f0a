"""Personas from the keyboard of the real program."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.terminal.driver import PROMPT, Home

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


def test_ctrl_c_at_a_question_means_no(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with home.chat() as terminal:
        terminal.say("/persona Ada")
        terminal.await_text("(y/n)")
        terminal.press("ctrl-c")
        terminal.await_text("No persona was created.")
        terminal.await_line(PROMPT)
    assert not (tmp_path / "personas" / "ada").exists()


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
