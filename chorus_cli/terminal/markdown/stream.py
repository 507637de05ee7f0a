"""Shows Markdown on a terminal while it arrives; the final screen is as if it had arrived at once.

Settled blocks are drawn once and never touched again. Only the last block is painted over as it grows, with each call
of ``paint``. It never leaves the screen: a taller block shows its end, and a taller fence or list has its beginning
settled. ``blocks`` decides when a block is settled.

Differences from rich, so that no word is lost or repeated: an image is shown in its place as a link (rich puts it
before its block, and then cuts off the end of the line); table cells are folded, or joined if they would be too narrow
(rich cuts them off); HTML other than line breaks and keys is shown as written (rich leaves it out); a link whose text
is its own address is shown as that text alone.

Differences from drawing the whole text at once: a link that was settled before its definition arrived stays text, and
so does the definition; in a list that was settled in parts, each part has its own width of numbers; code that was
settled in parts has the colours known at that time, and code that is costly to lex has none (see ``lexing``). And a
block of more than 16 KiB, or a table of more than 32, is broken up, sooner if it consists of brackets or cells.

A window that changes its size may scroll away open rows. They stay as they were drawn, and the block continues below
them at the new width. Only if the block was taller than the screen are these rows repeated when it settles, because
they are not its beginning.
"""

from __future__ import annotations

import shutil
from collections import deque
from typing import TYPE_CHECKING

from chorus_cli.terminal.markdown.already_printed import without_printed, words_of
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
    """One reply on a terminal that obeys escape sequences; its text must be safe already."""

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
        self._printed = ""
        self._paints_all = True
        self._tolerated_weight = _HEAVY_BLOCK

    @property
    def decoded(self) -> SafeTextStream:
        """The filter that settled text went through after entities were decoded."""
        return self._blocks.decoded

    def feed(self, text: str) -> None:
        """Queue arrived text."""
        for start in range(0, len(text), _STEP_CHARACTERS):
            self._waiting.append(text[start : start + _STEP_CHARACTERS])

    def advance(self) -> bool:
        """Parse and settle a few milliseconds' worth of queued text; return whether more is queued."""
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
        """Draw the text parsed by ``advance``, with the temporary rows ``below`` under it."""
        self._adopt_size()
        room = max(1, self._drawn_for.lines - 1 - len(below))
        unsettled = self._rows_of(self._blocks.unsettled())
        kept_lines = room // 2
        while len(unsettled) > room and self._shed(kept_lines):
            unsettled = self._rows_of(self._blocks.unsettled())
            kept_lines //= 2
        self._show(unsettled, below, room)

    def take_down(self) -> None:
        """Erase all rows but the settled ones, so that something can be written below them."""
        self._adopt_size()
        self._show([], [], 1)

    def close(self) -> int:
        """Settle the parsed text; return how many characters of the queue are not shown.

        A queue of more than one step means that the user stopped a long reply and does not want to wait.
        """
        if self._waiting_length() <= _STEP_CHARACTERS:
            self.advance()
        self._settle(self._blocks.rest())
        self.take_down()
        return self._waiting_length()

    def _waiting_length(self) -> int:
        return sum(map(len, self._waiting))

    def _adopt_size(self) -> None:
        """Draw at the window's size from now on, and note the open rows that it has scrolled away."""
        self._drawn_for = self._size()
        gone = self._rows.let_go(self._drawn_for.columns, self._drawn_for.lines)
        if self._paints_all:
            self._printed += "".join(map(words_of, gone))

    def _shed(self, kept_lines: int) -> bool:
        """Settle the beginning of the open block, if it can be settled in parts."""
        piece = self._blocks.shed(kept_lines)
        if piece is not None:
            self._settle(piece)
        return piece is not None

    def _shorten(self) -> None:
        """Settle as much as possible of a heavy open block; if nothing, try again when it has grown."""
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
        settled, found = without_printed(self._settled, self._printed)
        self._printed = "" if settled else self._printed[found:]
        left, found = without_printed(unsettled, self._printed)
        self._printed = self._printed[:found] if left else self._printed
        self._rows.show(settled, [*left[-room:], *below], self._drawn_for.columns, self._drawn_for.lines)
        self._settled = []
        self._paints_all = len(left) <= room
