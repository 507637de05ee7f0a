"""Texts that make a regular expression work: all or a part of what it matches, again and again, and never ended."""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    _Part = tuple[Any, Any]

# Python has no public way to take a pattern apart.
_PARSER: Any = import_module("re._parser")
_COMPILER: Any = import_module("re._compiler")

_REPEATS = frozenset({"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"})
_LETTERS = frozenset({"IN", "ANY", "NOT_LITERAL"})
_WIDTHLESS = frozenset({"ASSERT", "ASSERT_NOT", "AT"})
_COMMON = "a0 \n\t_-./:\"'<>[](){}@#;,=`*+&|~!\\\x1b\u00e4Z"
_FAVOURITES = ("a0", " \n")
_ENDS = ("", "\0")
_LONGEST_RUN, _MOST_COPIES = 4, 50


class WorstText(NamedTuple):
    """A text of any length: ``pumped`` again and again, after one beginning and before one end."""

    beginning: str
    pumped: str
    end: str

    def of(self, length: int) -> str:
        """Return the text with about so many characters."""
        return self.beginning + self.pumped * (length // len(self.pumped) + 1) + self.end


def worst_texts(pattern: re.Pattern[Any]) -> Iterator[WorstText]:
    """Yield texts over which ``pattern`` may take long; for one of bytes they are to be written as Latin-1."""
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    pumps: set[tuple[str, str]] = set()
    for favourites in _FAVOURITES:
        pumps.update(_Parts(source, pattern.flags & ~re.UNICODE, favourites).pumps())
    for beginning, pumped in sorted(pumps):
        yield from (WorstText(beginning, pumped, end) for end in _ENDS if pumped)


class _Parts:
    """A pattern, taken apart; where it takes several letters, a sample of it has one of ``favourites`` if it can."""

    def __init__(self, source: str, flags: int, favourites: str) -> None:
        self._flags = flags
        self._favourites = favourites
        self._tree = _PARSER.parse(source, flags)

    def pumps(self) -> Iterator[tuple[str, str]]:
        """Yield pairs of texts: a beginning, and what is to come after it again and again."""
        return self._among(tuple(self._tree), "")

    def _among(self, parts: Sequence[_Part], before: str) -> Iterator[tuple[str, str]]:
        """Yield runs of neighbouring parts, letters in a row as one, and then what is within each part."""
        samples = [self._sample(part) for part in parts]
        words = _words(parts, samples)
        for start in range(len(words)):
            yield from ((before, "".join(words[start : start + length])) for length in range(1, _LONGEST_RUN + 1))
        yield before, "".join(words)
        for number, (kind, detail) in enumerate(parts):
            beginning = before + "".join(samples[:number])
            if str(kind) in _REPEATS:
                yield from ((beginning, letter) for letter in self._letters(tuple(detail[2])))
            for inner in _within(str(kind), detail):
                yield from self._among(tuple(inner), "")
                yield from self._among(tuple(inner), beginning)

    def _letters(self, repeated: Sequence[_Part]) -> Iterator[str]:
        """Yield common letters of which a repetition of one letter takes any."""
        if len(repeated) == 1 and str(repeated[0][0]) in _LETTERS:
            yield from filter(self._compiled(repeated[0]).match, _COMMON)

    def _sample(self, part: _Part) -> str:
        """Return a text that the part matches, or nearly."""
        kind, detail = str(part[0]), part[1]
        if kind == "LITERAL":
            return chr(detail)
        if kind in _WIDTHLESS:
            return ""
        if kind in _LETTERS:
            listed = [] if kind != "IN" else [value for name, value in detail if str(name) in {"LITERAL", "RANGE"}]
            members = [chr(value if isinstance(value, int) else value[0]) for value in listed]
            candidates = (*self._favourites, *_COMMON, *map(chr, range(33, 127)), *members)
            return next(filter(self._compiled(part).match, candidates), "")
        first = next(iter(_within(kind, detail)), ())
        least = min(max(detail[0], 1), _MOST_COPIES) if kind in _REPEATS else 1
        return "".join(map(self._sample, first)) * least

    def _compiled(self, part: _Part) -> re.Pattern[str]:
        compiled: re.Pattern[str] = _COMPILER.compile(_PARSER.SubPattern(self._tree.state, [part]), self._flags)
        return compiled


def _words(parts: Sequence[_Part], samples: Sequence[str]) -> list[str]:
    """Join the samples of letters that stand beside each other."""
    words: list[str] = []
    follows = False
    for (kind, _), sample in zip(parts, samples, strict=True):
        is_letter = str(kind) == "LITERAL"
        if is_letter and follows:
            words[-1] += sample
        else:
            words.append(sample)
        follows = is_letter
    return words


def _within(kind: str, detail: Any) -> Sequence[Any]:
    """Return the sequences of parts within a part."""
    if kind in _REPEATS:
        return (detail[2],)
    if kind == "SUBPATTERN":
        return (detail[3],)
    if kind == "ATOMIC_GROUP":
        return (detail,)
    if kind in {"ASSERT", "ASSERT_NOT"}:
        return (detail[1],)
    return tuple(detail[1]) if kind == "BRANCH" else ()
