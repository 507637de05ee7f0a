"""The help on a terminal of 80 columns and 24 lines, its pager, and words that leave other programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from chorus_cli.catalogue import registry
from chorus_cli.framework.help import KEYS, page, screen
from tests.terminal.driver import PROMPT, Home

MOST_LINES, MOST_COMMANDS, LONGEST_DESCRIPTION = 20, 16, 50


def test_it_fits_on_one_screen() -> None:
    lines = screen(registry()).splitlines()
    assert len(lines) <= MOST_LINES
    assert max(map(len, lines)) < 80
    assert 12 <= len(registry().everyday) <= MOST_COMMANDS
    assert [each.path for each in registry().everyday if len(each.summary) > LONGEST_DESCRIPTION] == []


def test_it_is_seen_whole_and_everything_is_paged(home: Home, tmp_path: Path) -> None:
    paged = tmp_path / "paged"
    with home.chat(PAGER=f"sh -c 'cp \"$0\" {paged}'") as chat:
        chat.resize(80, 24)
        chat.ask("/help", KEYS)
        assert all(line in chat.screen_text() for line in screen(registry()).splitlines())
        chat.ask("/help memory", "/memory checkpoints")
        assert not paged.exists()
        chat.say("/help all")
        chat.until(paged.exists, "the pager")
        chat.await_line(PROMPT)
        assert "/purge backups" not in chat.words()
    assert paged.read_text(encoding="utf-8") == page(registry(), "all")


@pytest.mark.parametrize("columns", [80, 60])
def test_the_help_of_a_command_breaks_no_word(home: Home, columns: int) -> None:
    told = page(registry(), "import")
    assert max(map(len, told.splitlines())) > columns
    with home.chat() as chat:
        chat.resize(columns, 40)
        chat.ask("/help import", "--dry-run")
        assert [word for word in told.split() if word not in chat.words().split()] == []


def test_without_a_pager_everything_is_printed(home: Home) -> None:
    with home.chat(PAGER="") as chat:
        chat.ask("/help all", "/purge backups")


def test_a_word_that_leaves_other_programs_is_asked_about(home: Home) -> None:
    with home.chat() as chat:
        chat.say("exit")
        chat.await_text('Leave the chat? n sends "exit" to Chorus. (y/n)')
        chat.press("ctrl-c")
        chat.await_line(f"{PROMPT} exit")
        chat.press("enter")
        chat.await_text("Leave the chat?", times=2)
        chat.ask("n", "Type /quit to leave")
        chat.say(":q")
        chat.await_text('n sends ":q" to Chorus.')
        chat.say("y")
        assert chat.await_end() == 0
    assert home.said() == ["exit"]
    with home.chat() as chat:
        chat.ask("/help undo", "/undo")
        assert "back at the prompt" not in chat.words()
