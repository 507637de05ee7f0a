"""The client that asks models through litellm: it streams replies, and finds the causes of litellm's errors."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Protocol, TypeVar

from chorus_cli.core.errors import ModelError
from chorus_cli.core.text.redaction import redact, secrets_in
from chorus_cli.machine.clock import Patience, Pauses
from chorus_cli.models.litellm import library
from chorus_cli.models.providers import chat_messages, failures
from chorus_cli.models.providers.chat_messages import chat_message, marked_messages, not_stored, reply_limit
from chorus_cli.models.providers.echoes import NO_RULE, EchoRule, Pieces, echo_rule, replayed
from chorus_cli.models.providers.failures import Asked, Failure, Trouble, causes, cut_text, decoded, message_in
from chorus_cli.models.providers.model_files import litellm_is_missing
from chorus_cli.models.providers.parameters import chosen_effort
from chorus_cli.models.providers.providers import PROVIDERS, Endpoint, ProtocolName, endpoint, named
from chorus_cli.models.providers.servers import is_ollama, is_on_this_machine, request_address, request_problem
from chorus_cli.models.rules.request import USUAL_TIMEOUTS, Timeouts, with_files_after_results
from chorus_cli.models.wire.chat_completions import call_pieces, chat_usage, offered_tools, with_thoughts
from chorus_cli.models.wire.protocol import ReplyReader, object_at, objects_at, text_at

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Iterator, Mapping, MutableSequence, Sequence

    import httpx

    from chorus_cli.models.providers.chat_messages import Load
    from chorus_cli.models.providers.model_map import ModelMap
    from chorus_cli.models.rules.events import ModelEvent
    from chorus_cli.models.rules.request import Echo, ModelRequest, PromptMessage
    from chorus_cli.models.wire.protocol import JsonObject

_Answer = TypeVar("_Answer")

# litellm gives up a connection that is silent for this long; the client's own timeouts are shorter by default.
_SOCKET_TIMEOUT_SECONDS = 600
_CLOSING_SECONDS = 1.0
_MOST_CHUNKS = 32
_FORM, _CLAUDE, _BLOCKS = "litellm", "claude", "thinking_blocks"
_ANTHROPIC, _DROPPED, _OPENAI = "anthropic", "mistral", "openai"
_VERTEX = ("vertex_ai", "vertex_ai_beta")
# litellm raises an error with these words if a stream ends cleanly but without a finish reason.
_NO_FINISH_REASON = "Stream ended before a finish_reason was received"


class _Chunk(Protocol):
    """A piece of a stream in the format of chat completions; the last piece may have usage and no choice."""

    def model_dump(self, *, warnings: bool) -> dict[str, object]: ...


class _Stream(Protocol):
    """litellm's stream. ``received_finish_reason`` is ``None`` for Gemini, and if litellm had to invent ``stop``.

    ``intermittent_finish_reason`` is the newest chunk's reason, perhaps invented.
    """

    received_finish_reason: str | None
    intermittent_finish_reason: str | None
    chunks: MutableSequence[_Chunk]

    async def __anext__(self) -> _Chunk: ...

    async def aclose(self) -> None: ...


class _UnprocessableError(Exception):
    """litellm returned no stream: the provider answered 422, and again when litellm left out the refused parameters."""

    status_code = 422


class LiteLLMClient:
    """A ``ModelClient`` for Ollama and models that no other client serves; litellm reads keys from ``os.environ``."""

    def __init__(
        self,
        environment: Mapping[str, str],
        model_map: ModelMap,
        *,
        timeouts: Timeouts = USUAL_TIMEOUTS,
        load: Load = not_stored,
    ) -> None:
        self._load = load
        self._environment = environment
        self._model_map = model_map
        self._timeouts = timeouts
        self._pauses = Pauses()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Yield the reply as it arrives, then ``ReplyEnd``; raise a ``ModelError`` if the request fails."""
        if problem := request_problem(request.model, self._environment):
            raise ModelError(redact(problem, secrets_in(self._environment)))
        begun = False
        patience = Patience(self._timeouts.first_token_seconds)
        stream = await self._in_time(self._ask(request), request.model, patience, begun=begun)
        provider, _, name = request.model.partition("/")
        # Vertex also has models that do not use Google's own protocol.
        reply = _Reply(is_gemini=provider == "gemini" or (provider in _VERTEX and "gemini" in name))
        try:
            while (chunk := await self._in_time(_next_chunk(stream), request.model, patience, begun=begun)) is not None:
                if len(stream.chunks) > _MOST_CHUNKS:
                    # At the end litellm joins the chunks; it needs the first, the last two and those with usage.
                    stream.chunks[1:-2] = [each for each in stream.chunks[1:-2] if getattr(each, "usage", None)]
                for event in reply.events_in(chunk):
                    begun = True
                    yield event
                patience = Patience(self._timeouts.gap_seconds) if begun else patience
                await self._pauses.after_chunk()
            for event in reply.end_of(stream):
                yield event
        finally:
            with suppress(Exception):
                async with asyncio.timeout(_CLOSING_SECONDS):
                    await stream.aclose()

    def echo(self, model: str) -> Echo:
        """Return which thoughts of ``model`` later requests send back to it."""
        return _rule_of(model, self._environment).echo

    def missing(self, model: str) -> str:
        """Return the sentence for a request to ``model`` if litellm is not installed."""
        is_known = model in self._model_map.names() or model.partition("/")[0] in self._model_map.providers()
        unknown = failures.model_error(Failure(Trouble.UNKNOWN_MODEL), Asked(model))
        return litellm_is_missing(model) if is_known else str(unknown)

    def warm(self, _model: str) -> None:
        """Import the modules for the first request; this takes seconds, and any thread may call it."""
        library.warm()

    async def _ask(self, request: ModelRequest) -> _Stream:
        litellm = await library.load_beside()
        arguments = self._arguments(request)
        try:
            stream: _Stream | None = await litellm.acompletion(**arguments)
        except Exception as error:
            status, text = getattr(error, "status_code", None), cut_text(str(error))
            if "tool_choice" not in arguments or not chat_messages.refuses_choice(status, text):
                raise
            # A server that refuses tool_choice may still accept tools.
            del arguments["tool_choice"]
            stream = await litellm.acompletion(**arguments)
        if stream is None:
            raise _UnprocessableError
        return stream

    def _arguments(self, request: ModelRequest) -> dict[str, object]:
        """Return the arguments for litellm; they turn off litellm's retries, because the user would not see them."""
        rule = _rule_of(request.model, self._environment)
        marked = marked_messages(with_files_after_results(request), self._model_map)
        arguments: dict[str, object] = {
            "model": request.model,
            "messages": [_with_own_thoughts(each, chat_message(each, self._load), rule) for each in marked],
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_retries": 0,
            "num_retries": 0,
            "timeout": _SOCKET_TIMEOUT_SECONDS,
        }
        told = {
            "temperature": request.temperature,
            "max_tokens": reply_limit(request, self._model_map),
            # Without num_ctx Ollama reserves a few thousand tokens and silently cuts longer prompts.
            "num_ctx": request.context_tokens if is_ollama(request.model) else None,
        }
        arguments |= {name: value for name, value in told.items() if value is not None}
        arguments |= effort_arguments(request, self._environment)
        return arguments | offered_tools(request) | self._server_arguments(request.model)

    def _server_arguments(self, model: str) -> dict[str, object]:
        """Return the address of a user's server, and, if it is on this machine, a placeholder for a missing key."""
        address = request_address(model, self._environment)
        if not address:
            return {}
        is_own = named(model).provider == "openai" and is_on_this_machine(address)
        key = {"api_key": "none-needed"} if is_own and not self._environment.get("OPENAI_API_KEY") else {}
        return {"api_base": address, **key}

    async def _in_time(self, awaitable: Awaitable[_Answer], model: str, patience: Patience, *, begun: bool) -> _Answer:
        try:
            return await patience.wait_for(awaitable)
        except ModelError:
            raise
        except Exception as error:  # noqa: BLE001 - litellm raises what its many libraries raise
            if patience.is_over:
                raise failures.silence_error(model, patience.seconds, begun=begun) from None
            # The error's causes may contain a key, and a traceback in a log file would print them.
            provider = "" if "/" in model else getattr(error, "llm_provider", None) or ""
            asked = Asked(model, request_address(model, self._environment), self._environment, provider)
            raise failures.model_error(_failure(tuple(causes(error))), asked) from None


