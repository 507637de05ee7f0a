r"""Translates search terms for SQLite's full-text search, so that nothing that the user types acts as its syntax.

SQLite takes a whole sentence for one word in scripts without blanks (Chinese, Japanese, Thai, …). The index and the
search terms therefore contain each of their characters as a word, and a run of characters is searched as a phrase. So
any part of a sentence is found. Korean is treated the same way, because particles are attached to its words.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from chorus_cli.core.errors import CommandError
from chorus_cli.core.text.code_points import cleaned_input

APART = "\x1f"
"""The separator before and after each character that is a word of its own."""

MARKS = ("\ufdd0", "\ufdd1")
"""The opening and closing mark of a match while an excerpt is made: code points that no text should contain."""

SHOWN_MARKS = ("«", "»")
_LONGEST_EXCERPT = 240
_LEAD = 80
_CUT = "…"

_WITHOUT_BLANKS = re.compile(
    "(["
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Myanmar, Khmer
    "\u1100-\u11ff\uac00-\ud7ff"  # Hangul
    "\u3005-\u3007\u3040-\u318f\u31a0-\u31ff\uff66-\uffdc"  # kana, bopomofo, Hangul jamo, half-width forms
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
    "])"
)
_PIECE = re.compile(r'"(?P<phrase>[^"]*)"(?P<begins>\*?)|(?P<word>[^\s"]+)')
_QUOTES = str.maketrans("“”„‟", '""""')


class SearchQuery(NamedTuple):
    """A search: each result matches the ``expression`` of FTS5, which may be empty, and contains all ``literals``.

    Literals are terms without a letter or digit, such as emoji and arrows, which the index does not contain.
    """

    expression: str
    literals: tuple[str, ...]


def search_query(text: str) -> SearchQuery:
    """Parse the terms of a search: words, phrases in double quotes, ``begin*``; raise `CommandError` without any."""
    expressions: dict[str, None] = {}
    literals: dict[str, None] = {}
    for match in _PIECE.finditer(cleaned_input(text)[0].translate(_QUOTES)):
        piece = match["phrase"] or match["word"] or ""
        if _has_word(piece):
            begins = match["begins"] or piece.endswith("*")
            expressions[f'"{set_apart(piece)}"{" *" if begins else ""}'] = None
        elif piece.strip():
            literals[piece.strip()] = None
    if not expressions and not literals:
        raise CommandError("There is nothing to look for. Write a word or more, or a phrase in double quotes.")
    return SearchQuery(" ".join(expressions), tuple(literals))


def beginnings(text: str) -> str:
    """Return the search terms changed so that each one also finds the words that begin with it."""

    def begun(match: re.Match[str]) -> str:
        is_word = _has_word(match["phrase"] or match["word"] or "")
        return f"{match[0]}*" if is_word and not match[0].endswith("*") else match[0]

    return _PIECE.sub(begun, cleaned_input(text)[0].translate(_QUOTES))


def set_apart(text: str) -> str:
    """Return a text as the index contains it, with every character of a script without blanks set apart as a word."""
    return text if text.isascii() else _WITHOUT_BLANKS.sub(rf"{APART}\1{APART}", text)


def marked_literals(content: str, literals: tuple[str, ...]) -> str:
    """Return the part of ``content`` around the first literal, which is marked; without a literal, the beginning."""
    found = [(content.find(literal), literal) for literal in literals if literal in content]
    if not found:
        return content[:_LONGEST_EXCERPT]
    place, literal = min(found)
    begin, end = max(0, place - _LONGEST_EXCERPT), place + len(literal)
    opening, closing = MARKS
    before = f"{_CUT if begin else ''}{content[begin:place]}"
    return f"{before}{opening}{literal}{closing}{content[end : end + _LONGEST_EXCERPT]}"


def excerpt(marked: str) -> str:
    """Write a marked part of a message in one line, cut around the first match."""
    opening, closing = MARKS
    line = " ".join(marked.replace(APART, "").split())
    begin = max(0, line.find(opening) - _LEAD)
    shown = line[begin : begin + _LONGEST_EXCERPT]
    if shown.count(opening) > shown.count(closing):
        shown += closing
    before = _CUT if begin else ""
    after = _CUT if begin + _LONGEST_EXCERPT < len(line) else ""
    return f"{before}{shown}{after}".replace(opening, SHOWN_MARKS[0]).replace(closing, SHOWN_MARKS[1])


def _has_word(piece: str) -> bool:
    """Return whether a piece has a letter or a digit; the index contains nothing else.

    SQLite's tables of letters are older than Python's, but both take the letters of Unicode 3.2 for letters.
    """
    return any(unicodedata.ucd_3_2_0.category(sign)[0] in "LN" for sign in piece)
