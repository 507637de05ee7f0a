"""Shows Markdown on a terminal while it arrives; in the end there stands what would if it had come at once.

What is settled is drawn once and never touched again. Only the last block is painted over as it grows, by whoever
calls ``paint``, as often as seems good. It never leaves the screen: what is taller shows its end, and a fence or a
list that is taller has its beginning settled. See ``markdown_blocks`` for what is settled when.

What is other than if rich drew it, so that no word is lost or said twice: an image stands in its place as a link to it
(rich puts it ahead of its block, and cuts off what the line is then too long for); words in a table that are wider than
their column are folded, and cells that would be too narrow share one (rich cuts them off); HTML, and what looks like
it, is shown as it is written, but for line breaks and keys (rich leaves it out); and a link whose text is its own
address, letter by letter, is that text alone.

What is other than at once: a link whose definition comes after it stays text if it was settled before, and so does the
definition, and in a list that was settled in parts, the column of numbers belongs to the part. Code that was settled in
parts has the colours of what was known of it then, and code that a lexer might look at for long has none (see
``lexing``). And a block of more than 16 KiB, a table of more than 32, is broken up, sooner if it consists of
brackets or of cells.

A window that changes its size may scroll away what is open. It stays there as it was drawn, and the block goes on below
it in the new width. Only such rows of a block that was higher than the screen come again when it settles, for they are
not its beginning.
"""

from __future__ import annotations

import shutil
from collections import deque
from typing import TYPE_CHECKING

from chorus_cli.terminal.markdown.already_printed import without_words, words_of
from chorus_cli.terminal.markdown.blocks import MarkdownBlocks
from chorus_cli.terminal.markdown.drawing import MarkdownDrawing
from chorus_cli.terminal.screen.painted_rows import PaintedRows

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from chorus_cli.core.text.safe_text import SafeTextStream
    from chorus_cli.terminal.markdown.blocks import Piece
    from chorus_cli.terminal.screen.painted_rows import Row

_STEP_CHARACTERS = 4_096
_HEAVY_BLOCK = 8_192


class MarkdownStream:
    """One reply on its way to a terminal that obeys escape sequences; ``text`` must be safe already."""

    def __init__(
        self,
        write: Callable[[str], None],
        *,
        colour: bool = True,
        breaks_rows: bool = True,
        size: Callable[[], os.terminal_size] = shutil.get_terminal_size,
    ) -> None:
        self._blocks = MarkdownBlocks()
        self._drawing = MarkdownDrawing(colour=colour)
        self._rows = PaintedRows(write, breaks_rows=breaks_rows)
        self._size = size
        self._drawn_for = size()
        self._waiting: deque[str] = deque()
        self._settled: list[Row] = []
        self._standing = ""
        self._paints_all = True
        self._tolerated_weight = _HEAVY_BLOCK

    @property
    def decoded(self) -> SafeTextStream:
        """The filter that settled text went through after entities were decoded."""
        return self._blocks.decoded

    def feed(self, text: str) -> None:
        """Take in what has arrived, without doing anything yet."""
        for start in range(0, len(text), _STEP_CHARACTERS):
            self._waiting.append(text[start : start + _STEP_CHARACTERS])

    def advance(self) -> bool:
        """Settle what can be, a few milliseconds' worth, and return whether more is waiting."""
        self._adopt_size()
        taken = 0
        while self._waiting and taken < _STEP_CHARACTERS:
            text = self._waiting.popleft()
            self._blocks.feed(text)
            taken += len(text)
        piece = self._blocks.settled()
        if piece is not None:
            self._settle(piece)
        if self._blocks.open_weight >= self._tolerated_weight:
            self._shorten()
        return bool(self._waiting)

    def paint(self, below: Sequence[Row] = ()) -> None:
        """Bring the screen up to date with what ``advance`` has taken in; ``below`` stands under it for the while."""
        self._adopt_size()
        room = max(1, self._drawn_for.lines - 1 - len(below))
        unsettled = self._rows_of(self._blocks.unsettled())
        kept_lines = room // 2
        while len(unsettled) > room and self._shed(kept_lines):
            unsettled = self._rows_of(self._blocks.unsettled())
            kept_lines //= 2
        self._show(unsettled, below, room)

    def take_down(self) -> None:
        """Leave only settled rows on the screen, so that something can be written below them."""
        self._adopt_size()
        self._show([], [], 1)

    def close(self) -> int:
        """Show what has been taken in as it shall stay; return how many characters are left out.

        What waits is taken in if it is one step's work, for else somebody stopped a reply that is too much to wait for.
        """
        if self._waiting_length() <= _STEP_CHARACTERS:
            self.advance()
        self._settle(self._blocks.rest())
        self.take_down()
        return self._waiting_length()

    def _waiting_length(self) -> int:
        return sum(map(len, self._waiting))

    def _adopt_size(self) -> None:
        """Draw for the window's size from now on; what it has scrolled away stands as it is."""
        self._drawn_for = self._size()
        gone = self._rows.let_go(self._drawn_for.columns, self._drawn_for.lines)
        if self._paints_all:
            self._standing += "".join(map(words_of, gone))

    def _shed(self, kept_lines: int) -> bool:
        """Settle the beginning of the open block, if it is one that can be settled in parts."""
        piece = self._blocks.shed(kept_lines)
        if piece is not None:
            self._settle(piece)
        return piece is not None

    def _shorten(self) -> None:
        """Settle what can be of a heavy open block; where nothing can, look again when more has come."""
        if self._shed(self._drawn_for.lines // 2):
            return
        piece = self._blocks.break_up()
        if piece is None:
            self._tolerated_weight = self._blocks.open_weight + _HEAVY_BLOCK
            return
        self._settle(piece)
        last = max((number for number, row in enumerate(self._settled) if row.plain.strip()), default=0)
        if self._settled and self._blocks.take_back(self._settled[last].plain.strip()):
            del self._settled[last:]

    def _rows_of(self, piece: Piece) -> list[Row]:
        return self._drawing.rows(piece, self._drawn_for.columns)

    def _settle(self, piece: Piece) -> None:
        self._tolerated_weight = _HEAVY_BLOCK
        self._settled += self._rows_of(piece)

    def _show(self, unsettled: Sequence[Row], below: Sequence[Row], room: int) -> None:
        settled, found = without_words(self._settled, self._standing)
        self._standing = "" if settled else self._standing[found:]
        left, found = without_words(unsettled, self._standing)
        self._standing = self._standing[:found] if left else self._standing
        self._rows.show(settled, [*left[-room:], *below], self._drawn_for.columns, self._drawn_for.lines)
        self._settled = []
        self._paints_all = len(left) <= room
