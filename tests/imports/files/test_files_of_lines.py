"""Files of lines: recognised by their content, read line by line, cut and over-long lines left out."""

from __future__ import annotations

import json
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest

from chorus_cli.core.errors import ImportFormatError
from chorus_cli.imports.files.reading import sources
from chorus_cli.imports.files.source import values_in
from chorus_cli.imports.rules.conversation import ForeignConversation, Skipped
from tests.imports.rules.exports import check, live, said
from tests.imports.rules.sessions import claude_line, codex_event, codex_meta, gemini_line, gemini_meta, qwen_line, text

if TYPE_CHECKING:
    from collections.abc import Sequence


SAMPLES = Path(__file__).parent / "samples"
CLAUDE = [claude_line("u1", None, "user", "Start"), claude_line("a1", "u1", "assistant", [text("Ready")])]
CODEX = [codex_meta(), codex_event("user_message", "Start"), codex_event("agent_message", "Ready")]
GEMINI = [gemini_meta(), gemini_line("u1", "user", "Start"), gemini_line("a1", "gemini", "Ready")]
QWEN = [
    qwen_line("u1", None, "user", {"text": "Start"}),
    qwen_line("a1", "u1", "assistant", {"text": "Ready"}),
]
LONG = "iVBO" * 100_000
TALK = [("user", "Start"), ("assistant", "Ready")]


def found_in(path: Path, zone: tzinfo | None = None) -> tuple[list[ForeignConversation], list[Skipped]]:
    found: list[ForeignConversation | Skipped] = []
    for source in sources(path, zone):
        found += [source] if isinstance(source, Skipped) else source.conversations()
    conversations = [each for each in found if isinstance(each, ForeignConversation)]
    for each in conversations:
        check(each)
    return conversations, [each for each in found if isinstance(each, Skipped)]


def lines(path: Path, values: Sequence[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(value, ensure_ascii=False)}\n" for value in values), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "source", "roles", "skipped"),
    [
        (
            "codex-0.169-tools",
            "codex",
            "user tool_use tool_result assistant user assistant",
            {"note of the program": 1},
        ),
        (
            "codex-0.169-compaction",
            "codex",
            "user assistant user user assistant user assistant user assistant",
            {"note of the program": 1, "summary of a compaction": 1},
        ),
        (
            "gemini-cli-0.61",
            "gemini-cli",
            "user tool_use tool_result assistant user assistant",
            {"note of the program": 2},
        ),
    ],
)
def test_sessions_that_the_programs_wrote(name: str, source: str, roles: str, skipped: dict[str, int]) -> None:
    ((found,), none) = found_in(SAMPLES / f"{name}.jsonl")
    assert none == []
    assert found.source == source
    assert [message.role.value for message in live(found)] == roles.split()
    assert dict(found.skipped) == skipped
    assert all(message.timestamp for message in found.messages)


def test_a_fork_of_codex_in_which_nothing_was_said_yet_is_no_conversation() -> None:
    assert found_in(SAMPLES / "codex-0.169-fork.jsonl") == ([], [Skipped("conversation without messages")])


@pytest.mark.parametrize(
    ("values", "source"),
    [(CLAUDE, "claude-code"), (CODEX, "codex"), (GEMINI, "gemini-cli"), (QWEN, "qwen-code")],
)
def test_a_session_is_recognised_whatever_the_file_is_called(
    tmp_path: Path, values: list[dict[str, Any]], source: str
) -> None:
    ((found,), _) = found_in(lines(tmp_path / "notes.txt", values))
    assert (found.source, said(found)) == (source, TALK)


@pytest.mark.parametrize("indent", [None, 2])
def test_the_older_file_of_gemini_cli_is_one_object(tmp_path: Path, indent: int | None) -> None:
    path = tmp_path / "session-1.json"
    path.write_text(json.dumps(gemini_meta(messages=GEMINI[1:]), indent=indent), encoding="utf-8")
    ((found,), _) = found_in(path)
    assert said(found) == TALK


@pytest.mark.parametrize(("values", "count"), [(CLAUDE, 2), (CODEX, 2), (GEMINI, 2), (QWEN, 2)])
def test_a_cut_last_line_costs_only_itself(tmp_path: Path, values: list[dict[str, Any]], count: int) -> None:
    path = lines(tmp_path / "running.jsonl", values)
    path.write_bytes(path.read_bytes() + b'{"type":"assistant","uuid":"x","mess\xe2\x82')
    ((found,), _) = found_in(path)
    assert len(found.messages) == count
    assert dict(found.skipped) == {"line that cannot be read": 1}


