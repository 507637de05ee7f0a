"""Shortcuts for writing turns to the log and reading them."""

from __future__ import annotations

import sqlite3
from datetime import datetime
from typing import NamedTuple

from chorus_cli.log.rows import message_rows
from chorus_cli.log.rules.messages import Message, MessageContent, Role, Status
from tests.fakes import START


class OpenedTurn(NamedTuple):
    """The two rows of a turn that has begun."""

    question: Message
    reply: Message


def ask(
    connection: sqlite3.Connection,
    content: str = "Who goes there?",
    *,
    persona: str = "frodo",
    thread: int = 1,
    at: datetime = START,
    run: str = "this-run",
) -> OpenedTurn:
    question = MessageContent(thread, Role.USER, content, at, preamble="It is late.", token_count=7)
    return OpenedTurn(*message_rows.open_turn(connection, persona, question, "model", run))


def answer(connection: sqlite3.Connection, opened: OpenedTurn, content: str = "A friend.", tokens: int = 3) -> Message:
    grown = opened.reply._replace(content=content, status=Status.COMPLETE, token_count=tokens)
    message_rows.update_reply(connection, grown)
    return message_rows.rows(connection, [opened.reply.id])[0]


def put_in(connection: sqlite3.Connection, content: str, timestamp: str, *, thread: int = 1) -> int:
    cursor = connection.execute(
        "INSERT INTO messages(persona, thread_id, role, content, timestamp) VALUES ('frodo', ?, 'user', ?, ?)",
        (thread, content, timestamp),
    )
    return int(cursor.lastrowid or 0)


def everything(connection: sqlite3.Connection, persona: str = "frodo") -> list[Message]:
    return message_rows.history(connection, persona, None, None, 0)


def contents(messages: list[Message]) -> list[str]:
    return [message.content for message in messages]
