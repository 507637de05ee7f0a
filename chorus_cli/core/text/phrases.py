"""Phrases that sentences are made of: numbers of things, and texts cut to one line."""

from __future__ import annotations

_LONGEST_LINE = 60


def counted(number: int, thing: str) -> str:
    """Write a number of things: ``1 message``, ``1,200 messages``."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def shortened(text: str, longest: int = _LONGEST_LINE) -> str:
    """Write the beginning of a text in one line of at most so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"
