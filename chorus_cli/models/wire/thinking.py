"""Reasoning that a model writes into its text, between tags."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_OPENING = "<think>"
_CLOSING = "</think>"

_MOST_HELD = 1_000
"""Characters, nearly all of them blanks, that may be held before a tag: a text of blanks alone may have no end."""


class _Stage(Enum):
    BEGINNING = "beginning"
    THINKING = "thinking"
    BETWEEN = "between the reasoning and the reply"
    REPLY = "reply"


class ThinkTags:
    """Tells the reasoning between ``<think>`` and ``</think>`` at the beginning of a reply from the reply.

    Tags may be cut over chunks: a text that may become one is held until that is decided.
    """

    def __init__(self) -> None:
        self._stage = _Stage.BEGINNING
        self._held = ""

    def split(self, text: str) -> Iterator[tuple[bool, str]]:
        """Yield the texts that the next piece decides, each with whether it is reasoning."""
        self._held += text
        if self._stage is _Stage.BEGINNING:
            self._open()
        if self._stage is _Stage.THINKING:
            yield True, self._thought()
        if self._stage is _Stage.BETWEEN:
            # The blank lines between the two belong to neither.
            self._held = self._held.lstrip()
            self._stage = _Stage.REPLY if self._held else _Stage.BETWEEN
        if self._stage is _Stage.REPLY:
            yield False, self._taken()

    def rest(self) -> Iterator[tuple[bool, str]]:
        """Yield the text that is still held: it became no tag."""
        yield self._stage is _Stage.THINKING, self._taken()

    def _open(self) -> None:
        begun = self._held.lstrip()
        if begun.startswith(_OPENING):
            self._stage, self._held = _Stage.THINKING, begun.removeprefix(_OPENING)
        elif not _OPENING.startswith(begun) or len(self._held) > _MOST_HELD:
            self._stage = _Stage.REPLY

    def _thought(self) -> str:
        """Take the reasoning out of the held text, but for an end that may become the closing tag."""
        thought, closing, after = self._held.partition(_CLOSING)
        if closing:
            self._stage, self._held = _Stage.BETWEEN, after
            return thought
        decided = len(thought) - _overlap(thought, _CLOSING)
        self._held = thought[decided:]
        return thought[:decided]

    def _taken(self) -> str:
        taken, self._held = self._held, ""
        return taken


def _overlap(text: str, tag: str) -> int:
    """Return the length of the longest end of ``text`` with which ``tag`` begins."""
    return next((length for length in range(len(tag) - 1, 0, -1) if text.endswith(tag[:length])), 0)
