"""Changes to the text of a context, as made in an editor."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

LINE = "--- context starts here ---\n"


def changing(change: Callable[[str], str]) -> Callable[[Path], object]:
    return lambda path: path.write_text(change(path.read_text()))


def without(*words: str) -> Callable[[Path], object]:
    """Delete the messages that begin with these words, header and all."""

    def change(text: str) -> str:
        blocks = text.split("\n\n")
        return "\n\n".join(block for block in blocks if not any(f": {word}" in block for word in words))

    return changing(change)


def replacing(old: str, new: str) -> Callable[[Path], object]:
    return changing(lambda text: text.replace(old, new))
