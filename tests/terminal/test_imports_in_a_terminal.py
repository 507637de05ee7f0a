"""``/import`` from the keyboard of the real program."""

from __future__ import annotations

from pathlib import Path

from tests.imports.service.foreign_talk import many
from tests.terminal.driver import Home


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
