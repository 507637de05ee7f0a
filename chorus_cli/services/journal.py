"""Clearing the context, and taking back or putting back what was done to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chorus_cli.core import operations as journal
from chorus_cli.core.errors import JournalError, SettingsError
from chorus_cli.core.operations import REVERSALS, Kind, Operation, Target, WindowChange
from chorus_cli.storage import message_log, operation_log
from chorus_cli.storage.operation_log import NewOperation
from chorus_cli.storage.window_changes import put_window_back

if TYPE_CHECKING:
    from chorus_cli.ports import Clock
    from chorus_cli.services.personas import Personas
    from chorus_cli.services.place import Place
    from chorus_cli.storage.database import Store


@dataclass(frozen=True, slots=True)
class Entry:
    """An operation, and whether it counts at present."""

    operation: Operation
    counts: bool


@dataclass(frozen=True, slots=True)
class Journal:
    """The operations on a persona's context."""

    store: Store
    clock: Clock
    personas: Personas

    async def clear(self, place: Place) -> Operation:
        """Begin a new conversation in every thread of the persona; a reply still running stays behind."""
        new = NewOperation(place.persona.slug, Kind.CLEAR, self.clock.now())
        return await self.store.write(operation_log.introduce, new)

    async def entries(self, place: Place) -> list[Entry]:
        """Return every operation that concerns the thread, oldest first."""
        operations = await self._operations(place)
        counting = {operation.id for operation in journal.effective(operations)}
        return [Entry(operation, operation.id in counting) for operation in operations]

    async def undo(self, place: Place, number: int | None) -> Operation:
        """Take back operation ``number``, or the newest one of the user's that counts, and return it.

        Raises:
            JournalError: there is nothing to take back, or it is taken back already.
            SettingsError: the setting that it changed was changed again since.
        """
        operations = await self._operations(place)
        chosen = _to_undo(operations, number)
        change = WindowChange(chosen.window.after, chosen.window.before) if chosen.window else None
        await self._record(place, Kind.UNDO, chosen, change)
        return chosen

    async def redo(self, place: Place) -> Operation:
        """Put back what the newest undo took back, unless something has followed it, and return it.

        Raises:
            JournalError: there is nothing to put back.
            SettingsError: the setting that it changed was changed again since.
        """
        operations = await self._operations(place)
        newest_turn = await self.store.read(message_log.newest_turn_id, place.thread_id)
        undone = journal.redoable(operations, newest_turn)
        by_id = {known.id: known for known in operations}
        chosen = by_id.get(undone.target.operation_id or 0) if undone and undone.target else None
        if chosen is None:
            raise JournalError(
                "There is nothing to redo. Only an undo that nothing has followed since can be taken back."
            )
        await self._record(place, Kind.REDO, chosen, chosen.window)
        return chosen

    async def _operations(self, place: Place) -> list[Operation]:
        return journal.own(await self.store.read(operation_log.all_of, place.persona.slug, place.thread_id))

    async def _record(self, place: Place, kind: Kind, chosen: Operation, change: WindowChange | None) -> None:
        target = Target(operation_id=chosen.id)
        new = NewOperation(place.persona.slug, kind, self.clock.now(), thread_id=chosen.thread_id, target=target)
        if change is None:
            await self.store.write(operation_log.introduce, new)
        else:
            try:
                await self.store.write(put_window_back, self.personas.settings_path(place.persona.slug), change, new)
            except SettingsError as error:
                raise SettingsError(
                    f"{error} An earlier operation goes by its number: /context ops lists them."
                ) from error


def _to_undo(operations: list[Operation], number: int | None) -> Operation:
    if number is None:
        newest = journal.undoable(operations)
        if newest is None:
            raise JournalError("There is nothing to undo here.")
        return newest
    chosen = next((known for known in operations if known.id == number), None)
    if chosen is None:
        raise JournalError(f"There is no operation {number} here. /context ops lists them.")
    if chosen.kind in REVERSALS:
        raise JournalError(f"Operation {number} is itself an {chosen.kind}. /context redo puts back what was undone.")
    if chosen not in journal.effective(operations):
        raise JournalError(f"Operation {number} is undone already. /context redo puts back what was undone last.")
    return chosen
