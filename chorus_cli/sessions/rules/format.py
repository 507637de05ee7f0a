"""Saved sessions: their names, their summaries, and the text of their files. Every value of a file is checked.

The file is readable JSON: first the facts that a list of sessions shows, then the threads, then all messages in the
order of their thread's context. Ids in the file may belong to another log; ``matching`` finds the ids in this log.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from hashlib import blake2b
from itertools import count
from typing import Any, NoReturn, TypeVar

from chorus_cli.core.errors import SessionError
from chorus_cli.core.json.jsonc import JsonValue
from chorus_cli.core.text.phrases import shortened
from chorus_cli.core.time import timestamps
from chorus_cli.log.rules.attachments import Attachment, as_json, is_sha256
from chorus_cli.log.rules.messages import MessageContent, Role, Status
from chorus_cli.turns.rules import ONLY_MATERIAL

FORMAT = "chorus-session"
VERSION = 1


@dataclass(frozen=True, slots=True)
class SavedThread:
    """A saved thread; ``summary`` stands for its first ``summarised`` messages and may be empty."""

    id: int
    title: str = ""
    summary: str = ""
    summarised: int = 0


@dataclass(frozen=True, slots=True)
class Session:
    """A copy of a persona's context in all threads, with its estimated tokens and the two ends of its window."""

    session_id: str
    persona: str
    timestamp: datetime
    description: str
    summary: str
    token_estimate: int
    window_start: datetime
    window_end: datetime
    active_thread_id: int
    threads: tuple[SavedThread, ...]
    messages: tuple[MessageContent, ...]

    @property
    def message_count(self) -> int:
        """The number of messages."""
        return len(self.messages)

    @property
    def spoken_threads(self) -> int:
        """The number of threads that have a message in the session."""
        return len({message.thread_id for message in self.messages})


def text_of(session: Session) -> str:
    """Return the JSON text of a session's file."""
    facts = {key: getattr(session, key) for key in _FACTS}
    document = {
        "format": FORMAT,
        "version": VERSION,
        **{key: timestamps.to_text(fact) if isinstance(fact, datetime) else fact for key, fact in facts.items()},
        "threads": [
            {key: fact for key, fact in asdict(each).items() if fact or key != "summarised"} for each in session.threads
        ],
        "messages": [_written(message) for message in session.messages],
    }
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _written(message: MessageContent) -> JsonValue:
    """Return the JSON of a message, without the optional fields that the message does not have."""
    always: dict[str, JsonValue] = {
        "role": message.role,
        "content": message.content,
        "timestamp": timestamps.to_text(message.timestamp),
        "thread": message.thread_id,
        "turn": message.turn_id,
        "status": message.status,
    }
    sometimes: dict[str, JsonValue] = {
        "preamble": message.preamble or None,
        "tool_calls": message.tool_calls,
        "tool_call_id": message.tool_call_id,
        "model": message.model,
        "attachments": [{**as_json(each)} for each in message.attachments] or None,
    }
    return always | {key: value for key, value in sometimes.items() if value is not None}


_LARGEST_NUMBER = 2**63 - 1
_FIRST_YEAR, _LAST_YEAR = 1000, 9998
_MEASURES = ("width", "height", "pages", "tokens")
_Kind = TypeVar("_Kind", str, int, list[Any])


class _Object:
    """An object of the file, whose values are checked by their kind; ``place`` names it in errors."""

    def __init__(self, value: object, place: str) -> None:
        if not isinstance(value, dict):
            raise SessionError(f"{place} is not an object")
        self._values = value
        self.place = place

    def has(self, key: str) -> bool:
        return key in self._values

    def text(self, key: str) -> str:
        return self._of_kind(key, str, "text")

    def optional_text(self, key: str) -> str | None:
        return self.text(key) if self.has(key) else None

    def count(self, key: str) -> int:
        return self.number(key, 0)

    def number(self, key: str, least: int = 1) -> int:
        expected = f"a whole number from {least} upwards"
        value = self._of_kind(key, int, expected)
        if not least <= value <= _LARGEST_NUMBER:
            self.refuse(key, expected)
        return value

    def moment(self, key: str) -> datetime:
        try:
            moment = timestamps.from_text(self.text(key))
        except (ValueError, OverflowError):
            self.refuse(key, "a time")
        # A time at either end of the calendar has no local time in some zones.
        if not _FIRST_YEAR <= moment.year <= _LAST_YEAR:
            self.refuse(key, "a time")
        return moment

    def objects(self, key: str) -> list[_Object]:
        return [_Object(each, f"{key}[{number}]") for number, each in enumerate(self._of_kind(key, list, "a list"))]

    def refuse(self, key: str, expected: str) -> NoReturn:
        raise SessionError(f'"{key}" of {self.place} is not {expected}')

    def _of_kind(self, key: str, kind: type[_Kind], expected: str) -> _Kind:
        if key not in self._values:
            raise SessionError(f'{self.place} has no "{key}"')
        value = self._values[key]
        if not isinstance(value, kind) or isinstance(value, bool):
            self.refuse(key, expected)
        return value


