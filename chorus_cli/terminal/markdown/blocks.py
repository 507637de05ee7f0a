"""Splits arriving Markdown into settled blocks and the open one.

All blocks at the top level but the last are settled: no further line can change them. So a block is parsed only while
it is open, and the cost of a long reply is the sum of its blocks. A fence or list that grows without end is settled in
parts; the remainder keeps what it needs to continue: a fence its first line, a list its number, a table its head.

Imported only when a reply is painted, because markdown-it and rich take long to import.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chorus_cli.core.text.safe_text import SafeTextStream
from chorus_cli.terminal.markdown.tokens import labels_in, make_drawable, reply_parser, with_definitions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markdown_it.token import Token

    from chorus_cli.terminal.markdown.lexing import LexingProcess

_ENDED_BY_EMPTY_LINE = ("paragraph_open", "blockquote_open", "table_open")
_CODE = ("fence", "code_block")
_LISTS = ("bullet_list_open", "ordered_list_open")
_TABLE_HEAD_LINES = 2
# Limits for an open block, which is drawn again and again, in characters of plain text. The parser looks for the
# counterpart of each bracket and of each mark of emphasis, and rich measures each line and each cell.
_HEAVIEST_BLOCK, _HEAVIEST_TABLE = 16_384, 32_768
_WEIGHTS = {"\n": 16, "[": 16, "!": 8, "*": 8, "_": 8, "~": 6, "<": 8}
_CELL_WEIGHT = 20


@dataclass(frozen=True, slots=True)
class Piece:
    """Parsed Markdown to draw: after an empty line or not, or directly continuing the block of the last piece."""

    tokens: list[Token]
    after_gap: bool
    goes_on: bool


class MarkdownBlocks:
    """Parser for arriving safe Markdown; ``decoded`` is the filter for decoded entities and links.

    ``source`` is the text of the open block. The ``meta`` of a fence tells whether it ``goes_on`` from the piece before
    and whether it is ``cut_off``; that of all code holds the reply's ``lexing``.
    """

    def __init__(self, lexing: LexingProcess) -> None:
        self.decoded = SafeTextStream()
        self._parser = reply_parser()
        self._references: dict[str, Any] = {}  # the parser's own records
        self._undefined: set[str] = set()
        self._lexing = lexing
        self.source = ""
        self._has_new_lines = False
        self._after_gap = False
        self._goes_on = False
        self._next_number: int | None = None
        self._is_in_fence = False
        self._broken_off = ""
        self._prefix = ""

    @property
    def open_weight(self) -> int:
        """The most that drawing the open block may cost, in characters of plain text."""
        return weight_of(self.source) + _CELL_WEIGHT * self.source.count("|")

    def feed(self, text: str) -> None:
        """Add arrived text."""
        self.source += text
        self._has_new_lines = self._has_new_lines or "\n" in text

    def settled(self) -> Piece | None:
        """Cut off and return all blocks that no further line can change, if there are any."""
        if not self._has_new_lines:
            return None
        self._has_new_lines = False
        lines = _complete_lines(self.source)
        cut = _first_open_line(self._structure(lines), lines)
        return self._cut_off(_length(lines[:cut])) if cut else None

    def rest(self) -> Piece:
        """Cut off and return everything, as the end of the reply."""
        return self._cut_off(len(self.source))

    def unsettled(self) -> Piece:
        """Return the open block, parsed as if the reply ended here."""
        tokens = self._parsed(self.source, dict(self._references), SafeTextStream())
        return Piece(tokens, self._after_gap, self._goes_on)

    def shed(self, kept_lines: int) -> Piece | None:
        """Cut off an open fence, except about its last ``kept_lines``, or all items of a list but the last."""
        lines = _complete_lines(self.source)
        tokens = self._structure(lines)
        if tokens and tokens[0].type == "fence":
            return self._shed_code(tokens[0], lines, kept_lines)
        if tokens and tokens[0].type in _LISTS:
            return self._shed_items(tokens, lines)
        return None

    def break_up(self) -> Piece | None:
        """Cut off most of an open block that is too heavy to be drawn repeatedly; a table may be twice as heavy.

        The cut is at the end of a line or a word; ``take_back`` moves it to the end of a drawn row, where it is unseen.
        """
        lines = _complete_lines(self.source)
        block = next(iter(self._structure([self.source])), None)
        begin, end = _lines_of(block) if block else (0, 0)
        kind = block.type if block else ""
        if not self._is_too_heavy(kind):
            return None
        if kind == "table_open" and min(end, len(lines)) - begin > _TABLE_HEAD_LINES + 1:
            head = "".join(lines[begin : begin + _TABLE_HEAD_LINES])
            return self._continue(_length(lines[: end - 1]), head)
        at = self._seam(_length(lines))
        self._broken_off = self.source[:at] if kind in {"paragraph_open", "fence"} else ""
        if kind == "fence" and begin < len(lines):
            return self._continue(at, lines[begin], in_fence=True)
        return self._continue(at, "")

    def take_back(self, row: str) -> bool:
        """Make the last drawn ``row`` of a broken-up block part of the open block again, if the source contains it."""
        source, self._broken_off = self._broken_off, ""
        begin = source.rfind(row) if row else -1
        if begin <= len(source) // 2:
            return False
        self.source = self._prefix + source[begin:] + self.source.removeprefix(self._prefix)
        return True

    def _is_too_heavy(self, kind: str) -> bool:
        if kind == "table_open":
            return self.open_weight >= _HEAVIEST_TABLE
        return weight_of(self.source) >= _HEAVIEST_BLOCK

    def _seam(self, complete: int) -> int:
        places = (complete, self.source.rfind(" ") + 1)
        return next((place for place in places if place > len(self.source) // 2), len(self.source))

    def _shed_code(self, fence: Token, lines: list[str], kept_lines: int) -> Piece | None:
        if _is_closed(fence):
            return None
        opening = _lines_of(fence)[0]
        code = _complete_lines(fence.content)
        # The last line with words stays: empty lines at the end of code are not drawn.
        filled = max((number for number, line in enumerate(code) if line.strip()), default=0)
        wanted = min(len(code) - kept_lines, filled)
        if wanted <= 0:
            return None
        number = next((place for place in range(wanted, 0, -1) if _is_seam(code, place)), wanted)
        return self._continue(_length(lines[: opening + 1 + number]), lines[opening], in_fence=True)

    def _shed_items(self, tokens: Sequence[Token], lines: list[str]) -> Piece | None:
        items = [token for token in tokens if token.type == "list_item_open" and token.level == 1]
        finished = items[:-1]
        if not finished:
            return None
        first = int(tokens[0].attrs.get("start", 1)) if self._next_number is None else self._next_number
        piece = self._continue(_length(lines[: _lines_of(items[-1])[0]]), "")
        self._next_number = first + len(finished)
        return piece

    def _continue(self, length: int, prefix: str, *, in_fence: bool = False) -> Piece:
        """Cut off the beginning of a block; the rest continues directly below, parsed with ``prefix`` before it."""
        piece = self._cut_off(length)
        for token in piece.tokens:
            token.meta["cut_off"] = in_fence
        self.source, self._prefix = prefix + self.source, prefix
        self._after_gap, self._goes_on, self._is_in_fence = False, True, in_fence
        return piece

    def _cut_off(self, length: int) -> Piece:
        tokens = self._parsed(self.source[:length], self._references, self.decoded)
        self._undefined |= labels_in(tokens) - self._references.keys()
        self.source = self.source[length:]
        piece = Piece(tokens, self._after_gap, self._goes_on)
        self._next_number, self._goes_on, self._is_in_fence = None, False, False
        if tokens:
            # rich draws an empty line after a thematic break itself.
            self._after_gap = tokens[-1].type != "hr"
        return piece

    def _parsed(self, text: str, references: dict[str, Any], safe: SafeTextStream) -> list[Token]:
        known = set(references)
        tokens = self._parser.parse(text, {"references": references})
        make_drawable(tokens, safe)
        for token in tokens:
            if token.type in _CODE:
                token.meta["lexing"] = self._lexing
        for token in tokens[:1]:
            token.meta["goes_on"] = self._is_in_fence
            if token.type == "ordered_list_open" and self._next_number is not None:
                token.attrs["start"] = self._next_number
        late = [found for label, found in references.items() if label in self._undefined and label not in known]
        return with_definitions(tokens, text, late) if late else tokens

    def _structure(self, lines: list[str]) -> list[Token]:
        """Return the block structure, without parsing inline markup."""
        tokens: list[Token] = []
        self._parser.block.parse("".join(lines), self._parser, {"references": dict(self._references)}, tokens)
        return tokens


def weight_of(text: str) -> int:
    """Return the work that drawing a text without tables may be, in characters of plain text."""
    return len(text) + sum(weight * text.count(mark) for mark, weight in _WEIGHTS.items())


def _complete_lines(text: str) -> list[str]:
    """Return the lines that have ended."""
    return [f"{line}\n" for line in text.split("\n")[:-1]]


def _first_open_line(tokens: Sequence[Token], lines: Sequence[str]) -> int:
    """Return the line with which the open block begins."""
    blocks = [token for token in tokens if token.level == 0 and token.nesting >= 0]
    if not blocks:
        return 0
    begin, end = _lines_of(blocks[-1])
    if _is_finished(blocks[-1], lines):
        return end
    if len(blocks) == 1:
        return 0
    # A link definition directly above may still take its title from the lines that follow.
    _, earliest = _lines_of(blocks[-2])
    while begin > earliest and lines[begin - 1].strip():
        begin -= 1
    return begin


def _is_finished(block: Token, lines: Sequence[str]) -> bool:
    """Return whether no further line can belong to the block."""
    _, end = _lines_of(block)
    if block.type in _ENDED_BY_EMPTY_LINE:
        return end < len(lines) and not lines[end].strip()
    return block.type in {"heading_open", "hr"} or (block.type == "fence" and _is_closed(block))


def _is_closed(fence: Token) -> bool:
    begin, end = _lines_of(fence)
    return end - begin > 1 + fence.content.count("\n")


def _is_seam(code: Sequence[str], number: int) -> bool:
    """Return whether a lexer may begin at a line, because an empty one is above it and it is not indented.

    What is lexed from the middle of a string or a comment has wrong colours.
    """
    return not code[number - 1].strip() and not code[number][:1].isspace()


def _lines_of(token: Token) -> Sequence[int]:
    """Return the first line of a block and the one after its last."""
    return token.map or (0, 0)


def _length(lines: Sequence[str]) -> int:
    return sum(map(len, lines))
