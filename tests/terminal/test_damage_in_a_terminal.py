"""A chat on a log with a text that is not UTF-8 opens, and says so at the start."""

from __future__ import annotations

import pytest

from tests.terminal.driver import Home

MESSAGES = "UPDATE messages SET content = CAST(x'f0ff' AS TEXT)"
INPUTS = "UPDATE input_history SET content = CAST(x'f0ff' AS TEXT)"
TITLES = "UPDATE threads SET title = CAST(x'f0ff' AS TEXT)"


@pytest.mark.parametrize(
    "statements",
    [
        ("UPDATE messages SET model = CAST(x'f0ff' AS TEXT)",),
        (MESSAGES, "UPDATE messages SET status = 'interrupted' WHERE role = 'assistant'"),
        (MESSAGES, "UPDATE messages SET status = 'streaming' WHERE role = 'assistant'"),
        (MESSAGES, INPUTS, TITLES),
    ],
    ids=["model", "interrupted", "killed", "all"],
)
def test_a_text_that_is_not_utf_8_is_told_once_when_the_chat_opens(home: Home, statements: tuple[str, ...]) -> None:
    with home.chat() as chat:
        chat.ask("hello", "Hello")
    for statement in statements:
        home.sql(statement)
    with home.chat() as chat:
        chat.await_text("chorus doctor", 10)
        chat.ask("/help undo", "/undo")
        assert " ".join(chat.screen_text().split()).count("a text in it is not UTF-8") == 1
