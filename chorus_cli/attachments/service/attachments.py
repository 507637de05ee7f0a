"""Recognises and stores attachments, and keeps them waiting for the next message."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, Protocol

from chorus_cli.attachments import rows
from chorus_cli.attachments.files import document_files
from chorus_cli.attachments.files.attachments import AttachmentFolder
from chorus_cli.attachments.rules.mentions import is_resource, mentions, missing_files
from chorus_cli.attachments.rules.recognition import recognised
from chorus_cli.core.errors import AttachmentError, ChorusError
from chorus_cli.core.text.code_points import join_surrogates
from chorus_cli.core.text.phrases import enumerated, first_few, shortened
from chorus_cli.log.rules.attachments import Attachment, Kind
from chorus_cli.machine.ports import AttachmentStore, TokenCounter
from chorus_cli.storage.store import Store

KIND_NAMES = {Kind.TEXT: "files", Kind.PICTURE: "pictures", Kind.PDF: "PDF files", Kind.OTHER: "such files"}


class Prepared(NamedTuple):
    """A message that can be sent: its text, and its attachments, which are stored."""

    text: str
    attachments: tuple[Attachment, ...] = ()


class File(NamedTuple):
    """The name and the bytes of a file; ``server`` names the server of a resource, and is empty for any other file."""

    name: str
    data: bytes
    server: str = ""


class Resources(Protocol):
    """The resources of servers, which a message names as ``@server:uri``."""

    def names(self) -> Collection[str]:
        """Return the names of the servers."""
        ...

    async def read(self, server: str, uri: str) -> list[File]:
        """Read a resource; raise an ``AttachmentError`` if that fails."""
        ...


class SharedFiles(NamedTuple):
    """Copies attachments between the ``folder`` of this machine and the server of ``store``, for other machines."""

    store: Store
    folder: Path

    async def offer(self, digests: Iterable[str]) -> None:
        """Copy files that the server lacks to the server."""
        for digest in digests:
            if not await self.store.read(rows.is_on_server, digest):
                data = await asyncio.to_thread(AttachmentFolder(self.folder).read, digest)
                await self.store.write(rows.store_on_server, digest, data)

    async def fetch(self, digest: str) -> bool:
        """Copy a file from the server, and return whether the server had it whole."""
        data = await self.store.read(rows.on_server, digest)
        if data is None:
            return False
        return await asyncio.to_thread(AttachmentFolder(self.folder).store, data) == digest


@dataclass(slots=True)
class Attachments:
    """Stores files in ``stored``; ``accepted_by`` returns the kinds of attachments that a model takes.

    Waiting attachments are sent with the next message of this run, whatever its thread. ``tell`` takes a sentence
    about files that a message names and that do not exist. ``shared`` copies files to and from the server of a log.
    """

    stored: AttachmentStore
    counter: TokenCounter
    accepted_by: Callable[[str], frozenset[Kind]]
    tell: Callable[[str], None]
    resources: Resources | None = None
    shared: SharedFiles | None = None
    _waiting: list[Attachment] = field(default_factory=list, init=False)
    _given_back: tuple[Attachment, ...] = field(default=(), init=False)

    @property
    def waiting(self) -> tuple[Attachment, ...]:
        """The attachments that wait for the next message, in the order in which they were attached."""
        return tuple(self._waiting)

    def wait(self, attachments: Iterable[Attachment]) -> None:
        """Let attachments wait for the next message; equal bytes wait once."""
        self._waiting = _once([*self._waiting, *attachments])

    def give_back(self, attachments: tuple[Attachment, ...]) -> None:
        """Let the attachments of a message that is back at the prompt wait; any given back before wait no longer."""
        self._waiting = [each for each in self._waiting if each not in self._given_back]
        self._given_back = attachments
        self.wait(attachments)

    def withdraw(self) -> tuple[Attachment, ...]:
        """Return the attachments given back; they wait no longer, because their message has left the prompt."""
        gone = tuple(each for each in self._waiting if each in self._given_back)
        self.give_back(())
        return gone

    @contextmanager
    def lent(self, attachments: tuple[Attachment, ...]) -> Iterator[None]:
        """Give the attachments of a message back if the block that sends the message raises a ``ChorusError``."""
        try:
            yield
        except ChorusError:
            if attachments:
                self.give_back(attachments)
            raise

    def clear(self) -> tuple[Attachment, ...]:
        """Return the waiting attachments, and let them wait no longer."""
        waiting, self._waiting = self.waiting, []
        return waiting

    async def of_file(self, path: str, model: str = "") -> Attachment:
        """Store the file at ``path``; if a ``model`` is named, refuse a file that the model does not take."""
        return await self.of_bytes(*await asyncio.to_thread(document_files.read_bytes, path), model)

    async def of_bytes(self, name: str, data: bytes, model: str = "", server: str = "") -> Attachment:
        """Store the bytes of the file ``name``; if a ``model`` is named, refuse a file that the model does not take."""
        attachment = await asyncio.to_thread(self._recognised, File(name, data, server))
        if model:
            await self._refuse_untaken(model, [attachment])
        await self._keep(data)
        return attachment

    async def prepared(self, text: str, model: str, given: Sequence[tuple[str, bytes]] = ()) -> Prepared:
        """Return a message to ``model`` with the files named in it and the waiting files, which then wait no longer.

        ``given`` has names and bytes of further files. If a file is refused, none is stored, and waiting files stay.
        """
        servers = self.resources.names() if self.resources and "@" in text else ()

        def is_named(path: str) -> bool:
            return is_resource(path, servers) or document_files.is_file(path)

        found = await asyncio.to_thread(mentions, text, is_named) if "@" in text else None
        named = [file for path in found.paths for file in await self._read(path, servers)] if found else []
        files = [*(File(*each) for each in given), *named]
        attachments = [await asyncio.to_thread(self._recognised, each) for each in files]
        await self._refuse_untaken(model, [*self._waiting, *attachments])
        for file in files:
            await self._keep(file.data)
        if found and (missing := await asyncio.to_thread(missing_files, text, is_named)):
            names = first_few([shortened(path) for path in missing])
            self.tell(f"Not attached, because there is no such file: {names}. A folder cannot be attached.")
        return await self.with_waiting(found.text if found else text, model, attachments)

    async def with_waiting(self, text: str, model: str, attachments: Sequence[Attachment]) -> Prepared:
        """Return a message to ``model`` with stored attachments and with the waiting ones, which then wait no longer.

        Raise an ``AttachmentError`` if the model does not take one of these attachments.
        """
        together = _once([*self._waiting, *attachments])
        await self._refuse_untaken(model, together)
        self._waiting, self._given_back = [], ()
        return Prepared(text, tuple(together))

    async def _read(self, path: str, servers: Collection[str]) -> list[File]:
        if self.resources and is_resource(path, servers):
            server, _, uri = path.partition(":")
            return await self.resources.read(server, uri)
        return [File(*await asyncio.to_thread(document_files.read_bytes, path))]

    async def _refuse_untaken(self, model: str, attachments: Sequence[Attachment]) -> None:
        if not attachments:
            return
        # The first look-up of a model reads a large file.
        refuse_untaken(model, attachments, await asyncio.to_thread(self.accepted_by, model))

    async def _keep(self, data: bytes) -> None:
        digest = await asyncio.to_thread(self.stored.store, data)
        if self.shared:
            await self.shared.offer([digest])

    async def missing(self, attachments: Sequence[Attachment]) -> set[Attachment]:
        """Return the attachments whose bytes are gone; bytes that only the server has are copied to this machine."""
        gone = set(await asyncio.to_thread(lambda: [each for each in attachments if not self.stored.has(each.sha256)]))
        return {each for each in gone if not (self.shared and await self.shared.fetch(each.sha256))}

    def _recognised(self, file: File) -> Attachment:
        name, data = join_surrogates(file.name), file.data
        facts = recognised(name, data)
        tokens = self.counter.count(data.decode("utf-8-sig")) if facts.media_type == "text/plain" else 0
        digest, sides = sha256(data).hexdigest(), (facts.width, facts.height)
        return Attachment(name, facts.media_type, len(data), digest, *sides, facts.pages, tokens, file.server)


def refuse_untaken(model: str, attachments: Iterable[Attachment], accepted: frozenset[Kind]) -> None:
    """Raise an ``AttachmentError`` if ``model``, which takes the ``accepted`` kinds, does not take an attachment."""
    untaken = [each for each in attachments if each.kind not in accepted]
    if untaken:
        raise AttachmentError(
            f"{model} takes no {KIND_NAMES[untaken[0].kind]}. Choose another model with /model NAME, or leave out "
            f"{enumerated([each.name for each in untaken])}; nothing was sent."
        )


def _once(attachments: Iterable[Attachment]) -> list[Attachment]:
    """Return the first attachment with each content."""
    found: dict[str, Attachment] = {}
    for each in attachments:
        found.setdefault(each.sha256, each)
    return list(found.values())
