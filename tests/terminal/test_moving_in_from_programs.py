"""`chorus import`, as a user of llm, Claude Code, Codex CLI, Gemini CLI and Qwen Code moves in with it."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cards.rules.made_cards import card, picture, text_chunk
from tests.imports.rules.exports import claude, claude_message, web, web_message
from tests.imports.rules.sessions import claude_line, qwen_answer, qwen_call, qwen_line, text
from tests.terminal.driver import Home

SAMPLES = Path(__file__).parents[1] / "imports" / "files" / "samples"
PROJECT = "-home-frodo-shire"


@pytest.fixture
def moved(tmp_path: Path) -> Path:
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
    written(folder / PROJECT / "road.jsonl", *({**line, "sessionId": "road"} for line in lines))
    written(
        folder / "s1.jsonl",
        qwen_line("u1", None, "user", {"text": "What is in the pouch?"}),
        qwen_line("a1", "u1", "assistant", {"text": "A riddle.", "thought": True}, qwen_call("t1", "ls", path="pouch")),
        qwen_line("x1", "a1", "tool_result", qwen_answer("t1", "ls", output="ring")),
        qwen_line("a2", "x1", "assistant", {"text": "A ring."}),
    )
    return folder


def written(path: Path, *lines: object) -> Path:
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path


def imported(home: Home, *arguments: str) -> dict[str, Any]:
    outcome = home.run("import", *arguments, "--json")
    assert outcome.code == 0, outcome.errors
    report: dict[str, Any] = json.loads(outcome.output)
    return report


def test_what_five_programs_kept_is_in_the_log_once_and_found(tmp_path: Path, moved: Path) -> None:
    home = Home(tmp_path / "home")
    assert imported(home, str(moved), "--dry-run")["new_messages"] == 0
    first = imported(home, str(moved))
    assert first["sources"] == {"claude-code": 1, "codex": 2, "gemini-cli": 1, "llm": 16, "qwen-code": 1}
    assert (first["new_conversations"], first["new_messages"], first["attachments"]) == (21, 79, 4)
    assert imported(home, str(moved))["new_messages"] == 0
    found = home.run("search", "where").output
    assert "does the" in found
    assert "\x1b[31m" not in found
    assert home.sql("SELECT count(*), min(timestamp) FROM messages") == [(79, "2026-01-02T03:26:00.123000Z")]
    assert home.sql("SELECT role, content, reasoning FROM messages WHERE tool_call_id = 't1'") == [
        ("tool_use", "", "A riddle."),
        ("tool_result", "ring", None),
    ]


def test_exports_come_in_with_transcripts_lists_and_characters(tmp_path: Path) -> None:
    home, folder = Home(tmp_path / "home"), tmp_path / "old"
    folder.mkdir()
    note = {"type": "voice_note", "transcript": "Where is my cup?"}
    written(folder / "talks.json", claude(claude_message("a", None, "human", "", content=[note])))
    output = [
        {"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": '{"city": "Paris"}'},
        {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "18 C"}]},
    ]
    written(folder / "chats.json", web(web_message("a", None, "assistant", "", output=output)))
    spoken = {"is_user": False, "send_date": "2024-07-12T01:31:00Z"}
    written(
        folder / "Mira.jsonl",
        {"user_name": "Ann", "character_name": "Mira", "chat_metadata": {}},
        {**spoken, "name": "Mira", "mes": "Come in."},
        {**spoken, "name": "System", "mes": "It rains.", "extra": {"type": "narrator"}},
    )
    (folder / "mira.png").write_bytes(picture(text_chunk("chara", card(2))))
    dry, first, again = (imported(home, str(folder), *more) for more in (("--dry-run",), (), ()))
    assert dry["personas"] == first["personas"] == {"chorus": 2, "mira": 1}
    assert (dry["messages"] - dry["known_messages"], first["new_messages"], again["new_messages"]) == (5, 5, 0)
    assert home.sql("SELECT content FROM messages WHERE role = 'user'") == [("Where is my cup?")]
    assert "get_weather" in home.sql("SELECT tool_calls FROM messages WHERE role = 'tool_use'")[0]
    assert home.sql("SELECT content FROM messages WHERE persona = 'mira' AND introduced_by > 0 ORDER BY id")[-2:] == [
        "Come in.",
        "System: It rains.",
    ]


@pytest.mark.parametrize("more", [(), ("--dry-run",), ("--json",)])
def test_a_file_without_a_message_is_refused(tmp_path: Path, more: tuple[str, ...]) -> None:
    path = written(tmp_path / "s1.jsonl", claude_line("u1", None, "user", "/clear", isMeta=True))
    outcome = Home(tmp_path / "home").run("import", str(path), *more)
    assert (outcome.code, outcome.output) == (1, "")
    assert outcome.errors == (
        f"{path} holds no message that can be imported: conversation without messages (1); "
        "docs/moving.md tells what is taken.\n"
    )
