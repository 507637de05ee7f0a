"""The formats that can be imported, and their detection by content, never by name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from chorus_cli.core.errors import ImportFormatError
from chorus_cli.core.imports.conversation import Skipped
from chorus_cli.core.text.phrases import enumerated
from chorus_cli.storage.files.imports import (
    json_exports,
    llm_logs,
    own_files,
    silly_tavern_files,
    terminal_sessions,
)
from chorus_cli.storage.files.imports.source import Format, Opening, Source

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import tzinfo

FORMATS: tuple[Format, ...] = (
    own_files.JSON_LINES,
    llm_logs.LLM_LOG,
    terminal_sessions.CLAUDE_CODE,
    terminal_sessions.CODEX,
    terminal_sessions.GEMINI_CLI,
    own_files.MARKDOWN,
    silly_tavern_files.SILLY_TAVERN,
    json_exports.CHATGPT,
    json_exports.CLAUDE_AI,
    json_exports.OPEN_WEBUI,
)
"""The formats in the order in which they are asked: those with an unmistakable sign first."""

_BEGINNING_BYTES = 1 << 16
_UNKNOWN = "file of no known format"


def sources(path: Path, zone: tzinfo | None = None, formats: Sequence[Format] = FORMATS) -> Iterator[Source | Skipped]:
    """Yield the source of a file, or those below a folder in the order of their names.

    Raises:
        ImportFormatError: the file does not exist, cannot be read, or is of no known format.
    """
    if not path.is_dir():
        found = _opened(Opening(path, _beginning(path), zone), formats)
        if found is None:
            known = enumerated([format_.title for format_ in formats])
            raise ImportFormatError(f"{path} is of no known format. Known are {known}.")
        yield found
        return
    whole = _opened(Opening(path, b"", zone), formats)
    if whole is not None:
        yield whole
        return
    for file in _files_below(path):
        try:
            yield _opened(Opening(file, _beginning(file), zone), formats) or Skipped(_UNKNOWN)
        except ImportFormatError:
            yield Skipped("file that cannot be read")


def _opened(opening: Opening, formats: Sequence[Format]) -> Source | None:
    return next((found for format_ in formats if (found := format_.opened(opening)) is not None), None)


def _beginning(path: Path) -> bytes:
    try:
        if path.exists() and not path.is_file():
            raise ImportFormatError(f"{path} is neither a file nor a folder.")
        with path.open("rb") as file:
            return file.read(_BEGINNING_BYTES)
    except OSError as error:
        raise ImportFormatError(f"{path} cannot be read: {error.strerror}.") from error


def _files_below(folder: Path) -> Iterator[Path]:
    for where, folders, files in os.walk(folder):
        folders.sort()
        paths = (Path(where, name) for name in sorted(files))
        yield from (path for path in paths if not own_files.is_attachment(path) and not _is_empty(path))


def _is_empty(path: Path) -> bool:
    """Return whether a file has no bytes by its size, as those of /proc, some of which never end when they are read."""
    try:
        return path.is_file() and path.stat().st_size == 0
    except OSError:
        return False
