"""Asks any provider that litellm knows, and yields the reply as it comes."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, TypeVar

from chorus_cli.adapters.machine.clock import Patience
from chorus_cli.adapters.models import litellm_library
from chorus_cli.adapters.models.litellm_messages import litellm_messages, reply_limit, wants_markers
from chorus_cli.adapters.models.provider_errors import model_error, silence_error
from chorus_cli.adapters.models.server_addresses import address_problem, is_ollama, is_on_this_machine, server_address
from chorus_cli.core.errors import ModelError
from chorus_cli.core.models.events import ReasoningDelta, ReplyEnd, TextDelta
from chorus_cli.core.text.redaction import redact, secrets_in
from chorus_cli.core.text.safe_text import join_surrogates

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Iterator, Mapping, Sequence

    from chorus_cli.adapters.models.model_map import ModelMap
    from chorus_cli.core.models.events import ModelEvent
    from chorus_cli.core.models.exchange import ModelRequest

_Answer = TypeVar("_Answer")

# litellm's own limit on a silent socket, which the watchdog here always forestalls.
_SOCKET_TIMEOUT_SECONDS = 600
_CLOSING_SECONDS = 1.0
_VERTEX = ("vertex_ai", "vertex_ai_beta")
_USAGE_NAMES = ("prompt_tokens", "completion_tokens", "total_tokens")


class _Delta(Protocol):
    """What a chunk adds to the reply; models that think aloud have ``reasoning_content`` too."""

    content: str | None


class _Choice(Protocol):
    delta: _Delta
    finish_reason: str | None


class _Chunk(Protocol):
    """One piece of a stream; the last may have usage and no choice."""

    choices: Sequence[_Choice]


class _Stream(Protocol):
    """litellm's stream, with the chunks as the provider sent them.

    Where a provider ended without a finish reason the chunks have an invented ``stop``, and only
    ``received_finish_reason`` tells the truth. Of Gemini it is always ``None``: there ``intermittent_finish_reason``
    has the reason of the newest chunk, with ``stop`` invented for one that had none.
    """

    received_finish_reason: str | None
    intermittent_finish_reason: str | None
    chunks: Sequence[_Chunk]

    async def __anext__(self) -> _Chunk: ...

    async def aclose(self) -> None: ...


class _UnprocessableError(Exception):
    """A 422: litellm drops what the provider names, asks again, and returns nothing if that did not help."""

    status_code = 422


class LiteLLMClient:
    """A ``ModelClient`` for every model but the embedded one.

    litellm reads keys from the process's own environment; ``environment`` says which addresses are meant and what must
    not be shown, ``model_map`` which models keep the beginning of a prompt. The first token may take
    ``first_token_seconds``, and no later chunk more than ``gap_seconds``.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        model_map: ModelMap,
        *,
        first_token_seconds: float = 300,
        gap_seconds: float = 60,
    ) -> None:
        self._environment = environment
        self._model_map = model_map
        self._first_token_seconds = first_token_seconds
        self._gap_seconds = gap_seconds

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Yield the reply as it comes, and ``ReplyEnd`` last.

        Close the generator, or cancel who reads it, to hang up; the connection is gone a moment later.

        Raises:
            ModelError: the provider refused, failed or fell silent; what was yielded before stands.
        """
        problem = address_problem(request.model, self._environment)
        if problem:
            raise ModelError(redact(problem, secrets_in(self._environment)))
        begun = False
        patience = Patience(self._first_token_seconds)
        stream = await self._in_time(self._ask(request), request, patience, begun=begun)
        reply = _Reply(is_gemini=_is_gemini(request.model))
        try:
            while True:
                if begun:
                    patience = Patience(self._gap_seconds)
                chunk = await self._in_time(_next_chunk(stream), request, patience, begun=begun)
                if chunk is None:
                    break
                for event in reply.events(chunk):
                    begun = True
                    yield event
            for event in reply.end(stream):
                yield event
        finally:
            await _close(stream)

    async def _ask(self, request: ModelRequest) -> _Stream:
        litellm = litellm_library.loaded()
        if litellm is None:
            # The import, which may be under way already, takes two seconds.
            litellm = await litellm_library.load_beside()
        stream: _Stream | None = await litellm.acompletion(**self._arguments(request))
        if stream is None:
            raise _UnprocessableError
        return stream

    def _arguments(self, request: ModelRequest) -> dict[str, object]:
        """Return what litellm is called with: no retries of its own, for nobody would see them."""
        arguments: dict[str, object] = {
            "model": request.model,
            "messages": litellm_messages(request.messages, with_markers=wants_markers(request.model, self._model_map)),
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_retries": 0,
            "num_retries": 0,
            "timeout": _SOCKET_TIMEOUT_SECONDS,
        }
        if request.temperature is not None:
            arguments["temperature"] = request.temperature
        most = reply_limit(request, self._model_map)
        if most is not None:
            arguments["max_tokens"] = most
        if is_ollama(request.model) and request.context_tokens is not None:
            # Ollama reserves a few thousand tokens unless it is told, and silently cuts what is longer.
            arguments["num_ctx"] = request.context_tokens
        return arguments | self._server_arguments(request.model)

    def _server_arguments(self, model: str) -> dict[str, object]:
        """Return the address and the key that litellm would not find by itself.

        Without an address it sends what is meant for LM Studio or vLLM to OpenAI; and it wants some key for every
        OpenAI-compatible server, also for one on this machine that has none.
        """
        address = server_address(model, self._environment)
        if not address:
            return {}
        if model.startswith("openai/") and is_on_this_machine(address) and not self._environment.get("OPENAI_API_KEY"):
            return {"api_base": address, "api_key": "none-needed"}
        return {"api_base": address}

    async def _in_time(
        self, awaitable: Awaitable[_Answer], request: ModelRequest, patience: Patience, *, begun: bool
    ) -> _Answer:
        """Await one answer of litellm with ``patience``, and turn whatever it raises into a sentence."""
        try:
            return await patience.wait_for(awaitable)
        except ModelError:
            raise
        except Exception as error:  # noqa: BLE001 - litellm raises what its many libraries raise
            if patience.is_over:
                seconds = self._gap_seconds if begun else self._first_token_seconds
                raise silence_error(request.model, seconds, begun=begun) from None
            secrets = secrets_in(self._environment)
            address = server_address(request.model, self._environment)
            # Its chain may hold a key, and chains are printed to log files.
            raise model_error(error, request.model, secrets, address=address) from None


class _Reply:
    """One reply on its way: what becomes of its chunks."""

    def __init__(self, *, is_gemini: bool) -> None:
        self._is_gemini = is_gemini
        self._text = _PairJoiner()
        self._reasoning = _PairJoiner()
        self._finish_reason: str | None = None
        self._usage: object = None

    def events(self, chunk: _Chunk) -> Iterator[ModelEvent]:
        """Yield what ``chunk`` adds, and keep its finish reason and usage for the end."""
        self._usage = getattr(chunk, "usage", None) or self._usage
        for choice in chunk.choices[:1]:
            self._finish_reason = choice.finish_reason or self._finish_reason
            if reasoning := self._reasoning.join(getattr(choice.delta, "reasoning_content", None) or ""):
                yield ReasoningDelta(reasoning)
            if text := self._text.join(choice.delta.content or ""):
                yield TextDelta(text)

    def end(self, stream: _Stream) -> Iterator[ModelEvent]:
        """Yield what was held back, and the end as the provider told it."""
        if text := self._text.rest():
            yield TextDelta(text)
        received = stream.received_finish_reason
        if self._is_gemini:
            # A reply that was cut cleanly passes as whole, but none that is whole passes as cut.
            received = received or stream.intermittent_finish_reason
        finish_reason = None if received is None else self._finish_reason or received
        yield ReplyEnd(finish_reason, _reported_usage(self._usage, stream.chunks))


class _PairJoiner:
    """Joins characters beyond U+FFFF whose halves, written as two JSON escapes, came in two chunks."""

    def __init__(self) -> None:
        self._held = ""

    def join(self, piece: str) -> str:
        """Return ``piece`` behind what was held back, without a half at its end."""
        text = self._held + piece
        self._held = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        return join_surrogates(text[: len(text) - len(self._held)])

    def rest(self) -> str:
        """Return what is still held back, which has no other half."""
        return join_surrogates(self._held)


def _is_gemini(model: str) -> bool:
    """Return whether ``model`` speaks Google's own protocol; Vertex has also models that do not."""
    provider, _, name = model.partition("/")
    return provider == "gemini" or (provider in _VERTEX and "gemini" in name)


async def _next_chunk(stream: _Stream) -> _Chunk | None:
    try:
        return await stream.__anext__()
    except StopAsyncIteration:
        return None


async def _close(stream: _Stream) -> None:
    """Hang up; a server that makes trouble even now has nothing more to say."""
    with suppress(Exception):
        async with asyncio.timeout(_CLOSING_SECONDS):
            await stream.aclose()


def _reported_usage(total: object, chunks: Sequence[_Chunk]) -> dict[str, int]:
    """Return the token counts of the reply if the provider reported any, and nothing where litellm estimated them."""
    if not any(getattr(chunk, "usage", None) for chunk in chunks):
        return {}
    figures = ((name, getattr(total, name, None)) for name in _USAGE_NAMES)
    return {name: figure for name, figure in figures if isinstance(figure, int)}
