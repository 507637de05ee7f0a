"""A purge as the user asks for it, the messages and texts that are meant, and how texts that repeat them are known."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from chorus_cli.core.errors import CommandError
from chorus_cli.core.text.phrases import shortened
from chorus_cli.core.time import timespan
from chorus_cli.log.rules.messages import expanded, runs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from chorus_cli.core.json.jsonc import JsonValue

WITH_BACKUPS = "--backups"

_NUMBER = re.compile(r"#?([0-9]{1,18})")
_WORD = re.compile(r"\w+")
_UNTIL = re.compile(r"(?P<since>.*\S)\s+until\s+(?P<until>\S.*)", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AskedPurge:
    """A request to purge messages by their ids, a thread by its number, a persona, a span of time, or search results.

    ``persona`` is a name as typed, which limits a thread, a span or a search; it is empty where none was given.
    """

    kind: str
    messages: frozenset[int] = frozenset()
    thread: int = 0
    since: datetime | None = None
    until: datetime | None = None
    words: str = ""
    persona: str = ""


def asked_purge(kind: str, typed: str, now: datetime) -> AskedPurge:
    """Read a purge of one kind."""
    asked, text = AskedPurge(kind), typed.strip()
    match kind:
        case "message":
            return replace(asked, messages=frozenset(_number(word) for word in text.replace(",", " ").split()))
        case "thread":
            return replace(asked, thread=_number(text))
        case "persona":
            return replace(asked, persona=text)
        case "search":
            return replace(asked, words=text)
    match = _UNTIL.fullmatch(text)
    since = timespan.parse(match["since"] if match else text, now, after_since=True).before(now)
    until = timespan.parse(match["until"], now, after_since=True).before(now) if match else None
    if until is not None and until <= since:
        raise CommandError("The time after until must be later than the one after since.")
    return replace(asked, since=since, until=until)


def _number(word: str) -> int:
    match = _NUMBER.fullmatch(word)
    if match is None or not int(match[1]):
        raise CommandError(f"{shortened(word)!r} is not a number from 1 upwards, such as 3 or #3.")
    return int(match[1])


class WantedPurge(NamedTuple):
    """A purge that was decided, as it is stored until it is complete: so one that is interrupted can be carried on.

    ``messages`` were chosen by the user. All texts of ``personas`` go, the titles of ``threads``, every text with the
    ``words`` of a search, and memory items and inputs from ``since`` to ``until``, UTC texts; the last two only those
    of ``persona``, unless that is empty.
    """

    messages: frozenset[int] = frozenset()
    threads: frozenset[int] = frozenset()
    personas: frozenset[str] = frozenset()
    words: str = ""
    since: str = ""
    until: str = ""
    persona: str = ""

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> WantedPurge:
        """Read a stored one."""
        messages = frozenset(expanded(tuple((int(first), int(last)) for first, last in stored["messages"])))
        texts = (str(stored[name]) for name in ("words", "since", "until", "persona"))
        return cls(messages, frozenset(map(int, stored["threads"])), frozenset(map(str, stored["personas"])), *texts)

    def criteria(self) -> WantedPurge:
        """Return it without the ids of one log: the words, the span and the personas hold in every backup."""
        return self._replace(messages=frozenset(), threads=frozenset())

    def as_json(self) -> dict[str, JsonValue]:
        """Write it to be stored."""
        return {
            **self._asdict(),
            "messages": [[first, last] for first, last in runs(sorted(self.messages))],
            "threads": [*sorted(self.threads)],
            "personas": [*sorted(self.personas)],
        }


NO_CRITERIA = WantedPurge()
"""A purge without criteria, which finds nothing by itself."""

LEAST_WORDS = 4
"""A text of fewer words is common speech: only an equal text repeats it."""


_FEW_TEXTS = 10
"""With so many texts at most, a look for the first words of each is faster than splitting what is compared."""


class Fingerprints:
    """The hashes of some texts, which equal texts repeat, and those that contain all words of one in a row."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._beginnings: set[tuple[str, ...]] = set()
        self._equal: set[int] = set()
        self._first_words: set[str] = set()
        self._contained: dict[int, set[tuple[int, int]]] = {}
        self.add(texts)

    def add(self, texts: Iterable[str]) -> None:
        """Add the fingerprints of more texts."""
        for text in filter(None, map(plain, texts)):
            self._equal.add(hash(text))
            words = _WORD.findall(text)
            if len(self._beginnings) <= _FEW_TEXTS:
                self._beginnings.add(tuple(words[:LEAST_WORDS]))
            if len(words) >= LEAST_WORDS:
                self._first_words.add(words[0])
                whole = len(words), _hash(words, 0, len(words))
                self._contained.setdefault(_hash(words, 0, LEAST_WORDS), set()).add(whole)

    def are_in(self, text: str) -> bool:
        """Return whether a text repeats one of the texts."""
        if len(self._beginnings) <= _FEW_TEXTS:
            folded = text.casefold()
            if not any(all(word in folded for word in words) for words in self._beginnings):
                return False
        line = plain(text)
        if hash(line) in self._equal or not self._contained:
            return hash(line) in self._equal
        words = _WORD.findall(line)
        return any(
            _hash(words, first, length) == whole
            for first, word in enumerate(words)
            if word in self._first_words
            for length, whole in self._contained.get(_hash(words, first, LEAST_WORDS), ())
        )


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
