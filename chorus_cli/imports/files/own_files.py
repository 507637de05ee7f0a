"""Reads and writes Chorus's exports as JSONL or Markdown, and reads the database of another Chorus.

JSONL has a line for the conversation and a line for each message. An export has a folder for each persona, and beside
these a folder for the attachments.
"""

from __future__ import annotations

import json
import re
import sqlite3
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from functools import partial
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

from chorus_cli.attachments.files.attachments import AttachmentFolder
from chorus_cli.core import limits
from chorus_cli.core.errors import AttachmentError, ImportFormatError, OutputError, StorageError
from chorus_cli.core.json import values
from chorus_cli.core.text.code_points import join_surrogates
from chorus_cli.core.text.phrases import (
    has_controls,
    quotation,
    with_references,
    without_quotation,
    without_references,
)
from chorus_cli.core.time import timestamps
from chorus_cli.imports.files.source import Format, Opening, Source, or_skipped, values_in, whole_text
from chorus_cli.imports.rows import whole_threads
from chorus_cli.imports.rules.conversation import (
    ForeignConversation,
    ForeignFile,
    ForeignMessage,
    Reason,
    Skipped,
    thought_of,
)
from chorus_cli.log.rules.attachments import is_sha256
from chorus_cli.log.rules.messages import UNMEASURED, Role, Status
from chorus_cli.storage import foreign_code, migrations, sqlite
from chorus_cli.storage.files import read_within, write_atomically

MARK = "chorus_conversation"
VERSION = 1
_TEXTS = ("model", "tool_calls", "tool_call_id", "reasoning", "thought_parts")
_OF_FILE = ("name", "media_type", "entry")
# The json module itself escapes the control characters below U+0020.
_CONTROL = re.compile(r"[\x7f-\x9f]")


def as_lines(conversation: ForeignConversation) -> Iterator[str]:
    """Yield the lines of a conversation: a JSON object with its facts, then one for each message."""
    yield written(header(conversation))
    live = frozenset(conversation.live)
    for message in conversation.messages:
        yield written(fields(message, is_live=message.key in live))


