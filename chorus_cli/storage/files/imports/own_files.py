"""Files that Chorus exported itself, with the attachments in a folder beside them."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from chorus_cli.core.errors import ImportFormatError
from chorus_cli.core.imports.conversation import Skipped
from chorus_cli.core.imports.own import json_lines, markdown
from chorus_cli.core.imports.own.markdown import ATTACHMENTS
from chorus_cli.storage.files.imports.source import Format, Opening, Source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from chorus_cli.core.imports.conversation import ForeignConversation, ForeignFile

_SHA256 = re.compile(r"[0-9a-f]{64}")
_LONGEST_LINE_BYTES = 1 << 26
_LARGEST_MARKDOWN_BYTES = 1 << 28


def is_attachment(path: Path) -> bool:
    """Return whether a file is an attachment of an export, which belongs to the messages that name it."""
    return path.parent.name == ATTACHMENTS and _SHA256.fullmatch(path.name) is not None


class _OwnFile(Source):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def bytes_of(self, file: ForeignFile) -> bytes | None:
        """Return the bytes from the folder of attachments, which is beside the file or its folder."""
        if _SHA256.fullmatch(file.entry):
            for folder in self._path.absolute().parents[:2]:
                with suppress(OSError):
                    return (folder / ATTACHMENTS / file.entry).read_bytes()
        return None


class _JsonLines(_OwnFile):
    """Conversations one after the other, each begun by its own line; one of them is held in memory at a time."""

    def conversations(self) -> Iterator[ForeignConversation | Skipped]:
        """Yield the conversations."""
        first: dict[str, object] | None = None
        messages: list[object] = []
        for value in self._values():
            if isinstance(value, dict) and json_lines.is_header(value):
                yield from _read(first, messages)
                first, messages = value, []
            else:
                messages.append(value)
        yield from _read(first, messages)

    def _values(self) -> Iterator[object]:
        try:
            with self._path.open("rb") as file:
                while line := file.readline(_LONGEST_LINE_BYTES):
                    if line.strip():
                        yield _value(line)
        except OSError as error:
            raise ImportFormatError(f"{self._path} cannot be read: {error.strerror}.") from error


class _Markdown(_OwnFile):
    def conversations(self) -> Iterator[ForeignConversation | Skipped]:
        """Yield the one conversation."""
        try:
            with self._path.open("rb") as file:
                data = file.read(_LARGEST_MARKDOWN_BYTES + 1)
        except OSError as error:
            raise ImportFormatError(f"{self._path} cannot be read: {error.strerror}.") from error
        if len(data) > _LARGEST_MARKDOWN_BYTES:
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


def _value(line: bytes) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _json_lines(opening: Opening) -> Source | None:
    beginning = opening.beginning.lstrip(b"\xef\xbb\xbf \r\n")
    return _JsonLines(opening.path) if beginning.startswith(b'{"' + json_lines.MARK.encode() + b'"') else None


def _markdown(opening: Opening) -> Source | None:
    return _Markdown(opening.path) if opening.beginning.startswith(markdown.BEGINNING.encode()) else None


MARKDOWN = Format("chorus", "our own Markdown", "a file that chorus export wrote", _markdown)
JSON_LINES = Format("chorus", "our own JSONL", "a file that chorus export wrote", _json_lines)
