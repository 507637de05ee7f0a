"""A temporary row of dim words at the end of the screen, such as progress or thoughts."""

from __future__ import annotations

import unicodedata

from chorus_cli.terminal.screen.painted_rows import Row, widest

_DIM, _END = "\x1b[2m", "\x1b[0m"
_WIDE = "WF"


def dim_row(words: str, columns: int, *, colour: bool) -> Row:
    """Return a row with the beginning of ``words`` that fits, dim if ``colour`` allows styles."""
    fitting = beginning_of(words, columns)
    width = sum(2 if unicodedata.east_asian_width(character) in _WIDE else 1 for character in fitting)
    return Row(f"{_DIM}{fitting}{_END}" if colour else fitting, fitting, width)


def dots(*, unicode: bool) -> str:
    """Return the ellipsis before the elapsed seconds."""
    return "…" if unicode else "..."


def beginning_of(text: str, columns: int) -> str:
    """Return the longest beginning of ``text`` that certainly fits."""
    return end_of(text[::-1], columns)[::-1]


def end_of(text: str, columns: int) -> str:
    """Return the longest end of ``text`` that certainly fits."""
    if text.isascii():
        return text[max(0, len(text) - max(0, columns)) :]
    start = len(text)
    while start and columns >= widest(text[start - 1]):
        start -= 1
        columns -= widest(text[start])
    return text[start:]
