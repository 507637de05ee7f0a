"""Texts cut to size, quoted in a sentence, or fenced."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_SHRINKING = 0.9
_LONGEST_QUOTATION = 40


def cut_in_the_middle(text: str, text_tokens: int, allowed_tokens: int, count: Callable[[str], int]) -> str:
    """Return the beginning and the end of a text, together about ``allowed_tokens`` long.

    ``text_tokens`` is the length of the whole. A mark in the middle says how many tokens were left out; the mark
    itself is always returned, however few tokens are allowed.
    """
    if text_tokens <= allowed_tokens:
        return text
    kept = len(text) * allowed_tokens // max(1, text_tokens)
    while True:
        head, tail = text[: (kept + 1) // 2], text[len(text) - kept // 2 :]
        left_out = max(1, text_tokens - count(head) - count(tail))
        shortened = f"{head}\n[… {left_out:,} tokens left out here …]\n{tail}"
        if not kept or count(shortened) <= allowed_tokens:
            return shortened
        kept = int(kept * _SHRINKING)


def cut_to_characters(text: str, most: int) -> str:
    """Return the beginning and the end of a text of more than ``most`` characters, and say what is missing between."""
    if len(text) <= most:
        return text
    head, tail = text[: (most + 1) // 2], text[len(text) - most // 2 :]
    return f"{head}\n[… {len(text) - most:,} characters left out here …]\n{tail}"


def quoted(text: str) -> str:
    """Return typed text in quotes, for a sentence: some forty characters at most, all of them printable."""
    quotation = repr(text)
    return quotation if len(quotation) <= _LONGEST_QUOTATION else f"{quotation[:_LONGEST_QUOTATION]}…{quotation[0]}"


_SHORTEST_FENCE = 3
_TICKS = re.compile("`+")


def fenced(text: str, language: str = "") -> str:
    """Return a block of code that nothing in the text can end."""
    longest = max(map(len, _TICKS.findall(text)), default=0)
    fence = "`" * max(_SHORTEST_FENCE, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def quotation(text: str) -> str:
    """Return a text as a quotation: no line of it is empty, so that a blank line ends it."""
    return "\n".join(f"> {line}" if line else ">" for line in text.split("\n"))


def without_quotation(block: str) -> str:
    """Return the text of which ``quotation`` made a block."""
    return "\n".join(line.removeprefix(">").removeprefix(" ") for line in block.split("\n"))
