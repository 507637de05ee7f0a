"""Copies the log of this machine to a server, and back, with the bytes of its attachments."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from chorus_cli.attachments.files.attachments import AttachmentFolder, delete
from chorus_cli.attachments.rows import delete_on_server, is_on_server, named_attachments
from chorus_cli.attachments.service.attachments import SharedFiles
from chorus_cli.core.errors import AttachmentError, SessionError, StorageError
from chorus_cli.core.text.phrases import counted
from chorus_cli.machine.notifier import stoppable
from chorus_cli.machine.ports import Clock
from chorus_cli.sessions import files as session_files
from chorus_cli.sessions import rows as session_rows
from chorus_cli.storage.port import Connection, Engine
from chorus_cli.storage.store import Store, opened_store
from chorus_cli.stores.copying.log_copy import TableCopied, copied

_TELLING_SECONDS = 5.0


class CopiedLog(NamedTuple):
    """The tables of a copied log, the number of copied attachments, and the number of missing ones."""

    tables: list[TableCopied]
    attachments: int
    missing: int

    @property
    def differs(self) -> bool:
        """Whether rows in common differ."""
        return any(table.differing for table in self.tables)

    def as_json(self) -> dict[str, object]:
        """Return the copy as JSON."""
        tables = [each._asdict() for each in self.tables]
        return {"tables": tables, "attachments": self.attachments, "missing_attachments": self.missing}

    def lines(self) -> list[str]:
        """Return the tables and the attachments for the user."""
        found = [
            f"{each.name.replace('_', ' '):<22} {each.rows:>9,}, {each.added:,} new, checksum {each.checksum}"
            + (f", {each.differing:,} differ in the other log" if each.differing else "")
            for each in self.tables
            if each.rows
        ]
        if self.attachments:
            found.append(f"{counted(self.attachments, 'attachment')} copied")
        if self.missing:
            found.append(
                f"{counted(self.missing, 'attachment')} not copied: the log that was copied has lost their bytes"
            )
        return found


@dataclass(frozen=True, slots=True)
class LogCopies:
    """Copies between the log ``here``, whose attachments are in ``folder``, and the log ``there`` on a server.

    ``tell`` gets lines about the progress. A copy that was cancelled goes on when it is started again.
    """

    here: Engine
    there: Engine
    folder: Path
    clock: Clock
    tell: Callable[[str], None]

    async def to_server(self) -> CopiedLog:
        """Copy the log to the server."""
        tables = await self._rows(self.here, self.there)
        return CopiedLog(tables, *await self._offer_attachments())

    async def from_server(self) -> CopiedLog:
        """Copy the log of the server to this machine."""
        tables = await self._rows(self.there, self.here)
        return CopiedLog(tables, *await fetch_attachments(self.there, self.folder))

    async def _rows(self, source: Engine, target: Engine) -> list[TableCopied]:
        async with opened_store(target) as store:
            named = await store.read(named_attachments)
        told = self.clock.monotonic()

        def tell(is_stopped: Callable[[], bool], messages: int, of: int) -> None:
            nonlocal told
            if is_stopped():
                raise StorageError("The copy was stopped.")
            if (moment := self.clock.monotonic()) - told >= _TELLING_SECONDS:
                told = moment
                self.tell(f"{messages:,} of {counted(of, 'message')} so far")

        try:
            return await stoppable(lambda is_stopped: copied(source, target, partial(tell, is_stopped)))
        finally:
            # A copy that is broken off may have purged messages, and the next one would not know which.
            with suppress(StorageError):
                await self._delete_purged(target, named)

    async def _delete_purged(self, target: Engine, named: frozenset[str]) -> None:
        """Delete the attachments that messages ``named`` before a copy and none names now: the copy purged them."""
        async with opened_store(target) as store:
            gone = named - await store.read(named_attachments)
            if target is self.here:
                await asyncio.to_thread(delete, self.folder, gone)
            else:
                await store.write(delete_on_server, gone)

    async def _offer_attachments(self) -> tuple[int, int]:
        """Copy to the server the attachments that it lacks; return how many were copied, and how many are gone."""
        offered = missing = 0
        async with opened_store(self.there) as server:
            for digest in sorted(await server.read(named_attachments)):
                if not await server.read(is_on_server, digest):
                    try:
                        await SharedFiles(server, self.folder).offer([digest])
                        offered += 1
                    except AttachmentError:
                        missing += 1
        return offered, missing


async def complete_sessions(store: Store, personas: Path) -> None:
    """Store the readable sessions of an older Chorus in the log, so that they can be restored without their files."""
    for persona, name in await store.read(session_rows.incomplete):
        with suppress(SessionError):
            session = await asyncio.to_thread(session_files.read, personas, persona, name)
            await store.write(session_rows.complete, session)


async def acquaint(files: Sequence[Engine]) -> None:
    """Make the installation of each of ``files`` known to all of them, because all share this machine's settings."""
    async with AsyncExitStack() as opened:
        stores = [await opened.enter_async_context(opened_store(each)) for each in files]
        known = {origin for each in stores for origin in await each.read(_installations)}
        for each in stores:
            await each.write(_know_installations, known)


def _installations(connection: Connection) -> list[str]:
    found = connection.execute("SELECT origin FROM installation UNION SELECT origin FROM other_installations")
    return [origin for (origin,) in found.fetchall()]


def _know_installations(connection: Connection, origins: Collection[str]) -> None:
    new = [(origin,) for origin in {*origins} - {*_installations(connection)}]
    connection.executemany("INSERT INTO other_installations VALUES (?)", new)


async def fetch_attachments(log: Engine, folder: Path) -> tuple[int, int]:
    """Copy to a folder the attachments that it lacks; return how many it gets, and how many the server lacks."""
    async with opened_store(log) as server:
        lacking = [each for each in await server.read(named_attachments) if not AttachmentFolder(folder).has(each)]
        fetched = [await SharedFiles(server, folder).fetch(digest) for digest in lacking]
    return sum(fetched), len(fetched) - sum(fetched)
