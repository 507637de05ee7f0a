"""`chorus import`, as a user of llm, Claude Code, Codex CLI and Gemini CLI moves in with it."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.core.imports.sessions import claude_line, text
from tests.terminal.driver import Home

SAMPLES = Path(__file__).parents[1] / "storage" / "files" / "imports" / "samples"
PROJECT = "-home-frodo-shire"


@pytest.fixture
def moved(tmp_path: Path) -> Path:
    """A folder with what four programs keep."""
    folder = tmp_path / "old"
    (folder / PROJECT).mkdir(parents=True)
    for sample in SAMPLES.glob("*.jsonl"):
        shutil.copy(sample, folder)
    with closing(sqlite3.connect(folder / "logs.db")) as log:
        log.executescript(f"BEGIN; {(SAMPLES / 'llm-0.26-and-0.36.sql').read_text(encoding='utf-8')} COMMIT;")
    lines = [
        claude_line("u1", None, "user", "Where does the \x1b[31mroad go?"),
        claude_line("a1", "u1", "assistant", [text("Ever on.")]),
    ]
    written = "\n".join(json.dumps({**line, "sessionId": "road"}) for line in lines)
    (folder / PROJECT / "road.jsonl").write_text(written, encoding="utf-8")
    return folder


def imported(home: Home, *arguments: str) -> dict[str, Any]:
    outcome = home.run("import", *arguments, "--json")
    assert outcome.code == 0, outcome.errors
    report: dict[str, Any] = json.loads(outcome.output)
    return report


def test_what_four_programs_kept_is_in_the_log_once_and_found(tmp_path: Path, moved: Path) -> None:
    home = Home(tmp_path / "home")
    assert imported(home, str(moved), "--dry-run")["new_messages"] == 0
    first = imported(home, str(moved))
    assert first["sources"] == {"claude-code": 1, "codex": 2, "gemini-cli": 1, "llm": 16}
    assert (first["new_conversations"], first["new_messages"], first["attachments"]) == (20, 75, 4)
    assert imported(home, str(moved))["new_messages"] == 0
    found = home.run("search", "where").output
    assert "does the" in found
    assert "\x1b[31m" not in found
    assert home.sql("SELECT count(*), min(timestamp) FROM messages") == [(75, "2026-01-02T03:26:00.123000Z")]
