"""Blocks of code in Markdown."""

from __future__ import annotations

import re

_SHORTEST_FENCE = 3
_TICKS = re.compile("`+")


def fenced(text: str, language: str = "") -> str:
    """Return a block of code that nothing in the text can end."""
    longest = max(map(len, _TICKS.findall(text)), default=0)
    fence = "`" * max(_SHORTEST_FENCE, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"
