"""The at signs of a line that were typed or completed at the prompt, for only they attach files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.attachments.rules.mentions import escaped

if TYPE_CHECKING:
    from collections.abc import Iterable


class AtSigns:
    """Follows the typed at signs through the changes of a line; those that come in any other way are text."""

    def __init__(self) -> None:
        self._text = ""
        self._typed: frozenset[int] = frozenset()

    @property
    def typed(self) -> tuple[int, ...]:
        """The positions of the typed at signs in the line."""
        return tuple(sorted(self._typed))

    def begin(self, text: str) -> None:
        """Begin a line with ``text``; nothing in it was typed, unless it is the line before."""
        if text != self._text:
            self.clear()
        self._text = text

    def clear(self) -> None:
        """Forget the line."""
        self._text, self._typed = "", frozenset()

    def add(self, positions: Iterable[int]) -> None:
        """Note at signs that were typed just now."""
        self._typed |= {*positions}

    def follow(self, text: str, cursor: int) -> None:
        """Note that the line was changed to ``text``: one piece before the cursor came, went or was replaced."""
        old, self._text = self._text, text
        if not self._typed:
            return
        after = len(text) - cursor
        if not old.endswith(text[cursor:]):
            # Another line of the history, for example.
            self._typed = frozenset()
            return
        end, shift = len(old) - after, len(text) - len(old)
        kept = (each for each in self._typed if each < min(end, cursor) and text.startswith(old[: each + 1]))
        self._typed = frozenset((*kept, *(each + shift for each in self._typed if each >= end)))

    def escaped(self, line: str) -> str:
        """Return a line that was read, with a backslash before each at sign that would attach and was not typed."""
        return escaped(line, self._typed if line == self._text else ())
