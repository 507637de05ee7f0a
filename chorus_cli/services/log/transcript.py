"""The log as a transcript: messages in order, with the effective boundaries between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chorus_cli.core.log import journal
from chorus_cli.core.log.marks import marker
from chorus_cli.core.log.messages import Message
from chorus_cli.core.time import timestamps
from chorus_cli.storage.sqlite.log import message_rows, operation_rows, thread_rows

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from datetime import datetime

    from chorus_cli.core.log.marks import LogMarks
    from chorus_cli.core.log.operations import Operation
    from chorus_cli.storage.sqlite.store import Store


@dataclass(frozen=True, slots=True)
class Selection:
    """Messages of a persona, of one thread (``None``: all), after a time (``None``: all)."""

    persona: str
    thread_id: int | None = None
    since: datetime | None = None


async def operations_of(store: Store, selection: Selection) -> list[Operation]:
    """Return all operations that concern the selected messages, oldest first.

    Raises:
        ThreadError: the persona never had that thread.
    """
    if selection.thread_id is not None:
        await store.read(thread_rows.require, selection.persona, selection.thread_id)
    return await store.read(operation_rows.all_of, selection.persona, selection.thread_id)


async def transcript(
    store: Store, selection: Selection, operations: Sequence[Operation]
) -> AsyncIterator[Message | Operation]:
    """Yield the messages and the boundaries between them, page by page, so that a long log needs little memory."""
    boundaries = [operation for operation in journal.effective(operations) if operation.act.is_boundary]
    if selection.since is not None:
        boundaries = [boundary for boundary in boundaries if boundary.created_at > selection.since]
    after = 0
    while page := await store.read(
        message_rows.history, selection.persona, selection.thread_id, selection.since, after
    ):
        for message in page:
            while boundaries and boundaries[0].after_message_id < message.id:
                yield boundaries.pop(0)
            yield message
        after = page[-1].id
    for boundary in boundaries:
        yield boundary


def entry_as_json(entry: Message | Operation, marks: LogMarks) -> dict[str, object]:
    """Return an entry of the log: a message, or a boundary, which alone has the key ``marker``."""
    return message_as_json(entry, marks) if isinstance(entry, Message) else _boundary_as_json(entry)


def _boundary_as_json(boundary: Operation) -> dict[str, object]:
    return {
        "marker": marker(boundary),
        "operation": boundary.id,
        "kind": boundary.act.kind,
        "thread": boundary.thread_id,
        "timestamp": timestamps.to_text(boundary.created_at),
        "members": list(boundary.members),
    }


def message_as_json(message: Message, marks: LogMarks | None = None) -> dict[str, object]:
    """Return a message as in the log; with ``marks`` also whether it was undone, or replaced by another reply."""
    fields: dict[str, object] = {
        "id": message.id,
        "persona": message.persona,
        "thread": message.thread_id,
        "turn": message.turn_id,
        "role": message.role,
        "content": message.content,
        "timestamp": timestamps.to_text(message.timestamp),
        "status": message.status,
        "model": message.model,
        "tokens": message.token_count,
        "introduced_by": message.introduced_by,
    }
    if marks is not None:
        fields |= {"undone": marks.is_undone(message), "replaced": marks.is_replaced(message)}
    return fields
