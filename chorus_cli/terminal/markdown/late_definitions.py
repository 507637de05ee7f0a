"""Definitions of links that came too late: what refers to them stands there as text, so they stand as text too.

Else their addresses would be nowhere. What only looks like such a link, in code or with an address of its own, counts
as one: better a definition is seen that nobody needs.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from markdown_it.common.utils import normalizeReference
from markdown_it.token import Token

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_LABEL = re.compile(r"\\.|\[((?:\\.|[^\[\]\\])+)\]", re.DOTALL)


def labels_in(tokens: Iterable[Token]) -> set[str]:
    """Return the labels of all links that the texts may refer to, as the parser keeps them."""
    texts = (token.content for token in tokens if token.type == "inline")
    labels = (match.group(1) for text in texts if "[" in text for match in _LABEL.finditer(text))
    return {normalizeReference(label) for label in labels if label}


def with_definitions(tokens: Sequence[Token], source: str, definitions: Iterable[Mapping[str, Any]]) -> list[Token]:
    """Return the blocks of ``source`` with these definitions as paragraphs behind the blocks above or around them."""
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
    """Return the number of the first token of the block at the top level that begins at ``line`` or below."""
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
