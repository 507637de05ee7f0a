"""What a protocol of the wire does: it writes requests and reads the events of replies."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from chorus_cli.models.providers.providers import Endpoint
    from chorus_cli.models.rules.events import ModelEvent
    from chorus_cli.models.rules.request import ModelRequest


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


class ReplyReader(Protocol):
    """Reads one reply, event by event."""

    def events(self, data: str) -> Iterator[ModelEvent]:
        """Yield the pieces of the reply in the data of one server-sent event, with ``ReplyEnd`` last if it ends it.

        Raises:
            FailedError: the event tells of an error, or is none of this protocol.
        """

    def end(self) -> Iterator[ModelEvent]:
        """Yield the remaining text, and ``ReplyEnd`` last: the stream has ended, and no event has ended the reply."""


class WireProtocol(Protocol):
    """A protocol by which models are asked: two of OpenAI's, Anthropic's messages, Gemini's own."""

    def post(self, request: ModelRequest, endpoint: Endpoint) -> Post:
        """Return the HTTP request that asks for a reply as a stream."""

    def reader(self) -> ReplyReader:
        """Return a reader for the reply to one request."""
