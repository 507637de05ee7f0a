r"""Parses arriving Markdown into settled blocks and one open block, and corrects what rich would draw wrongly.

A block at the top level is settled once no further line can change it; usually only the last block is open. A long
fence, list or table is settled in parts. The open part keeps what the parser needs: the first line of a fence, the next
number of a list, a table's head.

Every word is shown exactly once. CommonMark would drop the backslashes of ``\(a\)`` and the underscores of
``__init__``. rich would drop HTML, such as half of ``List<String>``, and the line after an image, and would show an
address twice if it is also the text of its link. The parser decodes entities, so its output is made safe again.

If a link is settled before its definition arrives, link and definition are shown as text; otherwise the address would
appear nowhere. Text that only looks like a link may cause a superfluous definition: that is better than a lost address.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.common.normalize_url import normalizeLink
from markdown_it.common.utils import normalizeReference
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from chorus_cli.core.text.safe_text import safe_text
from chorus_cli.terminal.markdown.lexing import LexingProcess

_ENDED_BY_EMPTY_LINE = ("paragraph_open", "blockquote_open", "table_open")
_CODE = ("fence", "code_block")
_LISTS = ("bullet_list_open", "ordered_list_open")
_TABLE_HEAD_LINES = 2
# Limits for an open block, which is drawn again and again; a plain character costs 1. Brackets and marks of emphasis
# cost more, because the parser looks for their counterparts. Lines and cells cost more, because rich measures them.
_HEAVIEST_BLOCK, _HEAVIEST_TABLE = 16_384, 32_768
_WEIGHTS = {"\n": 16, "[": 16, "!": 8, "*": 8, "_": 8, "~": 6, "<": 8}
_CELL_WEIGHT = 20
# The tag of a link whose text is its address. rich draws such a link in the style of this name.
OWN_ADDRESS = "link"
_SHOWN = frozenset({"text", "code_inline"})
_SHOWN_ATTRIBUTES = ("href", "src")
_KEYS = frozenset({"<kbd>", "</kbd>"})
_LABEL = re.compile(r"\\.|\[((?:\\.|[^\[\]\\])+)\]", re.DOTALL)
_LINE_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_FORMULA_MARKS = ("\\(", "\\)")
_NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Piece:
    """Parsed Markdown. ``after_gap``: an empty line comes before it; ``goes_on``: it continues the block before."""

    tokens: list[Token]
    after_gap: bool
    goes_on: bool


class MarkdownBlocks:
    """Parses Markdown as it arrives.

    In the ``meta`` of a fence, ``goes_on`` says that it began in another piece, ``cut_off`` that it ends in another.
    """

    def __init__(self, lexing: LexingProcess) -> None:
        self._parser = MarkdownIt().enable("strikethrough").enable("table")
        self._parser.inline.ruler.before("escape", "formula", _formula_mark)
        self._references: dict[str, Any] = {}  # the parser's records of link definitions
        self._undefined: set[str] = set()
        self._lexing = lexing
        self._source = ""
        self._has_new_lines = False
        self._after_gap = False
        self._goes_on = False
        self._next_number: int | None = None
        self._is_in_fence = False
        self._broken_off = ""
        self._prefix = ""

    @property
    def open_weight(self) -> int:
        """An upper bound for the cost of drawing the open block; a plain character costs 1."""
        return _weight_of(self._source) + _CELL_WEIGHT * self._source.count("|")

    def feed(self, text: str) -> None:
        """Add arrived text."""
        self._source += text
        self._has_new_lines = self._has_new_lines or "\n" in text

    def settled(self) -> Piece | None:
        """Remove and return all blocks that no further line can change; ``None`` if there are none."""
        if not self._has_new_lines:
            return None
        self._has_new_lines = False
        lines = _complete_lines(self._source)
        cut = _first_open_line(self._structure(lines), lines)
        return self._cut_off(_length(lines[:cut])) if cut else None

    def rest(self) -> Piece:
        """Remove and return everything, because the reply has ended."""
        return self._cut_off(len(self._source))

    def unsettled(self) -> Piece:
        """Return the open block, parsed as if the reply ended here."""
        tokens = self._parsed(self._source, dict(self._references))
        return Piece(tokens, self._after_gap, self._goes_on)

    def shed(self, kept_lines: int) -> Piece | None:
        """Remove and return a list without its last item, or an open fence without about ``kept_lines`` at its end."""
        lines = _complete_lines(self._source)
        tokens = self._structure(lines)
        if tokens and tokens[0].type == "fence":
            return self._shed_code(tokens[0], lines, kept_lines)
        if tokens and tokens[0].type in _LISTS:
            return self._shed_items(tokens, lines)
        return None

    def break_up(self) -> Piece | None:
        """Remove and return most of a heavy open block, up to the end of a line or word; ``None`` for a light one."""
        lines = _complete_lines(self._source)
        block = next(iter(self._structure([self._source])), None)
        begin, end = _lines_of(block) if block else (0, 0)
        kind = block.type if block else ""
        is_table = kind == "table_open"
        weight, heaviest = (
            (self.open_weight, _HEAVIEST_TABLE) if is_table else (_weight_of(self._source), _HEAVIEST_BLOCK)
        )
        if weight < heaviest:
            return None
        if is_table and min(end, len(lines)) - begin > _TABLE_HEAD_LINES + 1:
            head = "".join(lines[begin : begin + _TABLE_HEAD_LINES])
            return self._continue(_length(lines[: end - 1]), head)
        places = (_length(lines), self._source.rfind(" ") + 1)
        at = next((place for place in places if place > len(self._source) // 2), len(self._source))
        self._broken_off = self._source[:at] if kind in {"paragraph_open", "fence"} else ""
        if kind == "fence" and begin < len(lines):
            return self._continue(at, lines[begin], in_fence=True)
        return self._continue(at, "")

    def take_back(self, row: str) -> bool:
        """Put the last drawn ``row`` back into the open block, so that no break shows; return false if that fails."""
        source, self._broken_off = self._broken_off, ""
        begin = source.rfind(row) if row else -1
        if begin <= len(source) // 2:
            return False
        self._source = self._prefix + source[begin:] + self._source.removeprefix(self._prefix)
        return True

    def _shed_code(self, fence: Token, lines: list[str], kept_lines: int) -> Piece | None:
        if _is_closed(fence):
            return None
        opening = _lines_of(fence)[0]
        code = _complete_lines(fence.content)
        # The last line with words stays open, because empty lines at the end of code are not drawn.
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
        """Remove and return the beginning of a block; the rest follows it directly and is parsed after ``prefix``."""
        piece = self._cut_off(length)
        for token in piece.tokens:
            token.meta["cut_off"] = in_fence
        self._source, self._prefix = prefix + self._source, prefix
        self._after_gap, self._goes_on, self._is_in_fence = False, True, in_fence
        return piece

    def _cut_off(self, length: int) -> Piece:
        tokens = self._parsed(self._source[:length], self._references)
        self._undefined |= _labels_in(tokens) - self._references.keys()
        self._source = self._source[length:]
        piece = Piece(tokens, self._after_gap, self._goes_on)
        self._next_number, self._goes_on, self._is_in_fence = None, False, False
        if tokens:
            # rich draws an empty line after a thematic break itself.
            self._after_gap = tokens[-1].type != "hr"
        return piece

    def _parsed(self, text: str, references: dict[str, Any]) -> list[Token]:
        known = set(references)
        tokens = self._parser.parse(text, {"references": references})
        _make_drawable(tokens)
        for token in tokens:
            if token.type in _CODE:
                token.meta["lexing"] = self._lexing
        for token in tokens[:1]:
            token.meta["goes_on"] = self._is_in_fence
            if token.type == "ordered_list_open" and self._next_number is not None:
                token.attrs["start"] = self._next_number
        late = [found for label, found in references.items() if label in self._undefined and label not in known]
        return _with_definitions(tokens, text, late) if late else tokens

    def _structure(self, lines: list[str]) -> list[Token]:
        tokens: list[Token] = []
        self._parser.block.parse("".join(lines), self._parser, {"references": dict(self._references)}, tokens)
        return tokens


def _weight_of(text: str) -> int:
    return len(text) + sum(weight * text.count(mark) for mark, weight in _WEIGHTS.items())


def _complete_lines(text: str) -> list[str]:
    return [f"{line}\n" for line in text.split("\n")[:-1]]


def _first_open_line(tokens: Sequence[Token], lines: Sequence[str]) -> int:
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
    _, end = _lines_of(block)
    if block.type in _ENDED_BY_EMPTY_LINE:
        return end < len(lines) and not lines[end].strip()
    return block.type in {"heading_open", "hr"} or (block.type == "fence" and _is_closed(block))


def _is_closed(fence: Token) -> bool:
    begin, end = _lines_of(fence)
    return end - begin > 1 + fence.content.count("\n")


def _is_seam(code: Sequence[str], number: int) -> bool:
    """Return whether a lexer may begin at a line: an unindented line below an empty one is seldom within a string."""
    return not code[number - 1].strip() and not code[number][:1].isspace()


def _lines_of(token: Token) -> Sequence[int]:
    return token.map or (0, 0)


def _length(lines: Sequence[str]) -> int:
    return sum(map(len, lines))


def _formula_mark(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - as the parser calls its rules
    mark = state.src[state.pos : state.pos + 2]
    if mark not in _FORMULA_MARKS:
        return False
    if not silent:
        state.pending += mark
    state.pos += len(mark)
    return True


def _make_drawable(tokens: Iterable[Token]) -> None:
    """Make the visible text of the tokens safe, and replace tokens whose words rich would lose or repeat."""
    for token in tokens:
        if token.type in _SHOWN:
            token.content = safe_text(token.content)
        for name in _SHOWN_ATTRIBUTES:
            if name in token.attrs:
                token.attrs[name] = safe_text(str(token.attrs[name]))
        if token.children:
            _make_drawable(token.children)
            token.children = _with_whole_names([part for child in token.children for part in _as_shown(child)])
            _mark_own_addresses(token.children)


def _with_whole_names(tokens: Sequence[Token]) -> list[Token]:
    whole: list[Token] = []
    for token in tokens:
        whole.append(token)
        match whole[-3:]:
            case [
                Token(type="strong_open", markup="__"),
                Token(type="text", content=name),
                Token(type="strong_close"),
            ] if _NAME.fullmatch(name):
                whole[-3:] = [Token("text", "", 0, content=f"__{name}__")]
    return whole


def _as_shown(token: Token) -> Sequence[Token]:
    """Return an image as a link, and an HTML tag as text; ``<br>`` breaks the line, and ``<kbd>`` is left out."""
    if token.type == "image":
        address = str(token.attrs.get("src", ""))
        text = token.children or [Token("text", "", 0, content=address)]
        return Token("link_open", "a", 1, attrs={"href": address}), *text, Token("link_close", "a", -1)
    if token.type != "html_inline":
        return (token,)
    if token.content in _KEYS:
        return ()
    is_break = _LINE_BREAK.fullmatch(token.content) is not None
    return (Token("hardbreak", "br", 0) if is_break else Token("text", "", 0, content=token.content),)


def _mark_own_addresses(tokens: Iterable[Token]) -> None:
    """Mark the links whose text is their address. A link may contain another link, because images become links."""
    shown: list[str] = []
    begun: list[tuple[Token, int]] = []
    for token in tokens:
        if token.type == "link_open":
            begun.append((token, len(shown)))
        elif token.type == "link_close":
            opening, begin = begun.pop()
            address = str(opening.attrs["href"])
            if _says("".join(shown[begin:]), address):
                opening.type = token.type = "own_address"
                opening.tag = token.tag = OWN_ADDRESS
            else:
                shown.append(address)
        else:
            shown.append("\n" if token.tag == "br" else token.content)


def _says(text: str, address: str) -> bool:
    """Return whether a text equals an address, as it is or before the parser percent-encoded it."""
    if text in {address, address.removeprefix("mailto:")}:
        return True
    # Up to the third slash nothing may differ, because letters of a host may look alike. A blank ends an address.
    up_to_path = "/".join(text.split("/", 3)[:3])
    return address.startswith(up_to_path) and text.split() == [text] and normalizeLink(text) == address


def _labels_in(tokens: Iterable[Token]) -> set[str]:
    texts = (token.content for token in tokens if token.type == "inline")
    labels = (match.group(1) for text in texts if "[" in text for match in _LABEL.finditer(text))
    return {normalizeReference(label) for label in labels if label}


def _with_definitions(tokens: Sequence[Token], source: str, definitions: Iterable[Mapping[str, Any]]) -> list[Token]:
    """Return ``tokens`` with a paragraph for each definition, after the block in ``source`` that precedes or has it."""
    shown = list(tokens)
    places: dict[int, list[str]] = {}
    for definition in definitions:
        begin, end = definition["map"]
        words = " ".join(" ".join(source.split("\n")[begin:end]).split())
        places.setdefault(_place(tokens, end), []).append(words[max(0, words.find("[")) :])
    for place in sorted(places, reverse=True):
        shown[place:place] = _paragraph(places[place])
    return shown


def _place(tokens: Sequence[Token], line: int) -> int:
    blocks = (
        number
        for number, token in enumerate(tokens)
        if token.level == 0 and token.nesting >= 0 and token.map is not None and token.map[0] >= line
    )
    return next(blocks, len(tokens))


def _paragraph(lines: Sequence[str]) -> Iterator[Token]:
    parts = [part for line in lines for part in (Token("hardbreak", "br", 0), Token("text", "", 0, content=line))]
    yield Token("paragraph_open", "p", 1)
    yield Token("inline", "", 0, children=parts[1:])
    yield Token("paragraph_close", "p", -1)
