"""Stores acts on the context, and undoes and redoes operations and turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from chorus_cli.context.rows import greetings, snapshot_rows, thread_views
from chorus_cli.context.rules.view import view
from chorus_cli.core.errors import JournalError, SettingsError
from chorus_cli.log.rows import message_rows, operation_rows, thread_lists, thread_rows
from chorus_cli.log.rules import journal
from chorus_cli.log.rules.acts import Clear, Fork, Pin, Redo, SettingChange, Subject, Undo, Unpin, Window
from chorus_cli.log.rules.journal import subject_of
from chorus_cli.log.rules.log_acts import Act, Import, MemoryAct
from chorus_cli.log.rules.messages import Message, Role
from chorus_cli.log.rules.operations import NewOperation, Operation
from chorus_cli.memory.rows import item_rows
from chorus_cli.personas.rows import put_setting_back

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from chorus_cli.context.service.context import Context
    from chorus_cli.machine.ports import Clock
    from chorus_cli.memory.service.memory import Memory
    from chorus_cli.personas.rules.persona import Target
    from chorus_cli.personas.service.personas import Personas
    from chorus_cli.storage.port import Connection


Done_co = TypeVar("Done_co", covariant=True)


class Entry(NamedTuple):
    """An operation, its description, and whether it is in effect."""

    operation: Operation
    description: str
    counts: bool


class Step(NamedTuple, Generic[Done_co]):
    """An operation or a turn of the user, and its time; ``done`` is the operation or the turn's question.

    ``redone_at`` is the time of its newest undo or redo, else ``at``. If ``is_open``, it is in effect in the thread,
    also if it is a turn that is older than the window, and no purge prevents its undo.
    """

    done: Done_co
    at: datetime
    redone_at: datetime
    is_undone: bool
    is_open: bool


@dataclass(frozen=True, slots=True)
class Journal:
    """Stores operations on contexts."""

    context: Context
    clock: Clock
    personas: Personas
    memory: Memory

    async def introduce(self, target: Target, act: Act) -> Operation:
        """Store an act on the context of the target's thread."""
        new = NewOperation(target.persona.slug, act, self.clock.now(), target.thread_id, members=act.members)
        return await self.context.store.write(_introduce, new, act.members)

    async def fork(self, target: Target, through_id: int | None = None) -> Operation:
        """Open a thread with the target's context, up to the turn of ``through_id`` if given; return the operation."""
        request_settings, now = await self.context.request_settings(target), self.clock.now()
        return await self.context.store.write(
            lambda c: thread_views.fork(c, self.context.read(c, request_settings, now), through_id, now)
        )

    async def clear(self, target: Target, greeting: str = "") -> None:
        """Begin a new conversation in every thread; the persona says the ``greeting``, if any, in each open thread."""
        new = NewOperation(target.persona.slug, Clear(), self.clock.now())
        await self.context.store.write(_clear, new, target.thread_id, greeting)

    async def clear_unless_spoken(self, slug: str, through_message_id: int) -> bool:
        """Clear all threads and return ``True``, unless the user wrote after ``through_message_id`` or a reply runs."""
        new = NewOperation(slug, Clear(), self.clock.now())
        return (
            await self.context.store.write(operation_rows.introduce_unless_spoken, new, through_message_id) is not None
        )

    async def entries(self, target: Target) -> list[Entry]:
        """Return every operation that concerns the thread, oldest first."""
        operations, said = await self.context.store.read(_with_undone_turns, target)
        counting = {operation.id for operation in journal.effective(operations)}
        numbers = {operation.id: operation.number for operation in operations}
        return [Entry(each, each.describe(said, numbers), each.id in counting) for each in operations]

    async def undo(self, target: Target, number: int | None) -> Operation:
        """Undo operation ``number``, or the user's newest one, and return it; raise an error if it cannot be undone."""
        read = operation_rows.all_of if number is None else _with_forks
        known = journal.own(await self.context.store.read(read, target.persona.slug, target.thread_id))
        chosen = journal.to_undo(known, number)
        await self._reverse(target, Undo(subject_of(chosen)), chosen)
        return chosen

    async def steps(self, target: Target) -> list[Step[Operation | Message]]:
        """Return the steps of the user that concern the thread, oldest first."""
        operations, questions, seen, final = await self.context.store.read(_done_and_said, target)
        reversals = journal.latest_reversals(operations)
        found: list[Step[Operation | Message]] = []
        for done in journal.steps(operations, questions):
            reversal = reversals.get(subject_of(done))
            is_undone = reversal is not None and isinstance(reversal.act, Undo)
            if isinstance(done, Operation):
                at, is_elsewhere = done.created_at, isinstance(done.act, Fork) and done.thread_id != target.thread_id
                is_here = not is_elsewhere and done.id not in final
            else:
                at, is_here = done.timestamp, done.id in seen
            found.append(Step(done, at, reversal.created_at if reversal else at, is_undone, is_here and not is_undone))
        return found

    async def take_back(self, target: Target, done: Operation | Message) -> None:
        """Take back an operation, or the turn of a question."""
        await self._reverse(target, Undo(subject_of(done)), done)

    async def put_back(self, target: Target, done: Operation | Message) -> None:
        """Redo an operation, or the turn of a question."""
        await self._reverse(target, Redo(subject_of(done)), done)

    async def newest_id(self) -> int:
        """Return the id of the newest operation of all personas."""
        return await self.context.store.read(operation_rows.newest_id_of_all)

    async def redo(self, target: Target, number: int | None = None) -> Operation | Message:
        """Redo and return operation ``number``; if it is an undo, redo and return the operation or turn that it undid.

        Without a number, redo the subject of the newest undo, unless a message or an operation has followed the undo.
        If the undone operation concerned every thread, a message in any thread counts.
        """
        if number is not None:
            return await self._redone(target, journal.to_redo(await self._listed(target), number))
        undone = await self.redoable(target)
        if undone is None or undone.subject is None:
            raise JournalError(
                "Nothing was undone just now; /undo list shows what was undone before, and /redo N redoes it."
            )
        return await self._redone(target, undone.subject)

    async def redoable(self, target: Target) -> Operation | None:
        """Return the undo that a redo without a number would reverse, ``None`` if there is none."""
        operations = await self._listed(target)
        newest_turn = await self.context.store.read(message_rows.newest_turn_id, target.thread_id)
        # A fork made here opened another thread, so it does not count as following. An undo of the fork can be redone.
        own = [each for each in operations if not isinstance(each.act, Fork) or each.thread_id == target.thread_id]
        undone = journal.redoable(own, newest_turn)
        if undone is not None and undone.thread_id is None:
            is_followed = operation_rows.is_spoken_after
            slug, after = target.persona.slug, undone.after_message_id
            undone = None if await self.context.store.read(is_followed, slug, after) else undone
        return undone

    async def _listed(self, target: Target) -> list[Operation]:
        return journal.own(await self.context.store.read(_with_forks, target.persona.slug, target.thread_id))

    async def _redone(self, target: Target, subject: Subject) -> Operation | Message:
        done: Operation | Message
        if subject.turn_id is not None:
            of_turn = await self.context.store.read(message_rows.of_turn, subject.turn_id)
            if not of_turn or of_turn[0].id != subject.turn_id:
                raise JournalError(f"Turn {subject.turn_id} cannot be redone: its first message is not in the log.")
            done = of_turn[0]
        else:
            done = next(known for known in await self._listed(target) if known.id == subject.operation_id)
        await self.put_back(target, done)
        return done

    async def _reverse(self, target: Target, reversal: Undo | Redo, done: Operation | Message) -> None:
        """Store the undo or redo of an operation or a turn, with everything else that it changes."""
        new = NewOperation(target.persona.slug, reversal, self.clock.now(), target.thread_id)
        if not isinstance(done, Operation):
            await self.context.store.write(operation_rows.introduce_reversal, new)
            return
        new, is_undo = new._replace(thread_id=done.thread_id), isinstance(reversal, Undo)
        match done.act:
            case MemoryAct() as act:
                await self.memory.put_back(act.inverse if is_undo else act, new)
            case Window() | SettingChange() as act:
                await self._put_setting_back(act.inverse if is_undo else act, new)
            case Import():
                await self.context.store.write(_reverse_import, new, target.thread_id)
            case Fork():
                await self.context.store.write(thread_views.reverse, new, done)
            case _:
                await self.context.store.write(operation_rows.introduce_reversal, new)

    async def _put_setting_back(self, change: Window | SettingChange, new: NewOperation) -> None:
        path = self.personas.changeable_settings_path(new.persona)
        try:
            await self.context.store.write_in_steps(put_setting_back, path, change, new)
        except SettingsError as error:
            raise SettingsError(f"{error} Undo earlier operations by their number: /context ops lists them.") from error


