"""A purge as the user asks for it: its grammar, and the messages and texts that are meant."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from chorus_cli.core.errors import CommandError
from chorus_cli.core.text.phrases import shortened
from chorus_cli.core.time import timespan
from chorus_cli.log.rules.messages import expanded, runs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from chorus_cli.core.json.jsonc import JsonValue

WITH_BACKUPS = "--backups"

_NUMBER = re.compile(r"#?([0-9]{1,18})")
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


def asked_purge(kind: str, text: str, now: datetime) -> AskedPurge:
    """Read a purge of one kind.

    Raises:
        CommandError: the text does not fit.
    """
    return _READERS[kind](AskedPurge(kind), text.strip(), now)


def _messages(asked: AskedPurge, text: str, _now: datetime) -> AskedPurge:
    return replace(asked, messages=frozenset(_number(word) for word in text.replace(",", " ").split()))


def _thread(asked: AskedPurge, text: str, _now: datetime) -> AskedPurge:
    return replace(asked, thread=_number(text))


def _persona(asked: AskedPurge, text: str, _now: datetime) -> AskedPurge:
    return replace(asked, persona=text)


def _since(asked: AskedPurge, text: str, now: datetime) -> AskedPurge:
    match = _UNTIL.fullmatch(text)
    since = timespan.parse(match["since"] if match else text, now, after_since=True).before(now)
    until = timespan.parse(match["until"], now, after_since=True).before(now) if match else None
    if until is not None and until <= since:
        raise CommandError("The time after until must be later than the one after since.")
    return replace(asked, since=since, until=until)


def _search(asked: AskedPurge, text: str, _now: datetime) -> AskedPurge:
    return replace(asked, words=text)


_READERS: Mapping[str, Callable[[AskedPurge, str, datetime], AskedPurge]] = {
    "message": _messages,
    "thread": _thread,
    "persona": _persona,
    "since": _since,
    "search": _search,
}


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
