"""Pinned messages: those that no window, no fold and no full request leaves out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.core.errors import JournalError
from chorus_cli.log.rows import message_rows
from chorus_cli.log.rules.inclusions import Pin
from chorus_cli.log.rules.messages import Role

if TYPE_CHECKING:
    from chorus_cli.context.service.journal import Journal
    from chorus_cli.log.rules.messages import Message
    from chorus_cli.personas.rules.target import Target

_SPOKEN = frozenset({Role.USER, Role.ASSISTANT})


async def pin(journal: Journal, target: Target, message_id: int) -> Message:
    """Pin a message of the thread, and return it.

    Raises:
        JournalError: it is none of the thread, belongs to a tool, or is pinned already.
    """
    if await _number_of_pin(journal, target, message_id) is not None:
        raise JournalError(f"Message #{message_id} is pinned already. /unpin {message_id} ends that.")
    found = await journal.context.store.read(message_rows.rows, [message_id])
    if found and found[0].thread_id == target.thread_id and found[0].role not in _SPOKEN:
        raise JournalError(f"Message #{message_id} is of a tool. Pin the reply that followed it instead.")
    await journal.introduce(target, Pin((message_id,)))
    (message,) = await journal.context.store.read(message_rows.rows, [message_id])
    return message


async def unpin(journal: Journal, target: Target, message_id: int) -> Message:
    """Undo the pinning of a message, and return it.

    Raises:
        JournalError: it is not pinned.
    """
    number = await _number_of_pin(journal, target, message_id)
    if number is None:
        raise JournalError(f"Message #{message_id} is not pinned in this thread. /pin lists the pinned messages.")
    await journal.undo(target, number)
    (message,) = await journal.context.store.read(message_rows.rows, [message_id])
    return message


async def _number_of_pin(journal: Journal, target: Target, message_id: int) -> int | None:
    """Return the number of the operation that pins a message, if one since the boundary does."""
    counting = [entry.operation for entry in await journal.entries(target) if entry.counts]
    since = max((each.id for each in counting if each.act.is_boundary), default=0)
    pins = (each for each in counting if isinstance(each.act, Pin) and each.id > since)
    return next((each.number for each in pins if message_id in each.members), None)