class _Reply(ReplyReader):
    form = _FORM

    def __init__(self, *, is_gemini: bool) -> None:
        super().__init__()
        self._is_gemini = is_gemini
        self._block: JsonObject = {}
        self._growing: Pieces | None = None

    def events_in(self, chunk: _Chunk) -> Iterator[ModelEvent]:
        """Yield the texts of ``chunk``, and keep its calls, its finish reason and its usage for the end."""
        said = chunk.model_dump(warnings=False)
        self._counts = object_at(said, "usage") or self._counts
        for choice in objects_at(said, "choices")[:1]:
            self._finish_reason = text_at(choice, "finish_reason") or self._finish_reason
            delta = object_at(choice, "delta")
            for piece, _ in call_pieces(delta):
                self._call(piece)
            self._join_blocks(objects_at(delta, _BLOCKS))
            yield from self._thought(text_at(delta, "reasoning_content"))
            yield from self._text(text_at(delta, "content"))

    def _join_blocks(self, pieces: list[JsonObject]) -> None:
        """Join the pieces of Claude's blocks, because litellm does not join them."""
        for piece in pieces:
            if piece.get("type") != "thinking":
                self._own.add(piece)
                continue
            if self._growing is None:
                self._growing = Pieces()
                self._block = {"type": "thinking", "thinking": self._growing}
                self._own.add(self._block)
            self._growing.append(text_at(piece, "thinking"))
            if piece.get("signature"):
                self._block["signature"], self._growing = piece["signature"], None

    def end_of(self, stream: _Stream) -> Iterator[ModelEvent]:
        received = stream.received_finish_reason
        if self._is_gemini:
            # For Gemini an invented reason counts, too: a cut reply may seem complete, but no complete reply seems cut.
            received = received or stream.intermittent_finish_reason
        self._finish_reason = None if received is None else self._finish_reason or received
        if not any(getattr(chunk, "usage", None) for chunk in stream.chunks):
            # The provider reported no counts, so these are litellm's own estimates.
            self._counts = {}
        yield from self.end()

    def _usage(self, counts: JsonObject) -> dict[str, int]:
        return chat_usage(counts, "cache_creation_tokens")


