"""Files with a JSON object in each line, as programs for the terminal write them while a conversation goes on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from chorus_cli.core import limits
from chorus_cli.core.errors import ImportFormatError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

LONGEST_LINE_BYTES = limits.IMPORTED_LINE.most
"""The longest line that is read: a screenshot or the output of a tool may have many megabytes."""

_CHUNK_BYTES = 1 << 20


def values_in(path: Path, longest: int = LONGEST_LINE_BYTES) -> Iterator[object]:
    """Yield the value in each line; ``None`` for one that is cut, too long or no JSON. Empty lines are left out.

    Raises:
        ImportFormatError: the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            while line := file.readline(longest):
                if len(line) == longest and not line.endswith(b"\n"):
                    _pass_over_line(file)
                    yield None
                elif line.strip():
                    yield parsed(line)
    except OSError as error:
        raise ImportFormatError(f"{path} cannot be read: {error.strerror}.") from error


def value_in(path: Path) -> Iterator[object]:
    """Yield the one value of a file, ``None`` if it is too long or no JSON.

    Raises:
        ImportFormatError: the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            whole = file.read(LONGEST_LINE_BYTES + 1)
    except OSError as error:
        raise ImportFormatError(f"{path} cannot be read: {error.strerror}.") from error
    yield parsed(whole) if len(whole) <= LONGEST_LINE_BYTES else None


def parsed(line: bytes) -> object:
    """Return the value in a line or a file, ``None`` if it is no JSON; control characters in texts are let pass."""
    try:
        return json.loads(line.decode("utf-8-sig", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None


def first_values(beginning: bytes, most: int = 20) -> list[object]:
    """Return the values in the first whole lines of a file."""
    whole, _, _ = beginning.rpartition(b"\n")
    return [parsed(line) for line in whole.split(b"\n")[:most] if line.strip()]


def _pass_over_line(file: BinaryIO) -> None:
    while (rest := file.readline(_CHUNK_BYTES)) and not rest.endswith(b"\n"):
        pass
