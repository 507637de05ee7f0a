"""Parameters that commands share; ``dataclasses.replace(TEXT, name="title")`` makes a variant."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chorus_cli.commands.framework.arguments import Candidate, Parameter
from chorus_cli.core.errors import CommandError
from chorus_cli.core.time import timespan

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from chorus_cli.core.time.timespan import Span

_TIMES = (
    Candidate("8h", "eight hours"),
    Candidate("24h", "a day"),
    Candidate("2 days", "two days"),
    Candidate("1 week", "the longest window"),
    Candidate("half an hour", "thirty minutes"),
    Candidate("3 days ago", "the last 72 hours"),
    Candidate("yesterday", "24 hours ago"),
    Candidate("today", "since midnight"),
    Candidate("monday 9am", "since 9:00 of the latest Monday"),
    Candidate("since friday", "since midnight of the latest Friday"),
)


@dataclass(frozen=True, slots=True)
class AskedTime:
    """A length of time, and whether only a preview is asked for."""

    span: Span
    preview: bool


# SQLite's ids have at most nineteen digits.
_NUMBER = re.compile(r"#?\s*([0-9]{1,18})")


def _number(text: str, _now: datetime) -> int:
    match = _NUMBER.fullmatch(text)
    number = int(match[1]) if match else 0
    if number == 0:
        raise CommandError(f"{timespan.quoted(text)} is not a number from 1 upwards, such as 3 or #3.")
    return number


def _asked_time(text: str, now: datetime) -> AskedTime:
    """Parse a time; a question mark after it asks for a preview."""
    time = text.rstrip("? \t")
    return AskedTime(timespan.parse(time, now), preview="?" in text[len(time) :])


def _common_times(_context: object, _text: str) -> Sequence[Candidate]:
    return _TIMES


def _as_typed(text: str, _now: datetime) -> str:
    return text


def _command_words(text: str, _now: datetime) -> str:
    return " ".join(text.casefold().split()).removeprefix("/")


TIME = Parameter(
    "time",
    timespan.parse,
    "how far back: 24h, 2 days, 1h30, half an hour, 3 days ago, yesterday, monday 9am",
    _common_times,
)
ASKED_TIME = Parameter("time", _asked_time, f"{TIME.help}; add ? for a preview", _common_times)
NUMBER = Parameter("number", _number, "a number such as 3 or #3")
TEXT = Parameter("text", _as_typed, "the rest of the line, as typed")
COMMAND = Parameter("command", _command_words, "a command's name, with or without the slash")
