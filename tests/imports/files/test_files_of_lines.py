"""Files of lines, recognised by their content and read line by line, and files of all kinds, read in batches."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from chorus_cli.attachments.files import attachments
from chorus_cli.core.errors import ImportFormatError
from chorus_cli.imports.files.reading import batches
from chorus_cli.imports.files.source import Format, Opening, Source, values_in
from chorus_cli.imports.rules.conversation import ForeignConversation, ForeignFile, ForeignMessage, Skipped
from chorus_cli.log.rules.messages import Role
from tests.imports.rules.exports import found_in, live, said
from tests.imports.rules.sessions import claude_line, codex_event, codex_meta, gemini_line, gemini_meta, qwen_line, text

SAMPLES = Path(__file__).parent / "samples"
CLAUDE = [claude_line("u1", None, "user", "Start"), claude_line("a1", "u1", "assistant", [text("Ready")])]
CODEX = [codex_meta(), codex_event("user_message", "Start"), codex_event("agent_message", "Ready")]
GEMINI = [gemini_meta(), gemini_line("u1", "user", "Start"), gemini_line("a1", "gemini", "Ready")]
QWEN = [qwen_line("u1", None, "user", {"text": "Start"}), qwen_line("a1", "u1", "assistant", {"text": "Ready"})]
LONG = "iVBO" * 100_000
TALK = [("user", "Start"), ("assistant", "Ready")]
HEADER = {"user_name": "Ann", "character_name": "Mara", "create_date": "2024-7-12@01h31m37s", "chat_metadata": {}}
GREETING = {"name": "Mara", "send_date": "July 12, 2024 1:31am", "mes": "Hello {{user}}."}


def lines(path: Path, values: Sequence[Any]) -> Path:
    """Write a line for each value; a text is a line as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    written = (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in values)
    path.write_text("".join(f"{line}\n" for line in written), encoding="utf-8")
    return path


NOTE, ASKED = "note of the program", "user assistant "
WITH_TOOLS = "user tool_use tool_result assistant user assistant"


