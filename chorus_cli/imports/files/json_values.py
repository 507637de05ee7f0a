"""The values in a file of JSON, read piece by piece: of its lines, of an array, or of one object over many lines."""

from __future__ import annotations

import codecs
import json
import re
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from chorus_cli.core import limits
from chorus_cli.core.errors import ImportFormatError
from chorus_cli.core.json import values
from chorus_cli.imports.rules.conversation import Skipped

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

NOT_JSON = "It is not JSON."

_LARGEST_ITEM = limits.IMPORTED_CONVERSATION.most
_LEAST_READ = 1 << 20
_MOST_READ = 1 << 23

_BLANKS = re.compile(r"[ \t\r\n,]*")
_AND_THE_REST = "and all after it in its file"
# A control character within a string is no reason to lose a conversation.
_DECODER = json.JSONDecoder(strict=False)


def json_items(file: IO[bytes], largest: int = _LARGEST_ITEM) -> Iterator[object]:
    """Yield the items of an array, or the one value of a file that has no array; ``Skipped`` where it is broken."""
    text = _Text(file, largest)
    first = text.next_sign()
    if first not in {"[", "{"}:
        raise ImportFormatError(NOT_JSON)
    if first == "{":
        yield text.item()
        return
    text.position += 1
    while (sign := text.next_sign()) not in {"", "]"}:
        yield (item := text.item())
        if isinstance(item, Skipped):
            return
    if not sign:
        yield Skipped("file that ends before its end")


class _Text:
    """The part of a file that is read, and the ``position`` within it, in characters."""

    def __init__(self, file: IO[bytes], largest: int) -> None:
        self.position = 0
        self._buffer = ""
        self._largest = largest
        self._file = file
        self._is_at_end = False
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")

    def next_sign(self) -> str:
        """Move over blanks and commas, and return the character after them, empty at the end of the file."""
        while True:
            found = _BLANKS.match(self._buffer, self.position)
            self.position = found.end() if found else self.position
            if self.position < len(self._buffer):
                return self._buffer[self.position]
            if not self._read_on():
                return ""

    def item(self) -> object:
        """Return the value at the position and move behind it; what seems to be broken may be cut, and is read on."""
        while True:
            try:
                value, end = _DECODER.raw_decode(self._buffer, self.position)
            except (ValueError, RecursionError) as error:
                if self._is_at_end or not isinstance(error, json.JSONDecodeError):
                    return Skipped(f"conversation that is no valid JSON, {_AND_THE_REST}")
            else:
                # A number at the end of the text may go on.
                if end < len(self._buffer) or self._is_at_end:
                    self.position = end
                    return value
            if len(self._buffer) - self.position > self._largest:
                return Skipped(f"conversation of more than {self._largest:,} characters, {_AND_THE_REST}")
            self._read_on()

    def _read_on(self) -> bool:
        """Drop the text before the position and read about as much as is left; return whether there was any."""
        self._buffer, self.position = self._buffer[self.position :], 0
        wanted = min(max(len(self._buffer), _LEAST_READ), _MOST_READ)
        data = self._file.read(wanted)
        self._buffer += self._decoder.decode(data, final=not data)
        self._is_at_end = not data
        return bool(data)


LONGEST_LINE_BYTES = limits.IMPORTED_LINE.most
"""The longest line that is read: a screenshot or the output of a tool may have many megabytes."""

_CHUNK_BYTES = 1 << 20


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file; an error of the system becomes a sentence."""
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise ImportFormatError(f"{path} cannot be read: {error.strerror}.") from error


def values_in(path: Path, longest: int = LONGEST_LINE_BYTES) -> Iterator[object]:
    """Yield the value in each line; ``None`` for one that is cut, too long or no JSON. Empty lines are left out."""
    with opened(path) as file:
        while line := file.readline(longest):
            if len(line) == longest and not line.endswith(b"\n"):
                _pass_over_line(file)
                yield None
            elif line.strip():
                yield parsed(line)


def values_of(path: Path, beginning: bytes) -> Iterator[object]:
    """Yield the values of a file that begins so: of its lines, or of an array or an object over many lines."""
    text = beginning.removeprefix(codecs.BOM_UTF8).lstrip()
    first, _, others = text.partition(b"\n")
    is_whole = parsed(first) is not None
    if text.startswith(b"{") and (is_whole or not others):
        # A first line may be longer than the beginning.
        yield from values_in(path)
    elif text.startswith(b"[") and is_whole and others.strip():
        yield from values_in(path)
    elif text.startswith((b"{", b"[")):
        with opened(path) as file:
            yield from json_items(file)


def parsed(line: bytes) -> object:
    """Return the value in a line, ``None`` if it is no JSON."""
    return values.parsed(line.decode("utf-8-sig", "replace"))


def _pass_over_line(file: BinaryIO) -> None:
    while (rest := file.readline(_CHUNK_BYTES)) and not rest.endswith(b"\n"):
        pass


def whole_text(path: Path) -> str:
    """Return the text of a file, in which broken signs are replaced."""
    with opened(path) as file:
        data = file.read(limits.IMPORTED_FILE.most + 1)
    if len(data) > limits.IMPORTED_FILE.most:
        raise ImportFormatError(f"{path} has over {limits.IMPORTED_FILE.size}.")
    return data.decode("utf-8-sig", "replace")
