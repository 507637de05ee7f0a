"""Runs another program that exchanges lines with Chorus, and that ends with Chorus, even if Chorus is killed.

The program's processes form their own process group. As in `shell`, a watcher in the group waits on a pipe that only
this process can write to, and kills the group when the pipe closes.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from asyncio import SubprocessTransport
from asyncio.subprocess import PIPE, Process, SubprocessStreamProtocol
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from chorus_cli.core import limits
from chorus_cli.core.errors import JobError
from chorus_cli.machine.environment import umask_of

INHERITED = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ")
"""The user's environment variables that the program gets; the others may contain keys."""

_PLAIN_SHELL = "/bin/sh"
# A shell cannot name a descriptor of two digits, so the watcher opens its pipe by its path.
_SCRIPT = """
( ( trap '' HUP INT QUIT TERM; exec <"$0" >/dev/null 2>&1; read -r line; kill -KILL 0 ) & )
exec "$@"
"""
_PATIENCE_SECONDS = 1.0
"""How long a program may take to end by itself after its input has ended, and then after SIGTERM."""


class Program(NamedTuple):
    """A program to start: its command and arguments, further variables, and its folder ("" for the current folder)."""

    command: str
    arguments: Sequence[str]
    variables: Mapping[str, str]
    folder: str = ""


class _Pipes(SubprocessStreamProtocol):
    """The pipes of a program; ``exited`` is set when the program has ended."""

    def __init__(self) -> None:
        super().__init__(limits.SERVER_LINE.most, asyncio.get_running_loop())
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        """Note the end of the program."""
        super().process_exited()
        self.exited.set()


class Child:
    """A running program, as `start` returns it."""

    def __init__(self, transport: SubprocessTransport, pipes: _Pipes, watch: int) -> None:
        self._transport = transport
        self._pipes = pipes
        self._process = Process(transport, pipes, asyncio.get_running_loop())
        self._watch = watch
        self._telling: asyncio.Task[None] | None = None

    def listen(self, told: Callable[[str], None]) -> None:
        """Pass each line of the program's standard error to ``told``."""
        self._telling = asyncio.create_task(self._tell(told))

    async def line(self) -> bytes:
        """Return the next line of output, empty at the end; raise a ``ValueError`` if it is too long."""
        return await self._output.readline()

    async def send(self, line: bytes) -> None:
        """Write a line to the program's input; raise an ``OSError`` if the program has ended."""
        if self._process.stdin is not None:
            self._process.stdin.write(line)
            await self._process.stdin.drain()

    async def close(self) -> None:
        """End the program and all processes of its group."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        if not await self._has_ended():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGTERM)
            await self._has_ended()
        # The watcher keeps the group's number in use; once its pipe closes, it kills the rest of the group.
        os.close(self._watch)
        await self._has_ended()
        self._transport.close()
        if self._telling is not None:
            self._telling.cancel()
            await asyncio.wait({self._telling})

    async def _has_ended(self) -> bool:
        """Wait a moment for the end of the program; ``Process.wait`` would also wait for other users of its pipes."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await self._pipes.exited.wait()
        return self._pipes.exited.is_set()

    @property
    def _output(self) -> asyncio.StreamReader:
        if self._process.stdout is None:
            raise ValueError("The output of the program must be a pipe.")
        return self._process.stdout

    async def _tell(self, told: Callable[[str], None]) -> None:
        errors = self._process.stderr
        while errors is not None:
            try:
                line = await errors.readline()
            except ValueError:
                # The line is longer than the buffer, and ``readline`` has dropped it.
                continue
            if not line:
                return
            told(line.decode(errors="replace").rstrip())


async def start(program: Program, environment: Mapping[str, str], told: Callable[[str], None]) -> Child:
    """Start a program, or raise a ``JobError``; ``told`` gets each line of the program's standard error."""
    own = {name: environment[name] for name in INHERITED if name in environment} | dict(program.variables)
    if shutil.which(program.command, path=own.get("PATH")) is None:
        raise JobError(f"the command {program.command} cannot be found")
    watched, watch = os.pipe()
    loop = asyncio.get_running_loop()
    try:
        transport, pipes = await loop.subprocess_exec(
            _Pipes,
            *(_PLAIN_SHELL, "-c", _SCRIPT, f"/dev/fd/{watched}", program.command, *program.arguments),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=own,
            cwd=program.folder or None,
            pass_fds=(watched,),
            start_new_session=True,
            umask=umask_of(environment),
        )
    except (OSError, ValueError) as error:
        os.close(watch)
        raise JobError(f"it cannot be started: {error}") from error
    finally:
        os.close(watched)
    child = Child(transport, pipes, watch)
    child.listen(told)
    return child
