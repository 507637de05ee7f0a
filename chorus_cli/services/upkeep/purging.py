"""Purges: their extent, carrying one out, and the backups that still hold it."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.errors import BackupError, PurgeError, SessionError, StorageError
from chorus_cli.core.text.phrases import counted, size_in_words
from chorus_cli.core.upkeep.purge_reports import backups_sentence
from chorus_cli.services.cancellation import run_to_completion
from chorus_cli.storage.files import file_lock
from chorus_cli.storage.purges import backups, carrying_out
from chorus_cli.storage.purges.selection import selected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from chorus_cli.core.upkeep.purge_reports import Extent
    from chorus_cli.core.upkeep.purging import AskedPurge, WantedPurge
    from chorus_cli.ports import Clock
    from chorus_cli.services.personas.roster import Roster
    from chorus_cli.storage.backups.places import Places
    from chorus_cli.storage.purges.backups import PurgedRows
    from chorus_cli.storage.purges.carrying_out import PurgedHome
    from chorus_cli.storage.sqlite.store import Store

_ROOM = 2
"""Times the size of the log that making it anew may take besides."""

_LOCK = ".purge.lock"


class Found(NamedTuple):
    """A purge with its extent, before it is decided."""

    wanted: WantedPurge
    extent: Extent


class Purged(NamedTuple):
    """The result of a purge: a sentence, and the names of the backups that still hold it."""

    sentence: str
    backups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Purging:
    """Purges the log of a store, the files of ``home``, and the backups in ``places``."""

    store: Store
    clock: Clock
    roster: Roster
    places: Places
    home: PurgedHome

    async def find(self, asked: AskedPurge, focus: str) -> Found:
        """Return the extent of a purge; a thread without a persona is one of the persona ``focus``.

        Raises:
            PersonaError: there is no such persona.
            ThreadError: there is no such thread.
            PurgeError: there is no such message, one is still being written, or there is no room.
        """
        slug = (await self.roster.logged(asked.persona, focus))[0] if asked.persona else ""
        wanted = await self.store.read(selected, asked, slug or (focus if asked.thread else ""))
        self._require_room()
        extent = await self.store.read(carrying_out.extent, self.home, wanted)
        if extent.is_empty:
            return Found(wanted, extent)
        rows = await self.store.read(backups.rows_concerned, wanted)
        held = await asyncio.to_thread(backups.holding, self.places, rows)
        return Found(wanted, replace(extent, backups=_names((*held.backups, *held.unreadable))))

    async def carry_out(self, found: Found) -> Purged:
        """Purge; from the decision on, a purge that fails or is killed is carried on by `finish`.

        Raises:
            PurgeError: another Chorus is at it, or it is not complete.
            StorageError: it could not be decided; nothing was purged.
        """
        with self._alone():
            await self.store.write(carrying_out.decide, found.wanted)
            await self._to_its_end()
        amount = counted(found.extent.messages, "message") if found.extent.messages else "The texts"
        verb = "is" if found.extent.messages == 1 else "are"
        return Purged(f"{amount} {verb} purged, for good.", found.extent.backups)

    async def finish(self) -> bool:
        """Carry on a purge that was interrupted, and return whether there was one; not if another Chorus is at it.

        Raises:
            PurgeError: it is not complete yet.
        """
        if not await self.store.read(carrying_out.is_pending):
            return False
        try:
            with self._alone():
                await self._to_its_end()
        except _BusyError:
            return False
        return True

    async def in_backups(self) -> tuple[str, ...]:
        """Return the names of the backups that hold something of any purge so far."""
        rows = await self.store.read(backups.rows_purged)
        held = await asyncio.to_thread(backups.holding, self.places, rows)
        return _names((*held.backups, *held.unreadable))

    async def rewrite_backups(self, tell: Callable[[str], None]) -> str:
        """Rewrite the backups that hold something of any purge so far, and return a sentence.

        ``tell`` gets a sentence for each that cannot be rewritten.

        Raises:
            PurgeError: another Chorus is at it.
        """
        rows = await self.store.read(backups.rows_purged)
        with self._alone():
            told, _ = await run_to_completion(asyncio.to_thread(self._rewrite, rows))
        for sentence in told.failures:
            tell(sentence)
        if not told.rewritten and not told.failures:
            return "No backup holds anything that was purged."
        return f"Rewrote {counted(told.rewritten, 'backup')}."

    def _rewrite(self, rows: PurgedRows) -> _Rewritten:
        held = backups.holding(self.places, rows)
        failures = [
            f"{path} cannot be read, so it may still have it; delete it if it must not." for path in held.unreadable
        ]
        rewritten = 0
        for path in held.backups:
            try:
                backups.rewrite(self.places, path, rows, self.clock.now())
                rewritten += 1
            except (BackupError, StorageError) as error:
                failures.append(f"{path} still has it. {error}")
        return _Rewritten(rewritten, tuple(failures))

    async def _to_its_end(self) -> None:
        """Carry the purge on to its end, even if the caller is cancelled."""
        try:
            _, is_stopped = await run_to_completion(self._steps())
        except (StorageError, PurgeError, SessionError) as error:
            raise PurgeError(f"The purge is not complete. {error} The next start of Chorus carries it on.") from error
        if is_stopped:
            raise asyncio.CancelledError

    async def _steps(self) -> None:
        await self.store.write(carrying_out.overwrite, self.home, self.clock.now())
        await self.store.compact()
        await self.store.write(carrying_out.complete)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        try:
            self.places.backups.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = file_lock.try_lock(self.places.backups / _LOCK)
        except OSError as error:
            raise PurgeError(f"{self.places.backups} cannot be written: {error.strerror or error}.") from error
        if lock is None:
            raise _BusyError("Another Chorus is purging. Wait until it is done and try again.")
        with lock:
            yield

    def _require_room(self) -> None:
        size = self.places.database.stat().st_size
        free = shutil.disk_usage(self.places.database.parent).free
        if free < _ROOM * size:
            raise PurgeError(
                f"There is too little room on the disk of {self.places.database.parent}: a purge makes the log anew, "
                f"which takes up to {size_in_words(_ROOM * size)} there. Nothing was purged."
            )


class _BusyError(PurgeError):
    """Another process is purging."""


class _Rewritten(NamedTuple):
    rewritten: int
    failures: tuple[str, ...]


def still_there(names: Sequence[str]) -> str:
    """Return the question about backups that still hold what was purged."""
    return f"{backups_sentence(names)} Rewrite {'it' if len(names) == 1 else 'them'} without it?"


def _names(paths: Sequence[Path]) -> tuple[str, ...]:
    return tuple(path.name for path in paths)
