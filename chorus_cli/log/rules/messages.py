"""A message of the log, the turns that messages form, and ranges of message ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple, Self

from chorus_cli.core import limits
from chorus_cli.core.errors import JournalError
from chorus_cli.core.text.phrases import counted, cut_to_characters
from chorus_cli.core.time.timeline import duration
from chorus_cli.log.rules.attachments import Attachment, with_lines

_NO_USAGE: Mapping[str, int] = MappingProxyType({})


class Role(StrEnum):
    """The speaker of a message."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL_USE = "tool_use"
    TOOL_RESULT = "tool_result"


TOOL_ROLES = frozenset({Role.TOOL_USE, Role.TOOL_RESULT})


class Status(StrEnum):
    """The state of a message. Only replies and calls may be incomplete; if a call did not run, its result is FAILED."""

    COMPLETE = "complete"
    STREAMING = "streaming"
    INTERRUPTED = "interrupted"
    TRUNCATED = "truncated"
    FAILED = "failed"

    # This is an attribute because a property is slower, and each request reads it for every message.
    broke_off: bool
    """Whether the message ended early: it was interrupted or truncated, or it failed."""

    def __new__(cls, value: str) -> Self:
        """Make a member with its ``broke_off``."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.broke_off = value not in {"complete", "streaming"}
        return member


class Thought(NamedTuple):
    """How long a model thought before a reply, and how many tokens that took; ``None`` means unknown."""

    seconds: float | None = None
    tokens: int | None = None

    @property
    def words(self) -> str:
        """One line about the thought: ``thought for 12 s, 640 tokens``."""
        tokens = "" if self.tokens is None else counted(self.tokens, "token")
        if self.seconds is None:
            return f"thought in {tokens}" if tokens else "with thoughts"
        time = duration(timedelta(seconds=max(self.seconds, 0.1)), 1)
        return f"thought for {time}, {tokens}" if tokens else f"thought for {time}"


UNMEASURED = Thought()


class Thoughts(NamedTuple):
    """The readable text of a reply's thoughts, and the provider's own parts, unchanged, as JSON; each may be empty."""

    text: str = ""
    parts: str = ""


class Message(NamedTuple):
    """One row of the log. It is a tuple, because a long view has a thousand rows, and a dataclass would be much slower.

    ``turn_id`` is the id of the message that opened the turn. ``preamble`` is text that the model gets before the
    content. ``timestamp`` is aware UTC: when a message was sent, or when a reply began. ``tool_calls`` is JSON text in
    the shape of the OpenAI API. ``token_count`` counts content and preamble; ``None`` means not yet counted.
    ``introduced_by`` is the operation that put the row in, such as a retry; ``None`` if none did. ``revises`` is the
    row whose words this message replaces. ``superseded`` marks an imported message that is not on the live branch:
    the branch with which its conversation ended. ``reply_id`` is the reply that ended with this tool call, if known.
    ``thought`` is ``None`` for a reply without thoughts.
    """

    id: int
    persona: str
    thread_id: int
    turn_id: int
    role: Role
    content: str
    timestamp: datetime
    preamble: str = ""
    tool_calls: str | None = None
    tool_call_id: str | None = None
    status: Status = Status.COMPLETE
    run: str | None = None
    model: str | None = None
    token_count: int | None = None
    introduced_by: int | None = None
    revises: int | None = None
    usage: Mapping[str, int] = _NO_USAGE
    attachments: tuple[Attachment, ...] = ()
    superseded: bool = False
    reply_id: int | None = None
    thought: Thought | None = None


class MessageContent(NamedTuple):
    """A message without a row: about to be stored, or held by a session.

    Without ``turn_id``, a user message opens a turn, and any other message joins the turn of the member before it.
    ``revises`` is the row whose words this message replaces. Without ``token_count``, the tokens are counted when they
    are first needed. ``reasoning`` and ``thought_parts`` are the thoughts of an imported reply; no model gets them.
    ``reply_id`` is the reply that ended with this tool call.
    """

    thread_id: int
    role: Role
    content: str
    timestamp: datetime
    turn_id: int | None = None
    revises: int | None = None
    preamble: str = ""
    tool_calls: str | None = None
    tool_call_id: str | None = None
    status: Status = Status.COMPLETE
    model: str | None = None
    token_count: int | None = None
    attachments: tuple[Attachment, ...] = ()
    reasoning: str | None = None
    thought_parts: str | None = None
    thought: Thought | None = None
    superseded: bool = False
    reply_id: int | None = None


_OF_ROW = {"revises", "token_count", "superseded", "reply_id", "thought"}
_KEPT = {*Message._fields} & {*MessageContent._fields} - _OF_ROW


def content_of(message: Message) -> MessageContent:
    """Return the content of a row, without its token count: tokens are counted anew once the content is stored."""
    return MessageContent(**{name: getattr(message, name) for name in _KEPT})


def is_filled(message: Message | MessageContent) -> bool:
    """Return whether a message has words or attachments."""
    return bool(message.content.strip() or message.attachments)


def is_written(message: Message) -> bool:
    """Return whether a row has words, calls or attachments; the row of a reply that never came has none."""
    return bool(message.content or message.tool_calls or message.attachments)


def words_of(message: Message | MessageContent) -> str:
    """Return the content of a message, followed by a line for each of its attachments."""
    return with_lines(message.content, message.attachments) if message.attachments else message.content


def sent_content(message: Message | MessageContent) -> str:
    """Return the content as a request contains it: without the middle of a long tool result."""
    is_result = message.role is Role.TOOL_RESULT
    return cut_to_characters(message.content, limits.TOOL_RESULT.most) if is_result else message.content


def says_nothing(message: Message) -> bool:
    """Return whether a reply has no words or thoughts, because it only called tools or failed to continue another."""
    is_empty_reply = message.role is Role.ASSISTANT and not is_filled(message) and message.thought is None
    return is_empty_reply and (message.status is Status.COMPLETE or message.revises is not None)


def turns(messages: Iterable[Message]) -> list[list[Message]]:
    """Group neighbouring messages of one turn, in their order."""
    grouped: list[list[Message]] = []
    for message in messages:
        if grouped and grouped[-1][-1].turn_id == message.turn_id:
            grouped[-1].append(message)
        else:
            grouped.append([message])
    return grouped


def last_question(seen: tuple[Message, ...]) -> int:
    """Return the position of the last question in a context; raise `JournalError` if there is none."""
    asked = next((position for position in reversed(range(len(seen))) if seen[position].role is Role.USER), None)
    if asked is None:
        greeted = " Write a message first; /persona greeting 2 chooses another greeting of the card." if seen else ""
        raise JournalError(f"There is no message of yours in context to answer again.{greeted}")
    return asked


Runs = tuple[tuple[int, int], ...]
"""Pairs of a first and a last id; each pair means all ids from the first to the last."""


def runs(ids: Iterable[int]) -> Runs:
    """Write ids as runs; ``expanded`` gives them back in the same order."""
    found: list[tuple[int, int]] = []
    for id_ in ids:
        if found and found[-1][1] + 1 == id_:
            found[-1] = (found[-1][0], id_)
        else:
            found.append((id_, id_))
    return tuple(found)


def expanded(written: Runs) -> tuple[int, ...]:
    """Return the ids in runs, in their order."""
    return tuple(id_ for first, last in written for id_ in range(first, last + 1))


_OF_SERVER = "[A server's prompt: "


def of_server(prompt: str, text: str) -> str:
    """Return the user message made from a server's prompt; its first line tells the user and the model its origin."""
    return f"{_OF_SERVER}{prompt}]\n\n{text}"


def is_of_server(content: str) -> bool:
    """Return whether a message was made from a server's prompt."""
    return content.startswith(_OF_SERVER)