async def _next_chunk(stream: _Stream) -> _Chunk | None:
    """Return the next chunk, or ``None`` when the stream has ended, with or without a finish reason."""
    try:
        return await stream.__anext__()
    except StopAsyncIteration:
        return None
    except Exception as error:
        if _NO_FINISH_REASON in str(error):
            return None
        raise


def _rule_of(model: str, environment: Mapping[str, str]) -> EchoRule:
    """Return how thoughts go back to ``model``: in fields of chat completions, in Claude's blocks, or not at all."""
    if _CLAUDE in model:
        return NO_RULE._replace(echo=echo_rule(Endpoint(_ANTHROPIC, model, "", "")).echo)
    asked = endpoint(model, environment)
    if asked is None or asked.protocol is not ProtocolName.CHAT_COMPLETIONS or asked.provider == _DROPPED:
        return NO_RULE
    return echo_rule(asked)


def effort_arguments(request: ModelRequest, environment: Mapping[str, str]) -> dict[str, object]:
    """Return the arguments for the effort, in ``extra_body`` if litellm would drop them. OpenAI must store nothing."""
    asked = endpoint(request.model, environment)
    if asked is not None and asked.protocol is ProtocolName.CHAT_COMPLETIONS and asked.provider != _OPENAI:
        parameters = chosen_effort(request, asked).parameters
        return {"extra_body": parameters} if parameters else {}
    told: dict[str, object] = {} if request.effort is None else {"reasoning_effort": request.effort}
    may_store = asked and (asked.protocol is ProtocolName.RESPONSES or asked.address == PROVIDERS[_OPENAI].address)
    return told | {"store": False} if may_store else told


def _with_own_thoughts(message: PromptMessage, shaped: dict[str, object], rule: EchoRule) -> dict[str, object]:
    if rule.providers:
        return with_thoughts(message, shaped, rule)
    if rule is NO_RULE:
        return shaped
    if message.tool_calls and not message.content:
        # litellm replaces an empty text by a text of its own if Claude is asked.
        shaped = shaped | {"content": None}
    blocks = [part for part in replayed(message, _FORM) if isinstance(part, dict)] if message.thoughts else []
    return shaped | {_BLOCKS: blocks} if blocks else shaped


# litellm changes statuses: Anthropic's 529 becomes a 500, Gemini's 400 becomes a 401, and a refused connection becomes
# a 500. The provider's own answer, if it sent one, is among the causes of litellm's error.

