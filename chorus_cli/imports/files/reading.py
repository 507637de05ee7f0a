"""Recognises the formats of files to be imported, reads conversations in batches, and stores their attachments."""

from __future__ import annotations

import os
import re
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from functools import partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import NoReturn, TypeAlias

from chorus_cli.attachments.files import attachments
from chorus_cli.attachments.rules.recognition import attachment_of
from chorus_cli.core.errors import ImportFormatError
from chorus_cli.core.text.phrases import enumerated
from chorus_cli.imports.files import llm_logs, own_files
from chorus_cli.imports.files.source import (
    NOT_JSON,
    Container,
    Format,
    Opening,
    Source,
    archive,
    folder,
    is_archive,
    json_items,
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

_CONVERSATIONS = re.compile(r"conversations(?:-(\d{1,9}))?\.json")
_LOOKED_AT = 5
"""How many files, and how many items of each file, are looked at to recognise the format."""


def _values(container: Container, name: str) -> Generator[object, None, None]:
    try:
        with container.opened(name) as file:
            yield from json_items(file)
    except ImportFormatError as error:
        yield Skipped(str(error))


def _export(
    is_item: Callable[[object], bool], read: Callable[[object], ForeignConversation], opening: Opening
) -> Source | None:
    """Open an array of JSON with a conversation in each item, in a zip archive, a folder or a file."""
    with ExitStack() as resources:
        container, names = _located(opening, resources)
        found = [value for name in names[:_LOOKED_AT] for value in islice(_values(container, name), _LOOKED_AT)]
        if any(map(is_item, found)):
            # A damaged file is skipped, and the others are read.
            return Source(
                lambda: (_item(is_item, read, value) for name in names for value in _values(container, name)),
                lambda file: container.bytes_of(file.entry),
                resources.pop_all().close,
            )
    reasons = [value.reason for value in found if isinstance(value, Skipped) and value.reason != NOT_JSON]
    if names and is_archive(opening.beginning) and len(reasons) == len(found):
        reason = reasons[-1] if reasons else "it has no conversations"
        raise ImportFormatError(f"Nothing can be imported from {opening.path}: {reason}.")
    return None


def _item(
    is_item: Callable[[object], bool], read: Callable[[object], ForeignConversation], value: object
) -> ForeignConversation | Skipped:
    if isinstance(value, Skipped):
        return value
    return or_skipped(read, value) if is_item(value) else Skipped("entry that is not a conversation")


def _located(opening: Opening, resources: ExitStack) -> tuple[Container, Sequence[str]]:
    """Return the container of an export, and the names of the files that may hold its conversations."""
    path = opening.path
    if is_archive(opening.beginning):
        container = archive(path, resources)
        return container, _names_of_conversations(container.names)
    if opening.beginning:
        is_json = opening.beginning.removeprefix(BOM_UTF8).lstrip().startswith((b"[", b"{"))
        return folder(path.parent), (path.name,) if is_json else ()
    names = _names_of_conversations(_files_in(path))
    return folder(path), names if names and _CONVERSATIONS.fullmatch(names[0]) else ()


def _files_in(path: Path) -> list[str]:
    try:
        return [each.name for each in path.iterdir() if each.is_file()]
    except OSError:
        return []


def _names_of_conversations(names: Sequence[str]) -> list[str]:
    """Return the files named conversations, in the order of their numbers; without any, return all JSON files."""
    matches = ((_CONVERSATIONS.fullmatch(name.rpartition("/")[2]), name) for name in names)
    found = [(int(match[1] or -1), name) for match, name in matches if match]
    return [name for _, name in sorted(found)] or [name for name in names if name.endswith(".json")]


_Part: TypeAlias = "tuple[Iterable[object], FileFacts]"


def _lines(
    is_beginning: Callable[[Sequence[object]], bool],
    read: Callable[[Iterable[object], FileFacts], ForeignConversation],
    opening: Opening,
    parted: Callable[[Iterable[object], FileFacts], Iterable[_Part]] = lambda lines, file: [(lines, file)],
) -> Source | None:
    """Open a file with a value of JSON in each line, or with one array or one object over many lines.

    ``is_beginning`` recognises the file by its first values. ``read`` gets ``None`` for a broken line. If a file may
    have several conversations, ``parted`` yields the arguments of ``read`` for each conversation.
    """
    if not is_beginning(opening.first_values):
        return None
    file = FileFacts(opening.path.stem, opening.zone)
    return Source(lambda: (or_skipped(read, *part) for part in parted(opening.values, file)))


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
    Format(
        qwen_code.SOURCE,
        "sessions of Qwen Code",
        "~/.qwen/projects, a project in it or a session",
        partial(_lines, lambda first: any(map(qwen_code.is_line, first)), qwen_code.conversation_of),
    ),
    Format(
        claude_code.SOURCE,
        "sessions of Claude Code",
        "~/.claude/projects, a project in it or a session",
        partial(_lines, lambda first: any(map(claude_code.is_line, first)), claude_code.conversation_of),
    ),
    Format(
        codex.SOURCE,
        "sessions of Codex CLI",
        "~/.codex/sessions, a folder in it or a session",
        partial(_lines, codex.is_beginning, codex.conversation_of),
    ),
    Format(
        gemini_cli.SOURCE,
        "sessions of Gemini CLI",
        "~/.gemini/tmp, a folder in it or a session",
        partial(_lines, lambda first: any(map(gemini_cli.is_beginning, first[:1])), gemini_cli.conversation_of),
    ),
    Format(
        silly_tavern.SOURCE,
        "SillyTavern's chats",
        "a chat's .jsonl file, or a folder of them",
        partial(_lines, lambda first: any(map(silly_tavern.is_header, first[:1])), silly_tavern.conversation_of),
    ),
    Format(
        chatgpt.SOURCE,
        "ChatGPT's data export",
        "the zip, its unpacked folder, or one of its conversations files",
        partial(_export, chatgpt.is_conversation, chatgpt.conversation_of),
    ),
    Format(
        claude_ai.SOURCE,
        "Claude.ai's data export",
        "the zip or its conversations.json",
        partial(_export, claude_ai.is_conversation, claude_ai.conversation_of),
    ),
    Format(
        open_webui.SOURCE,
        "Open WebUI's exported chats",
        "the JSON file of one chat or of all",
        partial(_export, open_webui.is_conversation, open_webui.conversation_of),
    ),
    Format(
        librechat.SOURCE,
        "LibreChat's exported conversations",
        "the JSON file of a conversation, as a list or a tree",
        partial(_export, librechat.is_conversation, librechat.conversation_of),
    ),
    Format(
        aider.SOURCE,
        "aider's history",
        ".aider.chat.history.md in the folder of a project",
        partial(_texts, b"# aider chat started at ", aider.conversations_of),
    ),
    Format(
        plain_messages.SOURCE,
        "messages with role and content",
        "JSON: a list of them, an object with `messages`, or one message or object in each line",
        partial(_lines, plain_messages.is_beginning, plain_messages.conversation_of, parted=plain_messages.parted),
    ),
)
"""The formats in the order in which they are tried: those with an unmistakable sign first."""