def written(value: object) -> str:
    """Write a value as JSON on one line, without any control character."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))


def header(conversation: ForeignConversation) -> dict[str, object]:
    """Return the facts of a conversation without its messages."""
    return {
        MARK: VERSION,
        "source": conversation.source,
        "key": conversation.key,
        "persona": conversation.persona,
        "title": conversation.title,
        "created_at": timestamps.to_text(conversation.created_at) if conversation.created_at else None,
    }


def fields(message: ForeignMessage, *, is_live: bool) -> dict[str, object]:
    """Return the fields of a message that have a value.

    Tool calls and a provider's parts of thoughts stay JSON text within a field, so not a byte of them changes.
    """
    seconds, tokens = message.thought or UNMEASURED
    found: dict[str, object | None] = {
        "key": message.key,
        "parent": message.parent,
        "role": message.role,
        "timestamp": timestamps.to_text(message.timestamp) if message.timestamp else None,
        "status": message.status if message.status is not Status.COMPLETE else None,
        "superseded": None if is_live else True,
        **{name: getattr(message, name) for name in _TEXTS},
        "thought_seconds": seconds,
        "thought_tokens": tokens,
        "files": [{name: getattr(file, name) for name in _OF_FILE} for file in message.files] or None,
        "content": message.content,
    }
    return {name: value for name, value in found.items() if value is not None}


def conversation_of(first: Mapping[str, Any], messages: Iterable[object]) -> ForeignConversation:
    """Read a conversation back and count unreadable messages; refuse a newer version, or a missing source or key."""
    if first[MARK] != VERSION:
        raise ImportFormatError("conversation that a newer Chorus has written")
    source, key = _text(first.get("source")), _text(first.get("key"))
    if not source or not key:
        raise ImportFormatError("conversation without a source or a key")
    read: dict[str, ForeignMessage] = {}
    live: list[str] = []
    listed = [*messages]
    for each in listed:
        message = message_of(each)
        if message and message.key not in read:
            read[message.key] = message
            live += [message.key] if values.record(each).get("superseded") is not True else []
    skipped = len(listed) - len(read)
    return ForeignConversation(
        source=source,
        key=key,
        title=_text(first.get("title")) or "",
        messages=tuple(read.values()),
        live=tuple(live),
        created_at=values.moment(first.get("created_at")),
        skipped=((Reason.BROKEN_LINE, skipped),) if skipped else (),
        persona=_text(first.get("persona")) or None,
    )


def message_of(value: object) -> ForeignMessage | None:
    """Read a message; ``None`` if it has no key or no role."""
    if not isinstance(value, dict):
        return None
    key, role = _text(value.get("key")), next((each for each in Role if each == value.get("role")), None)
    if not key or role is None:
        return None
    texts: dict[str, Any] = {name: _text(value.get(name)) for name in _TEXTS}
    return ForeignMessage(
        key,
        _text(value.get("parent")) or None,
        role,
        _text(value.get("content")) or "",
        values.moment(value.get("timestamp")),
        status=next((each for each in Status if each == value.get("status")), None),
        thought=thought_of(value.get("thought_seconds"), value.get("thought_tokens")),
        files=tuple(filter(None, map(_file_of, values.items(value.get("files"))))),
        **texts,
    )


def _file_of(value: object) -> ForeignFile | None:
    if not isinstance(value, dict) or not _text(value.get("name")):
        return None
    name, media_type, entry = (_text(value.get(field)) or "" for field in _OF_FILE)
    return ForeignFile(name, media_type, entry)


def _text(value: object) -> str | None:
    return join_surrogates(value).replace("\0", "\u2400") if isinstance(value, str) else None


BEGINNING = f"---\n{MARK}:"
ATTACHMENTS = "attachments"
"""The folder of the attachments in an export, beside the folders of the personas."""

_COMMENT = re.compile(r"^<!-- message (\{.*\}) -->$", re.MULTILINE)
_LIKE_A_COMMENT = re.compile(r"^(\\*<!-- message )", re.MULTILINE)
_WRITTEN_WITH_A_BACKSLASH = re.compile(r"^\\(\\*<!-- message )", re.MULTILINE)
_ESCAPED, _THOUGHTS, _PARTS = "escaped", "reasoning", "thought_parts"
_LINES_ABOVE_THOUGHTS = 2
_SPEAKERS = {
    Role.USER: "Human",
    Role.ASSISTANT: "Assistant",
    Role.TOOL_USE: "A tool is called",
    Role.TOOL_RESULT: "The tool answers",
}


def as_markdown(conversation: ForeignConversation) -> str:
    """Return a conversation as Markdown."""
    live = frozenset(conversation.live)
    facts = "".join(f"{name}: {written(value)}\n" for name, value in header(conversation).items())
    title = with_references(" ".join(conversation.title.split()))
    blocks = (_block(message, is_live=message.key in live) for message in conversation.messages)
    return "\n".join([f"---\n{facts}---\n", *([f"# {title}\n"] if title else []), *blocks])


def conversation_in(text: str) -> ForeignConversation:
    """Read a conversation back from its Markdown."""
    head, found, _ = text.removeprefix("---\n").partition("\n---\n")
    if not found:
        raise ImportFormatError("conversation whose front matter has no end")
    lines = (line.partition(":") for line in head.split("\n"))
    facts = {name.strip(): values.parsed(value.strip()) for name, _, value in lines}
    return conversation_of(facts, _messages(text))


def _block(message: ForeignMessage, *, is_live: bool) -> str:
    facts = fields(message, is_live=is_live)
    for name in ("content", _PARTS):
        facts.pop(name, None)
    at = f", {message.timestamp:%Y-%m-%d %H:%M:%S} UTC" if message.timestamp else ""
    aside = "" if is_live else " (on another branch)"
    links = [f"[{_label(file.name)}](../{ATTACHMENTS}/{file.entry})" for file in message.files]
    content, thoughts = message.content, message.reasoning or ""
    if has_controls(content) or has_controls(thoughts):
        facts[_ESCAPED], content, thoughts = True, with_references(content), with_references(thoughts)
    above = ["\n".join(links)] if links else []
    if message.reasoning is not None:
        facts[_THOUGHTS] = True
        above.append(quotation(f"*{(message.thought or UNMEASURED).words}*\n\n{thoughts}"))
    content = _LIKE_A_COMMENT.sub(r"\\\1", content)
    parts = [f"## {_SPEAKERS[message.role]}{at}{aside}", *above, content]
    # A ``>`` could end the HTML comment.
    comment = written(facts).replace(">", "\\u003e")
    return f"<!-- message {comment} -->\n" + "\n\n".join(parts) + "\n"


def _messages(text: str) -> Iterator[object]:
    comments = [*_COMMENT.finditer(text)]
    ends = [each.start() - 1 for each in comments[1:]] + [len(text)]
    for comment, end in zip(comments, ends, strict=False):
        facts = values.parsed(comment[1])
        body = text[comment.end() + 1 : end].removesuffix("\n")
        yield facts | _words(facts, body) if isinstance(facts, dict) else None


def _words(facts: Mapping[str, object], body: str) -> dict[str, str]:
    """Return the content of a message, and the thoughts above it if its facts announce thoughts."""
    _, _, content = body.partition("\n\n")
    if facts.get("files"):
        _, _, content = content.partition("\n\n")
    found: dict[str, str] = {}
    if facts.get(_THOUGHTS) is True and content.startswith(">"):
        block, _, content = content.partition("\n\n")
        found[_THOUGHTS] = "\n".join(without_quotation(block).split("\n")[_LINES_ABOVE_THOUGHTS:])
    found["content"] = _WRITTEN_WITH_A_BACKSLASH.sub(r"\1", content)
    return {name: without_references(each) for name, each in found.items()} if facts.get(_ESCAPED) is True else found


def _label(name: str) -> str:
    return with_references(" ".join(name.split())).replace("[", "(").replace("]", ")")


def is_attachment(path: Path) -> bool:
    """Return whether a file is an attachment of an export, and so not a conversation to be read."""
    return path.parent.name == ATTACHMENTS and is_sha256(path.name)


def _attachment(path: Path, file: ForeignFile) -> bytes | None:
    """Return the bytes of an attachment; its folder is beside the conversation's file or one level higher."""
    if is_sha256(file.entry):
        for folder in path.absolute().parents[:2]:
            with suppress(OSError):
                return read_within(folder / ATTACHMENTS / file.entry, limits.IMPORTED_ENTRY)
    return None


