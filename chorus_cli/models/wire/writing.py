"""How the protocols of the wire write a request: each message encoded once, and the ids of calls.

litellm puts the signatures of Gemini's calls into their ids, and so did the wire once: such ids are in the log.
"""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from chorus_cli.core.text.code_points import join_surrogates
from chorus_cli.log.rules.calls import SIGNED, stored_calls

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping

    from chorus_cli.models.providers.providers import Endpoint
    from chorus_cli.models.rules.request import ModelRequest, PromptMessage
    from chorus_cli.models.wire.received import ReplyReader

_NOTHING: Mapping[str, str] = MappingProxyType({})


class Post(NamedTuple):
    """One HTTP request: the path and query below the address, its headers, its body as JSON.

    ``optional`` has the names in errors for what may be left out of the body if the server refuses it, and what that
    is: it is told so, and is in ``Endpoint.refused`` from then on.
    """

    path: str
    headers: Mapping[str, str]
    body: bytes
    optional: Mapping[str, str] = _NOTHING


class WireProtocol(Protocol):
    """A protocol by which models are asked: two of OpenAI's, Anthropic's messages, Gemini's own."""

    @property
    def reader(self) -> type[ReplyReader]:
        """The class that reads a reply."""

    def post(self, request: ModelRequest, endpoint: Endpoint) -> Post:
        """Return the HTTP request that asks for a reply as a stream."""


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
    """Return the arguments of a call as an object; an empty one if they are none."""
    try:
        given: object = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return {}
    return given if isinstance(given, dict) else {}


def is_filled(message: PromptMessage) -> bool:
    """Return whether a message has content that providers accept: an empty text is refused, an empty result is not."""
    return message.role == "tool" or bool(message.tool_calls or message.attachments or message.content.strip())


def bare_id(id_: str) -> str:
    """Return the id of a call without a signature."""
    return id_.partition(SIGNED)[0]


def signature_in(id_: str) -> str:
    """Return the signature in the id of a call, empty without one."""
    return id_.partition(SIGNED)[2]


def unsigned(message: PromptMessage) -> PromptMessage:
    """Return a message without signatures, which make ids too long for the providers that do not know them."""
    if message.tool_call_id is not None:
        message = message._replace(tool_call_id=bare_id(message.tool_call_id))
    if message.tool_calls is None or SIGNED not in message.tool_calls:
        return message
    calls = (call._replace(id=bare_id(call.id)).as_json for call in stored_calls(message.tool_calls))
    return message._replace(tool_calls=json.dumps([json.loads(call)[0] for call in calls], ensure_ascii=False))


_MOST_BYTES = 1 << 25

_Message = TypeVar("_Message", bound="Hashable")


class EncodedMessages(Generic[_Message]):
    """The encoded messages of the newest two requests, which the next one mostly repeats.

    Of each request at most ``most_bytes`` are kept: those of its first messages. Any thread may ask.
    """

    def __init__(self, encode: Callable[[_Message], bytes], most_bytes: int = _MOST_BYTES) -> None:
        self._encode = encode
        self._most_bytes = most_bytes
        self._newest: dict[_Message, bytes] = {}
        self._before: dict[_Message, bytes] = {}

    def joined(self, messages: Iterable[_Message]) -> bytes:
        """Return the JSON list of the messages of a request."""
        newest, before = self._newest, self._before
        kept: dict[_Message, bytes] = {}
        pieces: list[bytes] = []
        room = self._most_bytes
        for message in messages:
            # Nearly all are in the request before; to look one up costs about as much as to join it.
            piece = newest.get(message) or before.get(message) or kept.get(message) or self._encode(message)
            room -= len(piece)
            if room >= 0:
                kept[message] = piece
            pieces.append(piece)
        self._newest, self._before = kept, newest
        return b"[" + b",".join(pieces) + b"]"