_BEGINNING_BYTES = 1 << 16
_UNKNOWN = "file of an unknown format"
_PAGE = "docs/moving.md lists the files of each, and docs/programs.md says where programs keep them."
_EMPTY = frozenset({b"", b"[]", b"{}"})


def sources(path: Path, zone: tzinfo | None = None, formats: Sequence[Format] = FORMATS) -> Iterator[Source | Skipped]:
    """Yield the source of a file, or of a folder that is one export; for any other folder, the sources of its files.

    ``zone`` is for times without a zone; ``None`` means the system's zone.
    """
    if not path.is_dir():
        opening = Opening(path, _beginning(path), zone)
        yield _opened(opening, formats) or _refused(opening, formats)
        return
    whole = _opened(Opening(path, b"", zone), formats)
    if whole is not None:
        yield whole
        return
    for file in _files_below(path):
        try:
            yield _opened(Opening(file, _beginning(file), zone), formats) or Skipped(_UNKNOWN)
        except (ImportFormatError, OSError):
            yield Skipped("file that cannot be read")


def _refused(opening: Opening, formats: Sequence[Format]) -> NoReturn:
    path = opening.path
    if b"".join(opening.beginning.removeprefix(BOM_UTF8).split()) in _EMPTY:
        raise ImportFormatError(f"{path} is empty: it holds no conversations. Export them again, or name another file.")
    known = enumerated([format_.title for format_ in formats])
    raise ImportFormatError(f"{path} has an unknown format. The known formats are {known}; {_PAGE}")


