"""Imports: files of other programs are read on a thread of their own, and stored conversation by conversation."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import cache, partial
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.attachments.files import attachments as attachment_files
from chorus_cli.attachments.rows import named_attachments
from chorus_cli.core.errors import PersonaError
from chorus_cli.core.text.phrases import counted
from chorus_cli.imports.files import reading
from chorus_cli.imports.files.detection import FORMATS
from chorus_cli.imports.rows import copied_logs, import_rows, known_conversations, other_log
from chorus_cli.imports.rows.import_operations import Operations
from chorus_cli.imports.rows.known_conversations import Incoming
from chorus_cli.imports.rules.conversation import dated
from chorus_cli.imports.service.report import ImportReport
from chorus_cli.machine.cancellation import run_to_completion
from chorus_cli.personas.rules.names import slug_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence
    from collections.abc import Set as AbstractSet
    from datetime import datetime, tzinfo
    from pathlib import Path

    from chorus_cli.imports.files.reading import Batch, Read
    from chorus_cli.imports.rows.known_conversations import Numbers
    from chorus_cli.machine.ports import Clock
    from chorus_cli.personas.service.roster import Roster
    from chorus_cli.storage.store import Connection, Store

ALL_FORMATS = (other_log.FORMAT, *FORMATS)

_FIRST_TOLD_SECONDS, _MOST_SILENT_SECONDS = 1.0, 15.0


class Wanted(NamedTuple):
    """Files and folders to be imported.

    ``persona`` is the slug of the one that gets all conversations, ``None`` for those that the files name, else that of
    the name of a conversation's character, else ``otherwise``. ``zone`` is that of times without one, ``None`` being
    the system's. ``card_personas`` are the slugs of personas that cards among the files make, in a dry run not yet.
    """

    paths: Sequence[Path]
    otherwise: str
    persona: str | None = None
    zone: tzinfo | None = None
    card_personas: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Imports:
    """Takes conversations of other programs into the log; their attachments go to the folder ``attachments``."""

    store: Store
    clock: Clock
    roster: Roster
    attachments: Path

    async def preview(self, wanted: Wanted) -> ImportReport:
        """Read everything and change nothing.

        Raises:
            ImportFormatError: a file cannot be read, or is of no known format; or nothing but things to be left out is
                in them, and they have no cards.
        """
        report = ImportReport(is_dry=True)
        personas, called = self.roster.personas, cache(partial(self._namesake, wanted.card_personas))
        async with aclosing(
            _batches(wanted, None, self.clock.now(), self.attachments.with_name("chorus.db"))
        ) as batches:
            async for batch in batches:
                report.skipped.update(batch.skipped)
                report.lost_attachments += batch.lost_attachments
                names = [_named(wanted, read, called) for read in batch.read]
                slugs = {named: personas.called(named) or named for named in {*names}}
                incoming = [Incoming(slugs[named], *read) for named, read in zip(names, batch.read, strict=True)]
                for each in incoming:
                    report.count(each.persona, each.conversation, sum(map(len, each.attachments.values())))
                for numbers in await self.store.read(_numbers, incoming):
                    report.known += numbers.in_effect + numbers.purged
                    report.purged += numbers.purged
        _check(report, wanted)
        return report

    async def take_in(self, wanted: Wanted, report: ImportReport, tell: Callable[[str], None]) -> None:
        """Store everything that is new and count it in ``report``; ``tell`` gets lines about the progress.

        A caller that is cancelled leaves whole conversations, and the next import goes on from there.

        Raises:
            ImportFormatError: a file cannot be read, or is of no known format; or nothing but things to be left out is
                in them, and they have no cards.
            AttachmentError: an attachment cannot be stored.
            StorageError: the log cannot be written.
        """
        called = cache(partial(self._namesake, wanted.card_personas))
        operations, slugs = Operations(self.clock.now(), _fingerprint(wanted.paths)), dict[str, str]()
        begun = told = self.clock.monotonic()
        silent = _FIRST_TOLD_SECONDS
        async with aclosing(
            _batches(wanted, self.attachments, operations.now, self.attachments.with_name("chorus.db"))
        ) as batches:
            async for batch in batches:
                names = [_named(wanted, read, called) for read in batch.read]
                for named in {*names} - slugs.keys():
                    slugs[named] = await self._persona(named) or wanted.otherwise
                incoming = [Incoming(slugs[named], *read) for named, read in zip(names, batch.read, strict=True)]
                await self._store(batch, incoming, operations, report)
                now = self.clock.monotonic()
                if now - told >= silent:
                    told, silent = now, min(2 * silent, _MOST_SILENT_SECONDS)
                    tell(_progress(report, now - begun))
        await self.store.write(operations.finish)
        _check(report, wanted)

    async def _store(
        self, batch: Batch, incoming: Sequence[Incoming], operations: Operations, report: ImportReport
    ) -> None:
        """Store a batch and count it, even if the caller is cancelled meanwhile."""
        added, is_cancelled = await run_to_completion(self.store.write(import_rows.store, incoming, operations))
        await self._drop_unnamed(batch.written - added.attachments)
        report.skipped.update(batch.skipped)
        report.lost_attachments += batch.lost_attachments
        for each in incoming:
            report.count(each.persona, each.conversation, sum(map(len, each.attachments.values())))
        report.add(added)
        if is_cancelled:
            raise asyncio.CancelledError

    async def _drop_unnamed(self, written: AbstractSet[str]) -> None:
        """Delete files of messages that were not stored, as purged ones are; a known message may name its lost file."""
        if written:
            unnamed = written - await self.store.read(named_attachments)
            await asyncio.to_thread(attachment_files.delete, self.attachments, unnamed)

    def _namesake(self, card_personas: Sequence[str], character: str) -> str | None:
        """Return the slug of the persona of a character's name, ``None`` if there is none."""
        slug = slug_of(character, ())
        return self.roster.personas.called(character) or (slug if slug in card_personas else None)

    async def _persona(self, named: str) -> str | None:
        """Return the slug of the persona that a file names, made if there is none; ``None`` if it cannot be made."""
        try:
            return self.roster.personas.called(named) or await self.roster.create(named)
        except PersonaError:
            return None


