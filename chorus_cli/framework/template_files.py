"""The user's templates of messages: the Markdown files of a few folders."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core import limits
from chorus_cli.storage.bounded_files import read_within

if TYPE_CHECKING:
    from collections.abc import Iterable

_ENDING = ".md"


class TemplateFile(NamedTuple):
    """A file as it is now: its path, time of change in nanoseconds, and size."""

    path: Path
    changed_ns: int
    size_bytes: int

    @property
    def name(self) -> str:
        """The name of the file without its ending, in small letters."""
        return self.path.stem.casefold()


def found(folders: Iterable[Path]) -> tuple[TemplateFile, ...]:
    """Return the templates of some folders, by name in each; a folder that cannot be read has none."""
    return tuple(file for folder in folders for file in _in(folder))


def read(file: TemplateFile) -> str:
    """Return the text of a template.

    Raises:
        ValueError: it cannot be read, is too large, or is not UTF-8; the text completes "is not used: …".
    """
    if file.size_bytes > limits.TEMPLATE.most:
        raise ValueError(f"it has over {limits.TEMPLATE.size}")
    try:
        return read_within(file.path, limits.TEMPLATE).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    except OSError as error:
        raise ValueError(f"it cannot be read ({error.strerror})") from error


def _in(folder: Path) -> list[TemplateFile]:
    files = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(_ENDING) and not entry.name.startswith(".") and entry.is_file():
                    state = entry.stat()
                    files.append(TemplateFile(Path(entry.path), state.st_mtime_ns, state.st_size))
    except OSError:
        return []
    return sorted(files)
