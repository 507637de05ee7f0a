"""Imports conversations, and exports conversations to files that an import can read."""

from __future__ import annotations

import asyncio
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass, field
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.attachments.files import attachments as attachment_files
from chorus_cli.attachments.rows import named_attachments
from chorus_cli.core.errors import DatabaseDamagedError, ImportFormatError, OutputError, PersonaError
from chorus_cli.core.text.phrases import counted, enumerated
from chorus_cli.core.time import timestamps
from chorus_cli.imports.files import own_files
from chorus_cli.imports.files.reading import Batch, batches
from chorus_cli.imports.rows import import_rows, whole_threads
from chorus_cli.imports.rows.import_rows import Added, Forecast, Incoming
from chorus_cli.imports.rules.conversation import NO_TIME
from chorus_cli.machine.notifier import run_to_completion
from chorus_cli.personas.rules.persona import slug_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
    from datetime import datetime, tzinfo
    from pathlib import Path

    from chorus_cli.attachments.service.attachments import SharedFiles
    from chorus_cli.imports.rows.whole_threads import ThreadOfPersona
    from chorus_cli.machine.ports import Clock
    from chorus_cli.personas.service.persona_admin import PersonaAdmin
    from chorus_cli.storage.store import Store


@dataclass(slots=True)
class ImportReport:
    """The amounts of an import or a dry run; ``known`` messages are not new, ``off`` messages are on no live branch."""

    is_dry: bool
    conversations: int = 0
    messages: int = 0
    off: int = 0
    attachments: int = 0
    known: int = 0
    added: Added = field(default_factory=Added)
    first: datetime | None = None
    last: datetime | None = None
    sources: Counter[str] = field(default_factory=Counter)
    personas: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    guesses: Counter[str] = field(default_factory=Counter)

    def count(self, batch: Batch, incoming: Sequence[Incoming]) -> None:
        """Count a batch that was read, with the conversations in it."""
        self.skipped.update(batch.skipped)
        for persona, conversation, attachments in incoming:
            self.conversations += 1
            self.messages += len(conversation.messages)
            self.off += len(conversation.messages) - len(conversation.live)
            self.attachments += sum(map(len, attachments.values()))
            self.sources[conversation.source] += 1
            self.personas[persona] += 1
            self.guesses.update(conversation.guesses)
            self.guesses.update(NO_TIME for each in conversation.messages[:1] if each.timestamp is None)
            for each in filter(None, (message.timestamp for message in conversation.messages)):
                self.first = min(self.first or each, each)
                self.last = max(self.last or each, each)

    def foresee(self, found: Forecast) -> None:
        """Count what an import would not add of a batch that was read."""
        self.known += found.in_effect + found.purged
        self.added.purged += found.purged
        self._refuse(found.refused)

    def add(self, added: Added) -> None:
        """Take over the results of all batches that were stored so far."""
        self._refuse(added.refused - self.added.refused)
        self.added = added
        self.known = self.messages - added.messages

    def _refuse(self, number: int) -> None:
        if number:
            self.skipped["conversation that the log already has with different messages"] += number

    def refuse_nothing(self) -> None:
        """Raise an ``ImportFormatError`` if something was skipped and no message was found."""
        if self.skipped and not self.messages:
            raise ImportFormatError(
                f"No message was found that can be imported: {enumerated(self._left_out())}; docs/moving.md lists the "
                "formats."
            )

    def text(self) -> str:
        """Return the report for the user."""
        return "\n".join(filter(None, [self._found(), *self._facts(), self._outcome()]))

    def as_json(self) -> dict[str, object]:
        """Return the report for a program."""
        return {
            "dry_run": self.is_dry,
            "conversations": self.conversations,
            "messages": self.messages,
            "messages_on_other_branches": self.off,
            "attachments": self.attachments,
            "first": timestamps.to_text(self.first) if self.first else None,
            "last": timestamps.to_text(self.last) if self.last else None,
            "sources": dict(self.sources),
            "personas": dict(self.personas),
            "skipped": dict(self.skipped),
            "guesses": [*self.guesses],
            "known_messages": self.known,
            "new_conversations": self.added.conversations,
            "continued_conversations": self.added.continued,
            "new_messages": self.added.messages,
            "imports_redone": self.added.redone,
            "purged_messages": self.added.purged,
        }

    @property
    def amount(self) -> str:
        """The numbers of conversations and messages, in words."""
        return f"{counted(self.conversations, 'conversation')}, {counted(self.messages, 'message')}"

    def _found(self) -> str:
        if not self.conversations:
            return "No conversation was found."
        span = ""
        if self.first and self.last:
            span = f", {timestamps.local(self.first):%Y-%m-%d} to {timestamps.local(self.last):%Y-%m-%d}"
        return f"Found {self.amount}{span} ({enumerated([*self.sources])})."

    def _facts(self) -> list[str]:
        facts = []
        if self.off:
            facts.append(f"{counted(self.off, 'message')} of unused branches will be kept, but not sent.")
        if self.attachments:
            facts.append(f"{counted(self.attachments, 'attachment')}.")
        if self.added.redone:
            operations = counted(self.added.redone, "operation")
            facts.append(
                f"The undone import is redone in full ({operations}), including messages that are not in these files."
            )
        if self.added.purged:
            facts.append(f"Purged here, so not imported: {counted(self.added.purged, 'message')}.")
        return [*facts, *(f"Skipped: {each}." for each in self._left_out()), *self.guesses]

    def _left_out(self) -> list[str]:
        return [f"{reason} ({number:,})" for reason, number in self.skipped.most_common()]

    def _outcome(self) -> str:
        if self.is_dry:
            new = self.messages - self.known
            there = self.known - self.added.purged
            return f"Of the messages, {there:,} are in the log already and {new:,} are new. Nothing was changed."
        if not self.added.messages:
            return "Nothing was added." if self.conversations and not self.added.redone else ""
        came = f"{counted(self.added.messages, 'new message')} in {counted(self.added.conversations, 'new thread')}"
        came += f" and {counted(self.added.continued, 'thread')} continued" if self.added.continued else ""
        way_back = "/context undo reverts it" + (" for one persona at a time" if len(self.added.acts) > 1 else "")
        ways = f"/search finds them, /thread TITLE opens one, {way_back}."
        return f"Imported {came}, for {enumerated([*self.added.acts])}. {ways}"