def _introduce(connection: Connection, new: NewOperation, members: Sequence[int]) -> Operation:
    thread_id = new.thread_id or 0
    known = {row.id for row in message_rows.rows(connection, members) if row.thread_id == thread_id}
    if set(members) - known:
        known |= operation_rows.said_elsewhere(connection, new.persona, thread_id)
    for unknown in set(members) - known:
        raise JournalError(f"There is no message #{unknown} in this thread. /search shows the numbers of messages.")
    return operation_rows.introduce(connection, new)


def _clear(connection: Connection, new: NewOperation, thread_id: int, greeting: str) -> None:
    cleared = operation_rows.introduce(connection, new)
    if greeting:
        for id_ in sorted({thread_id, *(each.id for each in thread_lists.open_threads(connection, new.persona))}):
            greetings.greet(connection, new.persona, id_, greeting, new.created_at, cleared.id)


def _reverse_import(connection: Connection, new: NewOperation, here: int) -> None:
    """Store the undo or redo of an import; close the threads left without messages, except the one in focus."""
    operation_rows.introduce_reversal(connection, new)
    withdrawn = thread_lists.withdrawn_threads(connection, new.persona)
    thread_rows.close(connection, withdrawn - {here}, new.created_at)


def _with_undone_turns(connection: Connection, target: Target) -> tuple[list[Operation], dict[int, str]]:
    """Return the operations of a thread, and by turn id the questions of the turns that they undo or redo."""
    operations = journal.own(_with_forks(connection, target.persona.slug, target.thread_id))
    turn_ids = {each.subject.turn_id for each in operations if each.subject and each.subject.turn_id}
    return operations, {row.id: row.content for row in message_rows.rows(connection, turn_ids)}


