"""Leaves out the middle of a text that is too long, and says in its place how much that was."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_SHRINKING = 0.9


def cut_in_the_middle(text: str, text_tokens: int, allowed_tokens: int, count: Callable[[str], int]) -> str:
    """Return as much of the beginning and of the end of a text as ``allowed_tokens`` leave room for.

    ``text_tokens`` are those of the whole. In the middle stands how many tokens were left out; that mark is the least
    that is returned, however little is allowed.
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