def _opened(opening: Opening, formats: Sequence[Format]) -> Source | None:
    return next((found for format_ in formats if (found := format_.opened(opening)) is not None), None)


def _beginning(path: Path) -> bytes:
    if path.exists() and not path.is_file():
        raise ImportFormatError(f"{path} is neither a file nor a folder.")
    with opened(path) as file:
        return file.read(_BEGINNING_BYTES)


def _files_below(folder: Path) -> Iterator[Path]:
    for where, folders, files in os.walk(folder):
        folders.sort()
        paths = (Path(where, name) for name in sorted(files))
        yield from (path for path in paths if not own_files.is_attachment(path) and not _is_empty(path))


def _is_empty(path: Path) -> bool:
    """Return whether a file's size is 0; files in /proc also report 0, and some of these never end."""
    try:
        return path.is_file() and path.stat().st_size == 0
    except OSError:
        return False


_BATCH_MESSAGES = 1_000
_BATCH_CHARACTERS = 4_000_000
_ANY_TYPE = "application/octet-stream"


@dataclass(slots=True)
class Batch:
    """Conversations that were read one after the other; their personas are not chosen yet.

    ``skipped`` counts what was left out, by reason; ``lost_attachments`` counts attachments that the export only names.
    ``written`` are the SHA-256 of the attachments that were not stored before.
    """

    read: list[Incoming] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    lost_attachments: int = 0
    messages: int = 0
    characters: int = 0
    written: set[str] = field(default_factory=set)

    def add(self, read: Incoming) -> None:
        """Add a conversation."""
        messages = read.conversation.messages
        self.read.append(read)
        self.skipped.update(dict(read.conversation.skipped))
        self.messages += len(messages)
        texts = (text for each in messages for text in (each.content, each.reasoning, each.thought_parts))
        self.characters += sum(map(len, filter(None, texts)))

    @property
    def is_full(self) -> bool:
        """Whether the batch is large enough to be stored."""
        return self.messages >= _BATCH_MESSAGES or self.characters >= _BATCH_CHARACTERS


def batches(
    paths: Sequence[Path], folder: Path | None, zone: tzinfo | None = None, formats: Sequence[Format] = FORMATS
) -> Generator[Batch, None, None]:
    """Yield the conversations in files and folders, in batches; attachments are stored in ``folder`` if it is given."""
    batch = Batch()
    found = (each for path in paths for source in sources(path, zone, formats) for each in _items(path, source))
    try:
        for each in found:
            if isinstance(each, Skipped):
                batch.skipped[each.reason] += 1
                continue
            batch.add(_with_attachments(*each, folder, batch))
            if batch.is_full:
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
    """Store the files of the messages; name each file that the export lacks at the end of its message.

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
        # The bytes are on the disk; a batch need not hold them.
        words = "\n\n".join(filter(None, [message.content, *missing]))
        messages.append(replace(message, content=words, files=()) if message.files else message)
        batch.lost_attachments += len(missing)
    return Incoming("", replace(conversation, messages=tuple(messages)) if folder else conversation, found)


def _stored(data: bytes, folder: Path, written: set[str]) -> str:
    """Store bytes and return their SHA-256; add it to ``written`` if the bytes were not stored before."""
    digest = sha256(data).hexdigest()
    written |= set() if attachments.path_of(folder, digest).exists() else {digest}
    return attachments.store(folder, data)