_TELLING_SECONDS = 5.0
"""The shortest time between two lines about the progress of an import or an export."""


class Wanted(NamedTuple):
    """Files and folders to be imported.

    The persona with the slug ``persona`` gets all conversations. If it is ``None``, a conversation goes to the persona
    that its file names, else to the persona called like its character, else to ``otherwise``. ``zone`` is for times
    without a zone (``None``: the system's). ``card_personas`` are the slugs of the imported cards' personas. The files
    ``cards``, from which they were made, are passed over in folders.
    """

    paths: Sequence[Path]
    otherwise: str
    persona: str | None = None
    zone: tzinfo | None = None
    card_personas: Sequence[str] = ()
    cards: frozenset[Path] = frozenset()


ENDINGS = ("md", "jsonl")


@dataclass(slots=True)
class Exported:
    """The amounts of an export; ``missing`` counts attachments whose bytes are gone or damaged."""

    conversations: int = 0
    messages: int = 0
    attachments: int = 0
    missing: int = 0

    def sentence(self, folder: Path) -> str:
        """Return the report for the user about files in ``folder``."""
        amount = f"{counted(self.conversations, 'conversation')} with {counted(self.messages, 'message')}"
        attached = f" and {counted(self.attachments, 'attachment')}" if self.attachments else ""
        missing = f" {counted(self.missing, 'attachment')} could not be read." if self.missing else ""
        return f"Exported {amount}{attached} to {folder}. chorus import {quote(str(folder))} brings them back.{missing}"