def _done_and_said(connection: Connection, target: Target) -> tuple[list[Operation], list[Message], set[int], set[int]]:
    """Return the operations that concern a thread, its questions, and two sets of ids.

    The sets have the turns in context at any age, and the operations that a purge has made final.
    """
    slug, thread_id = target.persona.slug, target.thread_id
    operations = journal.own(_with_forks(connection, slug, thread_id))
    seen = thread_views.turns_of_any_age(connection, snapshot_rows.thread_journal(connection, slug, thread_id))
    return operations, message_rows.questions(connection, thread_id), seen, _final(connection, operations)


def _final(connection: Connection, operations: list[Operation]) -> set[int]:
    """Return the ids of changes of memory items that cannot be undone, because a purge took an item or its words."""
    acts = {each.id: each.act for each in operations if isinstance(each.act, MemoryAct) and not each.act.passes_over}
    purged = item_rows.purged_among(connection, {each.item_id for act in acts.values() for each in act.changes})
    return {
        id_
        for id_, act in acts.items()
        if any(each.item_id in purged or each.before == each.after for each in act.changes)
    }


def _with_forks(connection: Connection, slug: str, thread_id: int) -> list[Operation]:
    """Return the operations that concern a thread, and the forks of the thread, with their undos and redos."""
    forks = operation_rows.forks_of(connection, slug, thread_id)
    return sorted([*operation_rows.all_of(connection, slug, thread_id), *forks], key=lambda each: each.id)


_SPOKEN = frozenset({Role.USER, Role.ASSISTANT})


async def pin(journal: Journal, target: Target, message_id: int) -> Message:
    """Pin a message and return it; refuse a tool's message, and one that is pinned already, undone or replaced."""
    message_id, is_pinned = await _present(journal, target, message_id)
    if is_pinned:
        raise JournalError(f"Message #{message_id} is pinned already. /unpin {message_id} ends that.")
    found = await journal.context.store.read(message_rows.rows, [message_id])
    if found and found[0].thread_id == target.thread_id and found[0].role not in _SPOKEN:
        raise JournalError(f"Message #{message_id} is a tool's call or result. Pin the reply that followed it instead.")
    act, now = Pin((message_id,)), journal.clock.now()
    new = NewOperation(target.persona.slug, act, now, target.thread_id, members=act.members)
    return await journal.context.store.write(_pin, new, act)


def _pin(connection: Connection, new: NewOperation, act: Pin) -> Message:
    _introduce(connection, new, act.members)
    known = snapshot_rows.thread_journal(connection, new.persona, new.thread_id or 0)
    seen = view(message_rows.rows(connection, act.members), known, new.created_at).messages
    if not seen:
        raise JournalError(
            f"Message #{act.members[0]} is undone, replaced or purged, so it cannot be pinned. /undo list shows the "
            "numbers for /redo and /undo."
        )
    return seen[0]


async def unpin(journal: Journal, target: Target, message_id: int) -> Message:
    """End the pinning of a message, and return the message."""
    message_id, is_pinned = await _present(journal, target, message_id)
    if not is_pinned:
        raise JournalError(f"Message #{message_id} is not pinned in this thread. /pin lists the pinned messages.")
    await journal.introduce(target, Unpin(message_id))
    (message,) = await journal.context.store.read(message_rows.rows, [message_id])
    return message


async def _present(journal: Journal, target: Target, message_id: int) -> tuple[int, bool]:
    """Return the id of the present wording of a message, and whether this wording is pinned."""
    seen = (await journal.context.snapshot(target, journal.clock.now())).view
    id_ = await journal.context.store.read(thread_views.present_wording, seen.messages, message_id)
    return id_, id_ in seen.pinned and any(row.id == id_ for row in seen.messages)