def test_a_folder_of_projects_is_read_as_a_whole(tmp_path: Path) -> None:
    for number in (1, 2):
        session = f"s{number}"
        values = [{**line, "sessionId": session} for line in CLAUDE]
        lines(tmp_path / f"-home-frodo-{number}" / f"{session}.jsonl", values)
    subagent = [{**line, "isSidechain": True} for line in CLAUDE]
    lines(tmp_path / "-home-frodo-1" / "s1" / "subagents" / "agent-1.jsonl", subagent)
    (tmp_path / "-home-frodo-1" / "memory.md").write_text("# notes", encoding="utf-8")
    conversations, skipped = found_in(tmp_path)
    assert [each.key for each in conversations] == ["s1", "s2"]
    assert sorted(each.reason for each in skipped) == ["file of no known format", "session of a subagent"]


@pytest.mark.parametrize(
    ("message", "session"),
    [
        ({"content": [{"type": "image", "source": {"media_type": "image/png", "data": LONG}}]}, CLAUDE),
        ({"parts": [{"inlineData": {"mimeType": "image/png", "data": LONG}}]}, QWEN),
    ],
)
def test_a_first_line_of_many_megabytes_does_not_hide_the_session(
    tmp_path: Path, message: dict[str, Any], session: list[dict[str, Any]]
) -> None:
    long = {name: field for name, field in session[0].items() if name != "message"} | {"message": message}
    ((found,), _) = found_in(lines(tmp_path / "s1.jsonl", [long, *session[1:]]))
    assert [len(each.files) for each in found.messages] == [1, 0]


def test_a_line_over_the_limit_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    path.write_bytes(b'{"a":1}\n' + b'"' + b"x" * 3_000_000 + b'"\n\n{"b":2}\n' + b"[" * 90_000)
    assert list(values_in(path, longest=1000)) == [{"a": 1}, None, {"b": 2}, None]
    assert list(values_in(path))[-1] is None


def test_other_files_are_of_no_known_format(tmp_path: Path) -> None:
    path = tmp_path / "list.jsonl"
    objects: tuple[Any, ...] = (
        {},
        {"a": 1},
        [],
        None,
        {"type": "message"},
        {"id": 1, "timestamp": 2},
        {"type": [], "sessionId": "s1"},
    )
    for content in ("x", *(f"{json.dumps(value)}\n" * 2 for value in objects)):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(ImportFormatError, match="no known format"):
            found_in(path)


def test_a_session_of_one_line_with_a_byte_order_mark_and_without_a_line_end_is_known(tmp_path: Path) -> None:
    (tmp_path / "one.jsonl").write_bytes(f"\ufeff{json.dumps(CLAUDE[0])}".encode())
    ((found,), none) = found_in(tmp_path / "one.jsonl")
    assert (said(found), none) == ([TALK[0]], [])


HEADER = {"user_name": "Ann", "character_name": "Mara", "create_date": "2024-7-12@01h31m37s", "chat_metadata": {}}
GREETING = {"name": "Mara", "send_date": "July 12, 2024 1:31am", "mes": "Hello {{user}}."}


def written(path: Path, *lines: object) -> Path:
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), encoding="utf-8")
    return path


def test_a_chat_is_named_after_its_file_and_has_local_times(tmp_path: Path) -> None:
    path = written(tmp_path / "Mara - 2024.jsonl", "\ufeff" + json.dumps(HEADER), GREETING, "", "{broken")
    ((found,), _) = found_in(path, ZoneInfo("Europe/Berlin"))
    assert (found.title, said(found)) == ("Mara - 2024", [("assistant", "Hello Ann.")])
    assert found.messages[0].timestamp == datetime(2024, 7, 11, 23, 31, tzinfo=UTC)
    assert dict(found.skipped) == {"line that cannot be read": 1}


def test_a_folder_holds_many(tmp_path: Path) -> None:
    for name in "ab":
        written(tmp_path / f"{name}.jsonl", HEADER, GREETING)
    written(tmp_path / "c.jsonl", HEADER)
    ((first, second), skipped) = found_in(tmp_path)
    assert first.key != second.key
    assert skipped == [Skipped("conversation without messages")]


@pytest.mark.parametrize("line", [{"user_name": "Ann"}, GREETING, "{", ["chat_metadata"]])
def test_other_lines_are_no_header(tmp_path: Path, line: object) -> None:
    with pytest.raises(ImportFormatError, match="no known format"):
        found_in(written(tmp_path / "a.jsonl", line, GREETING))
