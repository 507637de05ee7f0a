"""Reading the text of a session's file, which is not trusted.

Python's JSON parser accepts more than JSON allows, and fails on some input: NaN, numbers of any length, duplicate keys,
lone surrogates, endless nesting. All of these are refused here, and every value is checked.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NoReturn, TypeVar

from chorus_cli.core.errors import SessionError
from chorus_cli.core.text.code_points import SURROGATES
from chorus_cli.core.text.phrases import quoted
from chorus_cli.core.time import timestamps
from chorus_cli.log.rules.attachments import Attachment, is_sha256
from chorus_cli.log.rules.messages import MessageContent, Role, Status
from chorus_cli.sessions.rules.format import FORMAT, VERSION, SavedThread, Session

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from chorus_cli.core.json.jsonc import JsonValue

_LARGEST_NUMBER = 2**63 - 1
_MOST_DIGITS = 19
_FIRST_YEAR, _LAST_YEAR = 1000, 9998
_SURROGATE = re.compile(rf"[{SURROGATES}]")
_HEAD_LINE = re.compile(r'  "(timestamp|description|messages)": (.*?),?')
_MEASURES = ("width", "height", "pages", "tokens")
_Word = TypeVar("_Word", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Head:
    """Time and description of a session, from the beginning of its file."""

    timestamp: datetime
    description: str


def read(text: str) -> Session:
    """Return the session in the text of a file.

    Raises:
        SessionError: the text is not valid; the sentence names the fault and its position.
    """
    document = _Object(_parsed(text), "the file")
    if document.text("format") != FORMAT:
        raise SessionError(f'its "format" is not "{FORMAT}"')
    if document.number("version", 0) != VERSION:
        raise SessionError(f'its "version" is not {VERSION}: it may be from a newer Chorus')
    document.number("message_count")
    threads = tuple(_thread(each) for each in document.objects("threads"))
    known = {thread.id for thread in threads}
    if len(known) != len(threads):
        raise SessionError('two of its "threads" have the same id')
    active = document.number("active_thread_id")
    if active not in known:
        raise SessionError(f'its "active_thread_id" {active} is none of its threads')
    return Session(
        session_id=document.text("session_id"),
        persona=document.text("persona"),
        timestamp=document.moment("timestamp"),
        description=document.text("description"),
        summary=document.text("summary"),
        token_estimate=document.number("token_estimate", 0),
        window_start=document.moment("window_start"),
        window_end=document.moment("window_end"),
        active_thread_id=active,
        threads=threads,
        messages=_messages(document, known),
    )


def head(beginning: str) -> Head | None:
    """Return time and description from the first lines of a file, ``None`` if they are not as Chorus writes them."""
    found: dict[str, JsonValue] = {}
    for line in beginning.split("\n"):
        match = _HEAD_LINE.fullmatch(line)
        if match is None:
            continue
        if match[1] == "messages":
            break
        try:
            found.setdefault(match[1], _parsed(match[2]))
        except SessionError:
            return None
    try:
        known = _Object(found, "the file")
        return Head(known.moment("timestamp"), known.text("description"))
    except SessionError:
        return None


class _Object:
    """An object of the file, with values checked by kind; ``place`` is its name in errors."""

    def __init__(self, value: JsonValue, place: str) -> None:
        if not isinstance(value, dict):
            raise SessionError(f"{place} is not an object")
        self._values: Mapping[str, JsonValue] = value
        self.place = place

    def has(self, key: str) -> bool:
        return key in self._values

    def text(self, key: str) -> str:
        value = self._value(key)
        if not isinstance(value, str) or _SURROGATE.search(value):
            self.refuse(key, "text", value)
        return value

    def optional_text(self, key: str) -> str | None:
        return self.text(key) if self.has(key) else None

    def number(self, key: str, smallest: int = 1) -> int:
        value = self._value(key)
        if not isinstance(value, int) or isinstance(value, bool) or not smallest <= value <= _LARGEST_NUMBER:
            self.refuse(key, f"a whole number from {smallest} upwards", value)
        return value

    def moment(self, key: str) -> datetime:
        written = self.text(key)
        try:
            moment = timestamps.from_text(written)
        except (ValueError, OverflowError):
            self.refuse(key, "a time", written)
        # At the ends of the calendar a time has no local time in some zones.
        if not _FIRST_YEAR <= moment.year <= _LAST_YEAR:
            self.refuse(key, "a time", written)
        return moment

    def word(self, key: str, words: Sequence[_Word]) -> _Word:
        written = self.text(key)
        found = next((word for word in words if word == written), None)
        if found is None:
            self.refuse(key, f"one of {', '.join(words)}", written)
        return found

    def objects(self, key: str) -> list[_Object]:
        value = self._value(key)
        if not isinstance(value, list):
            self.refuse(key, "a list", value)
        return [_Object(each, f"{key}[{number}]") for number, each in enumerate(value)]

    def refuse(self, key: str, expected: str, found: JsonValue) -> NoReturn:
        raise SessionError(f'"{key}" of {self.place} is {_shown(found)}, not {expected}')

    def _value(self, key: str) -> JsonValue:
        if key not in self._values:
            raise SessionError(f'{self.place} has no "{key}"')
        return self._values[key]


def _shown(value: JsonValue) -> str:
    """Return a value for a sentence, or its kind if it is large."""
    match value:
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case str():
            return quoted(value)
        case dict():
            return "an object"
        case list():
            return "a list"
        case _:
            return str(value)


def _thread(value: _Object) -> SavedThread:
    summarised = value.number("summarised", smallest=0) if value.has("summarised") else 0
    return SavedThread(value.number("id"), value.text("title"), value.text("summary"), summarised)


def _messages(document: _Object, threads: set[int]) -> tuple[MessageContent, ...]:
    messages = tuple(_message(each, threads) for each in document.objects("messages"))
    if not messages:
        raise SessionError('there is nothing in its "messages"')
    return messages


def _message(value: _Object, threads: set[int]) -> MessageContent:
    thread_id = value.number("thread")
    if thread_id not in threads:
        value.refuse("thread", "one of the session's threads", thread_id)
    return MessageContent(
        thread_id=thread_id,
        turn_id=value.number("turn"),
        role=value.word("role", tuple(Role)),
        content=value.text("content"),
        timestamp=value.moment("timestamp"),
        # A reply in progress is never saved, and one from a file would never be finished.
        status=value.word("status", [status for status in Status if status is not Status.STREAMING]),
        preamble=value.optional_text("preamble") or "",
        tool_calls=_tool_calls(value),
        tool_call_id=value.optional_text("tool_call_id"),
        model=value.optional_text("model"),
        attachments=tuple(map(_attachment, value.objects("attachments"))) if value.has("attachments") else (),
    )


def _attachment(value: _Object) -> Attachment:
    """Return an attachment; where its bytes are not stored, its name stands for it."""
    digest = value.text("sha256")
    if not is_sha256(digest):
        value.refuse("sha256", "64 hexadecimal digits", digest)
    known = (value.number(each, smallest=0) if value.has(each) else 0 for each in _MEASURES)
    return Attachment(value.text("name"), value.text("media_type"), value.number("size_bytes", 0), digest, *known)


def _tool_calls(value: _Object) -> str | None:
    """Return the calls as text, as in the log; the text must be a JSON list of objects."""
    written = value.optional_text("tool_calls")
    if written is None:
        return None
    calls = _parsed(written)
    are_calls = isinstance(calls, list) and all(isinstance(call, dict) for call in calls)
    # A surrogate that was escaped twice is found only here.
    if not are_calls or _SURROGATE.search(json.dumps(calls, ensure_ascii=False)):
        value.refuse("tool_calls", "a list of calls in JSON", written)
    return written


def _parsed(text: str) -> JsonValue:
    try:
        parsed: JsonValue = json.loads(
            text,
            object_pairs_hook=_without_twins,
            parse_int=_whole_number,
            parse_float=_finite,
            parse_constant=_no_number,
        )
    except json.JSONDecodeError as error:
        raise SessionError(f"line {error.lineno}, column {error.colno}: {error.msg}") from error
    except RecursionError as error:
        raise SessionError("it is nested too deeply") from error
    except ValueError as error:
        raise SessionError(str(error)) from error
    return parsed


def _without_twins(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    members = dict(pairs)
    if len(members) != len(pairs):
        twin = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"the key {quoted(twin)} stands twice in one object")
    return members


def _whole_number(digits: str) -> int:
    if len(digits) > _MOST_DIGITS + 1:
        raise ValueError(f"it holds a number of {len(digits):,} digits")
    return int(digits)


def _finite(digits: str) -> float:
    number = float(digits)
    if number in {float("inf"), float("-inf")}:
        raise ValueError(f"it holds the number {quoted(digits)}, which is too large")
    return number


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"it holds {word}, which is not a number in JSON")
