"""Five messages that are edited from the keyboard, and the fate of the messages and of the draft."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.terminal.driver import PROMPT, Home, Terminal
from tests.terminal.editors import replacing

FIVE = ("A1", "B1", "A2", "B2", "A3")
TIRED = ("I am tired", "That sounds hard. What has made you tired?")
AN_HOUR = timedelta(hours=1)
A_MINUTE = timedelta(minutes=1)
QUESTION = "(y/n, or d to discard it)"
EDITED = "Context edited:"
REWORDING = replacing("Human: A2", "Human: A two")
MISNAMING = replacing("Human: A2", "Humn: A2")
REWORDED = ("A1", "B1", "A two", "B2", "A3")
LEFT = "The context is unchanged; your"
KEPT, DISCARDED = f"{LEFT} text is kept in", f"{LEFT} edit was discarded."


def put_in(home: Home, *contents: str, newest: timedelta = A_MINUTE, thread: int = 1) -> None:
    for position, content in enumerate(contents):
        age = newest + A_MINUTE * (len(contents) - 1 - position)
        home.say_by_sql(content, age, role="assistant" if position % 2 else "user", thread=thread)


def ask_anew(chat: Terminal, line: str, answer: str, prompt: str = PROMPT) -> None:
    """Say a line whose answer may stand on the screen already, and wait until it stands there once more."""
    say_anew(chat, line, answer)
    chat.await_line(prompt)


def say_anew(chat: Terminal, line: str, answer: str) -> None:
    """Say a line and wait for its answer, however long paths have it broken into lines."""
    times = flowing(chat).count(answer) + 1
    chat.say(line)
    chat.until(lambda: flowing(chat).count(answer) >= times, f"the answer {answer!r}")


def flowing(chat: Terminal) -> str:
    return chat.words()


def drafts(home: Home) -> set[Path]:
    return set((home.path / "state" / "drafts").glob("*"))


def in_context(home: Home, thread: int) -> list[Any]:
    """Return the members of the newest boundary and the messages after it."""
    boundary = "SELECT max(id) FROM operations WHERE kind IN ('edit', 'clear') AND ifnull(thread_id, ?) = ?"
    [operation] = home.sql(boundary, thread, thread)
    members = (
        "SELECT content FROM operation_members JOIN messages ON messages.id = message_id "
        "WHERE operation_id = ? ORDER BY position"
    )
    after = (
        "SELECT content FROM messages WHERE thread_id = ? AND introduced_by IS NULL "
        "AND id > ifnull((SELECT after_message_id FROM operations WHERE id = ?), 0) ORDER BY id"
    )
    return [*home.sql(members, operation or 0), *home.sql(after, thread, operation or 0)]
