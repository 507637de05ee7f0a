"""Imports: files are read on a thread of their own, stored conversation by conversation, and reported."""

from __future__ import annotations

import asyncio
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import cache, partial
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.attachments.files import attachments as attachment_files
from chorus_cli.attachments.rows import named_attachments
from chorus_cli.core.errors import ImportFormatError, PersonaError
from chorus_cli.core.text.phrases import counted, enumerated
from chorus_cli.core.time import timestamps
from chorus_cli.imports.files import reading
from chorus_cli.imports.files.reading import FORMATS
from chorus_cli.imports.rows import import_rows, known_conversations, whole_threads
from chorus_cli.imports.rows.import_rows import Operations
from chorus_cli.imports.rows.known_conversations import Incoming
from chorus_cli.imports.rules.conversation import dated
from chorus_cli.machine.notifier import run_to_completion
from chorus_cli.personas.rules.persona import slug_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
    from collections.abc import Set as AbstractSet
    from datetime import datetime, tzinfo
    from pathlib import Path

    from chorus_cli.imports.files.reading import Batch, Read
    from chorus_cli.imports.rows.import_rows import Added
    from chorus_cli.imports.rows.known_conversations import Numbers
    from chorus_cli.imports.rules.conversation import ForeignConversation
    from chorus_cli.machine.ports import Clock
    from chorus_cli.personas.service.persona_admin import PersonaAdmin
    from chorus_cli.storage.store import Connection, Store

_NOTHING_NEW = "Everything is in the log already; nothing was changed."
_NOTHING_ELSE = "Everything else is in the log already; nothing was changed."
_EACH = "with each of these personas "


