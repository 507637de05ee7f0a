"""Finds, configures and imports litellm; the import takes seconds and would fetch files if it were allowed to."""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import json
import logging
import os
import sys
import threading
from concurrent.futures import Future
from contextlib import aclosing, contextmanager, suppress
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING

import httpx

from chorus_cli.core import limits
from chorus_cli.machine.unpacking import AS_IT_IS, UnpackingError, unpacked
from chorus_cli.models.providers.failures import cut, decoded
from chorus_cli.models.providers.model_map import installation_folder

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator, MutableMapping

# With each piece litellm copies all that has come of a line, so that a longer one takes minutes.
_LONGEST_LINE_BYTES = limits.EVENT.most // 4


def bound(transport: type[httpx.AsyncBaseTransport]) -> None:
    """Have every answer that comes by a class of transports bounded as those over the wire are.

    litellm builds its transports where they are used, and takes none.
    """
    answer = transport.handle_async_request

    async def bounded(self: httpx.AsyncBaseTransport, request: httpx.Request) -> httpx.Response:
        request.headers["Accept-Encoding"] = AS_IT_IS
        response = await answer(self, request)
        if isinstance(response.stream, httpx.AsyncByteStream):
            encoding = response.headers.pop("Content-Encoding", "")
            response.stream = _Body(response.stream, encoding, is_error=response.is_error)
        return response

    transport.handle_async_request = bounded  # type: ignore[method-assign]


class _Body(httpx.AsyncByteStream):
    """The body of an answer without its compression, of an error only what is looked at."""

    def __init__(self, packed: httpx.AsyncByteStream, encoding: str, *, is_error: bool) -> None:
        self._packed = packed
        self._encoding = encoding
        self._is_error = is_error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async with aclosing(unpacked(aiter(self._packed), self._encoding)) as pieces:
            if self._is_error:
                yield await _error(pieces)
                return
            try:
                async for piece in _with_bounded_lines(pieces):
                    yield piece
            except UnpackingError as error:
                raise httpx.DecodingError(str(error)) from None

    async def aclose(self) -> None:
        await self._packed.aclose()


async def _error(pieces: AsyncIterator[bytes]) -> bytes:
    """Return an error in a length over which litellm, which looks for keys in it, does not take seconds."""
    content = bytearray()
    try:
        async for piece in pieces:
            content += piece
            if len(content) > limits.ERROR_BODY.most:
                break
    except UnpackingError as error:
        return f"its answer is {error}".encode()
    if len(content) <= limits.ERROR_WORDS.most:
        return bytes(content)
    body = cut(decoded(bytes(content)))
    return (body if isinstance(body, str) else json.dumps(body)).encode(errors="replace")


async def _with_bounded_lines(pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Yield the pieces of a reply.

    Raises:
        UnpackingError: a line is too long.
    """
    length = 0
    async for piece in pieces:
        end = piece.rfind(b"\n")
        length = len(piece) - end - 1 if end >= 0 else length + len(piece)
        if length > _LONGEST_LINE_BYTES:
            raise UnpackingError(f"an event of more than {_LONGEST_LINE_BYTES:,} bytes")
        yield piece


_OFFLINE = {
    # Without these litellm fetches its price map and its header list when it is imported.
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
    # Counting tokens for a Llama model would ask Hugging Face for a vocabulary, for 23 seconds when that is blocked.
    "HF_HUB_OFFLINE": "1",
}
_PREFERENCES = {
    # Any other mode reads a .env file from the folders above the installation.
    "LITELLM_MODE": "PRODUCTION",
    # Its log lines would appear on the screen and may quote a request; errors are shown as sentences.
    "LITELLM_LOG": "CRITICAL",
}
_FIRST_REQUEST_MODULES = (
    "openai.resources",
    "litellm.litellm_core_utils.default_encoding",
    "litellm.proxy._types",
)

# litellm's own handler of MCP tools, on its way to OpenAI's Responses API; it imports packages that litellm does not
# require, also for a request without such tools.
_MCP_HANDLER = "litellm.responses.mcp.litellm_proxy_mcp_handler"

_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")
_TRANSPORTS = "litellm.llms.custom_httpx.aiohttp_transport"

_importing = threading.Lock()


class _NoMcpHandler:
    """Stands for litellm's handler of MCP tools where it cannot be imported: the chat has none for it."""

    @staticmethod
    def should_use_litellm_mcp_gateway(tools: object = None) -> bool:
        """Return that no tools are to be handled."""
        del tools
        return False


def prepare_environment(environment: MutableMapping[str, str] = os.environ) -> None:
    """Set the variables that keep litellm offline and quiet; they have no effect after its import."""
    environment.update(_OFFLINE)
    for name, value in _PREFERENCES.items():
        environment.setdefault(name, value)


def load() -> ModuleType:
    """Import and configure litellm, once, and return it. Any thread may call it.

    Raises:
        ModelError: it is not installed.
    """
    with _importing:
        return _imported()


async def load_beside() -> ModuleType:
    """Import litellm in a daemon thread; the end of the process does not wait for it, as it would for an executor.

    Raises:
        ModelError: it is not installed.
    """
    imported: Future[ModuleType] = Future()
    # From here on the import cannot be cancelled, only the wait for it.
    imported.set_running_or_notify_cancel()

    def run() -> None:
        try:
            imported.set_result(load())
        except Exception as error:  # noqa: BLE001 - the awaiting caller gets it
            imported.set_exception(error)

    threading.Thread(target=run, name="import", daemon=True).start()
    return await asyncio.wrap_future(imported)


def loaded() -> ModuleType | None:
    """Return litellm if it is imported and no import is in progress, so that its use does not block the keyboard."""
    return None if _importing.locked() or not _imported.cache_info().currsize else _imported()


def warm() -> None:
    """Import litellm and the modules of its first request, half a second that would freeze the keyboard then."""
    with _importing:
        _imported()
        _import_for_first_request()


@cache
def _imported() -> ModuleType:
    """Import litellm, configured not to print, not to use the network, and to drop settings that a model lacks."""
    installation_folder()
    prepare_environment()
    with _garbage_collector_paused():
        # litellm takes two seconds to import; only who talks to a provider waits for it.
        import litellm  # noqa: PLC0415
    litellm.suppress_debug_info = True
    litellm.disable_hf_tokenizer_download = True
    litellm.drop_params = True
    _leave_standard_output()
    _bound_answers()
    if importlib.util.find_spec("mcp") is None:
        handler = ModuleType(_MCP_HANDLER)
        vars(handler)["LiteLLM_Proxy_MCP_Handler"] = _NoMcpHandler
        sys.modules.setdefault(_MCP_HANDLER, handler)
    library: ModuleType = litellm
    return library


def _leave_standard_output() -> None:
    """Have litellm's loggers write where all others do; its own handler writes some lines to standard output."""
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        for handler in tuple(logger.handlers):
            logger.setLevel(handler.level)
            logger.removeHandler(handler)


def _bound_answers() -> None:
    """Bound the answers that litellm reads; a later version may have moved its transport, and then they are not."""
    with suppress(ImportError, AttributeError):
        bound(importlib.import_module(_TRANSPORTS).LiteLLMAiohttpTransport)


@cache
def _import_for_first_request() -> None:
    with _garbage_collector_paused():
        for name in _FIRST_REQUEST_MODULES:
            # A later version may have moved one; then the first request is slower, no more.
            with suppress(ImportError):
                importlib.import_module(name)


@contextmanager
def _garbage_collector_paused() -> Iterator[None]:
    """Keep the garbage collector from scanning the objects of an import, which live as long as the process."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()