def _fingerprint(paths: Sequence[Path]) -> str:
    """Return a short name of these files, by which an interrupted import of them is known."""
    text = "\0".join(sorted(str(path.absolute()) for path in paths))
    return blake2b(text.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()


def _check(report: ImportReport, wanted: Wanted) -> None:
    if not wanted.card_personas:
        report.refuse_nothing(wanted.paths)


def _named(wanted: Wanted, read: Read, called: Callable[[str], str | None]) -> str:
    """Return the slug of the persona that gets a conversation, or the name in the file of one that may be missing."""
    conversation = read.conversation
    character = called(conversation.character) if conversation.character else None
    return wanted.persona or conversation.persona or character or wanted.otherwise


async def _batches(wanted: Wanted, folder: Path | None, now: datetime, own: Path) -> AsyncGenerator[Batch, None]:
    """Read batches on one thread, which some files are bound to; a conversation without times begins ``now``."""
    formats = (other_log.format_without(own), *FORMATS)
    found = reading.batches(wanted.paths, wanted.zone, folder, formats)
    loop, thread = asyncio.get_running_loop(), ThreadPoolExecutor(1, "import")
    try:
        while (batch := await loop.run_in_executor(thread, next, found, None)) is not None:
            yield replace(
                batch, read=[each._replace(conversation=dated(each.conversation, now)) for each in batch.read]
            )
    finally:
        thread.submit(found.close)
        thread.shutdown(wait=False)


def _numbers(connection: Connection, incoming: Sequence[Incoming]) -> list[Numbers]:
    return [known_conversations.numbers(connection, copied_logs.told_apart(connection, each)) for each in incoming]


def _progress(report: ImportReport, seconds: float) -> str:
    speed = report.messages / max(seconds, 0.001)
    amount = f"{counted(report.conversations, 'conversation')}, {counted(report.messages, 'message')}"
    return f"{amount} so far ({counted(round(speed), 'message')} a second)"
