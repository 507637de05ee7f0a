"""``/import`` from the keyboard of the real program, and ``chorus import`` of a file that it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.imports.rules.sessions import claude_line
from tests.imports.service.test_import_commands import many
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


def written(path: Path, *lines: object) -> Path:
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path


@pytest.mark.parametrize("more", [(), ("--dry-run",), ("--json",)])
def test_a_file_without_a_message_is_refused(tmp_path: Path, more: tuple[str, ...]) -> None:
    path = written(tmp_path / "s1.jsonl", claude_line("u1", None, "user", "/clear", isMeta=True))
    outcome = Home(tmp_path / "home").run("import", str(path), *more)
    assert (outcome.code, outcome.output) == (1, "")
    assert outcome.errors == (
        f"{path} holds no message that can be imported: conversation without messages (1); "
        "docs/moving.md tells what is taken.\n"
    )
