"""Fingerprints of purged texts, by which equal texts, and those that contain one of them, are recognised."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LEAST_WORDS = 4
"""A text of fewer words is common speech: only an equal text repeats it."""

MOST_BEGINNINGS = 100
"""Number of texts up to which an index is asked for the beginning of each; beyond, a pass over the log takes less."""

_BEGINNING_WORDS = 8
_WORD = re.compile(r"\w+")


class Fingerprints:
    """The fingerprints of some texts, which equal texts repeat, and those that contain all words of one in a row.

    Only hashes of 64 bits are kept: a whole log has millions of words.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._beginnings: list[str] = []
        self._equal: set[int] = set()
        self._first_words: set[str] = set()
        self._contained: set[int] = set()
        self._lengths: dict[int, set[int]] = {}
        self.add(texts)

    def add(self, texts: Iterable[str]) -> None:
        """Add the fingerprints of more texts."""
        for text in filter(None, map(plain, texts)):
            self._equal.add(hash(text))
            words = _WORD.findall(text)
            if len(self._beginnings) <= MOST_BEGINNINGS:
                self._beginnings.append(" ".join(words[:_BEGINNING_WORDS]))
            if len(words) >= LEAST_WORDS:
                self._first_words.add(words[0])
                self._contained.add(_hash(words, 0, len(words)))
                self._lengths.setdefault(_hash(words, 0, LEAST_WORDS), set()).add(len(words))

    @property
    def beginnings(self) -> tuple[str, ...]:
        """The first words of the texts, by which an index finds texts that may repeat them; none of too many texts."""
        return tuple(filter(None, self._beginnings)) if len(self._beginnings) <= MOST_BEGINNINGS else ()

    def are_in(self, text: str) -> bool:
        """Return whether a text repeats one of the texts."""
        line = plain(text)
        if hash(line) in self._equal or not self._contained:
            return hash(line) in self._equal
        words = _WORD.findall(line)
        for first in (number for number, word in enumerate(words) if word in self._first_words):
            for length in self._lengths.get(_hash(words, first, LEAST_WORDS), ()):
                if _hash(words, first, length) in self._contained:
                    return True
        return False


def words_in_line(texts: Iterable[str]) -> str:
    """Return the words of texts, those of each between blanks in a line of its own, for ``is_part``."""
    return "\n".join(f" {' '.join(_WORD.findall(text.casefold()))} " for text in texts)


def is_part(text: str, line: str) -> bool:
    """Return whether the words of a text, of which there is one at least, stand in a row in ``words_in_line``."""
    words = words_in_line([text])
    return bool(words.strip()) and words in line


def plain(text: str) -> str:
    """Return a text without differences of blanks and case."""
    return " ".join(text.casefold().split())


def _hash(words: Sequence[str], first: int, length: int) -> int:
    return hash(tuple(words[first : first + length]))
