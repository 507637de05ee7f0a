"""A conversation of another program: its messages, files and branches."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from chorus_cli.log.rules.messages import Role, Status, Thought

_LONGEST_THOUGHT_SECONDS = 1e9

NO_TIME = (
    "Some messages have no time: Chorus guesses it from the messages around them, or from the time of this import."
)


@dataclass(frozen=True, slots=True)
class ForeignFile:
    """A file of a message: its name, its media type, and where its bytes are.

    ``entry`` names the bytes in the export: an entry of the archive, a file beside it, or a key of the reader's own.
    ``data`` holds bytes that were in the message itself. If both are empty, the export has only the file's name.
    """

    name: str
    media_type: str = ""
    entry: str = ""
    data: bytes | None = None


def unnamed_file(kind: str, media_type: str, data: bytes | None) -> ForeignFile:
    """Return a file to which its program gave no name; its kind and media type make a name."""
    suffix = media_type.rpartition("/")[2]
    return ForeignFile(f"{kind}{'.' + suffix if suffix else ''}", media_type, data=data)


@dataclass(frozen=True, slots=True)
class ForeignMessage:
    """A message: ``key`` is its id in the conversation, ``parent`` the id of the message before it on its branch.

    ``timestamp`` is aware and in UTC; if it is ``None``, the log gets a time just after the previous message.
    ``tool_calls`` is JSON text in the shape of the OpenAI API; a call and its result have the same ``tool_call_id``.
    ``reasoning`` has the thoughts of the model, which are stored but never sent; ``thought_parts`` is JSON with the
    provider's own parts of these thoughts. The program did not send a message that ``is_hidden`` to the model.
    """

    key: str
    parent: str | None
    role: Role
    content: str
    timestamp: datetime | None = None
    model: str | None = None
    status: Status | None = None
    tool_calls: str | None = None
    tool_call_id: str | None = None
    reasoning: str | None = None
    files: tuple[ForeignFile, ...] = ()
    is_hidden: bool = False
    thought_parts: str | None = None
    thought: Thought | None = None


@dataclass(frozen=True, slots=True)
class ForeignConversation:
    """A conversation: ``source`` names the program, ``key`` the conversation in that program.

    ``key`` stays the same when the file grows, and differs between conversations. In ``messages`` parents come first.
    ``live`` has the keys of the messages on the live branch, in order. ``guesses`` are sentences for the user about
    assumptions of the reader, such as a time zone. ``skipped`` counts the parts left out, by reason. ``persona`` is the
    persona that the file names. ``character`` names the character that replies; a persona may have this name.
    """

    source: str
    key: str = ""
    title: str = ""
    messages: tuple[ForeignMessage, ...] = ()
    live: tuple[str, ...] = ()
    created_at: datetime | None = None
    guesses: tuple[str, ...] = ()
    skipped: tuple[tuple[str, int], ...] = ()
    persona: str | None = None
    character: str = ""


class Reason(StrEnum):
    """Reasons, shared by several formats, for leaving something out."""

    BROKEN_LINE = "line that cannot be read"
    BROKEN_MESSAGE = "message that cannot be read"
    EMPTY_REPLY = "reply that failed or is empty"
    NOTE = "note of the program"
    SUBAGENT = "session of a subagent"
    SUMMARY = "summary of a compaction"
    SYSTEM_PROMPT = "system prompt"


class Skipped(NamedTuple):
    """The reason why a conversation, a file or a line was left out, in a few words that a count can follow."""

    reason: str


def thought_of(seconds: object, tokens: object) -> Thought | None:
    """Return how long a model thought and in how many tokens; ``None`` if neither is known."""
    time, count = None, None
    if isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 <= seconds <= _LONGEST_THOUGHT_SECONDS:
        time = float(seconds)
    if isinstance(tokens, int) and not isinstance(tokens, bool) and 0 <= tokens < 2**63:
        count = tokens
    return None if time is count is None else Thought(time, count)
