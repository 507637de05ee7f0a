"""Transcripts, which are messages in order with the effective boundaries between them, and exports."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.context.rows import snapshot_rows
from chorus_cli.core.errors import CommandError
from chorus_cli.log.rows import message_rows, operation_rows, thread_rows
from chorus_cli.log.rules import journal
from chorus_cli.log.rules.acts import Fork
from chorus_cli.log.rules.journal import NO_MARKS, log_marks
from chorus_cli.log.rules.messages import UNMEASURED, Message, Thought, Thoughts
from chorus_cli.log.rules.operations import Numbers, Operation
from chorus_cli.log.rules.wording import Export, without_empty_replies

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
    from datetime import datetime

    from chorus_cli.context.service.context import Context
    from chorus_cli.personas.rules.persona import Target
    from chorus_cli.storage.store import Store


class Selection(NamedTuple):
    """The messages of a persona, in one thread or in all (``None``), after a time if given, and after a message id."""

    persona: str
    thread_id: int | None = None
    since: datetime | None = None
    after_id: int = 0


async def selected(store: Store, persona: str, thread_number: int | None, since: datetime | None) -> Selection:
    """Select messages of a persona, or only those of the thread ``thread_number``."""
    if thread_number is None:
        return Selection(persona, since=since)
    return Selection(persona, (await store.read(thread_rows.had, persona, thread_number)).id, since)


async def operations_of(store: Store, selection: Selection) -> list[Operation]:
    """Return all operations that concern the selected messages, oldest first."""
    return await store.read(operation_rows.all_of, selection.persona, selection.thread_id)


async def numbers_of(store: Store, persona: str) -> Numbers:
    """Return the numbers of a persona's threads and operations."""
    threads = await store.read(thread_rows.numbers, persona)
    return Numbers(threads, await store.read(operation_rows.numbers, persona))


async def transcript(
    store: Store, selection: Selection, operations: Sequence[Operation]
) -> AsyncIterator[Message | Operation]:
    """Yield the messages and the boundaries between them; in one thread, also the messages that a fork put in."""
    boundaries = [operation for operation in journal.effective(operations) if operation.act.is_boundary]
    if selection.since is not None:
        boundaries = [boundary for boundary in boundaries if boundary.created_at > selection.since]
    after = selection.after_id
    boundaries = [boundary for boundary in boundaries if boundary.after_message_id > after or not after]
    while page := await store.read(
        message_rows.history, selection.persona, selection.thread_id, selection.since, after
    ):
        for message in page:
            while boundaries and boundaries[0].after_message_id < message.id:
                for entry in await _boundary(store, selection, boundaries.pop(0)):
                    yield entry
            yield message
        after = page[-1].id
    for boundary in boundaries:
        for entry in await _boundary(store, selection, boundary):
            yield entry


async def newest_of(
    store: Store, selection: Selection, operations: Sequence[Operation], number: int
) -> AsyncIterator[Message | Operation]:
    """Yield the newest ``number`` messages of a transcript, and the boundaries after the first of them."""
    persona, thread_id, since, _ = selection
    after_id = await store.read(message_rows.id_before_newest, persona, thread_id, since, number)
    entries = [entry async for entry in transcript(store, selection._replace(after_id=after_id), operations)]
    places = [place for place, entry in enumerate(entries) if isinstance(entry, Message)]
    for entry in entries[places[-number] if len(places) > number else 0 :]:
        yield entry


async def _boundary(store: Store, selection: Selection, boundary: Operation) -> list[Message | Operation]:
    """Return a boundary; in the transcript of one thread, the messages that a fork put in come before it."""
    if selection.thread_id is None or not isinstance(boundary.act, Fork):
        return [boundary]
    rows = {row.id: row for row in await store.read(message_rows.rows, boundary.members)}
    return [*(rows[member] for member in boundary.members if member in rows), boundary]


async def thoughts_in(store: Store, entries: Iterable[Message | Operation]) -> Mapping[int, Thoughts]:
    """Return the thoughts of models before the messages of a transcript, by message id."""
    ids = [entry.id for entry in entries if isinstance(entry, Message)]
    return await store.read(snapshot_rows.of_replies, ids)


async def readable_thoughts(store: Store, message: Message) -> str:
    """Return the readable thoughts before a message; empty if there are none."""
    found = {} if message.thought is None else await thoughts_in(store, [message])
    return found[message.id].text if message.id in found else ""


async def newest_thoughts(context: Context, target: Target, now: datetime) -> list[tuple[Thought, str]]:
    """Return the thoughts of the newest turn in context that has any, reply by reply; hidden thoughts have no text."""
    view = await context.store.read(context.read_view, target, now)
    thoughtful = [row for row in view.messages if row.thought is not None]
    of_turn = [row for row in thoughtful if row.turn_id == thoughtful[-1].turn_id]
    found = await thoughts_in(context.store, of_turn)
    return [(row.thought or UNMEASURED, found.get(row.id, Thoughts()).text) for row in of_turn]


async def exported(context: Context, target: Target, now: datetime, *, whole: bool) -> Export:
    """Return the messages in context, or with ``whole`` all of the thread; raise `CommandError` if there are none."""
    store, persona, marks = context.store, target.persona, NO_MARKS
    if whole:
        selection = Selection(persona.slug, target.thread_id)
        operations = await operations_of(store, selection)
        entries = tuple([entry async for entry in transcript(store, selection, operations)])
        marks = log_marks(operations, selection.thread_id)
    else:
        entries = (await context.snapshot(target, now)).view.messages
    numbers, entries = await numbers_of(store, persona.slug), without_empty_replies(entries)
    thoughts = await thoughts_in(store, entries)
    found = Export(persona.slug, persona.speakers, target.thread_id, now, whole, entries, marks, numbers, thoughts)
    if not found.messages:
        more = "" if whole else "; /export FILE all writes everything said in this thread"
        raise CommandError(f"There is nothing to write{more}.")
    return found
