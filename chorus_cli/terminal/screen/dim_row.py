"""A row of dim words that stands at the end of the screen for a while, for what is not the reply."""

from __future__ import annotations

import unicodedata

from chorus_cli.terminal.screen.painted_rows import Row, widest

_DIM, _END = "\x1b[2m", "\x1b[0m"
_WIDE = "WF"


def dim_row(words: str, columns: int, *, colour: bool) -> Row:
    """Return as many of ``words`` as have room in a row, dim where styles may be used."""
    fitting = beginning_of(words, columns)
    width = sum(2 if unicodedata.east_asian_width(character) in _WIDE else 1 for character in fitting)
    return Row(f"{_DIM}{fitting}{_END}" if colour else fitting, fitting, width)


def dots(*, unicode: bool) -> str:
    """Return what stands before a number of seconds that is growing."""
    return "…" if unicode else "..."


def beginning_of(text: str, columns: int) -> str:
    """Return as much of the beginning of ``text`` as surely has room."""
    return end_of(text[::-1], columns)[::-1]


def end_of(text: str, columns: int) -> str:
    """Return as much of the end of ``text`` as surely has room."""
    start = len(text)
    while start and columns >= widest(text[start - 1]):
        start -= 1
        columns -= widest(text[start])
    return text[start:]
