"""The code that all protocols for direct requests share: it writes requests, and reads replies as events.

litellm appends the signature of a Gemini call to the call's id, so ids in the log may have signatures.
"""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from chorus_cli.core.json import values
from chorus_cli.core.text.code_points import PairJoiner, join_surrogates
from chorus_cli.log.rules.calls import SIGNED, CallAssembly, CallPiece, stored_calls
from chorus_cli.models.providers.echoes import PartsRecord
from chorus_cli.models.providers.failures import FailedError, Failure, Trouble
from chorus_cli.models.rules.costs import CACHED, THOUGHT, WRITTEN
from chorus_cli.models.rules.events import ModelEvent, ReasoningDelta, ReplyEnd, TextDelta

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping

    from chorus_cli.models.providers.providers import Endpoint
    from chorus_cli.models.rules.declaration import Tool
    from chorus_cli.models.rules.request import ModelRequest, PromptMessage

JsonObject = dict[str, object]
DONE, STOP, _CALLS = "[DONE]", "stop", "tool_calls"


def json_objects(data: str) -> list[JsonObject]:
    """Return the JSON objects in an event's data, none for ``[DONE]`` or blank data, or raise a ``FailedError``."""
    if data.strip() in {"", DONE}:
        return []
    try:
        found: object = json.loads(data)
    except (ValueError, RecursionError):
        raise FailedError(Failure(Trouble.INVALID_RESPONSE, words="not valid JSON")) from None
    listed = found if isinstance(found, list) else [found]
    objects = [item for item in listed if isinstance(item, dict)]
    if len(objects) < len(listed):
        raise FailedError(Failure(Trouble.INVALID_RESPONSE, words="not an event of this protocol"))
    return objects


def text_at(value: Mapping[str, object], *names: str) -> str:
    """Return the first text under any of ``names``, else an empty text."""
    found = (value.get(name) for name in names)
    return next((text for text in found if isinstance(text, str)), "")


def object_at(value: Mapping[str, object], *names: str) -> JsonObject:
    """Return the first object under any of ``names``, else an empty object."""
    found = (value.get(name) for name in names)
    return next((item for item in found if isinstance(item, dict)), {})


def objects_at(value: Mapping[str, object], name: str) -> list[JsonObject]:
    """Return the objects in the list under ``name``; none without a list."""
    found = value.get(name)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def place_of(index: object) -> int | None:
    """Return ``index`` if it is a number, ``None`` if the server sends something else."""
    return index if isinstance(index, int) else None


def count_at(value: Mapping[str, object], name: str) -> int:
    """Return the number of tokens under ``name``, 0 without a number."""
    return values.whole_number(value.get(name))


def usage_of(
    prompt: int, completion: int, total: int = 0, *, cached: int = 0, written: int = 0, thought: int = 0
) -> dict[str, int]:
    """Return token counts for ``ReplyEnd.usage``; if ``total`` is 0, it is the sum of prompt and completion.

    ``cached`` tokens were served by the cache, ``written`` ones were stored in it, and ``thought`` ones are thoughts.
    """
    counts = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total or prompt + completion}
    parts = {CACHED: cached, WRITTEN: written, THOUGHT: thought}
    return counts | {name: count for name, count in parts.items() if count}


class ReplyReader:
    """Reads one reply, event by event; ``form`` is the protocol's name in the log."""

    form: ClassVar[str]
    ends_by_mark: ClassVar[bool] = False
    """Whether ``[DONE]`` ends a reply, even if no finish reason came."""

    def __init__(self) -> None:
        self._own = PartsRecord()
        """The parts that the provider wants back word for word."""
        self._finish_reason: str | None = None
        self._counts: JsonObject = {}
        """The newest token counts, as the provider names them."""
        self._text_joiner = PairJoiner()
        self._thought_joiner = PairJoiner()
        self._assembly = CallAssembly()

    def events(self, data: str) -> Iterator[ModelEvent]:
        """Yield the pieces of the reply in one event's data, and ``ReplyEnd`` last if the event ends the reply."""
        for event in json_objects(data):
            yield from self._event(event)
        if self.ends_by_mark and data.strip() == DONE:
            self._finish_reason = self._finish_reason or STOP
            yield from self.end()

    def end(self) -> Iterator[ModelEvent]:
        """Yield the remaining text, then ``ReplyEnd``; a reason ``stop`` becomes ``tool_calls`` if there are calls."""
        if text := self._text_joiner.rest():
            self._own.said(text)
            yield TextDelta(text)
        calls = self._assembly.calls()
        reason = _CALLS if calls and self._finish_reason == STOP else self._finish_reason
        usage = self._usage(self._counts) if self._counts else {}
        yield ReplyEnd(reason, usage, calls, self._own.written(self.form))

    def _event(self, event: JsonObject) -> Iterator[ModelEvent]:
        raise NotImplementedError

    def _usage(self, counts: JsonObject) -> dict[str, int]:
        raise NotImplementedError

    def _text(self, piece: str) -> Iterator[ModelEvent]:
        if text := self._text_joiner.join(piece):
            self._own.said(text)
            yield TextDelta(text)

    def _thought(self, piece: str) -> Iterator[ModelEvent]:
        if text := self._thought_joiner.join(piece):
            yield ReasoningDelta(text)

    def _call(self, piece: CallPiece) -> None:
        if self._assembly.add(piece):
            self._own.called(piece.id)


class Post(NamedTuple):
    """One HTTP request; ``path`` is added to the endpoint's address and may have a query, and ``body`` is JSON.

    ``optional`` maps the parameters that may be left out, as errors name them, to names in ``Endpoint.refused``.
    """

    path: str
    headers: Mapping[str, str]
    body: bytes
    optional: Mapping[str, str] = MappingProxyType({})


