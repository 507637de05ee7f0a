"""Traces of purged texts: the sequences of their words, by which other texts that repeat them are recognised."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

RUN_WORDS = 8
"""A text that has this many words in a row from a longer one repeats it."""

_LEAST_WORDS = 3
_LEAST_CHARACTERS = 20
_WORD = re.compile(r"\w+")


class Traces:
    """The traces of some texts.

    A long text is repeated by one that has a run of its words, a short one only by a text that has all of it, and a
    word or two only by an equal text.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._whole: set[str] = set()
        self._runs: dict[int, set[tuple[str, ...]]] = {}
        for text in texts:
            self._add(text)

    def are_in(self, text: str) -> bool:
        """Return whether a text repeats one of the texts."""
        if " ".join(text.split()) in self._whole:
            return True
        words = _words(text) if self._runs else ()
        return any(run in known for length, known in self._runs.items() for run in _runs(words, length))

    def phrases(self, most: int) -> tuple[str, ...]:
        """Return the sequences of words, by which an index finds texts that may repeat; none if there are too many."""
        if sum(map(len, self._runs.values())) > most:
            return ()
        return tuple(" ".join(run) for known in self._runs.values() for run in known)

    def _add(self, text: str) -> None:
        line = " ".join(text.split())
        if not line:
            return
        self._whole.add(line)
        words = _words(text)
        if len(words) >= RUN_WORDS:
            known = self._runs.setdefault(RUN_WORDS, set())
            # Of every run of twice this length, one of these is a part; the last one makes the end found too.
            known.update(
                tuple(words[first : first + RUN_WORDS]) for first in range(0, len(words) - RUN_WORDS, RUN_WORDS)
            )
            known.add(tuple(words[-RUN_WORDS:]))
        elif len(words) >= _LEAST_WORDS or (words and len(line) >= _LEAST_CHARACTERS):
            self._runs.setdefault(len(words), set()).add(tuple(words))


def words_in_line(texts: Iterable[str]) -> str:
    """Return the words of texts, those of each between blanks in a line of its own, for ``is_part``."""
    return "\n".join(f" {' '.join(_words(text))} " for text in texts)


def is_part(text: str, line: str) -> bool:
    """Return whether the words of a text, of which there is one at least, stand in a row in ``words_in_line``."""
    words = _words(text)
    return bool(words) and f" {' '.join(words)} " in line


def _words(text: str) -> Sequence[str]:
    return _WORD.findall(text.casefold())


def _runs(words: Sequence[str], length: int) -> Iterator[tuple[str, ...]]:
    return (tuple(words[first : first + length]) for first in range(len(words) - length + 1))