# Words for causes, by the names of their classes; the classes are from several libraries.
_PLAIN_WORDS = {
    **dict.fromkeys(("TimeoutError", "TimeoutException"), "no answer in time"),
    "ConnectionRefusedError": "connection refused",
    "gaierror": "host name not found",
    "JSONDecodeError": "not valid JSON",
    **dict.fromkeys(("ClientPayloadError", "ServerDisconnectedError", "BadStatusLine"), "connection lost"),
    **dict.fromkeys(("ConnectionResetError", "RemoteProtocolError"), "connection lost"),
}
_CONNECTION_CLASSES = {"OSError", "TimeoutException", "RequestError", "ClientConnectionError"}
_MISSING_KEY = re.compile(
    r"missing credentials|missing \S+ api key|no key is set|unable to locate credentials|api_key client option must",
    re.IGNORECASE,
)
# litellm raises these errors for an answer that it does not expect.
_BUG_CLASSES = {"AttributeError", "TypeError", "KeyError", "IndexError"}
# An error with these words goes on to quote the whole chunk.
_ERROR_REASON = "raised a streaming error - finish_reason: error"
_CLASS_NAMES = re.compile(r"^(?:(?:litellm\.)?\w*(?:Error|Exception|Timeout)(?: \w+Error| Invalid \w+)?\s*[:-]\s*)+")
_ADDITIONS = re.compile(r"(?:Traceback \(most recent|Original exception:|LiteLLM Retried:|Error_str:).*", re.DOTALL)


def _failure(errors: Sequence[BaseException]) -> Failure:
    refusals = (error for error in errors if type(error).__name__.endswith("HTTPStatusError"))
    answer: httpx.Response | None = next(
        (found for error in refusals if (found := getattr(error, "response", None))), None
    )
    if answer is not None and getattr(errors[0], "is_pre_first_chunk", None) is not False:
        body = None
        # If nobody has read the answer, asking for its content raises an error.
        with suppress(Exception):
            body = decoded(answer.content)
        words = _words(errors) if body is None else ""
        return Failure(None, answer.status_code, body, _lower(answer.headers), words)
    trouble, status, words = _trouble(errors), getattr(errors[0], "status_code", None), _words(errors)
    body = next(filter(message_in, (getattr(error, "body", None) for error in errors)), None)
    if body is not None:
        return Failure(trouble, None, body, words=words)
    if trouble is None and status == HTTPStatus.INTERNAL_SERVER_ERROR:
        trouble = Trouble.INVALID_RESPONSE
    kept = (getattr(error, "litellm_response_headers", None) for error in errors)
    headers = _lower(next(filter(None, kept), {}))
    return Failure(trouble, status if isinstance(status, int) else None, None, headers, words)


def _trouble(errors: Sequence[BaseException]) -> Trouble | None:
    text = cut_text(str(errors[0]))
    if "LLM Provider NOT provided" in text:
        return Trouble.UNKNOWN_MODEL
    if _MISSING_KEY.search(text):
        return Trouble.NO_KEY
    if getattr(errors[0], "is_pre_first_chunk", None) is False:
        return Trouble.BROKE_OFF
    if _unreadable(errors):
        return Trouble.INVALID_RESPONSE
    return Trouble.UNREACHABLE if _are(errors, _CONNECTION_CLASSES) else None


def _are(errors: Sequence[BaseException], class_names: set[str]) -> bool:
    return any(base.__name__ in class_names for error in errors for base in type(error).__mro__)


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {str(name).lower(): str(value) for name, value in headers.items()}


def _unreadable(errors: Sequence[BaseException]) -> str:
    """Return why an answer could not be unpacked or was too long; empty if the error has another cause."""
    return next((str(error) for error in errors if type(error).__name__ == "DecodingError"), "")


def _words(errors: Sequence[BaseException]) -> str:
    if unreadable := _unreadable(errors):
        return unreadable
    for name, words in _PLAIN_WORDS.items():
        if _are(errors, {name}):
            return words
    if _are(errors, _BUG_CLASSES):
        return "not an event of this protocol" if getattr(errors[0], "is_pre_first_chunk", None) is False else ""
    if _ERROR_REASON in str(errors[0]):
        return "error at the provider"
    return _unwrapped(cut_text(str(getattr(errors[0], "original_exception", None) or errors[0])))


def _unwrapped(text: str) -> str:
    """Strip litellm's class names from the front, its additions from the end, and JSON from around the message."""
    text = _CLASS_NAMES.sub("", _ADDITIONS.sub("", text)).strip()
    start, end = text.find("{"), text.rfind("}")
    quoted = decoded(text[start : end + 1].encode(errors="replace")) if start >= 0 else None
    return message_in(quoted if isinstance(quoted, dict) else text)
