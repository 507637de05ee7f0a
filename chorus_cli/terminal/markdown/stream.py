"""Shows Markdown on a terminal while it arrives; at the end the screen looks as if all of it had arrived at once.

Settled blocks are written once. Only the open block is painted over as it grows. It always fits on the screen: the
beginning of a tall fence or list is settled, and any other tall block shows only its end. A block of more than 16 Ki
characters, or a table of 32 Ki, is broken up; brackets, cells and some other signs count as several characters.

If the size of the window changes, open rows may scroll away. These rows stay as they were drawn, and the rest of the
block follows at the new width. The words already printed tell where the rest begins, because words keep their order at
any width. If only the end of the block was shown, the rows are repeated when the block is settled. A row's words are
its characters without blanks, bars, rules and markup, because markup vanishes when its counterpart arrives. A blank row
counts as a line break, and a complete row of a table as a mark, because its cells are side by side.
"""

from __future__ import annotations

import os
import re
import shutil
from collections import deque
from collections.abc import Callable, Sequence

from rich.cells import cell_len

from chorus_cli.core.text.phrases import shortened
from chorus_cli.terminal.markdown.blocks import MarkdownBlocks, Piece
from chorus_cli.terminal.markdown.drawing import USUAL_LOOK, Look, MarkdownDrawing
from chorus_cli.terminal.markdown.lexing import LexingProcess
from chorus_cli.terminal.screen.output import widest
from chorus_cli.terminal.screen.painted_rows import PaintedRows, Row

_STEP_CHARACTERS = 4_096
_HEAVY_BLOCK = 8_192
_EMPTY_ROW = "\n"
# Bars beside quotes, and rules, which are longer in a wider window.
_DRAWN = frozenset("▌─")
_MARKUP = frozenset("*_~`[]()\\")
_STYLE_OR_CHARACTER = re.compile(r"\x1b\[[0-9;]*m|.", re.DOTALL)


