"""Leaves out the part of a block that is already printed, at a width that the window no longer has.

Words keep their order at any width, so they tell how much of a block is printed. The words of a block are its
characters without blanks, without bars and rules, which are drawn in each row, and without markup characters, which
vanish when their counterpart arrives. A blank row counts as a line break, and a complete row of a table, whose cells
are side by side, as a mark.
"""

from __future__ import annotations

import re
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
    """Return the words of a row."""
    if row.table_mark is not None:
        return row.table_mark
    words = "".join(filter(_is_word, row.plain))
    # A markup character alone in its row may share a row with words at another width.
    return words or ("" if _MARKUP.intersection(row.plain) else _EMPTY_ROW)


def without_printed(rows: Sequence[Row], printed: str) -> tuple[list[Row], int]:
    """Return the rows that are not printed yet, and how many of the ``printed`` words were found.

    From the first difference on, all rows are returned: nothing may be missing.
    """
    begin = found = 0
    for number, row in enumerate(rows):
        if found == len(printed):
            break
        words = words_of(row)
        rest = printed[found : found + len(words)]
        if words == rest:
            found += len(rest)
            # Of the lines of a table row only the last has words.
            begin = number + 1 if rest else begin
        elif words.startswith(rest):
            return [*rows[begin:number], _without(row, len(rest)), *rows[number + 1 :]], len(printed)
        else:
            break
    return list(rows[begin:]), found


def _without(row: Row, count: int) -> Row:
    return row._replace(text=_blanked(row.text, count), plain=_blanked(row.plain, count))


def _blanked(text: str, count: int) -> str:
    """Replace the first ``count`` words, and the markup characters around them, by blanks."""
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
