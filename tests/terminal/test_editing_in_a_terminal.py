"""``/context edit`` from the keyboard of the real program: the context and the requests afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.mock_provider import MockProvider
from tests.terminal.driver import PROMPT, Home, Terminal
from tests.terminal.edited_talk import EDITED, FIVE, ask_anew, drafts, put_in
from tests.terminal.editors import deleting, editor, replacing

ROWS = "SELECT id, turn_id, role, content, timestamp, status FROM messages ORDER BY id"


def undo_turn(chat: Terminal, text: str) -> None:
    """Take the newest message back, and clear the line that it comes back to."""
    ask_anew(chat, "/undo", "and its reply", f"{PROMPT} {text}")
    chat.press("ctrl-c")
    chat.await_line(PROMPT)


def said_to(mock_provider: MockProvider) -> list[str]:
    """Return the messages of the newest request but for the system message, without their preambles."""
    messages: list[dict[str, Any]] = mock_provider.requests()[-1][1:]
    return [message["content"].rpartition("]\n\n")[2] for message in messages]


def test_the_next_request_holds_what_was_left_and_nothing_else(
    tmp_path: Path, home: Home, mock_provider: MockProvider
) -> None:
    scripts = (deleting("B1", "A2"), replacing("Chorus: B1", "Chorus: B1, but better"))
    variables = {"CHORUS_MODEL": "openai/x", "OPENAI_BASE_URL": f"{mock_provider.address}/v1", "OPENAI_API_KEY": "sk-x"}
    with home.chat(EDITOR=editor(tmp_path, *scripts), **variables) as chat:
        put_in(home, *FIVE)
        rows = home.sql(ROWS)
        ask_anew(chat, "/context edit", f"{EDITED} 3 messages")
        assert home.sql(ROWS) == rows
        assert home.sql("SELECT message_id FROM operation_members ORDER BY position") == [1, 4, 5]
        mock_provider.behave(type="reply", text="Hello from far away.")
        chat.ask("Next", "Hello from far away.")
        assert said_to(mock_provider) == ["A1", "B2", "A3", "Next"]

        undo_turn(chat, "Next")
        ask_anew(chat, "/undo", "Undone: edit of the context")
        ask_anew(chat, "/context edit", f"{EDITED} 5 messages")
        mock_provider.behave(type="reply", text="Second reply.")
        chat.ask("Again", "Second reply.")
        assert said_to(mock_provider) == ["A1", "B1, but better", "A2", "B2", "A3", "Again"]

        undo_turn(chat, "Again")
        ask_anew(chat, "/undo", "Undone: edit of the context")
        mock_provider.behave(type="reply", text="Third reply.")
        chat.ask("Once more", "Third reply.")
        assert said_to(mock_provider) == [*FIVE, "Once more"]
    assert home.sql(f"{ROWS} LIMIT 5") == rows
    assert home.sql("SELECT content FROM messages WHERE introduced_by IS NOT NULL") == ["B1, but better"]
    assert drafts(home) == set()
