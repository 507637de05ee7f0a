"""Claude.ai: blocks become rows, pastes become words, and the newest branch is live where no leaf is named."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from chorus_cli.imports.rules.claude_ai import NEWEST_BRANCH, conversation_of
from chorus_cli.log.rules.messages import Status
from tests.imports.rules.exports import check, claude, claude_message, live, said

ROOT = "00000000-0000-4000-8000-000000000000"
BLOCKS = [
    {"type": "thinking", "thinking": "Look it up.", "start_timestamp": "2024-05-01T10:00:01Z"},
    {"type": "text", "text": "One moment."},
    {"type": "tool_use", "id": "t1", "name": "search", "input": {"q": "ä"}},
    {"type": "tool_result", "tool_use_id": "t1", "name": "search", "content": [{"type": "text", "text": "found"}]},
    {"type": "text", "text": "It is so."},
    {"type": "token_budget"},
]
FULL = claude(
    claude_message("a", ROOT, "human", "hello", attachments=[{"file_name": "", "extracted_content": "a long paste"}]),
    claude_message("b", "a", "assistant", "", content=BLOCKS, stop_reason="max_tokens"),
    claude_message("c", "b", "human", "and?", files=[{"file_name": "cup.png"}],
                   attachments=[{"file_name": "notes.md", "extracted_content": "# notes", "file_size": 7}]),
    claude_message("d", "b", "user", "no, this"),
)  # fmt: skip


def test_a_conversation_is_read_along_its_newest_branch_and_says_so() -> None:
    found = conversation_of(FULL)
    check(found)
    assert said(found) == [
        ("user", "hello\n\na long paste"),
        ("assistant", "One moment."),
        ("tool_use", ""),
        ("tool_result", "found"),
        ("assistant", "It is so."),
        ("user", "no, this"),
    ]
    assert found.guesses == (NEWEST_BRANCH,)
    assert (found.source, found.key, found.title) == ("claude.ai", "talk-2", "Coffee")
    assert found.created_at == datetime(2024, 5, 1, 9, 59, 0, 1, tzinfo=UTC)


def test_the_named_leaf_is_no_guess() -> None:
    found = conversation_of({**FULL, "current_leaf_message_uuid": "c"})
    assert said(found)[-1] == ("user", "and?")
    assert found.guesses == ()


def test_thoughts_calls_endings_and_files_are_kept() -> None:
    found = conversation_of({**FULL, "current_leaf_message_uuid": "c", "model": "claude-3-opus"})
    _, first, call, result, last, question = live(found)
    assert (first.reasoning, last.reasoning, last.status) == ("Look it up.", None, Status.TRUNCATED)
    assert '{\\"q\\": \\"ä\\"}' in (call.tool_calls or "")
    assert call.tool_call_id == result.tool_call_id
    assert [(file.name, file.data) for file in question.files] == [("notes.md", b"# notes"), ("cup.png", None)]
    assert first.model == "claude-3-opus"


def test_the_words_of_a_voice_note_are_those_of_its_transcript() -> None:
    note = {"type": "voice_note", "transcript": "Where is my cup?"}
    found = conversation_of(claude(claude_message("a", ROOT, "human", "", content=[note])))
    assert said(found) == [("user", "Where is my cup?")]


@pytest.mark.parametrize(
    ("blocks", "roles"),
    [
        ([{"type": "tool_use", "name": "f"}, {"type": "tool_result", "content": "r"}], ["tool_use", "tool_result"]),
        ([{"type": "tool_use", "id": "1", "name": "f"}], ["assistant"]),
        ([{"type": "text", "text": "a"}, {"type": "tool_use", "id": "1", "name": "f"}], ["assistant"]),
        ([{"type": "tool_result", "tool_use_id": "9", "content": "r"}], ["assistant"]),
        ([{"type": "tool_use", "id": "1"}, {"type": "tool_use", "id": "2"}, {"type": "tool_result", "tool_use_id": "1"},
          {"type": "tool_result", "tool_use_id": "2"}], ["tool_use", "tool_result"] * 2),
    ],
)  # fmt: skip
def test_calls_are_paired_with_their_results_and_else_text(blocks: list[Any], roles: list[str]) -> None:
    found = conversation_of(claude(claude_message("a", ROOT, "assistant", "", content=blocks)))
    assert [message.role.value for message in found.messages] == roles


def test_an_old_export_is_in_the_order_of_the_file() -> None:
    messages = [claude_message(key, None, "human", key) for key in "cab"]
    assert said(conversation_of(claude(*messages))) == [("user", "c"), ("user", "a"), ("user", "b")]


def test_text_beside_the_blocks_is_read_where_those_have_none() -> None:
    messages = [
        claude_message("a", ROOT, "human", "beside", content=[]),
        claude_message("b", "a", "assistant", "too", content=[{"type": "token_budget"}]),
    ]
    assert said(conversation_of(claude(*messages))) == [("user", "beside"), ("assistant", "too")]


def test_what_is_left_out_is_counted() -> None:
    messages = [claude_message("a", ROOT, "human", "q"), claude_message("b", "a", "human", ""), {"sender": "?"}]
    found = conversation_of({**claude(*messages), "chat_messages": [*messages, None]})
    assert dict(found.skipped) == {"message that cannot be read": 2, "empty message": 1}