_FACTS: Mapping[str, Callable[[_Object, str], Any]] = {
    "session_id": _Object.text,
    "persona": _Object.text,
    "timestamp": _Object.moment,
    "description": _Object.text,
    "summary": _Object.text,
    "message_count": _Object.number,
    "token_estimate": _Object.count,
    "window_start": _Object.moment,
    "window_end": _Object.moment,
    "active_thread_id": _Object.number,
}
"""The functions that read the facts about a session, by their keys in the file."""


def read(text: str) -> Session:
    """Return the session in the text of a file, or raise a ``SessionError`` that names the fault and its place."""
    document = _Object(_parsed(text), "the file")
    if document.text("format") != FORMAT:
        raise SessionError(f'its "format" is not "{FORMAT}"')
    if document.count("version") != VERSION:
        raise SessionError(f'its "version" is not {VERSION}: it may be from a newer Chorus')
    threads = tuple(
        SavedThread(
            each.number("id"),
            each.text("title"),
            each.text("summary"),
            each.count("summarised") if each.has("summarised") else 0,
        )
        for each in document.objects("threads")
    )
    known = {thread.id for thread in threads}
    if len(known) != len(threads):
        raise SessionError('two of its "threads" have the same id')
    facts = {key: read_fact(document, key) for key, read_fact in _FACTS.items()}
    del facts["message_count"]
    if facts["active_thread_id"] not in known:
        raise SessionError(f'its "active_thread_id" {facts["active_thread_id"]} is not one of its threads')
    messages = tuple(_message(each, known) for each in document.objects("messages"))
    if not messages:
        raise SessionError('there is nothing in its "messages"')
    return Session(**facts, threads=threads, messages=messages)


def _message(value: _Object, threads: set[int]) -> MessageContent:
    thread_id, role, status = value.number("thread"), value.text("role"), value.text("status")
    if thread_id not in threads:
        value.refuse("thread", "one of the session's threads")
    if role not in set(Role):
        value.refuse("role", f"one of {', '.join(Role)}")
    # Chorus saves no reply in progress; from a file, such a reply would stay in progress for ever.
    if status not in set(Status) - {Status.STREAMING}:
        value.refuse("status", "the status of a finished message")
    return MessageContent(
        thread_id=thread_id,
        turn_id=value.number("turn"),
        role=Role(role),
        content=value.text("content"),
        timestamp=value.moment("timestamp"),
        status=Status(status),
        preamble=value.optional_text("preamble") or "",
        tool_calls=_tool_calls(value),
        tool_call_id=value.optional_text("tool_call_id"),
        model=value.optional_text("model"),
        attachments=tuple(map(_attachment, value.objects("attachments"))) if value.has("attachments") else (),
    )


def _tool_calls(value: _Object) -> str | None:
    """Return the calls as JSON text, as the log has them; refuse JSON that is not a list of objects."""
    written = value.optional_text("tool_calls")
    if written is not None:
        calls = _parsed(written)
        if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
            value.refuse("tool_calls", "a list of calls in JSON")
    return written


def _attachment(value: _Object) -> Attachment:
    digest = value.text("sha256")
    if not is_sha256(digest):
        value.refuse("sha256", "64 hexadecimal digits")
    width, height, pages, tokens = (value.count(each) if value.has(each) else 0 for each in _MEASURES)
    kind, size, server = value.text("media_type"), value.count("size_bytes"), value.optional_text("server") or ""
    return Attachment(value.text("name"), kind, size, digest, width, height, pages, tokens, server)


