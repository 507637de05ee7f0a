"""What holds for every reader: any value is read or refused, and a session that goes on keeps its keys."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.errors import ImportFormatError
from chorus_cli.imports.rules import (
    chatgpt,
    claude_ai,
    claude_code,
    codex,
    gemini_cli,
    librechat,
    open_webui,
    plain_messages,
    qwen_code,
    silly_tavern,
)
from chorus_cli.imports.rules.assembly import FileFacts
from chorus_cli.imports.rules.conversation import ForeignConversation
from tests.imports.rules import (
    test_chatgpt,
    test_claude_ai,
    test_claude_code,
    test_codex,
    test_gemini_cli,
    test_librechat,
    test_open_webui,
    test_plain_messages,
    test_qwen_code,
    test_silly_tavern,
)
from tests.imports.rules.exports import ANYTHING, check, claude, spoiled
from tests.imports.rules.sessions import (
    claude_line,
    codex_event,
    codex_line,
    codex_meta,
    gemini_meta,
    text,
    tool_result,
    tool_use,
)

ITEMS = {
    chatgpt: spoiled(test_chatgpt.FULL),
    claude_ai: spoiled(test_claude_ai.FULL),
    librechat: spoiled(test_librechat.TREE),
    open_webui: spoiled(test_open_webui.FULL) | spoiled(test_open_webui.LISTED),
}
LINES = {
    claude_code: test_claude_code.FULL,
    codex: test_codex.FULL,
    gemini_cli: test_gemini_cli.FULL,
    plain_messages: test_plain_messages.MESSAGES,
    qwen_code: test_qwen_code.FULL,
    silly_tavern: test_silly_tavern.FULL,
}


def read(reader: Any, lines: Any) -> ForeignConversation:
    found: ForeignConversation = reader.conversation_of(lines, FileFacts("s1"))
    return found


def name_of(reader: Any) -> str | None:
    return getattr(reader, "SOURCE", None)


@pytest.mark.parametrize("reader", ITEMS, ids=name_of)
@given(data=st.data())
def test_any_value_in_any_field_of_an_item_is_survived(reader: Any, data: st.DataObject) -> None:
    value = data.draw(ITEMS[reader] | ANYTHING)
    assert not reader.is_conversation(value) or isinstance(value, dict)
    with suppress(ImportFormatError):
        check(reader.conversation_of(value))


@pytest.mark.parametrize("reader", LINES, ids=name_of)
@given(data=st.data())
def test_any_value_in_any_field_of_a_line_is_survived(reader: Any, data: st.DataObject) -> None:
    lines = data.draw(spoiled(LINES[reader])) or [None]
    for sign in ("is_line", "is_header"):
        for line in lines:
            getattr(reader, sign, bool)(line)
    for first in (lines, *lines) if reader is gemini_cli else (lines,):
        getattr(reader, "is_beginning", bool)(first)
    parts = plain_messages.parted([lines, *lines], FileFacts("s1")) if reader is plain_messages else ()
    for each in (lines, *(part for part, _ in parts)):
        with suppress(ImportFormatError):
            check(read(reader, each))


HEADER = test_silly_tavern.HEADER
EMPTY: dict[Any, list[Any]] = {
    chatgpt: [None, [], {}, {"mapping": []}, {"mapping": {}}, {"mapping": {"a": None}}],
    claude_ai: [None, {}, claude(), {"chat_messages": [None, 7]}],
    open_webui: [None, {}, {"chat": {"history": {"messages": {}}}}, {"chat": {"messages": [None]}}],
    silly_tavern: [[HEADER], [HEADER, None], [HEADER, {}], [HEADER, {"mes": ""}], [HEADER, {"swipes": []}]],
    qwen_code: [[], [None], [test_qwen_code.TELEMETRY], [{**test_qwen_code.QUESTION, "message": {"parts": []}}]],
    claude_code: [[{"type": "summary", "summary": "x"}]],
    codex: [[codex_meta(), test_codex.CONTEXT]],
    gemini_cli: [[gemini_meta(), test_gemini_cli.CONTEXT]],
}


@pytest.mark.parametrize("reader", EMPTY, ids=name_of)
def test_without_a_message_it_is_no_conversation(reader: Any) -> None:
    for value in EMPTY[reader]:
        with pytest.raises(ImportFormatError, match="conversation without messages"):
            _ = reader.conversation_of(value) if reader in ITEMS else read(reader, value)


SUBAGENT = {**codex_meta()["payload"], "source": {"subagent": {"thread_spawn": {}}}}


@pytest.mark.parametrize(
    ("reader", "lines"),
    [
        (claude_code, [{**test_claude_code.QUESTION, "isSidechain": True}]),
        (codex, [codex_line("session_meta", **SUBAGENT), codex_event("user_message", "x")]),
        (gemini_cli, [gemini_meta(kind="subagent"), test_gemini_cli.QUESTION]),
        (qwen_code, [{**line, "isSidechain": True} for line in test_qwen_code.FULL]),
    ],
)
def test_a_session_of_a_subagent_is_none_of_its_own(reader: Any, lines: Any) -> None:
    with pytest.raises(ImportFormatError, match="session of a subagent"):
        read(reader, lines)


GROWING = {
    claude_code: [
        *test_claude_code.REWOUND,
        {**claude_line("r1", "c2", "assistant", [text("One")]), "message": {"id": "m", "content": [text("One")]}},
        {**claude_line("r2", "r1", "assistant", []), "message": {"id": "m", "content": [text("moment")]}},
        {
            **claude_line("r3", "r2", "assistant", []),
            "message": {"id": "m", "content": [tool_use("t1"), tool_use("t2")]},
        },
        claude_line("x1", "r3", "user", [tool_result("t1", "found")]),
        claude_line("x2", "x1", "user", [tool_result("t2", "this too")]),
        claude_line("e1", "x2", "assistant", [text("Done")]),
    ],
    codex: [
        *test_codex.FULL[:7],
        codex_line("response_item", 8, type="message", role="user", content=[]),
        *test_codex.FULL[7:10],
    ],
    gemini_cli: test_gemini_cli.FULL,
}


@pytest.mark.parametrize("reader", GROWING, ids=name_of)
def test_no_key_of_a_session_that_goes_on_stands_for_two_messages(reader: Any) -> None:
    def messages(lines: list[Any]) -> dict[str, tuple[object, ...]]:
        with suppress(ImportFormatError):
            return {
                each.key: (each.role, each.content, each.timestamp, each.tool_call_id)
                for each in read(reader, lines).messages
            }
        return {}

    lines = GROWING[reader]
    whole = messages(lines)
    for length in range(len(lines)):
        for key, message in messages(lines[:length]).items():
            assert whole.get(key, message) == message