def _conversations(path: Path) -> Iterator[ForeignConversation | Skipped]:
    """Yield the conversations; each begins with a line of facts, and only one at a time is in memory."""
    first: dict[str, object] | None = None
    messages: list[object] = []
    for value in chain(values_in(path, limits.IMPORTED_FILE.most), [{MARK: None}]):
        if isinstance(value, dict) and MARK in value:
            if first is not None:
                yield or_skipped(conversation_of, first, messages)
            first, messages = value, []
        else:
            messages.append(value)


def _export(opening: Opening) -> Source | None:
    path, beginning = opening.path, opening.beginning
    if beginning.startswith(BEGINNING.encode()):
        return Source(lambda: iter([or_skipped(conversation_in, whole_text(path))]), partial(_attachment, path))
    if beginning.lstrip(b"\xef\xbb\xbf \r\n").startswith(f'{{"{MARK}"'.encode()):
        return Source(partial(_conversations, path), partial(_attachment, path))
    return None


EXPORTS = Format("our own Markdown and JSONL", "a file that chorus export wrote", _export)


_SQLITE = b"SQLite format 3\0"
_APPLICATION_ID = slice(68, 72)


def _threads(opening: Opening) -> Iterator[ForeignConversation]:
    path = opening.path
    try:
        # A database without a name is temporary: the system frees its disk space even if this process is killed.
        with closing(sqlite3.connect("", isolation_level=None)) as connection:
            with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as theirs:
                theirs.backup(connection)
            sqlite.confine(connection)
            foreign_code.remove(connection)
            if changed := foreign_code.changed_tables(connection):
                raise ImportFormatError(f"{path} cannot be read: {changed}.")
            migrations.migrate(connection)
            for thread in whole_threads.threads(connection):
                yield whole_threads.conversation(connection, thread)
    except (sqlite3.Error, StorageError) as error:
        way_out = "If the database is damaged, chorus doctor repairs it on the machine that uses it."
        raise ImportFormatError(f"{path} cannot be read: {str(error).rstrip('.')}. {way_out}") from error


