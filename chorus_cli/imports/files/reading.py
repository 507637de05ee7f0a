"""Recognises the formats of imported files, reads conversations in batches, and stores their attachments."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import NoReturn, Protocol, TypeAlias

from chorus_cli.attachments.files.attachments import AttachmentFolder
from chorus_cli.attachments.rules.recognition import attachment_of
from chorus_cli.core.errors import ImportFormatError
from chorus_cli.core.text.phrases import enumerated
from chorus_cli.imports.files import llm_logs, own_files
from chorus_cli.imports.files.source import (
    NOT_JSON,
    Format,
    Opening,
    Source,
    files_below,
    opened,
    or_skipped,
    whole_text,
)
from chorus_cli.imports.rows.import_rows import Incoming
from chorus_cli.imports.rules import (
    aider,
    chatgpt,
    claude_ai,
    claude_code,
    codex,
    gemini_cli,
    librechat,
    open_webui,
    plain_messages,
    qwen_code,
    silly_tavern,
)
from chorus_cli.imports.rules.assembly import FileFacts, Said, assembled
from chorus_cli.imports.rules.conversation import ForeignConversation, ForeignMessage, Skipped
from chorus_cli.log.rules.attachments import Attachment

_Read: TypeAlias = "Callable[[Iterable[object], FileFacts], Iterable[ForeignConversation | Skipped]]"
_Part: TypeAlias = "tuple[Iterable[object], FileFacts]"


class _ExportReader(Protocol):
    def is_conversation(self, value: object, /) -> bool: ...
    def conversation_of(self, value: object, /) -> ForeignConversation: ...


class _SessionReader(Protocol):
    def is_beginning(self, first: Sequence[object], /) -> bool: ...
    def conversation_of(self, lines: Iterable[object], file: FileFacts, /) -> ForeignConversation: ...


def _exports(reader: _ExportReader, title: str, files: str) -> Format:
    """Return a format of JSON files in which each value is a conversation."""

    def read(value: object) -> ForeignConversation | Skipped:
        if reader.is_conversation(value):
            return or_skipped(reader.conversation_of, value)
        return value if isinstance(value, Skipped) else Skipped("entry that is not a conversation")

    found = partial(_json, lambda first: any(map(reader.is_conversation, first)), lambda values, _: map(read, values))
    return Format(title, files, found)


def _sessions(
    reader: _SessionReader,
    title: str,
    files: str,
    parted: Callable[[Iterable[object], FileFacts], Iterable[_Part]] = lambda lines, file: [(lines, file)],
) -> Format:
    """Return a format of JSON files in which all values together are one conversation, such as a file of lines.

    A broken line has the value ``None``. ``parted`` divides the values of a file that may have several conversations.
    """

    def read(lines: Iterable[object], file: FileFacts) -> Iterator[ForeignConversation | Skipped]:
        return (or_skipped(reader.conversation_of, *part) for part in parted(lines, file))

    return Format(title, files, partial(_json, reader.is_beginning, read))


def _json(is_beginning: Callable[[Sequence[object]], bool], read: _Read, opening: Opening) -> Source | None:
    """Open JSON files, alone or in an archive or a folder, if ``is_beginning`` recognises their first values."""
    if not is_beginning(opening.first_values):
        return None
    return Source(
        lambda: (each for part in opening.values() for each in read(*part)),
        lambda file: opening.container.bytes_of(file.entry),
    )


def _texts(
    beginning: bytes,
    read: Callable[[str, FileFacts], Iterable[tuple[ForeignConversation, Sequence[Said | Skipped]]]],
    opening: Opening,
) -> Source | None:
    """Open a text that begins with ``beginning``; ``read`` yields the facts and the pieces of each conversation."""
    path, file = opening.path, FileFacts(opening.path.stem, opening.zone)
    if not opening.beginning.removeprefix(BOM_UTF8).lstrip().startswith(beginning):
        return None
    return Source(lambda: (or_skipped(assembled, *each) for each in read(whole_text(path), file)))


FORMATS: tuple[Format, ...] = (
    own_files.CHORUS,
    own_files.EXPORTS,
    llm_logs.LLM_LOG,
    _sessions(qwen_code, "sessions of Qwen Code", "~/.qwen/projects, a project in it or a session"),
    _sessions(claude_code, "sessions of Claude Code", "~/.claude/projects, a project in it or a session"),
    _sessions(codex, "sessions of Codex CLI", "~/.codex/sessions, a folder in it or a session"),
    _sessions(gemini_cli, "sessions of Gemini CLI", "~/.gemini/tmp, a folder in it or a session"),
    _sessions(silly_tavern, "SillyTavern's chats", "a chat's .jsonl file, or a folder of them"),
    _exports(chatgpt, "ChatGPT's data export", "the zip, its unpacked folder, or one of its conversations files"),
    _exports(claude_ai, "Claude.ai's data export", "the zip or its conversations.json"),
    _exports(open_webui, "Open WebUI's exported chats", "the JSON file of one chat or of all"),
    _exports(librechat, "LibreChat's exported conversations", "the JSON file of a conversation, as a list or a tree"),
    Format(
        "aider's history",
        ".aider.chat.history.md in the folder of a project",
        partial(_texts, b"# aider chat started at ", aider.conversations_of),
    ),
    _sessions(
        plain_messages,
        "messages with role and content",
        "JSON: a list of them, an object with `messages`, or one message or object in each line",
        plain_messages.parted,
    ),
)
"""The formats in the order in which they are tried: formats with an unmistakable sign come first."""

_BEGINNING_BYTES = 1 << 16
_UNKNOWN = "file of an unknown format"
_EMPTY = frozenset({b"", b"[]", b"{}"})
_PAGE = "docs/moving.md lists the files of each, and docs/programs.md says where programs keep them."


def sources(
    path: Path, zone: tzinfo | None = None, formats: Sequence[Format] = FORMATS, cards: frozenset[Path] = frozenset()
) -> Iterator[Source | Skipped]:
    """Yield the source of a file, or of a folder that is one export; of another folder, all but ``cards``."""
    if not path.is_dir():
        opening = Opening(path, _beginning(path), zone)
        yield _opened(opening, formats) or _refused(opening, formats)
        return
    whole = _opened(Opening(path, b"", zone), formats)
    if whole is not None:
        yield whole
        return
    for file in files_below(path):
        if own_files.is_attachment(file) or file in cards:
            continue
        try:
            yield _opened(Opening(file, _beginning(file), zone), formats) or Skipped(_UNKNOWN)
        except (ImportFormatError, OSError):
            yield Skipped("file that cannot be read")


def _refused(opening: Opening, formats: Sequence[Format]) -> NoReturn:
    path = opening.path
    is_empty_archive = opening.is_archive and opening.names and not opening.first_values
    if is_empty_archive or b"".join(opening.beginning.removeprefix(BOM_UTF8).split()) in _EMPTY:
        raise ImportFormatError(f"{path} is empty: it holds no conversations. Export them again, or name another file.")
    reasons = [each.reason for each in opening.first_values if isinstance(each, Skipped) and each.reason != NOT_JSON]
    if reasons and opening.is_archive:
        raise ImportFormatError(f"Nothing can be imported from {path}: {reasons[-1]}.")
    known = enumerated([format_.title for format_ in formats])
    raise ImportFormatError(f"{path} has an unknown format. The known formats are {known}; {_PAGE}")


def _opened(opening: Opening, formats: Sequence[Format]) -> Source | None:
    with opening.resources as resources:
        found = next((source for each in formats if (source := each.opened(opening)) is not None), None)
        if found is None:
            return None
        # If kept here, these values would stay in memory as long as the source.
        vars(opening).pop("first_values", None)
        return found._replace(close=resources.pop_all().close)


def _beginning(path: Path) -> bytes:
    if path.exists() and not path.is_file():
        raise ImportFormatError(f"{path} is neither a file nor a folder.")
    with opened(path) as file:
        return file.read(_BEGINNING_BYTES)


_BATCH_CHARACTERS = 4_000_000
_LEAST_CHARACTERS = 4_000
"""Characters counted for each message besides its text, so that a batch has at most about a thousand messages."""
_ANY_TYPE = "application/octet-stream"
_LOST = "attachment whose content is not in the export"


@dataclass(slots=True)
class Batch:
    """Conversations that were read one after the other; their personas are not chosen yet.

    ``skipped`` counts parts left out, by reason. ``written`` has the SHA-256 of each attachment not stored before.
    """

    read: list[Incoming] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    characters: int = 0
    written: set[str] = field(default_factory=set)

    def add(self, read: Incoming) -> None:
        """Add a conversation."""
        messages = read.conversation.messages
        self.read.append(read)
        self.skipped.update(dict(read.conversation.skipped))
        texts = (text for each in messages for text in (each.content, each.reasoning, each.thought_parts))
        self.characters += sum(map(len, filter(None, texts))) + _LEAST_CHARACTERS * len(messages)


def batches(
    paths: Sequence[Path],
    folder: Path | None,
    zone: tzinfo | None = None,
    formats: Sequence[Format] = FORMATS,
    cards: frozenset[Path] = frozenset(),
) -> Generator[Batch, None, None]:
    """Yield the conversations in files and folders, in batches; store their attachments in ``folder``, if given.

    The files of ``cards``, from which personas were made, are passed over in folders.
    """
    batch = Batch()
    found = (each for path in paths for source in sources(path, zone, formats, cards) for each in _items(path, source))
    try:
        for each in found:
            if isinstance(each, Skipped):
                batch.skipped[each.reason] += 1
                continue
            batch.add(_with_attachments(*each, folder, batch))
            if batch.characters >= _BATCH_CHARACTERS:
                yield batch
                batch = Batch()
    except ImportFormatError:
        # The conversations before the damage are imported.
        if batch.read or batch.skipped:
            yield batch
        raise
    yield batch


def _items(path: Path, source: Source | Skipped) -> Iterator[tuple[ForeignConversation, Source] | Skipped]:
    if isinstance(source, Skipped):
        yield source
        return
    try:
        for item in source.conversations():
            yield item if isinstance(item, Skipped) else (item, source)
    except ImportFormatError as error:
        if not path.is_dir():
            raise
        yield Skipped(f"file that cannot be read to its end ({error})")
    finally:
        source.close()


def _with_attachments(conversation: ForeignConversation, source: Source, folder: Path | None, batch: Batch) -> Incoming:
    """Store the files of the messages; add a line to a message for each of its files that the export lacks.

    Without a folder nothing is stored, and the conversation stays as it is.
    """
    found: dict[str, tuple[Attachment, ...]] = {}
    messages: list[ForeignMessage] = []
    for message in conversation.messages:
        missing: list[str] = []
        stored: list[Attachment] = []
        for file in message.files:
            data = source.bytes_of(file) if file.data is None else file.data
            if data is None:
                missing.append(f"[attachment: {file.name}, not in the export]")
            else:
                digest = _stored(data, folder, batch.written) if folder else ""
                stored.append(attachment_of(file.name, data, digest, file.media_type or _ANY_TYPE))
        if stored:
            found[message.key] = tuple(stored)
        # The stored bytes need not stay in memory, so the message gives up its files.
        words = "\n\n".join(filter(None, [message.content, *missing]))
        messages.append(replace(message, content=words, files=()) if message.files else message)
        batch.skipped += Counter({_LOST: len(missing)})
    return Incoming("", replace(conversation, messages=tuple(messages)) if folder else conversation, found)


def _stored(data: bytes, folder: Path, written: set[str]) -> str:
    """Store bytes and return their SHA-256; add it to ``written`` if the bytes were not stored before."""
    stored, digest = AttachmentFolder(folder), sha256(data).hexdigest()
    written |= set() if stored.has(digest) else {digest}
    return stored.store(data)
