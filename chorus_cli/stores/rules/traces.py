"""Traces of purged texts: the sequences of their words, by which other texts that repeat them are recognised."""

from __future__ import annotations

import re
from itertools import count
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

RUN_WORDS = 8
"""A text that has this many words in a row from a longer one repeats it."""

MOST_PHRASES = 500
"""Number of phrases up to which an index is asked for each; beyond, one pass over the log takes less."""

_LEAST_WORDS = 3
_LEAST_CHARACTERS = 20
_WORD = re.compile(r"\w+")
_STAMP = "[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}"
_LEAD_IN = re.compile(rf"(?:thread #[0-9]+, {_STAMP}, [^:]*|\[{_STAMP}\] [^:]*|#[0-9]+ [A-Z_]+): ")
"""The words that tools for the log and the memory put before a quoted message or memory item."""

_BULLETS = " \t>-*#•"
_QUOTATION_MARKS = " \t\"'`*_«»\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u2039\u203a"
_MOST_MARKS = 200
_LOOK_EVERY = 500

T = TypeVar("T")


class Watch(NamedTuple):
    """Calls ``look`` while many texts are read, with their number since then; an error that it raises ends that."""

    look: Callable[[int], None]

    def over(self, texts: Iterable[T]) -> Iterator[T]:
        """Yield the texts, and look after every few hundred of them."""
        for number, text in zip(count(1), texts, strict=False):
            yield text
            if not number % _LOOK_EVERY:
                self.look(_LOOK_EVERY)


UNWATCHED = Watch(lambda _number: None)


class Traces:
    """The traces of some texts.

    A text of RUN_WORDS or more is repeated by one that has a run of its words. A shorter one is common speech, and only
    repeated by an equal text, or by one that quotes it in lines of their own; of a word or two, only the equal one
    counts. Of runs and texts only hashes of 64 bits are kept: a whole log has millions.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._whole: set[int] = set()
        self._quoted: set[int] = set()
        self._longest_quoted = 0
        self._runs: dict[int, set[int]] = {}
        self._lengths: dict[int, int] = {}
        self._phrases: set[str] = set()
        self.add(texts)

    def add(self, texts: Iterable[str]) -> None:
        """Add the traces of more texts."""
        for text in texts:
            line = _plain(text)
            if line:
                self._whole.add(hash(line))
                self._add_runs(_words(text), text, len(line))

    def are_in(self, text: str) -> bool:
        """Return whether a text repeats one of the texts."""
        return hash(_plain(text)) in self._whole or self._is_quoted_in(text) or self._have_run_in(text, RUN_WORDS)

    def have_run_in(self, text: str) -> bool:
        """Return whether a text has a run of a longer text, or anywhere all words of a shorter one."""
        return self._have_run_in(text, 1)

    @property
    def are_of_short_texts(self) -> bool:
        """Whether a text may have all words of one of the texts without repeating it."""
        return any(length < RUN_WORDS for length in self._runs)

    def _is_quoted_in(self, text: str) -> bool:
        if not self._quoted:
            return False
        # Blanks and marks count little; of a line much longer nothing needs to be looked at.
        most = 2 * self._longest_quoted + _MOST_MARKS
        lines = [line for line in (_bare(line) if len(line) <= most else line for line in text.splitlines()) if line]
        for first, line in enumerate(lines):
            quote = line
            for following in (*lines[first + 1 : first + RUN_WORDS], ""):
                if hash(quote) in self._quoted:
                    return True
                quote = f"{quote} {following}"
                if len(quote) > self._longest_quoted:
                    break
        return False

    def _have_run_in(self, text: str, least_words: int) -> bool:
        runs = {length: known for length, known in self._runs.items() if length >= least_words}
        if not runs:
            return False
        words = _words(text)
        # Only few places of a text have three words with which a run begins.
        for first, beginning in enumerate(zip(words, words[1:], words[2:], strict=False)):
            lengths = self._lengths.get(hash(beginning), 0)
            if lengths and any(lengths >> n & 1 and _hash(words, first, n) in run for n, run in runs.items()):
                return True
        shorter = [(length, known) for length, known in runs.items() if length < _LEAST_WORDS]
        return any(_hash(words, first, n) in known for n, known in shorter for first in range(len(words) - n + 1))

    @property
    def phrases(self) -> tuple[str, ...]:
        """The runs as texts, by which an index finds texts that may repeat; none if they are more than MOST_PHRASES."""
        return tuple(self._phrases) if sum(map(len, self._runs.values())) <= MOST_PHRASES else ()

    def _add_runs(self, words: Sequence[str], text: str, characters: int) -> None:
        if len(words) >= RUN_WORDS:
            # Of every run of twice this length, one of these is a part; the last one makes the end found too.
            for first in (*range(0, len(words) - RUN_WORDS, RUN_WORDS), len(words) - RUN_WORDS):
                self._add_run(words[first : first + RUN_WORDS])
        elif len(words) >= _LEAST_WORDS or (words and characters >= _LEAST_CHARACTERS):
            self._add_run(words)
            quote = " ".join(filter(None, map(_bare, text.splitlines())))
            self._quoted.add(hash(quote))
            self._longest_quoted = max(self._longest_quoted, len(quote))

    def _add_run(self, words: Sequence[str]) -> None:
        length, beginning = len(words), _hash(words, 0, _LEAST_WORDS)
        self._runs.setdefault(length, set()).add(_hash(words, 0, length))
        if length >= _LEAST_WORDS:
            self._lengths[beginning] = self._lengths.get(beginning, 0) | 1 << length
        if len(self._phrases) <= MOST_PHRASES:
            self._phrases.add(" ".join(words))


def words_in_line(texts: Iterable[str]) -> str:
    """Return the words of texts, those of each between blanks in a line of its own, for ``is_part``."""
    return "\n".join(f" {' '.join(_words(text))} " for text in texts)


def is_part(text: str, line: str) -> bool:
    """Return whether the words of a text, of which there is one at least, stand in a row in ``words_in_line``."""
    words = _words(text)
    return bool(words) and f" {' '.join(words)} " in line


def _plain(text: str) -> str:
    """Return a text without differences of blanks and case."""
    return " ".join(text.casefold().split())


def _bare(line: str) -> str:
    """Return a line, plain, without the lead-in and the marks of a list or a quotation."""
    line = line.strip()
    begun = _LEAD_IN.match(line)
    return _plain((line[begun.end() :] if begun else line).lstrip(_BULLETS).strip(_QUOTATION_MARKS))


def _words(text: str) -> Sequence[str]:
    return _WORD.findall(text.casefold())


def _hash(words: Sequence[str], first: int, length: int) -> int:
    return hash(tuple(words[first : first + length]))