def _attachment_beside(path: Path, file: ForeignFile) -> bytes | None:
    with suppress(AttachmentError):
        return AttachmentFolder(path.parent / "attachments").read(file.entry)
    return None


def _database(opening: Opening) -> Source | None:
    is_chorus = opening.beginning[_APPLICATION_ID] == migrations.APPLICATION_ID.to_bytes(4, "big")
    if not is_chorus or not opening.beginning.startswith(_SQLITE):
        return None
    return Source(partial(_threads, opening), partial(_attachment_beside, opening.path))


CHORUS = Format("another Chorus", "its chorus.db, with the folder of attachments beside it", _database)


_LONGEST_TITLE = 50
_UNFIT = re.compile(r"[^a-z0-9]+")


def name_of(conversation: ForeignConversation, ending: str) -> str:
    """Return the name of a conversation's file: its day, its title, and eight digits of a hash of source and key."""
    day = f"{conversation.created_at:%Y-%m-%d}" if conversation.created_at else "undated"
    ascii_letters = unicodedata.normalize("NFKD", conversation.title).encode("ascii", "ignore").decode().casefold()
    title = _UNFIT.sub("-", ascii_letters).strip("-")[:_LONGEST_TITLE].strip("-")
    digits = sha256(f"{conversation.source}\n{conversation.key}".encode("utf-8", "replace")).hexdigest()[:8]
    return "_".join(filter(None, (day, title, digits))) + f".{ending}"


def files_of_before(folder: Path, ending: str) -> dict[str, Path]:
    """Return the files of an earlier export; each key is the file's folder and its name without the title."""
    return {_without_title(path): path for path in sorted(folder.glob(f"*/*_*.{ending}"))}


def write(folder: Path, conversation: ForeignConversation, ending: str, before: Mapping[str, Path]) -> None:
    """Write a conversation into the folder of its persona.

    The file replaces the conversation's older export, which may have another title; ``before`` lists older exports.
    """
    texts = (f"{line}\n" for line in as_lines(conversation)) if ending == "jsonl" else [as_markdown(conversation)]
    path = folder / (conversation.persona or "") / name_of(conversation, ending)
    _write(path, "".join(texts).encode("utf-8", "replace"))
    older = before.get(_without_title(path))
    if older is not None and older != path:
        with suppress(OSError):
            older.unlink()


def _without_title(path: Path) -> str:
    day, *_, digits = path.name.split("_")
    return f"{path.parent.name}/{day}_{digits}"


def copy_attachment(folder: Path, stored: Path, digest: str) -> bool:
    """Copy an attachment from the folder ``stored`` into the export; return whether its bytes were found."""
    path = folder / ATTACHMENTS / digest
    if path.exists():
        return True
    try:
        data = AttachmentFolder(stored).read(digest)
    except AttachmentError:
        return False
    _write(path, data)
    return True


def _write(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(path, data)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}.") from error
