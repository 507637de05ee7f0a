"""A provider on loopback that refuses what breaks its rules; thoughts must come back to it as they were sent."""

from __future__ import annotations

import json
import re
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, ClassVar, NamedTuple, cast

from tests.loopback_server import Asked, runner

Body = dict[str, Any]
_FIRST_PIECES, _SENT_TOGETHER = 2, 20
HISTORY_REFUSED = "invalid params, tool call and result not match (2013)"
_CALLED = '"(tool_calls|tool_use|function_call|functionCall|reasoning_content": "[^ ])'
_UNPROCESSABLE = 422


class RefusedError(Exception):
    """A request breaks a rule; the sentence is the provider's."""

    def __init__(self, sentence: str, status: int = 400) -> None:
        super().__init__(sentence)
        self.status = status


class Call(NamedTuple):
    """A call in a reply; two calls of one reply may have the same id."""

    name: str
    arguments: Mapping[str, object]
    id: str


class Held(Enum):
    """Where a reply stops until the client goes away."""

    THINKING = "in its thoughts"
    SPEAKING = "in its words"


class Reply(NamedTuple):
    """A reply to come, which has no end if it is held somewhere."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    thinks: bool = True
    held: Held | None = None


class Sent(NamedTuple):
    """A reply as it was sent: the ``thoughts`` that come back, in the provider's form, and the request before it."""

    text: str
    calls: tuple[Call, ...]
    thoughts: Any
    asked: Asked


class Thinking(NamedTuple):
    """The thoughts of one reply, unlike those of any other: words, and a signature in Base64."""

    number: int
    words: str
    signature: str


class Streamed(NamedTuple):
    """The events of a reply: those of its thoughts and all others; and its thoughts as they come back."""

    thoughts: Sequence[bytes]
    rest: Sequence[bytes]
    own: Any


class Said(NamedTuple):
    """A reply in a request, maybe of the current turn: its words, calls, and thoughts in the provider's form."""

    text: str
    calls: Sequence[tuple[str, Any]]
    own: Any
    is_current: bool


class EchoRule(NamedTuple):
    """The thoughts that a provider wants back, and the ``blank`` in place of those of another, beside calls or all."""

    within_turn: bool = False
    never: bool = False
    calls_only: bool = False
    blank: Any = None
    blanks_all: bool = False
    may_begin_late: bool = False
    sentence: str = "The thoughts that led to this reply are missing."
    status: int = 400

    def concerns(self, said: Said) -> bool:
        """Return whether the thoughts of a reply come back."""
        is_over = self.never or (self.within_turn and not said.is_current)
        return not is_over and (bool(said.calls) or not self.calls_only)

    def without(self, said: Said) -> Any:
        """Return what a reply has that no thoughts come back with."""
        return self.blank if self.blanks_all or said.calls else None


NO_ECHO = EchoRule(never=True)


def check_thoughts(every: Iterable[Said], sent: Sequence[Sent], rule: EchoRule) -> None:
    """Refuse a request if thoughts are missing, are not as they were sent, or come with another reply."""
    has_begun = False
    for said in every:
        # Maybe with fewer calls than it was sent with.
        theirs = [each for each in sent if said.text == each.text and is_among(said.calls, each.calls)]
        own = [each.thoughts for each in theirs] if rule.concerns(said) else []
        allowed = [each or rule.without(said) for each in own] or [rule.without(said)]
        has_begun = has_begun or said.own != rule.without(said)
        if said.own in allowed or (rule.may_begin_late and not has_begun):
            continue
        if said.own is None:
            raise RefusedError(rule.sentence, rule.status)
        raise RefusedError(f"These thoughts were not sent with {said.text!r} and {said.calls!r}: {said.own!r}")


def is_among(some: Sequence[tuple[str, Any]], calls: Sequence[Call]) -> bool:
    """Return whether some calls are among others, in the same order."""
    left = iter(calls)
    return all(any((name, arguments) == (call.name, call.arguments) for call in left) for name, arguments in some)


class StrictProtocol:
    """How a provider talks, and what it demands; requests have their messages under ``messages``."""

    messages: ClassVar = "messages"
    echo: EchoRule

    def check(self, asked: Asked, sent: Sequence[Sent]) -> None:
        """Raise a ``RefusedError`` if a request breaks a rule."""
        raise NotImplementedError

    def streamed(self, reply: Reply, thinking: Thinking | None) -> Streamed:
        """Return a reply as the provider streams it."""
        raise NotImplementedError

    def prompt(self, body: Body, *, with_thoughts: bool) -> tuple[object, list[Any]]:
        """Return what stands before the messages of a request, and the messages in pieces, maybe without thoughts."""
        raise NotImplementedError

    def earlier(self, body: Body) -> Sequence[Body]:
        """Return the messages of earlier turns."""
        messages: list[Body] = body[self.messages]
        return messages[: newest_question(messages)]

    def lenient(self) -> StrictProtocol:
        """Return the same protocol, which does without the first thoughts."""
        changed: StrictProtocol = replace(cast("Any", self), echo=self.echo._replace(may_begin_late=True))
        return changed


