"""What of a block stands on the screen for good, drawn for a width that the window has no more, is not shown again.

Words keep their order however wide they are drawn, so they tell how far a block stands there. They are its characters
but for blanks, for what is drawn once in each row, and for signs of markup, which vanish when their other half comes; a
line break for each row of nothing but blanks; and a mark for each whole row of a table, whose cells are drawn side by
side.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.cells import cell_len

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chorus_cli.terminal.screen.painted_rows import Row

TABLE_ROW = "\0"
_EMPTY_ROW = "\n"
# Bars beside quotes, and rules, which are as long as the row.
_DRAWN = frozenset("▌─")
_MARKUP = frozenset("*_~`[]()\\")
_STYLE_OR_CHARACTER = re.compile(r"\x1b\[[0-9;]*m|.", re.DOTALL)


def words_of(row: Row) -> str:
    """Return what a row is recognised by."""
    if row.table_mark is not None:
        return row.table_mark
    words = "".join(filter(_is_word, row.plain))
    # A sign of markup alone in its row may stand beside words in another width.
    return words or ("" if _MARKUP.intersection(row.plain) else _EMPTY_ROW)


def without_words(rows: Sequence[Row], standing: str) -> tuple[list[Row], int]:
    """Leave out what stands there already; return the other rows, and how many of the standing words were found.

    What has changed since, and all that follows it, is shown once more: nothing may be missing.
    """
    begin = found = 0
    for number, row in enumerate(rows):
        if found == len(standing):
            break
        words = words_of(row)
        rest = standing[found : found + len(words)]
        if words == rest:
            found += len(rest)
            # The lines of a table's row have no words but in the last.
            begin = number + 1 if rest else begin
        elif words.startswith(rest):
            return [*rows[begin:number], _without(row, len(rest)), *rows[number + 1 :]], len(standing)
        else:
            break
    return list(rows[begin:]), found


def _without(row: Row, count: int) -> Row:
    return replace(row, text=_blanked(row.text, count), plain=_blanked(row.plain, count))


def _blanked(text: str, count: int) -> str:
    """Put blanks for the first ``count`` words, and for the signs of markup around them."""
    left = count

    def blank(match: re.Match[str]) -> str:
        nonlocal left
        part = match.group()
        if part.isspace() and not left:
            left = -1
        if left < 0 or part in _DRAWN or part.startswith("\x1b") or (not left and part not in _MARKUP):
            return part
        left -= _is_word(part)
        return " " * cell_len(part)

    return _STYLE_OR_CHARACTER.sub(blank, text)


def _is_word(character: str) -> bool:
    return not (character.isspace() or character in _DRAWN or character in _MARKUP)
