"""Files that Chorus exported itself, with the attachments in a folder beside them."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from chorus_cli.core import limits
from chorus_cli.core.errors import ImportFormatError
from chorus_cli.imports.files.json_lines import values_in
from chorus_cli.imports.files.source import Format, Opening, Source
from chorus_cli.imports.rules.conversation import Skipped
from chorus_cli.imports.rules.own import json_lines, markdown
from chorus_cli.imports.rules.own.markdown import ATTACHMENTS
from chorus_cli.log.rules.attachments import is_sha256
from chorus_cli.storage.bounded_files import read_within

if TYPE_CHECKING:
    from collections.abc import Iterator
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
            if isinstance(value, dict) and json_lines.is_header(value):
                yield from _read(first, messages)
                first, messages = value, []
            else:
                messages.append(value)
        yield from _read(first, messages)


class _Markdown(_OwnFile):
    def conversations(self) -> Iterator[ForeignConversation | Skipped]:
        """Yield the one conversation."""
        try:
            with self._path.open("rb") as file:
                data = file.read(_LARGEST_BYTES + 1)
        except OSError as error:
            raise ImportFormatError(f"{self._path} cannot be read: {error.strerror}.") from error
        if len(data) > _LARGEST_BYTES:
            yield Skipped("Markdown file of more than 256 MB")
            return
        try:
            yield markdown.conversation_in(data.decode("utf-8", "replace"))
        except ImportFormatError as error:
            yield Skipped(str(error))


def _read(first: dict[str, object] | None, messages: list[object]) -> Iterator[ForeignConversation | Skipped]:
    if first is None:
        return
    try:
        yield json_lines.conversation_of(first, messages)
    except ImportFormatError as error:
        yield Skipped(str(error))


def _json_lines(opening: Opening) -> Source | None:
    beginning = opening.beginning.lstrip(b"\xef\xbb\xbf \r\n")
    return _JsonLines(opening.path) if beginning.startswith(b'{"' + json_lines.MARK.encode() + b'"') else None


def _markdown(opening: Opening) -> Source | None:
    return _Markdown(opening.path) if opening.beginning.startswith(markdown.BEGINNING.encode()) else None


MARKDOWN = Format("chorus", "our own Markdown", "a file that chorus export wrote", _markdown)
JSON_LINES = Format("chorus", "our own JSONL", "a file that chorus export wrote", _json_lines)
