"""The output of a job: bytes of which the beginning and the end are kept, and lines of it to be read."""

from __future__ import annotations

import re
from functools import cache

from chorus_cli.core import limits

MOST_BYTES = limits.JOB_OUTPUT.most
"""The most bytes of a job's output that are kept."""

_MOST_BYTES_OF_A_CHARACTER = 4
_ENCODED_OVERHEAD = 4
"""Bytes read for each character of a line to be shown: colours and the like are taken out."""

_BEGUN_CHARACTER = re.compile(rb"(?:[\xc0-\xff]|[\xe0-\xff][\x80-\xbf]|[\xf0-\xff][\x80-\xbf]{2})\Z")
_CONTROLS = {*range(0x20), *range(0x7F, 0xA0)} - {ord("\t"), ord("\n")}
_UNPRINTABLE: dict[int, str | None] = dict.fromkeys(_CONTROLS)
_UNPRINTABLE |= dict.fromkeys((0x85, 0x2028, 0x2029), " ")


class BoundedOutput:
    """Output that keeps its first and its last bytes, each half of ``most_bytes``, an even number."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._half = most_bytes // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._breaks = 0
        self.total_bytes = 0

    def add(self, piece: bytes) -> None:
        """Take in the next bytes."""
        self.total_bytes += len(piece)
        self._breaks += piece.count(b"\n")
        missing = self._half - len(self._head)
        self._head += piece[:missing]
        self._tail += piece[missing:][-self._half :]
        # Cut rarely, so that small pieces do not move the whole tail each time.
        if len(self._tail) > 2 * self._half:
            del self._tail[: -self._half]

    @property
    def line_count(self) -> int:
        """The number of lines so far, with one that has no end yet."""
        newest = self._tail or self._head
        return self._breaks + (bool(newest) and not newest.endswith(b"\n"))

    @property
    def _has_gap(self) -> bool:
        return self.total_bytes > 2 * self._half

    def text(self) -> str:
        """Return the output; a line in the middle says how many bytes were left out."""
        if not self._has_gap:
            return (self._head + self._tail).decode(errors="replace")
        tail = self._tail[-self._half :]
        head, end = _without_broken_end(bytes(self._head)), _without_broken_start(bytes(tail))
        left_out = self.total_bytes - len(head) - len(end)
        return "\n".join(
            [head.decode(errors="replace"), f"[… {left_out:,} bytes left out here …]", end.decode(errors="replace")]
        )

    def last_lines(self, most: int, most_characters: int) -> tuple[str, ...]:
        """Return the last lines in readable form, at most so many characters in all; a longer one loses its start."""
        newest = self._tail[-self._half :] if self._has_gap else self._head + self._tail
        text = _without_broken_start(bytes(newest[-_read_bytes(most_characters) :])).decode(errors="replace")
        lines = readable(text.removesuffix("\n")).split("\n")[-most:] if text else []
        chosen: list[str] = []
        room = most_characters
        for line in reversed(lines):
            if room <= 0:
                break
            chosen.insert(0, line if len(line) <= room else f"…{line[len(line) - room + 1 :]}")
            room -= len(line) + 1
        return tuple(chosen)

    def last_line(self, most_characters: int = 80) -> str:
        """Return the last line that is not blank, in readable form; empty if there is none."""
        lines = self.last_lines(20, 20 * most_characters)
        newest = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return newest if len(newest) <= most_characters else f"{newest[: most_characters - 1]}…"


def readable(text: str) -> str:
    """Return text without escape sequences and control characters; of an overwritten line, the newest state."""
    plain = _sequences().sub("", text) if "\x1b" in text else text
    if "\r" in plain:
        plain = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in plain.split("\n"))
    return plain.translate(_UNPRINTABLE)


@cache
def _sequences() -> re.Pattern[str]:
    return re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ -/]*[0-Z\\^-~])")


def _read_bytes(characters: int) -> int:
    return characters * _MOST_BYTES_OF_A_CHARACTER * _ENCODED_OVERHEAD


def _without_broken_end(data: bytes) -> bytes:
    """Return the bytes without a character of UTF-8 that is cut off at their end."""
    begun = _BEGUN_CHARACTER.search(data, max(0, len(data) - _MOST_BYTES_OF_A_CHARACTER + 1))
    return data[: begun.start()] if begun else data


def _without_broken_start(data: bytes) -> bytes:
    """Return the bytes without the rest of a character of UTF-8 that is cut off at their start."""
    continuation = re.match(rb"[\x80-\xbf]{0,3}", data)
    return data[continuation.end() :] if continuation else data