def _parsed(text: str) -> JsonValue:
    """Parse JSON; refuse lone surrogates, because they cannot be written as UTF-8."""
    try:
        parsed: JsonValue = json.loads(text)
        json.dumps(parsed, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise SessionError(f"line {error.lineno}, column {error.colno}: {error.msg}") from error
    except RecursionError as error:
        raise SessionError("it is nested too deeply") from error
    except ValueError as error:
        raise SessionError(f"it has a number or a character that is not valid: {error}") from error
    return parsed


LONGEST_SLUG = 40

_HASH_DIGITS = 6
_LONGEST_ID = 80
_ID = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}_[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
_BLANKS_AND_HYPHENS = re.compile(r"[\s-]+")
_OTHER_SIGNS = re.compile(r"[^a-z0-9-]")


def is_session_id(text: str) -> bool:
    """Return whether ``text`` is a valid name of a session, which is also the name of its file without the ending."""
    return len(text) <= _LONGEST_ID and _ID.fullmatch(text) is not None


def slug(description: str, first_message: str) -> str:
    """Return a description in lower-case ASCII with hyphens for spaces, or a short hash of the first message."""
    letters = unicodedata.normalize("NFKD", description).encode("ascii", "ignore").decode().lower()
    joined = _OTHER_SIGNS.sub("", _BLANKS_AND_HYPHENS.sub("-", letters))
    short = _BLANKS_AND_HYPHENS.sub("-", joined).strip("-")[:LONGEST_SLUG].strip("-")
    return short or blake2b(first_message.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_DIGITS]


def candidates(stem: str) -> Iterator[str]:
    """Yield ``stem``, then ``stem-2``, ``stem-3`` and so on without end."""
    yield stem
    yield from (f"{stem}-{number}" for number in count(2))


def meant(typed: str, known: Iterable[str]) -> list[str]:
    """Return the name ``typed``, else names that begin with it, else names that begin with it after their date.

    If there are none, ``typed`` is taken for a description, and the newest session with this description is returned.
    """
    wanted = typed.strip().lower()
    names = sorted(known)
    if wanted in names or not wanted:
        return [wanted] if wanted else []
    beginning = [name for name in names if name.startswith(wanted)]
    beginning = beginning or [name for name in names if name.partition("_")[2].startswith(wanted)]
    if beginning:
        return beginning
    described = re.compile(rf"([^_]*)_{re.escape(slug(typed, ''))}(?:-([0-9]+))?")
    found = [match for name in names if (match := described.fullmatch(name))]
    newest = max(found, key=lambda match: (match[1], int(match[2] or 1)), default=None)
    return [newest[0]] if newest else []


FAILED = "(summary generation failed)"
STOPPED = "(no summary: stopped)"
TASK = (
    "You write the note by which a conversation is found again later. Summarise the whole conversation that you are "
    "given in 2 to 4 sentences: what was accomplished, which decisions were made, and what is unfinished. Write in "
    f"the language of the conversation. {ONLY_MATERIAL}"
)

_EXTRACT = "ELIZA writes no summaries. Your words: "
LONGEST_SUMMARY = 1500
_LONGEST_QUOTE = 160
_LONGEST_SENTENCE = 200
_SENTENCE = re.compile(r".+?(?:[.!?](?= [^a-z])|[\u3002\uff01\uff1f])")


def extract(messages: Sequence[MessageContent]) -> str:
    """Return the first and the last message of the user, shortened and labelled as an extract."""
    said = [message.content for message in messages if message.role is Role.USER] or [messages[0].content]
    quotes = [f"“{shortened(said[0], _LONGEST_QUOTE)}”"]
    if len(said) > 1:
        quotes.append(f"“{shortened(said[-1], _LONGEST_QUOTE)}”")
    return _EXTRACT + " … ".join(quotes)


def first_sentence(summary: str) -> str:
    """Return the first sentence of a summary in one line, shortened; a dot before a small letter ends no sentence."""
    line = " ".join(summary.split())
    match = _SENTENCE.match(line)
    return shortened(match[0] if match else line, _LONGEST_SENTENCE)


def can_be_extended(summary: str) -> bool:
    """Return whether a summary can be extended, because a model wrote it."""
    return summary not in {"", FAILED, STOPPED} and not summary.startswith(_EXTRACT)
