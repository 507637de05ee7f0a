"""Files that Chorus exported itself, with the attachments in a folder beside them."""

from __future__ import annotations

import json
import re
import unicodedata
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING

from chorus_cli.attachments.files import attachments
from chorus_cli.core import limits
from chorus_cli.core.errors import AttachmentError, ImportFormatError, OutputError
from chorus_cli.imports.files.json_values import opened, values_in
from chorus_cli.imports.files.source import Format, Opening, Source
from chorus_cli.imports.rules import own
from chorus_cli.imports.rules.conversation import Skipped
from chorus_cli.imports.rules.own import ATTACHMENTS
from chorus_cli.log.rules.attachments import is_sha256
from chorus_cli.storage.files import read_within, write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from chorus_cli.imports.rules.conversation import ForeignConversation, ForeignFile

_LARGEST_BYTES = limits.IMPORTED_FILE.most
"""The largest Markdown file and the longest line of JSON that is read: more than a message of the log can need."""


def is_attachment(path: Path) -> bool:
    """Return whether a file is an attachment of an export, which belongs to the messages that name it."""
    return path.parent.name == ATTACHMENTS and is_sha256(path.name)


class _OwnFile(Source):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def bytes_of(self, file: ForeignFile) -> bytes | None:
        """Return the bytes from the folder of attachments, which is beside the file or its folder."""
        if is_sha256(file.entry):
            for folder in self._path.absolute().parents[:2]:
                with suppress(OSError):
                    return read_within(folder / ATTACHMENTS / file.entry, limits.IMPORTED_ENTRY)
        return None


class _JsonLines(_OwnFile):
    """Conversations one after the other, each begun by its own line; one of them is held in memory at a time."""

    def conversations(self) -> Iterator[ForeignConversation | Skipped]:
        """Yield the conversations."""
        first: dict[str, object] | None = None
        messages: list[object] = []
        for value in values_in(self._path, _LARGEST_BYTES):
            if isinstance(value, dict) and own.is_header(value):
                yield from _read(first, messages)
                first, messages = value, []
            else:
                messages.append(value)
        yield from _read(first, messages)


class _Markdown(_OwnFile):
    def conversations(self) -> Iterator[ForeignConversation | Skipped]:
        """Yield the one conversation."""
        with opened(self._path) as file:
            data = file.read(_LARGEST_BYTES + 1)
        if len(data) > _LARGEST_BYTES:
            yield Skipped("Markdown file of more than 256 MB")
            return
        try:
            yield own.conversation_in(data.decode("utf-8", "replace"))
        except ImportFormatError as error:
            yield Skipped(str(error))


def _read(first: dict[str, object] | None, messages: list[object]) -> Iterator[ForeignConversation | Skipped]:
    if first is None:
        return
    try:
        yield own.conversation_of(first, messages)
    except ImportFormatError as error:
        yield Skipped(str(error))


def _json_lines(opening: Opening) -> Source | None:
    beginning = opening.beginning.lstrip(b"\xef\xbb\xbf \r\n")
    return _JsonLines(opening.path) if beginning.startswith(b'{"' + own.MARK.encode() + b'"') else None


def _markdown(opening: Opening) -> Source | None:
    return _Markdown(opening.path) if opening.beginning.startswith(own.BEGINNING.encode()) else None


MARKDOWN = Format("chorus", "our own Markdown", "a file that chorus export wrote", _markdown)
JSON_LINES = Format("chorus", "our own JSONL", "a file that chorus export wrote", _json_lines)


_LONGEST_TITLE = 50
_HEADER_BYTES = 10_000
_UNFIT = re.compile(r"[^a-z0-9]+")


def name_of(conversation: ForeignConversation, ending: str) -> str:
    """Return the name of a conversation's file: its day, its title, and eight digits that no other one has."""
    day = f"{conversation.created_at:%Y-%m-%d}" if conversation.created_at else "undated"
    ascii_letters = unicodedata.normalize("NFKD", conversation.title).encode("ascii", "ignore").decode().casefold()
    title = _UNFIT.sub("-", ascii_letters).strip("-")[:_LONGEST_TITLE].strip("-")
    digits = sha256(f"{conversation.source}\n{conversation.key}".encode("utf-8", "replace")).hexdigest()[:8]
    return "_".join(filter(None, (day, title, digits))) + f".{ending}"


def files_of_before(folder: Path, ending: str) -> dict[str, Path]:
    """Return the files of an earlier export by their folders and their names without the titles."""
    return {_without_title(path): path for path in sorted(folder.glob(f"*/*_*.{ending}"))}


def write(
    folder: Path, conversation: ForeignConversation, ending: str, before: Mapping[str, Path] | None = None
) -> Path:
    """Write a conversation into the folder of its persona, and return the file.

    It takes the place of an older export of it; ``before`` has those, which may have other titles.
    """
    if ending == "jsonl":
        text = "".join(f"{line}\n" for line in own.as_lines(conversation))
    else:
        text = own.as_markdown(conversation)
    path = folder / (conversation.persona or "") / name_of(conversation, ending)
    _write(path, text.encode("utf-8", "replace"))
    older = (before or {}).get(_without_title(path))
    if older is not None and older != path:
        _remove_export_of(conversation, older)
    return path


def _without_title(path: Path) -> str:
    day, *_, digits = path.name.split("_")
    return f"{path.parent.name}/{day}_{digits}"


def _remove_export_of(conversation: ForeignConversation, path: Path) -> None:
    """Remove a file, unless it is of another conversation whose digits happen to be the same."""
    with suppress(OSError):
        with path.open("rb") as file:
            beginning = file.read(_HEADER_BYTES)
        if json.dumps(conversation.key, ensure_ascii=False).encode("utf-8", "replace") in beginning:
            path.unlink()


def copy_attachment(folder: Path, stored: Path, digest: str) -> bool:
    """Copy the bytes of an attachment into the export; return whether they were there."""
    path = folder / own.ATTACHMENTS / digest
    if path.exists():
        return True
    try:
        data = attachments.read(stored, digest)
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
