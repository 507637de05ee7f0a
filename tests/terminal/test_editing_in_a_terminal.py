"""``/context edit`` from the keyboard of the real program: the context and the requests afterwards."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.mock_provider import MockProvider
from tests.terminal.driver import PROMPT, Home, Terminal
from tests.terminal.edited_talk import AN_HOUR, EDITED, FIVE, TIRED, ask_anew, drafts, in_context, put_in
from tests.terminal.editors import CONTEXT_LINE, deleting, editor, moving_the_line, replacing

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


def test_older_messages_come_in_only_below_the_line(tmp_path: Path, home: Home) -> None:
    scripts = (
        deleting("B1"),
        moving_the_line("old 2998"),
        replacing(CONTEXT_LINE, ""),
        replacing("Human: Fresh", "Human: Fresher"),
    )
    with home.chat(EDITOR=editor(tmp_path, *scripts)) as chat:
        home.sql(
            "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 3000) "
            "INSERT INTO messages(persona, thread_id, role, content, timestamp) SELECT 'chorus', 1, 'user', "
            "'old ' || n, strftime('%Y-%m-%dT%H:%M:%S.000000Z', 'now', '-20 hours', n || ' seconds') FROM numbers"
        )
        put_in(home, *FIVE)
        ask_anew(chat, "/context edit", f"{EDITED} 4 messages")
        assert home.seen() == ["A1", "A2", "B2", "A3"]
        ask_anew(chat, "/context edit", f"{EDITED} 8 messages")
        assert in_context(home, 1) == ["old 2998", "old 2999", "old 3000", "B1", "A1", "A2", "B2", "A3"]
        ask_anew(chat, "/context edit", f"{EDITED} 3,005 messages")
        assert home.sql("SELECT count(*) FROM messages") == [3005]

        ask_anew(chat, "/new", "--- New conversation ---")
        home.say_by_sql("Fresh", timedelta())
        ask_anew(chat, "/context edit", f"{EDITED} 1 message")
        ask_anew(chat, "/context 168h", "Context window set to 168h")
        assert home.seen() == ["Fresher"]
    assert home.sql("SELECT content FROM messages WHERE id > 3005") == ["Fresh", "Fresher"]


def test_what_is_not_shown_stays_and_all_leave_together(tmp_path: Path, home: Home) -> None:
    with home.chat(EDITOR=editor(tmp_path, deleting("A3"))) as chat:
        put_in(home, *FIVE[:4], newest=3 * AN_HOUR)
        put_in(home, "A3", "B3")
        ask_anew(chat, "/context edit 1h", f"{EDITED} 5 messages")
        assert in_context(home, 1) == ["A1", "B1", "A2", "B2", "B3"]
        shift(home, "-7 hours", "-59 minutes")
        assert home.seen() == ["A1", "B1", "A2", "B2", "B3"]
        shift(home, "-2 minutes")
        assert home.seen() == []
        chat.ask(*TIRED)
        chat.await_text("The 5 messages of the edit have left the 8h window. /context 9h brings them back.")
        ask_anew(chat, "/context 9h", "Context window set to 9h")
        assert home.seen() == ["A1", "B1", "A2", "B2", "B3", *TIRED]


def shift(home: Home, *modifiers: str) -> None:
    """Let time pass: everything that is stored is as much older."""
    by = ", ".join(f"'{modifier}'" for modifier in modifiers)
    for table, column in (("messages", "timestamp"), ("operations", "created_at")):
        moment = f"strftime('%Y-%m-%dT%H:%M:%f', substr({column}, 1, 23), {by}) || '000Z'"
        home.sql(f"UPDATE {table} SET {column} = {moment}")  # noqa: S608 - made of the constants above