@pytest.mark.parametrize(
    ("name", "source", "roles", "skipped"),
    [
        ("codex-0.169-tools", "codex", WITH_TOOLS, {NOTE: 1}),
        ("codex-0.169-compaction", "codex", f"{ASKED}user {ASKED * 3}", {NOTE: 1, "summary of a compaction": 1}),
        ("gemini-cli-0.61", "gemini-cli", WITH_TOOLS, {NOTE: 2}),
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
    assert found_in(SAMPLES / "codex-0.169-fork.jsonl") == ([], ["conversation without messages"])


SESSIONS = {"claude-code": CLAUDE, "codex": CODEX, "gemini-cli": GEMINI, "qwen-code": QWEN}


@pytest.mark.parametrize("indent", [None, 2])
def test_the_older_file_of_gemini_cli_is_one_object(tmp_path: Path, indent: int | None) -> None:
    path = tmp_path / "session-1.json"
    path.write_text(json.dumps(gemini_meta(messages=GEMINI[1:], summary="Cities"), indent=indent), encoding="utf-8")
    ((found,), _) = found_in(path)
    assert (said(found), found.title) == (TALK, "Cities")


@pytest.mark.parametrize("source", SESSIONS)
def test_a_session_is_recognised_by_its_content_and_a_cut_last_line_costs_only_itself(
    tmp_path: Path, source: str
) -> None:
    path = lines(tmp_path / "notes.txt", SESSIONS[source])
    path.write_bytes(path.read_bytes() + b'{"type":"assistant","uuid":"x","mess\xe2\x82')
    ((found,), _) = found_in(path)
    assert (found.source, said(found)) == (source, TALK)
    assert dict(found.skipped) == {"line that cannot be read": 1}


@pytest.mark.parametrize("source", ["claude-code", "qwen-code"])
@pytest.mark.parametrize("first", ['{"type":"assistant","mess', 'sage":{}}', "7"])
def test_a_first_line_that_is_cut_or_no_object_costs_only_itself(tmp_path: Path, source: str, first: str) -> None:
    lines(tmp_path / "s1.jsonl", [first, *SESSIONS[source]])
    ((found,), none) = found_in(tmp_path)
    assert (found.source, said(found), none) == (source, TALK, [])
    assert dict(found.skipped) == {"line that cannot be read": 1}


MESSAGES = [{"role": role, "content": content} for role, content in TALK]
CHAT = [{"chat_metadata": {}}, *({"is_user": role == "user", "mes": content} for role, content in TALK)]


@pytest.mark.parametrize("session", [*SESSIONS.values(), MESSAGES, CHAT])
def test_a_list_that_breaks_off_says_that_the_rest_is_left_out(tmp_path: Path, session: list[dict[str, Any]]) -> None:
    (tmp_path / "a.json").write_text(f"{json.dumps(session)[:-1]}, {{oops}}, {{}}]", encoding="utf-8")
    ((found,), _) = found_in(tmp_path / "a.json")
    assert said(found) == TALK
    assert dict(found.skipped) == {"conversation that is too long or not valid JSON, with the rest of its file": 1}


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
    assert sorted(skipped) == ["file of an unknown format", "session of a subagent"]


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


RECORDS: tuple[Any, ...] = ({"type": "message"}, {"id": 1, "timestamp": 2}, {"type": [], "sessionId": "s1"})
NO_HEADERS: tuple[Any, ...] = ({"user_name": "Ann"}, GREETING, "{", ["chat_metadata"])


@pytest.mark.parametrize(
    "values",
    [["x"], *([value] * 2 for value in ({}, {"a": 1}, [], None, *RECORDS)), *([line, GREETING] for line in NO_HEADERS)],
)
def test_other_files_have_an_unknown_format(tmp_path: Path, values: list[Any]) -> None:
    path = lines(tmp_path / "list.jsonl", values)
    with pytest.raises(
        ImportFormatError, match=r"an unknown format\..* docs/programs\.md says where programs keep them"
    ):
        found_in(path)


def test_a_session_of_one_line_with_a_byte_order_mark_and_without_a_line_end_is_known(tmp_path: Path) -> None:
    (tmp_path / "one.jsonl").write_bytes(f"\ufeff{json.dumps(CLAUDE[0])}".encode())
    ((found,), none) = found_in(tmp_path / "one.jsonl")
    assert (said(found), none) == ([TALK[0]], [])


def test_a_chat_is_named_after_its_file_and_has_local_times(tmp_path: Path) -> None:
    path = lines(tmp_path / "Mara - 2024.jsonl", ["\ufeff" + json.dumps(HEADER), GREETING, "", "{broken"])
    ((found,), _) = found_in(path, ZoneInfo("Europe/Berlin"))
    assert (found.title, said(found)) == ("Mara - 2024", [("assistant", "Hello Ann.")])
    assert found.messages[0].timestamp == datetime(2024, 7, 11, 23, 31, tzinfo=UTC)
    assert dict(found.skipped) == {"line that cannot be read": 1}


PHOTO, LOST = ForeignFile("a.png", "image/png", data=b"photo"), ForeignFile("b.png", entry="b")
LOOK = ForeignMessage("m1", None, Role.USER, "Look", files=(PHOTO, LOST))
NAMED = "attachment whose content is not in the export"
PICTURED = ForeignConversation("fake", "c1", "", (LOOK,), ())


def talks(path: Path) -> Iterator[ForeignConversation | Skipped]:
    """Yield a talk for each letter of a file; it is skipped at a question mark, and damaged at an exclamation mark."""
    for sign in path.read_text(encoding="utf-8"):
        if sign == "!":
            raise ImportFormatError("It is damaged.")
        yield Skipped("nothing") if sign == "?" else PICTURED


@pytest.fixture
def closed() -> list[Path]:
    return []


@pytest.fixture
def formats(closed: list[Path]) -> tuple[Format, ...]:
    def opened(opening: Opening) -> Source | None:
        if not opening.beginning.startswith(b"x"):
            return None
        opening.resources.callback(closed.append, opening.path)
        return Source(partial(talks, opening.path))

    return (Format("a fake", "a file", opened),)


def laid_out(folder: Path, **files: str) -> Path:
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")
    return folder


def test_what_came_before_the_damage_is_read(tmp_path: Path, formats: tuple[Format, ...], closed: list[Path]) -> None:
    path = laid_out(tmp_path, a="xx!x") / "a"
    reading = batches([path], None, formats=formats)
    assert len(next(reading).read) == 2
    with pytest.raises(ImportFormatError, match="damaged"):
        next(reading)
    assert closed == [path]


def test_in_a_folder_damage_and_other_files_are_counted(tmp_path: Path, formats: tuple[Format, ...]) -> None:
    laid_out(tmp_path, a="x!x", b="notes", c="x?x")
    [batch] = batches([tmp_path], None, formats=formats)
    assert len(batch.read) == 3
    assert batch.skipped == {
        "file that cannot be read to its end (It is damaged.)": 1,
        "file of an unknown format": 1,
        "nothing": 1,
        NAMED: 3,
    }


def test_bytes_are_stored_and_those_that_are_missing_named(tmp_path: Path, formats: tuple[Format, ...]) -> None:
    [batch] = batches([laid_out(tmp_path, a="x") / "a"], tmp_path / "kept", formats=formats)
    [(_, conversation, attached)] = batch.read
    assert conversation.messages[0].content == "Look\n\n[attachment: b.png, not in the export]"
    assert batch.skipped == {NAMED: 1}
    [photo] = attached["m1"]
    assert (photo.name, photo.size_bytes) == ("a.png", 5)
    assert attachments.AttachmentFolder(tmp_path / "kept").read(photo.sha256) == b"photo"


def test_a_preview_stores_nothing(tmp_path: Path, formats: tuple[Format, ...]) -> None:
    [batch] = batches([laid_out(tmp_path, a="x") / "a"], None, formats=formats)
    assert batch.read[0].conversation == PICTURED
    assert [len(each) for each in batch.read[0].attachments.values()] == [1]
    assert batch.skipped == {NAMED: 1}
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("name", ["nowhere", "/dev/null"])
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, formats: tuple[Format, ...], name: str) -> None:
    with pytest.raises(ImportFormatError, match=r"cannot be read|neither a file nor a folder"):
        next(batches([tmp_path / name], None, formats=formats))


@pytest.mark.parametrize("text", ["", "[]", " [ ]\n", "\ufeff{}"])
def test_an_export_without_anything_is_called_empty(tmp_path: Path, formats: tuple[Format, ...], text: str) -> None:
    with pytest.raises(ImportFormatError, match=r"a is empty: it holds no conversations\."):
        next(batches([laid_out(tmp_path, a=text) / "a"], None, formats=formats))
