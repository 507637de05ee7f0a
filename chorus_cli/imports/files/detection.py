"""The formats that can be imported, and their detection by content, never by name."""

from __future__ import annotations

import os
from codecs import BOM_UTF8
from pathlib import Path
from typing import TYPE_CHECKING

from chorus_cli.core.errors import ImportFormatError
from chorus_cli.core.text.phrases import enumerated
from chorus_cli.imports.files import json_exports, llm_logs, own_files, silly_tavern_files, terminal_sessions
from chorus_cli.imports.files.source import Format, Opening, Source
from chorus_cli.imports.rules.conversation import Skipped

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import tzinfo

FORMATS: tuple[Format, ...] = (
    own_files.JSON_LINES,
    llm_logs.LLM_LOG,
    terminal_sessions.QWEN_CODE,
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
_PAGE = "docs/moving.md tells which files of each are taken, and docs/programs.md where programs keep them."
_OF_THE_KERNEL = (Path("/proc"), Path("/sys"))
"""Folders whose files are made up when they are read; those of open files lead to files of other programs."""
_EMPTY = frozenset({b"", b"[]", b"{}"})


def sources(path: Path, zone: tzinfo | None = None, formats: Sequence[Format] = FORMATS) -> Iterator[Source | Skipped]:
    """Yield the source of a file, or those below a folder in the order of their names.

    Raises:
        ImportFormatError: the file does not exist, cannot be read, is empty, or is of no known format; or the folder
            is the kernel's.
    """
    if not path.is_dir():
        beginning = _beginning(path)
        found = _opened(Opening(path, beginning, zone), formats)
        if found is None:
            raise _unknown(path, beginning, formats)
        yield found
        return
    if any(path.resolve().is_relative_to(folder) for folder in _OF_THE_KERNEL):
        raise ImportFormatError(
            f"{path} is a folder of the system, which holds no conversations. Name a file or folder of an export."
        )
    whole = _opened(Opening(path, b"", zone), formats)
    if whole is not None:
        yield whole
        return
    for file in _files_below(path):
        try:
            yield _opened(Opening(file, _beginning(file), zone), formats) or Skipped(_UNKNOWN)
        except ImportFormatError:
            yield Skipped("file that cannot be read")


def _unknown(path: Path, beginning: bytes, formats: Sequence[Format]) -> ImportFormatError:
    if b"".join(beginning.removeprefix(BOM_UTF8).split()) in _EMPTY:
        return ImportFormatError(
            f"{path} is empty: it holds no conversations. Export them again, or name another file."
        )
    known = enumerated([format_.title for format_ in formats])
    return ImportFormatError(f"{path} is of no known format. Known are {known}; {_PAGE}")


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
        folders[:] = sorted(name for name in folders if Path(where, name) not in _OF_THE_KERNEL)
        paths = (Path(where, name) for name in sorted(files))
        yield from (path for path in paths if not own_files.is_attachment(path) and not _is_empty(path))


def _is_empty(path: Path) -> bool:
    """Return whether a file has no bytes by its size, as those of /proc, some of which never end when they are read."""
    try:
        return path.is_file() and path.stat().st_size == 0
    except OSError:
        return False
