"""Small logs that can be read: rows, turns and operations of one persona, and what is in view of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from chorus_cli.context.rules.view import View, view
from chorus_cli.core.time.timestamps import cutoff
from chorus_cli.log.rules.acts import Clear, Edit, Redo, Restore, Retry, Subject, Undo
from chorus_cli.log.rules.journal import thread_journal
from chorus_cli.log.rules.messages import Message, Role
from chorus_cli.log.rules.operations import Operation

NOW = datetime(2026, 2, 12, 14, 30, tzinfo=UTC)
THREAD = 1


def ago(hours: float) -> datetime:
    return NOW - timedelta(hours=hours)


def row(id_: int, turn: int, at: datetime = NOW, *, thread: int = THREAD, introduced_by: int | None = None) -> Message:
    """Return a message; the one that gives its turn the name is the question."""
    role = Role.USER if id_ == turn else Role.ASSISTANT
    return Message(id_, "chorus", thread, turn, role, f"message {id_}", at, introduced_by=introduced_by)


def turn(id_: int, at: datetime = NOW, *, thread: int = THREAD) -> list[Message]:
    """Return a question and its reply, which has the next id."""
    return [row(id_, id_, at, thread=thread), row(id_ + 1, id_, at, thread=thread)]


def boundary(
    id_: int,
    after: int,
    members: tuple[int, ...] = (),
    *,
    kind: type[Edit | Restore] = Edit,
    at: datetime = NOW,
    thread: int | None = THREAD,
) -> Operation:
    return Operation(id_, kind(members), thread, after, at)


def clear(id_: int, after: int, at: datetime = NOW) -> Operation:
    return Operation(id_, Clear(), None, after, at)


def retry(id_: int, *replaced: int) -> Operation:
    return Operation(id_, Retry(frozenset(replaced)), THREAD, max(replaced), NOW)


def reversal(id_: int, kind: type[Undo | Redo], *, operation: int | None = None, turn: int | None = None) -> Operation:
    return Operation(id_, kind(Subject(operation, turn)), THREAD, 0, NOW)


def ids(seen: View) -> list[int]:
    return [message.id for message in seen.messages]


def in_view(messages: list[Message], *operations: Operation, hours: float = 8) -> list[int]:
    return ids(view(messages, thread_journal(THREAD, operations), cutoff(NOW, hours)))
