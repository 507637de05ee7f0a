"""Finds the extent of a purge, carries a purge out, and rewrites the backups that still hold its texts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple

from chorus_cli.core.errors import PurgeError, StorageError
from chorus_cli.core.text.phrases import counted
from chorus_cli.machine.notifier import run_to_completion, to_its_end
from chorus_cli.machine.ports import Clock
from chorus_cli.personas.service.persona_admin import PersonaAdmin
from chorus_cli.storage import file_lock
from chorus_cli.storage.port import Connection
from chorus_cli.storage.store import Store
from chorus_cli.stores import listing
from chorus_cli.stores.backup import archive
from chorus_cli.stores.listing import PurgedRows
from chorus_cli.stores.purge import backups, carrying_out, files
from chorus_cli.stores.purge.backups import Sought
from chorus_cli.stores.purge.concerned import selected
from chorus_cli.stores.purge.files import Home
from chorus_cli.stores.rules.purging import (
    NO_CRITERIA,
    Extent,
    WantedPurge,
    backups_sentence,
)

REWRITES = "chorus purge backups rewrites"
ELSEWHERE = (
    "Dumps and archives of the server of {} may still have the texts. So may a log on this machine: repeat the purge "
    "with --log local. Other machines may have copies in logs, sessions, attachments and the input history: repeat the "
    "purge there, too."
)
NONE_HOLDS = "No backup in {} holds a purged message."


class Found(NamedTuple):
    """A purge with its extent, before its decision. ``rows`` are the rows to look for in backups."""

    wanted: WantedPurge
    extent: Extent
    rows: PurgedRows


class Purged(NamedTuple):
    """The result of a purge: a sentence, and the names of the backups that still hold its texts."""

    sentence: str
    backups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Purging:
    """Purges the log of a store, the files of ``home``, and its backups.

    A purge waits at most ``patience_seconds`` for another purge, or for a backup being made.
    """

    store: Store
    clock: Clock
    persona_admin: PersonaAdmin
    home: Home
    patience_seconds: float = 10.0

    async def find(self, asked: WantedPurge, focus: str) -> Found:
        """Find the extent of a purge. If ``asked`` names a thread but no persona, the thread belongs to ``focus``.

        Raises:
            PersonaError: there is no such persona.
            ThreadError: there is no such thread.
            PurgeError: there is no such message, one is being written, or a file cannot be read.
        """
        name = asked.persona or next(iter(asked.personas), "")
        slug = await self.persona_admin.logged(name, focus) if name else ""
        wanted = await self.store.read(
            selected, asked, slug or (focus if asked.thread else ""), self.home.paths.attachments
        )
        extent, rows = await self.store.read(_extent_and_rows, self.home, wanted)
        # If the log has nothing to purge, only the words, span or persona of a purge can still be found in backups.
        can_be_held = wanted.criteria() != NO_CRITERIA or not extent.is_empty
        held = await self._holding(rows, wanted) if can_be_held else ()
        return Found(wanted, replace(extent, backups=held), rows)

    async def carry_out(
        self, found: Found, tell: Callable[[str], None] = lambda _sentence: None, *, with_backups: bool = False
    ) -> Purged:
        """Carry out a purge. If it fails or is killed after its decision, `finish` completes it.

        An interrupted purge is completed first. ``tell`` gets sentences about backups and about dumps of a server.
        ``with_backups`` says that the caller calls `rewrite_backups` next if backups still hold the texts.

        Raises:
            PurgeError: another Chorus purges or makes a backup, a message is being written, or the purge is incomplete.
            StorageError: the purge could not be decided; nothing was purged.
        """
        async with self._alone(self.patience_seconds):
            if await self.store.read(carrying_out.is_pending):
                await self._carry_on(tell)
            await to_its_end(self._decided(found.wanted, with_backups=with_backups))
        number = len(found.extent.ids.messages)
        amount = counted(number, "message") if number else "The texts"
        verb = "is" if number == 1 else "are"
        # A backup may have been made since the extent was shown.
        names = await self._holding(found.rows, found.wanted)
        if with_backups and not names:
            await self.store.write(carrying_out.complete)
        if self.store.server:
            tell(ELSEWHERE.format(self.store.server))
        elif any(self.home.paths.data.glob("beside-*.db")):
            tell("The log on a server may have the texts too: repeat the purge with --log URL.")
        return Purged(f"{amount} {verb} purged, for good.", names)

    async def finish(self, tell: Callable[[str], None] = lambda _sentence: None) -> bool:
        """Complete an interrupted purge. Return false if there is none, or if another Chorus purges or backs up."""
        if not await self.store.read(carrying_out.is_pending):
            return False
        try:
            async with self._alone(patience_seconds=0):
                wanted = await self._carry_on(tell)
        except _BusyError:
            return False
        if wanted is None and (names := await self.in_backups()):
            tell(f"{backups_sentence(names)} {REWRITES} {'it' if len(names) == 1 else 'them'}.")
        return True

    async def _carry_on(self, tell: Callable[[str], None]) -> WantedPurge | None:
        """Complete a purge and its rewriting of backups. Return the criteria if backups were rewritten."""
        wanted = await to_its_end(self._steps())
        if wanted is not None:
            for sentence in await self._rewrite_all(wanted):
                tell(sentence)
        return wanted

    async def in_backups(self, wanted: WantedPurge = NO_CRITERIA) -> tuple[str, ...]:
        """Return the names of backups that may hold rows of any purge so far, or texts that fit ``wanted``."""
        return await self._holding(await self.store.read(backups.rows_purged), wanted)

    async def rewrite_backups(self, wanted: WantedPurge = NO_CRITERIA) -> list[str]:
        """Rewrite the backups that hold rows of any purge so far, or texts that fit ``wanted``.

        Return a sentence for each failure, and one about all backups.
        """
        async with self._alone(self.patience_seconds):
            return await self._rewrite_all(wanted)

    async def _rewrite_all(self, wanted: WantedPurge) -> list[str]:
        """Rewrite the backups, even if the caller is cancelled. This completes a purge that was to rewrite them."""
        sought = Sought(await self.store.read(backups.rows_purged), wanted.criteria())
        await asyncio.to_thread(files.delete_remains, self.home.paths)
        (number, failures), _ = await run_to_completion(self._rewritten(sought))
        none = NONE_HOLDS.format(self.home.paths.backups)
        return [*failures, f"Rewrote {counted(number, 'backup')}." if number or failures else none]

    async def _rewritten(self, sought: Sought) -> tuple[int, Sequence[str]]:
        told = await asyncio.to_thread(backups.rewrite_all, self.home.paths, sought, self.clock.now())
        if await self.store.read(carrying_out.is_compact):
            await self.store.write(carrying_out.complete)
        return told

    async def _decided(self, wanted: WantedPurge, *, with_backups: bool) -> None:
        await self.store.write(carrying_out.decide, self.home, wanted, self.clock.now(), with_backups=with_backups)
        await self._steps()

    async def _steps(self) -> WantedPurge | None:
        """Carry out the steps after the decision. Return the criteria if backups are to be rewritten, else ``None``."""
        try:
            if not await self.store.read(carrying_out.is_compact):
                await self.store.write(carrying_out.change_files, self.home)
                await self.store.compact()
                await asyncio.to_thread(files.delete_remains, self.home.paths)
            return await self.store.write(carrying_out.complete_log)
        except (StorageError, PurgeError) as error:
            raise PurgeError(f"The purge is not complete. {error} The next start of Chorus completes it.") from error

    async def _holding(self, rows: PurgedRows, wanted: WantedPurge) -> tuple[str, ...]:
        held = await asyncio.to_thread(backups.holding, self.home.paths, Sought(rows, wanted.criteria()))
        return tuple(path.name for path in held)

    @asynccontextmanager
    async def _alone(self, patience_seconds: float) -> AsyncIterator[None]:
        """Lock out other purges, and backups: a new backup would hold the texts that are being purged."""
        backups = self.home.paths.backups
        try:
            backups.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = await asyncio.to_thread(file_lock.wait_for, backups / archive.LOCK, patience_seconds)
        except OSError as error:
            reason = error.strerror or error
            raise PurgeError(f"{backups} cannot be written ({reason}), so nothing can be purged.") from error
        if lock is None:
            raise _BusyError(f"Another Chorus is purging or making a backup. {file_lock.LATER}")
        with lock:
            yield


def _extent_and_rows(connection: Connection, home: Home, wanted: WantedPurge) -> tuple[Extent, PurgedRows]:
    carrying_out.require_access(home)
    found = carrying_out.changes(connection, home, wanted)
    return carrying_out.extent(connection, home, found), listing.rows_of(connection, found.found.ids)


class _BusyError(PurgeError):
    """Another process purges or makes a backup."""


def still_there(names: Sequence[str]) -> str:
    """Return the question about backups that still hold purged texts."""
    return f"{backups_sentence(names)} Rewrite {'it' if len(names) == 1 else 'them'} without the texts?"
