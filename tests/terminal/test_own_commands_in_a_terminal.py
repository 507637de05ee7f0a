"""The user's own commands and choices of a run, at the keyboard of the real program and in the shell."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.terminal.driver import PROMPT, Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    assert home.run("paths").code == 0
    commands = home.path / "commands"
    commands.mkdir(parents=True)
    (commands / "feel.md").write_text("I am $ARGUMENTS")
    (commands / "new.md").write_text("never sent")
    return home


def test_a_command_of_ones_own_is_completed_and_sent_and_a_taken_name_is_told(home: Home) -> None:
    with home.chat() as terminal:
        terminal.type("/fee")
        terminal.await_text("I am $ARGUMENTS")
        terminal.press("tab")
        terminal.await_line(f"{PROMPT} /feel")
        terminal.say(" unhappy")
        terminal.await_text("/new is a command of Chorus; rename the file.")
        terminal.await_text("What has made you unhappy?")
        terminal.ask("/pin 1", 'Pinned: #1 "I am unhappy"')
        terminal.ask("/set temperature 0.3", "temperature is 0.3 until the end of this run.")
    assert home.said() == ["I am unhappy"]


def test_ask_sends_a_command_of_ones_own(home: Home) -> None:
    outcome = home.run("ask", "/feel unhappy")
    assert (outcome.code, outcome.output) == (0, "That sounds hard. What has made you unhappy?\n")
    assert home.said() == ["I am unhappy"]