def newest_question(messages: Sequence[Body]) -> int:
    """Return the place of the user's newest message, beside which there may be results of tools."""
    asking = (place for place, each in enumerate(messages) if each.get("role") == "user" and not _is_results(each))
    return max(asking, default=0)


def _is_results(message: Body) -> bool:
    blocks = message.get("parts", message.get("content"))
    if not isinstance(blocks, list):
        return False
    return all("functionResponse" in block or block.get("type") == "tool_result" for block in blocks)


def typed_event(kind: str, **fields: object) -> bytes:
    """Return an event of a protocol whose events have types."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


class Refuses(Enum):
    """What a server refuses for a reason of its own, whatever the rules."""

    CALLS_OF_EARLIER_TURNS = "calls of earlier turns"
    EVERYTHING = "everything"


@dataclass(slots=True)
class StrictServer:
    """A running server; the thoughts of ``others`` must never come here. What it ``refuses`` besides falls through."""

    name: str
    protocol: StrictProtocol
    address: str = ""
    others: Sequence[StrictServer] = ()
    more_words: int = 0
    refuses: Refuses | None = None
    sentence: str = HISTORY_REFUSED
    fell_through: int = 0
    asked: list[Asked] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    marks: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    holding: threading.Event = field(default_factory=threading.Event)
    _unsent: list[str] = field(default_factory=list)
    _script: deque[Reply] = field(default_factory=deque)
    _number: int = 0

    def will(self, *replies: Reply) -> None:
        """Have the next requests answered so."""
        self._script.extend(replies)

    @property
    def bodies(self) -> list[Body]:
        """The bodies of the requests."""
        return [each.body for each in self.asked]

    def answer(self, asked: Asked) -> tuple[int, Iterator[bytes]]:
        """Return the status and the pieces of the answer to a request."""
        self.asked.append(asked)
        if self._falls_through(asked.body):
            self.fell_through += 1
            return 400, iter([refusal_body(self.sentence, 400)])
        try:
            self._check(asked)
        except RefusedError as error:
            self.refused.append(str(error))
            return error.status, iter([refusal_body(str(error), error.status)])
        reply = self._script.popleft() if self._script else Reply(f"Unscripted {len(self.asked)}.")
        return 200, self._pieces(reply, asked)

    def _falls_through(self, body: Body) -> bool:
        match self.refuses:
            case Refuses.CALLS_OF_EARLIER_TURNS:
                return re.search(_CALLED, json.dumps(self.protocol.earlier(body))) is not None
            case refuses:
                return refuses is Refuses.EVERYTHING

    def _check(self, asked: Asked) -> None:
        written = json.dumps(asked.body, ensure_ascii=False)
        for other in self.others:
            if any(mark in written for mark in other.marks):
                raise RefusedError(f"The thoughts of {other.name} came to {self.name}.")
        if any(mark in written for mark in self._unsent):
            raise RefusedError("The thoughts of a reply without an end came back.")
        self.protocol.check(asked, self.sent)

    def _pieces(self, reply: Reply, asked: Asked) -> Iterator[bytes]:
        self._number += 1
        thinking = thinking_of(self.name, self._number, self.more_words) if reply.thinks else None
        streamed = self.protocol.streamed(reply, thinking)
        marks = [thinking.words, thinking.signature] if thinking else []
        self.marks += marks
        for place in range(0, len(streamed.thoughts), _SENT_TOGETHER):
            yield b"".join(streamed.thoughts[place : place + _SENT_TOGETHER])
        if reply.held is not None:
            self._unsent += marks
            yield from streamed.rest[: _FIRST_PIECES if reply.held is Held.SPEAKING else 0]
            self.holding.set()
            self.over.wait(30)
            return
        self.sent.append(Sent(reply.text, reply.calls, streamed.own, asked))
        yield from streamed.rest


def thinking_of(name: str, number: int, more_words: int) -> Thinking:
    """Return thoughts with signs that JSON escapes and that are more than one in UTF-16."""
    rest = "".join(f" word{place}" for place in range(more_words))
    words = f'{name} thought {number}. The human said «so "what"»: 思 🧠 \\ then?'
    letters = f"{name}{number}".translate(str.maketrans("", "", " -._'")).ljust(20, "x")
    return Thinking(number, words + rest, f"{letters}Lg==")


def refusal_body(sentence: str, status: int) -> bytes:
    """Return a refusal as most providers write it; Mistral's, with another status, has the place in its sentence."""
    if status == _UNPROCESSABLE:
        return sentence.encode()
    error = {"message": sentence, "type": "invalid_request_error", "code": "invalid_request_error"}
    return json.dumps({"type": "error", "error": error}).encode()


@contextmanager
def serving(server: StrictServer) -> Iterator[StrictServer]:
    """Start a server in threads of this process."""
    with runner(server.answer) as server.address:
        try:
            yield server
        finally:
            server.over.set()
