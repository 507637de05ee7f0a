"""What was ever said, in the order of the log, with the clears that count in their places."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chorus_cli.core import operations as journal
from chorus_cli.core import timestamps
from chorus_cli.core.operations import Kind, Operation
from chorus_cli.storage import message_log, operation_log

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from datetime import datetime

    from chorus_cli.core.messages import Message
    from chorus_cli.storage.database import Store


@dataclass(frozen=True, slots=True)
class Selection:
    """Whose messages, of which thread (``None``: all), and how young."""

    persona: str
    thread_id: int | None = None
    since: datetime | None = None


async def transcript(store: Store, selection: Selection) -> AsyncIterator[Message | Operation]:
    """Yield the messages and the clears between them, page by page, so that a long log needs little memory."""
    operations = await store.read(operation_log.all_of, selection.persona, selection.thread_id or 0)
    clears = [operation for operation in journal.effective(operations) if operation.kind is Kind.CLEAR]
    if selection.since is not None:
        clears = [clear for clear in clears if clear.created_at > selection.since]
    after = 0
    while page := await store.read(message_log.history, selection.persona, selection.thread_id, selection.since, after):
        for message in page:
            while clears and clears[0].after_message_id < message.id:
                yield clears.pop(0)
            yield message
        after = page[-1].id
    for clear in clears:
        yield clear


def message_as_json(message: Message) -> dict[str, object]:
    """Return a message as the log holds it."""
    return {
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
