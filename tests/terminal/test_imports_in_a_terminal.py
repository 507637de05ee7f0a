"""``/import`` from the keyboard of the real program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.imports.service.foreign_talk import LATIUM, ROME, WHERE, many, written

if TYPE_CHECKING:
    from pathlib import Path

    from tests.terminal.driver import Home


def test_a_talk_is_imported_opened_searched_and_taken_back(home: Home, tmp_path: Path) -> None:
    path = written(tmp_path, ROME, WHERE, LATIUM)
    with home.chat() as terminal:
        terminal.ask(f"/import {path}", "Imported 2 new messages in 1 new thread, for chorus.")
        terminal.ask("/thread", "In context")
        assert "Rome" not in terminal.screen_text().rpartition("In context")[2]
        terminal.ask("/search latium", "In «Latium»")
        terminal.ask("/thread rome", "no window reaches back that far")
        terminal.ask("/context undo", "Undone: import of 2 messages in 1 conversation from demo")
        terminal.ask("/search latium", "Nothing")


def test_ctrl_c_stops_an_import_between_two_conversations(home: Home, tmp_path: Path) -> None:
    path, number = many(tmp_path, 60), 60
    with home.chat() as terminal:
        terminal.say(f"/import {path}")
        terminal.until(lambda: home.sql("SELECT COUNT(*) FROM messages") > [2_000], "two conversations")
        terminal.press("ctrl-c")
        terminal.await_text("It was stopped before the end; the same import goes on from there.")
        left = home.sql("SELECT COUNT(*) FROM messages GROUP BY thread_id")
        assert set(left) == {1_000}
        assert len(left) < number
        terminal.ask("I am here", "here")