class WireProtocol(Protocol):
    """Writes requests in one of the protocols of `ProtocolName`."""

    @property
    def reader(self) -> type[ReplyReader]:
        """The class that reads a reply in this protocol."""

    def post(self, request: ModelRequest, endpoint: Endpoint) -> Post:
        """Return the HTTP request that asks for a reply as a stream."""


def offered(request: ModelRequest, declaration: Callable[[Tool], JsonObject], ban: JsonObject) -> JsonObject:
    """Return the fields that declare a request's tools, and ``ban`` if calls are forbidden; empty without tools."""
    if not request.tools:
        return {}
    return {"tools": [declaration(tool) for tool in request.tools]} | ({} if request.may_call else ban)


def openai_headers(endpoint: Endpoint) -> dict[str, str]:
    """Return the headers of OpenAI's protocols."""
    key = {"Authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}
    return {"Content-Type": "application/json", **key, **dict(endpoint.headers)}


def json_bytes(value: object) -> bytes:
    """Return ``value`` as JSON in UTF-8, with lone surrogates replaced by U+FFFD."""
    return join_surrogates(json.dumps(value, ensure_ascii=False, separators=(",", ":"))).encode()


def object_bytes(name: str, encoded: bytes, fields: Mapping[str, object]) -> bytes:
    """Return a JSON object with ``encoded`` under ``name``, followed by ``fields``."""
    rest = b"," + json_bytes(fields)[1:] if fields else b"}"
    return b"{" + json_bytes(name) + b":" + encoded + rest


def argument_object(arguments: str) -> dict[str, object]:
    """Return the arguments of a call as an object; empty if the text is not a JSON object."""
    return {**values.record(values.parsed(arguments))}


def is_filled(message: PromptMessage) -> bool:
    """Return whether providers accept a message's content: they refuse a blank text, but take an empty tool result."""
    return message.role == "tool" or bool(message.tool_calls or message.attachments or message.content.strip())


def bare_id(id_: str) -> str:
    """Return the id of a call without the signature that may follow it."""
    return id_.partition(SIGNED)[0]


def unsigned(message: PromptMessage) -> PromptMessage:
    """Return a message without signatures in its ids, because most providers refuse ids of that length."""
    if message.tool_call_id is not None:
        message = message._replace(tool_call_id=bare_id(message.tool_call_id))
    if message.tool_calls is None or SIGNED not in message.tool_calls:
        return message
    calls = (call._replace(id=bare_id(call.id)).as_json for call in stored_calls(message.tool_calls))
    return message._replace(tool_calls=json.dumps([json.loads(call)[0] for call in calls], ensure_ascii=False))


_MOST_BYTES = 1 << 25

_Message = TypeVar("_Message", bound="Hashable")


class EncodedMessages(Generic[_Message]):
    """Caches the last two requests' encoded messages, which later requests repeat; up to ``most_bytes`` per request."""

    def __init__(self, encode: Callable[[_Message], bytes], most_bytes: int = _MOST_BYTES) -> None:
        self._encode = encode
        self._most_bytes = most_bytes
        self._newest: dict[_Message, bytes] = {}
        self._before: dict[_Message, bytes] = {}

    def joined(self, messages: Iterable[_Message]) -> bytes:
        """Return the messages of a request as one JSON list."""
        newest, before = self._newest, self._before
        kept: dict[_Message, bytes] = {}
        pieces: list[bytes] = []
        room = self._most_bytes
        for message in messages:
            # Nearly all messages were in the previous request, so its messages are looked up first.
            piece = newest.get(message) or before.get(message) or kept.get(message) or self._encode(message)
            room -= len(piece)
            if room >= 0:
                kept[message] = piece
            pieces.append(piece)
        self._newest, self._before = kept, newest
        return b"[" + b",".join(pieces) + b"]"


_OPENING, _CLOSING = "<think>", "</think>"
_MOST_HELD = 1_000
"""The most characters that are held while an opening tag may still come; a model may send blanks without end."""


class ThinkTags:
    """Separates reasoning in ``<think>`` tags at the start of a reply from its text; a tag may arrive in pieces."""

    def __init__(self) -> None:
        self._held = ""
        self._is_reasoning: bool | None = None
        """Whether the next text is reasoning; ``None`` until the beginning of the reply shows it."""
        self._is_after_tag = False

    def split(self, text: str) -> Iterator[tuple[bool, str]]:
        """Take the next piece; yield ``(is_reasoning, text)`` for each text that can no longer become a tag."""
        self._held += text
        if self._is_reasoning is None:
            begun = self._held.lstrip()
            if begun.startswith(_OPENING):
                self._is_reasoning, self._held = True, begun.removeprefix(_OPENING)
            elif not _OPENING.startswith(begun) or len(self._held) > _MOST_HELD:
                self._is_reasoning = False
        if self._is_reasoning:
            thought, closing, after = self._held.partition(_CLOSING)
            ends = (length for length in range(len(_CLOSING) - 1, 0, -1) if thought.endswith(_CLOSING[:length]))
            decided = len(thought) - (0 if closing else next(ends, 0))
            self._is_reasoning, self._is_after_tag = not closing, bool(closing)
            self._held = after or thought[decided:]
            yield True, thought[:decided]
        if self._is_reasoning is False:
            # Blanks after the closing tag are neither reasoning nor text.
            words = self._held.lstrip() if self._is_after_tag else self._held
            self._is_after_tag, self._held = self._is_after_tag and not words, ""
            yield False, words

    def rest(self) -> Iterator[tuple[bool, str]]:
        """Yield ``(is_reasoning, text)`` for the text that is still held and became no tag."""
        yield bool(self._is_reasoning), self._held
