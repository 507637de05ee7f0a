"""What a protocol of the wire does: it writes requests and reads the events of replies."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from chorus_cli.core.models.events import ModelEvent
    from chorus_cli.core.models.exchange import ModelRequest


class Endpoint(NamedTuple):
    """Where a model is asked.

    ``provider`` is the prefix of its name as litellm has it (``openai``), ``model`` its name without that prefix,
    ``address`` the base URL without a slash at its end, ``key`` the API key, empty if none is needed. ``headers`` are
    those that the account needs beyond the key, in lower case; they may hold a token in the key's place. ``refused``
    are the parameters that the server has refused by name, which are left out.
    """

    provider: str
    model: str
    address: str
    key: str
    headers: tuple[tuple[str, str], ...] = ()
    refused: frozenset[str] = frozenset()


class Post(NamedTuple):
    """One HTTP request: the path and query below the address, its headers, its body as JSON."""

    path: str
    headers: Mapping[str, str]
    body: bytes


class ReplyReader(Protocol):
    """Reads one reply, event by event."""

    def events(self, data: str) -> Iterator[ModelEvent]:
        """Yield what the data of one server-sent event adds to the reply, with ``ReplyEnd`` last if it ends it.

        Raises:
            FailedError: the event tells of an error, or is none of this protocol.
        """

    def end(self) -> Iterator[ModelEvent]:
        """Yield the remaining text, and ``ReplyEnd`` last: the stream has ended, and no event has ended the reply."""


class WireProtocol(Protocol):
    """A protocol by which models are asked: OpenAI's chat completions, Anthropic's messages, Gemini's own."""

    def post(self, request: ModelRequest, endpoint: Endpoint) -> Post:
        """Return the HTTP request that asks for a reply as a stream."""

    def reader(self) -> ReplyReader:
        """Return a reader for the reply to one request."""
