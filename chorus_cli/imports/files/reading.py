"""Reading of files to be imported, in batches small enough for one transaction, with their attachments stored."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.attachments.files import attachments
from chorus_cli.attachments.rules.recognition import attachment_of
from chorus_cli.core.errors import ImportFormatError
from chorus_cli.imports.files.detection import FORMATS, sources
from chorus_cli.imports.rules.conversation import ForeignConversation, Skipped

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence
    from datetime import tzinfo
    from pathlib import Path

    from chorus_cli.imports.files.source import Format, Source
    from chorus_cli.imports.rules.conversation import ForeignMessage
    from chorus_cli.log.rules.attachments import Attachment

_BATCH_MESSAGES = 1_000
_BATCH_CHARACTERS = 4_000_000
_ANY_TYPE = "application/octet-stream"


class Read(NamedTuple):
    """A conversation that was read, and the attachments of its messages by their keys."""

    conversation: ForeignConversation
    attachments: dict[str, tuple[Attachment, ...]]


@dataclass(slots=True)
class Batch:
    """Conversations that were read one after the other, and the number of things left out, by reason.

    ``lost_attachments`` counts those that the export only names; ``written`` are the SHA-256 of those that were not
    stored before.
    """

    read: list[Read] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    lost_attachments: int = 0
    messages: int = 0
    characters: int = 0
    written: set[str] = field(default_factory=set)

    def add(self, read: Read, lost_attachments: int) -> None:
        """Add a conversation; so many of its attachments are not in the export."""
        messages = read.conversation.messages
        self.lost_attachments += lost_attachments
        self.read.append(read)
        self.skipped.update(dict(read.conversation.skipped))
        self.messages += len(messages)
        texts = (text for each in messages for text in (each.content, each.reasoning, each.thought_parts))
        self.characters += sum(map(len, filter(None, texts)))

    @property
    def is_full(self) -> bool:
        """Whether the batch is to be stored."""
        return self.messages >= _BATCH_MESSAGES or self.characters >= _BATCH_CHARACTERS


class _Folder(NamedTuple):
    """The folder of attachments, ``None`` if nothing is stored, and the SHA-256 of those that were written to it."""

    path: Path | None
    written: set[str]

    def store(self, data: bytes) -> str:
        """Store bytes and return their SHA-256, or an empty text if nothing is stored."""
        if self.path is None:
            return ""
        is_there = attachments.path_of(self.path, sha256(data).hexdigest()).exists()
        digest = attachments.store(self.path, data)
        if not is_there:
            self.written.add(digest)
        return digest


def batches(
    paths: Sequence[Path], zone: tzinfo | None, folder: Path | None, formats: Sequence[Format] = FORMATS
) -> Generator[Batch, None, None]:
    """Yield the conversations in files and folders, in batches; attachments are stored in ``folder`` if it is given.

    Raises:
        ImportFormatError: a file cannot be read to its end, or is of no known format; those before it were yielded.
        AttachmentError: an attachment cannot be stored.
    """
    batch = Batch()
    try:
        for source, item in _items(paths, zone, formats):
            if isinstance(item, Skipped):
                batch.skipped[item.reason] += 1
                continue
            batch.add(
                *(
                    (Read(item, {}), 0)
                    if source is None
                    else _with_attachments(item, source, _Folder(folder, batch.written))
                )
            )
            if batch.is_full:
                yield batch
                batch = Batch()
    except ImportFormatError:
        # The conversations before the damage are taken in.
        if batch.read or batch.skipped:
            yield batch
        raise
    yield batch


def _items(
    paths: Iterable[Path], zone: tzinfo | None, formats: Sequence[Format]
) -> Iterator[tuple[Source | None, ForeignConversation | Skipped]]:
    for path in paths:
        for source in sources(path, zone, formats):
            if isinstance(source, Skipped):
                yield None, source
                continue
            try:
                yield from ((source, item) for item in source.conversations())
            except ImportFormatError as error:
                if not path.is_dir():
                    raise
                yield None, Skipped(f"file that cannot be read to its end ({error})")
            finally:
                source.close()


def _with_attachments(conversation: ForeignConversation, source: Source, folder: _Folder) -> tuple[Read, int]:
    """Store the files of the messages; those that the export does not have are named at the end of their messages.

    Return their number too. Without a folder nothing is stored and the conversation stays as it is.
    """
    found: dict[str, tuple[Attachment, ...]] = {}
    lost = 0
    messages: list[ForeignMessage] = []
    for message in conversation.messages:
        missing: list[str] = []
        stored: list[Attachment] = []
        for file in message.files:
            data = source.bytes_of(file) if file.data is None else file.data
            if data is None:
                missing.append(f"[attachment: {file.name}, not in the export]")
            else:
                digest = folder.store(data)
                stored.append(attachment_of(file.name, data, digest, file.media_type or _ANY_TYPE))
        if stored:
            found[message.key] = tuple(stored)
        # The bytes are on the disk; a batch need not hold them.
        words = "\n\n".join(filter(None, [message.content, *missing]))
        messages.append(replace(message, content=words, files=()) if message.files else message)
        lost += len(missing)
    told = replace(conversation, messages=tuple(messages)) if folder.path else conversation
    return Read(told, found), lost