@dataclass(slots=True)
class ImportReport:
    """The amounts of an import.

    ``is_dry`` marks a dry run, which changes nothing. ``known`` counts the messages that the log had already, ``off``
    those on other branches than the one a conversation ended with, ``purged`` those that were purged
    here and stay so.
    """

    is_dry: bool
    conversations: int = 0
    messages: int = 0
    branched: int = 0
    off: int = 0
    attachments: int = 0
    lost_attachments: int = 0
    known: int = 0
    added_conversations: int = 0
    continued: int = 0
    switched: int = 0
    added_messages: int = 0
    redone: int = 0
    redone_messages: int = 0
    purged: int = 0
    first: datetime | None = None
    last: datetime | None = None
    sources: Counter[str] = field(default_factory=Counter)
    personas: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    guesses: Counter[str] = field(default_factory=Counter)

    def count(self, persona: str, conversation: ForeignConversation, attachments: int) -> None:
        """Count a conversation that was read with so many attachments."""
        self.conversations += 1
        self.messages += len(conversation.messages)
        off = len(conversation.messages) - len(conversation.live)
        self.branched += off > 0
        self.off += off
        self.attachments += attachments
        self.sources[conversation.source] += 1
        self.personas[persona] += 1
        self.guesses.update(conversation.guesses)
        for each in conversation.messages:
            if each.timestamp is not None:
                self.first = min(self.first or each.timestamp, each.timestamp)
                self.last = max(self.last or each.timestamp, each.timestamp)

    def add(self, added: Added) -> None:
        """Count conversations that were stored, the last ones that were read."""
        self.added_conversations += added.conversations
        self.continued += added.continued
        self.switched += added.switched
        self.added_messages += added.messages
        self.redone += added.redone
        self.redone_messages += added.redone_messages
        self.purged += added.purged
        if added.refused:
            self.skipped["conversation that the log cannot hold"] += added.refused
        if added.diverged:
            self.skipped["conversation of a copy of this log that went on apart"] += added.diverged
        self.known = self.messages - self.added_messages

    def refuse_nothing(self, paths: Sequence[Path]) -> None:
        """Refuse files that hold something, but no message.

        Raises:
            ImportFormatError: no message was found, and something was left out.
        """
        if self.messages or not self.skipped:
            return
        holding = f"{paths[0]} holds no message" if len(paths) == 1 else f"These {len(paths):,} paths hold no message"
        raise ImportFormatError(
            f"{holding} that can be imported: {enumerated([*self._left_out()])}; docs/moving.md tells what is taken."
        )

    def text(self) -> str:
        """Return the report for the user."""
        lines = [self._found(), *self._facts(), self._outcome()]
        return "\n".join(filter(None, lines))

    def as_json(self) -> dict[str, object]:
        """Return the report for a program."""
        return {
            "dry_run": self.is_dry,
            "conversations": self.conversations,
            "messages": self.messages,
            "branched_conversations": self.branched,
            "messages_on_other_branches": self.off,
            "attachments": self.attachments,
            "missing_attachments": self.lost_attachments,
            "first": timestamps.to_text(self.first) if self.first else None,
            "last": timestamps.to_text(self.last) if self.last else None,
            "sources": dict(self.sources),
            "personas": dict(self.personas),
            "skipped": dict(self.skipped),
            "guesses": [*self.guesses],
            "known_messages": self.known,
            "new_conversations": self.added_conversations,
            "continued_conversations": self.continued,
            "switched_conversations": self.switched,
            "new_messages": self.added_messages,
            "imports_redone": self.redone,
            "purged_messages": self.purged,
        }

    def _found(self) -> str:
        if not self.conversations:
            return "No conversation was found."
        amount = f"{counted(self.conversations, 'conversation')}, {counted(self.messages, 'message')}"
        span = ""
        if self.first and self.last:
            span = f", {timestamps.local(self.first):%Y-%m-%d} to {timestamps.local(self.last):%Y-%m-%d}"
        return f"Found {amount}{span} ({enumerated([*self.sources])})."

    def _facts(self) -> list[str]:
        facts = []
        if self.off:
            facts.append(
                f"{counted(self.branched, 'conversation')} with branches: the log keeps {counted(self.off, 'message')} "
                "of branches that were left; they stay out of context."
            )
        if self.switched:
            facts.append(f"{counted(self.switched, 'thread')} without new messages now on another branch.")
        if self.attachments:
            facts.append(f"{counted(self.attachments, 'attachment')}.")
        if self.lost_attachments:
            facts.append(f"{counted(self.lost_attachments, 'attachment')} missing from the export; messages name them.")
        if self.redone_messages > self.known:
            facts.append(
                "The import that was undone is redone as a whole: "
                f"{counted(self.redone_messages, 'message')}, also of conversations that are not in these files."
            )
        if self.purged:
            facts.append(f"{counted(self.purged, 'message')} {self._fate_of_purged()}.")
        return [*facts, *(f"Skipped: {each}." for each in self._left_out()), *self.guesses]

    def _left_out(self) -> Iterator[str]:
        yield from (f"{reason} ({number:,})" for reason, number in self.skipped.most_common())

    def _fate_of_purged(self) -> str:
        if self.is_dry:
            return f"{'was' if self.purged == 1 else 'were'} purged before and would not be brought back"
        return "was purged and stays purged" if self.purged == 1 else "were purged and stay purged"

    def _outcome(self) -> str:
        if self.is_dry:
            new = self.messages - self.known
            there = self.known - self.purged
            return f"Of the messages {there:,} are in the log already and {new:,} are new. Nothing was changed."
        if not self.added_messages:
            if self.redone:
                return f"The import was undone and is redone ({counted(self.redone, 'operation')})."
            outcome = "There are no new messages." if self.switched else _NOTHING_ELSE if self.purged else _NOTHING_NEW
            return outcome if self.conversations else ""
        parts = [
            f"{counted(self.added_messages, 'new message')} in {counted(self.added_conversations, 'new thread')}",
            f"{counted(self.continued, 'thread')} continued" if self.continued else "",
        ]
        return (
            f"Imported {' and '.join(filter(None, parts))}, for {enumerated([*self.personas])}. /search finds them, "
            f"/thread TITLE opens one, /context undo {_EACH if len(self.personas) > 1 else ''}takes the import back."
        )


ALL_FORMATS = (whole_threads.FORMAT, *FORMATS)

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
    persona_admin: PersonaAdmin
    attachments: Path

    async def preview(self, wanted: Wanted) -> ImportReport:
        """Read everything and change nothing.

        Raises:
            ImportFormatError: a file cannot be read, or is of no known format; or nothing but things to be left out is
                in them, and they have no cards.
        """
        report = ImportReport(is_dry=True)
        personas, called = self.persona_admin.personas, cache(partial(self._namesake, wanted.card_personas))
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
        return self.persona_admin.personas.called(character) or (slug if slug in card_personas else None)

    async def _persona(self, named: str) -> str | None:
        """Return the slug of the persona that a file names, made if there is none; ``None`` if it cannot be made."""
        try:
            return self.persona_admin.personas.called(named) or await self.persona_admin.create(named)
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
    formats = (whole_threads.format_without(own), *FORMATS)
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
    return [known_conversations.numbers(connection, each) for each in incoming]


def _progress(report: ImportReport, seconds: float) -> str:
    speed = report.messages / max(seconds, 0.001)
    amount = f"{counted(report.conversations, 'conversation')}, {counted(report.messages, 'message')}"
    return f"{amount} so far ({counted(round(speed), 'message')} a second)"
