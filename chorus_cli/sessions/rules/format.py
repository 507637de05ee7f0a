"""Saved sessions: their names, their summaries, and the text of their files. Every value of a file is checked.

The file is readable JSON: first the facts for a list of sessions, then the threads, then the messages of each thread in
the order of its context. Ids in the file may belong to another log; ``matching`` finds the ids in this log.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from hashlib import blake2b
from itertools import count
from types import MappingProxyType
from typing import Any

from chorus_cli.core.errors import SessionError
from chorus_cli.core.json.jsonc import JsonValue
from chorus_cli.core.text.phrases import shortened
from chorus_cli.core.time import timestamps
from chorus_cli.log.rules.attachments import Attachment, as_json, is_sha256
from chorus_cli.log.rules.messages import Message, MessageContent, Role, Status
from chorus_cli.turns.rules import ONLY_MATERIAL

FORMAT = "chorus-session"
VERSION = 1


@dataclass(frozen=True, slots=True)
class SavedThread:
    """A saved thread; ``summary`` covers its first ``summarised`` messages and may be empty."""

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

# The types of the values in the objects of a file, by their keys.
_FACTS = {
    "session_id": str,
    "persona": str,
    "timestamp": datetime,
    "description": str,
    "summary": str,
    "message_count": int,
    "token_estimate": int,
    "window_start": datetime,
    "window_end": datetime,
    "active_thread_id": int,
}
_THREAD = {"id": int, "title": str, "summary": str}
_MESSAGE = {"thread": int, "turn": int, "role": Role, "content": str, "timestamp": datetime, "status": Status}
_OF_SOME_MESSAGES = {"preamble": str, "tool_calls": str, "tool_call_id": str, "model": str, "attachments": list}
_FILE = {"name": str, "media_type": str, "size_bytes": int, "sha256": str}
_OF_SOME_FILES = {"width": int, "height": int, "pages": int, "tokens": int, "server": str}


def read(text: str) -> Session:
    """Return the session in the text of a file, or raise a ``SessionError`` that names the place of the fault."""
    document = _parsed(text)
    head = _read(document, "the file", {"format": str, "version": int})
    if head != {"format": FORMAT, "version": VERSION}:
        raise SessionError(f"its format and version are not {FORMAT} and {VERSION}; it may be from a newer Chorus")
    facts = _read(document, "the file", {**_FACTS, "threads": list, "messages": list})
    del facts["message_count"]
    threads = [_read(each, "a thread", _THREAD, {"summarised": int}) for each in facts.pop("threads")]
    messages = [_message(each, f"message {number}") for number, each in enumerate(facts.pop("messages"), 1)]
    known = {thread["id"] for thread in threads}
    used = {facts["active_thread_id"], *(message.thread_id for message in messages)}
    if not messages or len(known) < len(threads) or not used <= known:
        raise SessionError("its threads are not those of its messages")
    return Session(**facts, threads=tuple(SavedThread(**each) for each in threads), messages=tuple(messages))


def _message(value: object, place: str) -> MessageContent:
    found = _read(value, place, _MESSAGE, _OF_SOME_MESSAGES)
    calls = _parsed(found.get("tool_calls", "[]"))
    files = [_read(each, f"a file of {place}", _FILE, _OF_SOME_FILES) for each in found.pop("attachments", ())]
    has_calls = isinstance(calls, list) and all(isinstance(call, dict) for call in calls)
    # Chorus saves no reply in progress; from a file, such a reply would stay in progress for ever.
    if not has_calls or not all(is_sha256(each["sha256"]) for each in files) or found["status"] is Status.STREAMING:
        raise SessionError(f"{place} has calls, files or a status that no saved message has")
    attachments = tuple(Attachment(**each) for each in files)
    return MessageContent(found.pop("thread"), turn_id=found.pop("turn"), attachments=attachments, **found)


def _read(
    value: object, place: str, required: Mapping[str, type], optional: Mapping[str, type] = MappingProxyType({})
) -> dict[str, Any]:
    """Return the values of an object of the file by their keys; refuse a missing value, or one of another type."""
    values = value if isinstance(value, dict) else {}
    found: dict[str, Any] = {}
    for key, kind in {**required, **optional}.items():
        try:
            if key in values or key in required:
                found[key] = _of_type(values[key], kind)
        except (LookupError, TypeError, ValueError, OverflowError) as error:
            raise SessionError(f'"{key}" of {place} is missing or cannot be read') from error
    return found


def _of_type(value: object, kind: type) -> object:
    if isinstance(value, str) and issubclass(kind, StrEnum):
        return kind(value)
    if isinstance(value, str) and kind is datetime:
        moment = timestamps.from_text(value)
        # A time at either end of the calendar has no local time in some zones.
        if not _FIRST_YEAR <= moment.year <= _LAST_YEAR:
            raise ValueError
        return moment
    if type(value) is not kind or (isinstance(value, int) and not 0 <= value <= _LARGEST_NUMBER):
        raise TypeError
    return value


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
    """Return a description in lower-case ASCII, hyphens for spaces; if nothing is left, a hash of the first message."""
    letters = unicodedata.normalize("NFKD", description).encode("ascii", "ignore").decode().lower()
    joined = _OTHER_SIGNS.sub("", _BLANKS_AND_HYPHENS.sub("-", letters))
    short = _BLANKS_AND_HYPHENS.sub("-", joined).strip("-")[:LONGEST_SLUG].strip("-")
    return short or blake2b(first_message.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_DIGITS]


def candidates(stem: str) -> Iterator[str]:
    """Yield ``stem``, then ``stem-2``, ``stem-3`` and so on without end."""
    yield stem
    yield from (f"{stem}-{number}" for number in count(2))


def meant(typed: str, known: Iterable[str]) -> list[str]:
    """Return ``typed`` if it is a name, else names that begin with it, else names whose description begins with it."""
    wanted = typed.strip().lower()
    names = sorted(known)
    if wanted in names or not wanted:
        return [wanted] if wanted else []
    beginning = [name for name in names if name.startswith(wanted)]
    return beginning or [name for name in names if name.partition("_")[2].startswith(slug(typed, ""))]


FAILED = "(summary generation failed)"
STOPPED = "(no summary: stopped)"
TASK = (
    "You write the note by which a conversation is found again later. Summarise the whole conversation that you are "
    "given in 2 to 4 sentences: what was accomplished, which decisions were made, and what is unfinished. Write in "
    f"the language of the conversation. {ONLY_MATERIAL}"
)

_EXTRACT = "ELIZA writes no summaries. Your words: "
LONGEST_SUMMARY = 1500
_LONGEST_DESCRIPTION = 80
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


def described(messages: Sequence[Message]) -> str:
    """Return the first line of the user's messages, or of all messages if the user wrote none, shortened."""
    said = [message for message in messages if message.role is Role.USER] or messages
    lines = (line for message in said for line in message.content.split("\n") if line.strip())
    return shortened(next(lines, ""), _LONGEST_DESCRIPTION)


def first_sentence(summary: str) -> str:
    """Return the first sentence of a summary in one line, shortened; a dot before a small letter ends no sentence."""
    line = " ".join(summary.split())
    match = _SENTENCE.match(line)
    return shortened(match[0] if match else line, _LONGEST_SENTENCE)


def can_be_extended(summary: str) -> bool:
    """Return whether a model wrote a summary, which can then be extended."""
    return summary not in {"", FAILED, STOPPED} and not summary.startswith(_EXTRACT)