class Draft:
    """Turns the text of a reply into rows, without a terminal; ``taken`` counts the characters that are parsed.

    One thread at a time may call the methods; another thread may call only ``feed`` meanwhile.
    """

    def __init__(self, lexing: LexingProcess, look: Look) -> None:
        self.lexing = lexing
        self.taken = 0
        self._blocks = MarkdownBlocks(lexing)
        self.decoded = self._blocks.decoded
        self._drawing = MarkdownDrawing(look)
        self._waiting: deque[str] = deque()
        self._settled: list[Row] = []
        self._tolerated_weight = _HEAVY_BLOCK

    @property
    def source(self) -> str:
        """The text of the open block."""
        return self._blocks.source

    def feed(self, text: str) -> None:
        """Queue a short text."""
        self._waiting.append(text)

    def advance(self, size: os.terminal_size) -> bool:
        """Parse and settle queued text for a few milliseconds; return whether more is queued."""
        taken = 0
        while self._waiting and taken < _STEP_CHARACTERS:
            text = self._waiting.popleft()
            self._blocks.feed(text)
            taken += len(text)
        self.taken += taken
        piece = self._blocks.settled()
        if piece is not None:
            self._settle(piece, size)
        if self._blocks.open_weight >= self._tolerated_weight:
            self._shorten(size)
        return bool(self._waiting)

    def frame(self, size: os.terminal_size, room: int) -> list[Row]:
        """Return the open block's rows; first settle the beginning of a fence or list of more than ``room`` rows."""
        unsettled = self._drawn_open(size)
        kept_lines = room // 2
        while len(unsettled) > room and self._shed(size, kept_lines):
            unsettled = self._drawn_open(size)
            kept_lines //= 2
        return unsettled

    def finish(self, size: os.terminal_size) -> None:
        """Settle all text. A long queue, which only a stopped reply has, is left out."""
        if sum(map(len, self._waiting)) <= _STEP_CHARACTERS:
            self.advance(size)
        self._settle(self._blocks.rest(), size)

    def take_settled(self) -> list[Row]:
        """Return the rows settled since the last call."""
        settled, self._settled = self._settled, []
        return settled

    def _shed(self, size: os.terminal_size, kept_lines: int) -> bool:
        piece = self._blocks.shed(kept_lines)
        if piece is not None:
            self._settle(piece, size)
        return piece is not None

    def _shorten(self, size: os.terminal_size) -> None:
        """Settle as much as possible of a heavy open block; if nothing can be settled, wait until it has grown."""
        if self._shed(size, size.lines // 2):
            return
        piece = self._blocks.break_up()
        if piece is None:
            self._tolerated_weight = self._blocks.open_weight + _HEAVY_BLOCK
            return
        self._settle(piece, size)
        last = max((number for number, row in enumerate(self._settled) if row.plain.strip()), default=0)
        if self._settled and self._blocks.take_back(self._settled[last].plain.strip()):
            del self._settled[last:]

    def _settle(self, piece: Piece, size: os.terminal_size) -> None:
        self._tolerated_weight = _HEAVY_BLOCK
        self._settled += self._drawing.rows(piece, size.columns)

    def _drawn_open(self, size: os.terminal_size) -> list[Row]:
        self.lexing.waits = False
        try:
            return self._drawing.rows(self._blocks.unsettled(), size.columns)
        finally:
            self.lexing.waits = True


def drawn(text: str, size: os.terminal_size, look: Look) -> list[Row]:
    """Return the rows of a whole text, which must be safe already; its code has no colours."""
    lexing = LexingProcess()
    lexing.close()
    draft = Draft(lexing, look)
    draft.feed(text)
    draft.advance(size)
    draft.finish(size)
    return draft.take_settled()


class MarkdownStream:
    """One reply on a terminal that obeys escape sequences; its text must be safe already.

    ``prepare`` is called before each frame with the texts of its first row and of its last settled row.
    While a thread works on the ``draft``, only `feed`, `take_down` and `give_up` may be called.
    """

    def __init__(
        self,
        rows: PaintedRows,
        lexing: LexingProcess,
        look: Look = USUAL_LOOK,
        *,
        size: Callable[[], os.terminal_size] = shutil.get_terminal_size,
        prepare: Callable[[str, str], None] = lambda _first, _last: None,
    ) -> None:
        self.draft = Draft(lexing, look)
        self._rows = rows
        self._size = size
        self._prepare = prepare
        self._drawn_for = size()
        self._source = ""
        self._arrived: deque[str] = deque()
        self._dropped = 0
        self._settled: list[Row] = []
        self._printed = ""
        self._paints_all = True
        self._beginning = ""
        self._has_drawn = False

    @property
    def nothing_drawn(self) -> str:
        """A notice if all rows so far are blank and the text is not, for example ``>``; otherwise empty."""
        if self._has_drawn or not self._beginning:
            return ""
        return (
            f"Drawn as Markdown, the reply is blank. Its text begins with {shortened(self._beginning)!r}; "
            "/copy copies all of it."
        )

    def feed(self, text: str) -> None:
        """Queue arrived text."""
        for start in range(0, len(text), _STEP_CHARACTERS):
            piece = text[start : start + _STEP_CHARACTERS]
            self._arrived.append(piece)
            self.draft.feed(piece)
        if len(self._beginning) < _STEP_CHARACTERS:
            self._beginning = (self._beginning + text[:_STEP_CHARACTERS]).lstrip()

    def room(self, below: Sequence[Row]) -> int:
        """Return how many rows of the open block fit on the screen above the rows ``below``."""
        return max(1, self._drawn_for.lines - 1 - len(below))

    def show(self, unsettled: Sequence[Row], below: Sequence[Row] = ()) -> None:
        """Write the rows that the draft has settled; show ``unsettled`` and ``below`` in place of the open rows."""
        self.adopt_size()
        self._settled += self.draft.take_settled()
        self._has_drawn = self._has_drawn or any(row.plain.strip() for row in self._settled)
        self._source = self.draft.source
        while self._dropped < self.draft.taken:
            self._dropped += len(self._arrived.popleft())
        self._show(unsettled, below, self.room(below))

    def take_down(self) -> None:
        """Erase the open rows, so that something can be written below the settled ones."""
        self.adopt_size()
        self._show([], [], 1)

    def show_rest(self) -> int:
        """Write the settled rows and erase the open ones; return how many queued characters are not shown."""
        self.show([])
        return sum(map(len, self._arrived))

    def give_up(self) -> int:
        """Show the open block and 4,096 queued characters as plain text; return how many are not shown."""
        self.adopt_size()
        rest = "".join(self._arrived)
        lines = (self._source + rest[:_STEP_CHARACTERS]).split("\n")
        self._settled += [Row(line, line, widest(line)) for line in lines]
        self._has_drawn = True
        self._show([], [], 1)
        return len(rest[_STEP_CHARACTERS:])

    def adopt_size(self) -> os.terminal_size:
        """Draw at the window's size from now on, and return the size; note open rows that have scrolled away."""
        self._drawn_for = self._size()
        gone = self._rows.let_go(self._drawn_for.columns, self._drawn_for.lines)
        if self._paints_all:
            self._printed += "".join(map(words_of, gone))
        return self._drawn_for

    def _show(self, unsettled: Sequence[Row], below: Sequence[Row], room: int) -> None:
        settled, found = without_printed(self._settled, self._printed)
        self._printed = "" if settled else self._printed[found:]
        left, found = without_printed(unsettled, self._printed)
        self._printed = self._printed[:found] if left else self._printed
        unsettled = [*left[-room:], *below]
        if first := [*settled[:1], *unsettled[:1]]:
            self._prepare(first[0].plain, settled[-1].plain if settled else "")
        self._rows.show(settled, unsettled, self._drawn_for.columns, self._drawn_for.lines)
        self._settled = []
        self._paints_all = len(left) <= room


def words_of(row: Row) -> str:
    """Return the words of a row, as the module defines them."""
    if row.table_mark is not None:
        return row.table_mark
    words = "".join(filter(_is_word, row.plain))
    # At another width, markup that has a row of its own may share a row with words.
    return words or ("" if _MARKUP.intersection(row.plain) else _EMPTY_ROW)


def without_printed(rows: Sequence[Row], printed: str) -> tuple[list[Row], int]:
    """Drop the rows whose words are ``printed``; return the others, and how many of these words were found."""
    begin = found = 0
    for number, row in enumerate(rows):
        if found == len(printed):
            break
        words = words_of(row)
        rest = printed[found : found + len(words)]
        if words == rest:
            found += len(rest)
            # A row of a table may have several lines, and only the last line has a mark.
            begin = number + 1 if rest else begin
        elif words.startswith(rest):
            shown = row._replace(text=_blanked(row.text, len(rest)), plain=_blanked(row.plain, len(rest)))
            return [*rows[begin:number], shown, *rows[number + 1 :]], len(printed)
        else:
            break
    return list(rows[begin:]), found


def _blanked(text: str, count: int) -> str:
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
