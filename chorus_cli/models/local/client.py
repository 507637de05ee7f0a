"""The model client for models in files, and llama.cpp's server that it starts for each."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from contextlib import aclosing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.errors import ModelError
from chorus_cli.machine.clock import Patience
from chorus_cli.machine.environment import without_secrets
from chorus_cli.models.providers.chat_messages import not_stored
from chorus_cli.models.providers.providers import Endpoint
from chorus_cli.models.rules.request import Echo, Span
from chorus_cli.models.wire.client import Connection, WireClient

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import AsyncGenerator, Mapping

    from chorus_cli.models.local.files import LocalFiles
    from chorus_cli.models.providers.chat_messages import Load
    from chorus_cli.models.providers.model_map import ModelMap
    from chorus_cli.models.rules.events import ModelEvent
    from chorus_cli.models.rules.request import ModelRequest

LOADING_SECONDS = 600.0

_PROGRAM = Path(__file__).with_name("engine.py")
# llama.cpp's own server, as llamafile is too.
_PROVIDER = "llamafile"
_REASONS = (re.compile(r"error loading model: (.*)"), re.compile(r"\d E +(.*)"))


class LoadedModel(NamedTuple):
    """A model's name, its file, and the context to keep for it, in tokens."""

    model: str
    file: Path
    context_tokens: int


class LocalServer:
    """A process that serves ``loaded`` at ``endpoint``; ``uses`` counts the replies that it is writing."""

    def __init__(self, loaded: LoadedModel, endpoint: Endpoint, process: Process) -> None:
        self.loaded = loaded
        self.endpoint = endpoint
        self.uses = 0
        self._process = process

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return self._process.returncode is None

    async def aclose(self) -> None:
        """End the process, and with it the memory that the model takes."""
        await _end(self._process)


async def started(
    loaded: LoadedModel, environment: Mapping[str, str], patience_seconds: float = LOADING_SECONDS
) -> LocalServer:
    """Load a model and return its server, which ends with this process at the latest."""
    key = os.urandom(32).hex()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        # A file of the user's is not imported in place of a module.
        "-P",
        str(_PROGRAM),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=without_secrets(environment),
        # Ctrl-C ends a reply, not the server.
        start_new_session=True,
    )
    try:
        answer, reported = await Patience(patience_seconds).wait_for(_answer(process, loaded, key))
        address = f"{_address(loaded, answer, reported)}/v1"
        return LocalServer(loaded, Endpoint(_PROVIDER, loaded.file.stem, address, key), process)
    except TimeoutError:
        await _end(process)
        minutes = patience_seconds / 60
        raise ModelError(f"{loaded.model} was not loaded within {minutes:g} minutes. Try a smaller model.") from None
    except BaseException:
        await _end(process)
        raise


async def _answer(process: Process, loaded: LoadedModel, key: str) -> tuple[Mapping[str, object], str]:
    order = {"file": str(loaded.file), "context_tokens": loaded.context_tokens, "key": key}
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise ValueError("The process must have pipes.")
    with suppress(ConnectionError):
        process.stdin.write(json.dumps(order).encode() + b"\n")
        await process.stdin.drain()
    line, reported = await asyncio.gather(process.stdout.readline(), process.stderr.read())
    with suppress(ValueError):
        answer = json.loads(line)
        if isinstance(answer, dict):
            return answer, reported.decode(errors="replace")
    return {}, reported.decode(errors="replace")


def _address(loaded: LoadedModel, answer: Mapping[str, object], reported: str) -> str:
    address = answer.get("address")
    if isinstance(address, str):
        return address
    found = filter(None, (reason.search(reported) for reason in _REASONS))
    reasons = (*(match[1] for match in found), answer.get("error"))
    cause = next(filter(None, reasons), "llama.cpp ended without a word, perhaps for want of memory")
    raise ModelError(f"{loaded.file} cannot be loaded: {str(cause).rstrip('.')}.")


async def _end(process: Process) -> None:
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()


# A processor reads some ten tokens of a long prompt in a second.
_FIRST_TOKEN_SECONDS = 1800.0
_LOOPBACK = "http://127.0.0.1"


class LocalClient:
    """A ``ModelClient`` for local models; their servers are given ``environment``, ``load`` the bytes of attachments.

    One model is kept in memory: the next one that is asked takes its place, as soon as no reply is being written by it.
    """

    def __init__(
        self, environment: Mapping[str, str], model_map: ModelMap, files: LocalFiles, load: Load = not_stored
    ) -> None:
        # No proxy can reach a server on loopback, and none is to see the messages.
        self._connection = Connection(is_direct=True)
        self._wire = WireClient(
            environment,
            model_map,
            first_token_seconds=_FIRST_TOKEN_SECONDS,
            connection=self._connection,
            load=load,
        )
        self._files = files
        self._environment = environment
        self._servers: list[LocalServer] = []
        self._starting = asyncio.Lock()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Yield the reply as it arrives, and ``ReplyEnd`` last; the first one waits until the model is loaded."""
        loaded = await asyncio.to_thread(self._wanted, request)
        async with self._starting:
            server = await self._serving(loaded)
            server.uses += 1
        try:
            async with aclosing(self._wire.stream(request, server.endpoint)) as events:
                async for event in events:
                    yield event
        finally:
            server.uses -= 1

    def echo(self, _model: str) -> Echo:
        """Return which of its thoughts a model is sent again: those of the turn, which its template decides about."""
        return Echo(Span.TURN)

    def warm(self, _model: str) -> None:
        """Import all that the first request needs; any thread may do so."""
        self._connection.warm(_LOOPBACK)

    async def aclose(self) -> None:
        """End all servers."""
        servers, self._servers = self._servers, []
        for server in servers:
            await server.aclose()
        await self._wire.aclose()

    def _wanted(self, request: ModelRequest) -> LoadedModel:
        model = request.model
        return LoadedModel(model, self._files.file(model), self._files.context_tokens(model, request.context_tokens))

    async def _serving(self, wanted: LoadedModel) -> LocalServer:
        """Return a server of the model with as large a context as wanted, started if need be."""
        self._servers = [server for server in self._servers if server.is_running]
        for server in self._servers:
            if server.loaded.file == wanted.file and server.loaded.context_tokens >= wanted.context_tokens:
                return server
        for server in [server for server in self._servers if not server.uses]:
            self._servers.remove(server)
            await server.aclose()
        server = await started(wanted, self._environment)
        self._servers.append(server)
        return server
