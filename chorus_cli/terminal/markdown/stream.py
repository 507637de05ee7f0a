"""Turns arriving Markdown into rows.

Settled blocks are drawn once. Only the open block is drawn again as it grows. It always fits on the screen: the
beginning of a tall fence or list is settled, and any other tall block shows only its end. A block of more than 16 Ki
characters, or a table of 32 Ki, is broken up; brackets, cells and some other signs count as several characters.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable

from markdown_it.token import Token
from rich.console import COLOR_SYSTEMS, Console
from rich.segment import Segment

from chorus_cli.terminal.markdown.blocks import MarkdownBlocks, Piece
from chorus_cli.terminal.markdown.drawing import MARKDOWN, ReplyMarkdown, SpokenMarkdown
from chorus_cli.terminal.markdown.lexing import LexingProcess
from chorus_cli.terminal.screen.painted_rows import Row

_STEP_CHARACTERS = 4_096
_HEAVY_BLOCK = 8_192
_EMPTY_TEXT = Token("inline", "", 0)


class MarkdownStream:
    """The rows of one reply, drawn without a terminal; its text must be safe already.

    If it ``is_spoken``, words in quotation marks are tinted, and each line break is shown. One worker thread at a time
    may call the methods; meanwhile the event loop may call only ``feed``.
    """

    def __init__(self, lexing: LexingProcess, *, has_colour: bool = True, is_spoken: bool = False) -> None:
        self.lexing = lexing
        self._is_spoken = is_spoken
        self._blocks = MarkdownBlocks(lexing)
        self._console = Console(
            theme=MARKDOWN,
            force_terminal=True,
            markup=False,
            highlight=False,
            emoji=False,
            no_color=not has_colour,
            legacy_windows=False,
        )
        self._colours = COLOR_SYSTEMS.get(self._console.color_system or "")
        # Reused, because creating it takes as long as drawing a paragraph. Without hyperlinks, links show addresses.
        self._markdown = (SpokenMarkdown if is_spoken else ReplyMarkdown)("", hyperlinks=False)
        self._waiting: deque[str] = deque()
        self._settled: list[Row] = []
        self._tolerated_weight = _HEAVY_BLOCK

    def feed(self, text: str) -> None:
        """Queue arrived text."""
        self._waiting.extend(text[start : start + _STEP_CHARACTERS] for start in range(0, len(text), _STEP_CHARACTERS))

    def advance(self, size: os.terminal_size) -> bool:
        """Parse and settle queued text for a few milliseconds; return whether more is queued."""
        taken = 0
        while self._waiting and taken < _STEP_CHARACTERS:
            text = self._waiting.popleft()
            self._blocks.feed(text)
            taken += len(text)
        piece = self._blocks.settled()
        if piece is not None:
            self._settle(piece, size)
        if self._blocks.open_weight >= self._tolerated_weight:
            self._shorten(size)
        return bool(self._waiting)

    def frame(self, size: os.terminal_size, room: int) -> list[Row]:
        """Return the last ``room`` rows of the open block; settle the beginning of a fence or list that has more."""
        unsettled = self._drawn_open(size)
        kept_lines = room // 2
        while len(unsettled) > room and self._shed(size, kept_lines):
            unsettled = self._drawn_open(size)
            kept_lines //= 2
        return unsettled[-room:]

    def finish(self, size: os.terminal_size) -> bool:
        """Settle all text; return false if the queue is long and only a part is settled."""
        if self.advance(size):
            return False
        self._settle(self._blocks.rest(), size)
        return True

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
        self._settled += self._rows(piece, size.columns)

    def _drawn_open(self, size: os.terminal_size) -> list[Row]:
        return self._rows(self._blocks.unsettled(), size.columns)

    def _rows(self, piece: Piece, width: int) -> list[Row]:
        if not piece.tokens:
            return []
        if self._is_spoken:
            _show_line_breaks(piece.tokens)
        # rich puts an empty line above a block that follows an empty text.
        before = [_EMPTY_TEXT] if piece.after_gap else []
        self._markdown.parsed = [*before, *piece.tokens]
        options = self._console.options.update(max_width=width, height=None)
        options.min_width = 1
        rows = [self._row(line) for line in self._console.render_lines(self._markdown, options, pad=False)]
        # rich puts an empty line even above the rest of a list. An empty first line of code belongs to the code.
        begins_empty = piece.goes_on and piece.tokens[0].type != "fence" and rows and not rows[0].plain
        return rows[1:] if begins_empty else rows

    def _row(self, line: list[Segment]) -> Row:
        segments: Iterable[Segment] = Segment.remove_color(line) if self._console.no_color else line
        drawn = "".join(
            style.render(text, color_system=self._colours) if style else text for text, style, _ in segments
        )
        # A terminal that becomes narrower would wrap invisible trailing blanks into rows of their own.
        shown = drawn.rstrip(" ")
        blanks = len(drawn) - len(shown)
        plain = "".join(text for text, _, _ in line)
        return Row(shown, plain[: len(plain) - blanks], Segment.get_line_length(line) - blanks)


def _show_line_breaks(tokens: Iterable[Token]) -> None:
    for child in (child for token in tokens for child in token.children or ()):
        if child.type == "softbreak":
            child.type = "hardbreak"


def drawn(text: str, size: os.terminal_size, *, has_colour: bool, is_spoken: bool) -> list[Row]:
    """Return the rows of a whole text, which must be safe already; its code has no colours."""
    lexing = LexingProcess()
    lexing.close()
    stream = MarkdownStream(lexing, has_colour=has_colour, is_spoken=is_spoken)
    stream.feed(text)
    while not stream.finish(size):
        pass
    return stream.take_settled()
