"""Quotations in Markdown, which are read back as they were."""

from __future__ import annotations


def quotation(text: str) -> str:
    """Return a text as a quotation: no line of it is empty, so that a blank line ends it."""
    return "\n".join(f"> {line}" if line else ">" for line in text.split("\n"))


def without_quotation(block: str) -> str:
    """Return the text of which ``quotation`` made a block."""
    return "\n".join(line.removeprefix(">").removeprefix(" ") for line in block.split("\n"))