@dataclass(frozen=True, slots=True)
class Imports:
    """Imports and exports conversations; the folder ``attachments`` has their attached files."""

    store: Store
    clock: Clock
    persona_admin: PersonaAdmin
    attachments: Path
    shared: SharedFiles | None = None

    async def preview(self, wanted: Wanted, report: ImportReport) -> None:
        """Read all files, count their contents in ``report`` and change nothing; raise the errors of `take_in`."""
        hashes = set[int]()
        async with aclosing(self._read(wanted, report)) as read:
            async for _, incoming in read:
                found = await self.store.read(import_rows.forecast, incoming, hashes)
                hashes |= found.hashes
                report.foresee(found)

    async def take_in(self, wanted: Wanted, report: ImportReport, tell: Callable[[str], None]) -> None:
        """Store everything that is new and count it in ``report``; ``tell`` gets lines about the progress.

        After a cancellation only whole conversations are in the log, and the same import can go on from there. An
        ``ImportFormatError`` says that a file cannot be read, or that everything in the files was skipped.
        """
        told, now = self.clock.monotonic(), self.clock.now()
        async with aclosing(self._read(wanted, report)) as read:
            async for batch, incoming in read:
                before = report.added.attachments
                stored = self.store.write(import_rows.store, incoming, report.added, now)
                added, is_cancelled = await run_to_completion(stored)
                if written := batch.written - added.attachments:
                    # The files of messages that were not stored are deleted, unless a message in the log names them.
                    unnamed = written - await self.store.read(named_attachments)
                    await asyncio.to_thread(attachment_files.delete, self.attachments, unnamed)
                if self.shared:
                    await self.shared.offer(added.attachments - before)
                report.add(added)
                if is_cancelled:
                    raise asyncio.CancelledError
                if (moment := self.clock.monotonic()) - told >= _TELLING_SECONDS:
                    told = moment
                    tell(f"{report.amount} so far")

    async def _read(self, wanted: Wanted, report: ImportReport) -> AsyncGenerator[tuple[Batch, list[Incoming]], None]:
        """Yield batches, each with its conversations and their personas, and count them in ``report``.

        One thread reads all files, because a database of Chorus can be read only by the thread that opened it.
        """
        slugs: dict[tuple[str | None, str], str] = {}
        folder = None if report.is_dry else self.attachments
        found = batches(wanted.paths, folder, wanted.zone, cards=wanted.cards)
        loop, thread = asyncio.get_running_loop(), ThreadPoolExecutor(1, "import")
        try:
            while (batch := await loop.run_in_executor(thread, next, found, None)) is not None:
                incoming: list[Incoming] = []
                for _, conversation, attachments in batch.read:
                    named = conversation.persona, conversation.character
                    if named not in slugs:
                        slugs[named] = await self._persona(wanted, *named, is_dry=report.is_dry)
                    incoming.append(Incoming(slugs[named], conversation, attachments))
                report.count(batch, incoming)
                yield batch, incoming
        finally:
            thread.submit(found.close)
            thread.shutdown(wait=False)
        if not wanted.card_personas:
            report.refuse_nothing()

    async def _persona(self, wanted: Wanted, named: str | None, character: str, *, is_dry: bool) -> str:
        """Return the slug of the persona that gets a conversation; make a missing persona if the file names it."""
        personas = self.persona_admin.personas
        if wanted.persona or not (named or character):
            return wanted.persona or wanted.otherwise
        if not named:
            slug = slug_of(character, ())
            return personas.called(character) or (slug if slug in wanted.card_personas else wanted.otherwise)
        if is_dry or personas.called(named):
            return personas.called(named) or named
        try:
            slug, _ = await self.persona_admin.create(named)
        except PersonaError:
            return wanted.otherwise
        return slug

    async def export_all(self, folder: Path, ending: str, persona: str | None, tell: Callable[[str], None]) -> Exported:
        """Write every conversation of a persona (``None``: of all personas) as Markdown (``md``) or ``jsonl``."""
        exported, told = Exported(), self.clock.monotonic()
        threads = await self.store.read(whole_threads.threads, persona)
        before = await asyncio.to_thread(own_files.files_of_before, folder, ending)
        try:
            for thread in threads:
                await self._export(exported, folder, ending, thread, before)
                if self.clock.monotonic() - told >= _TELLING_SECONDS:
                    told = self.clock.monotonic()
                    tell(f"{exported.conversations:,} of {len(threads):,} conversations are written.")
        except (OutputError, DatabaseDamagedError) as error:
            written = f"{counted(exported.conversations, 'conversation')} had been written."
            way_out = "Remove the cause (chorus doctor repairs a damaged log) and repeat the export."
            raise type(error)(f"{error} {written} {way_out}") from error
        return exported

    async def _export(
        self, exported: Exported, folder: Path, ending: str, thread: ThreadOfPersona, before: Mapping[str, Path]
    ) -> None:
        found = await self.store.read(whole_threads.conversation, thread)
        await asyncio.to_thread(own_files.write, folder, found, ending, before)
        exported.conversations += 1
        exported.messages += len(found.messages)
        for digest in {file.entry for message in found.messages for file in message.files}:
            is_there = await asyncio.to_thread(own_files.copy_attachment, folder, self.attachments, digest)
            if not is_there and self.shared and await self.shared.fetch(digest):
                is_there = await asyncio.to_thread(own_files.copy_attachment, folder, self.attachments, digest)
            exported.attachments += is_there
            exported.missing += not is_there
