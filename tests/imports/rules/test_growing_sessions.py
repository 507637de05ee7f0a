"""A session that is imported while it goes on, and again later: a message keeps its key, and a key its message."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from chorus_cli.core.errors import ImportFormatError
from chorus_cli.imports.rules import claude_code, codex, gemini_cli
from chorus_cli.imports.rules.assembly import FileFacts
from tests.imports.rules import test_claude_code, test_codex, test_gemini_cli
from tests.imports.rules.sessions import claude_line, codex_line, text, tool_result, tool_use

if TYPE_CHECKING:
    from collections.abc import Callable

    from chorus_cli.imports.rules.conversation import ForeignConversation

CLAUDE = [
    *test_claude_code.REWOUND,
    {**claude_line("r1", "c2", "assistant", [text("One")]), "message": {"id": "m", "content": [text("One")]}},
    {**claude_line("r2", "r1", "assistant", []), "message": {"id": "m", "content": [text("moment")]}},
    {**claude_line("r3", "r2", "assistant", []), "message": {"id": "m", "content": [tool_use("t1"), tool_use("t2")]}},
    claude_line("x1", "r3", "user", [tool_result("t1", "found")]),
    claude_line("x2", "x1", "user", [tool_result("t2", "this too")]),
    claude_line("e1", "x2", "assistant", [text("Done")]),
]
CODEX = [
    *test_codex.FULL[:7],
    codex_line("response_item", 8, type="message", role="user", content=[]),
    *test_codex.FULL[7:10],
]


def messages(read: Callable[[Any, FileFacts], ForeignConversation], lines: list[Any]) -> dict[str, tuple[object, ...]]:
    with suppress(ImportFormatError):
        return {
            each.key: (each.role, each.content, each.timestamp, each.tool_call_id)
            for each in read(lines, FileFacts("s1")).messages
        }
    return {}


@pytest.mark.parametrize(
    ("read", "lines"),
    [
        (claude_code.conversation_of, CLAUDE),
        (codex.conversation_of, CODEX),
        (gemini_cli.conversation_of, test_gemini_cli.FULL),
    ],
)
def test_no_key_stands_for_two_messages(
    read: Callable[[Any, FileFacts], ForeignConversation], lines: list[Any]
) -> None:
    whole = messages(read, lines)
    for length in range(len(lines)):
        for key, message in messages(read, lines[:length]).items():
            assert whole.get(key, message) == message
