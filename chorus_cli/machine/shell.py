"""Runs commands of the user's shell. The processes of each command form their own group, without a terminal.

A watcher in the group waits on a pipe that only this process can write to. When the pipe closes, even because this
process was killed, the watcher kills the group. While the watcher lives, no other group can get the group's number.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from signal import Signals

from chorus_cli.core.errors import JobError
from chorus_cli.machine.environment import umask_of, withheld_names, without_secrets
from chorus_cli.machine.ports import Leftover

_PROCESSES = Path("/proc")
_ENDED = {"Z", "X"}


def marked_processes(mark: str, ignored: str, group: int) -> tuple[Leftover, ...]:
    """Return the processes with ``mark`` but not ``ignored`` in their environment; ``group`` is the job's group."""
    folders: list[Path] = []
    with suppress(OSError):
        folders = [folder for folder in _PROCESSES.iterdir() if folder.name.isdecimal()]
    found = (_marked(folder, mark.encode(), ignored.encode(), group) for folder in folders)
    return tuple(sorted(filter(None, found), key=lambda leftover: leftover.process_id))


def _marked(folder: Path, mark: bytes, ignored: bytes, group: int) -> Leftover | None:
    try:
        variables = (folder / "environ").read_bytes().split(b"\0")
        if mark not in variables or any(variable.startswith(ignored) for variable in variables):
            return None
        # ``42 (name) S 1 42 …``, where the name may contain anything.
        status = (folder / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        # The process has ended, or belongs to another user.
        return None
    name, _, rest = status.partition("(")[2].rpartition(")")
    state, _parent, its_group, *_ = rest.split()
    return None if state in _ENDED else Leftover(int(folder.name), name, is_in_group=int(its_group) == group)


_PLAIN_SHELL = "/bin/sh"
_READ_BYTES = 65_536
_MARK, _COMMAND = "CHORUS_JOB", "CHORUS_JOB_COMMAND"

# The watcher is a grandchild, so that a command that waits for its own children does not wait for the watcher.
_SCRIPT = f"""
exec 3<&0 </dev/null
( ( trap '' HUP INT QUIT TERM; exec >/dev/null 2>&1; read -r line <&3; kill -KILL 0 ) & )
set -- "${_COMMAND}"; unset {_COMMAND}
exec "$0" -c "$1" 3<&-
"""


class UserShell:
    """The user's shell: ``SHELL`` of ``environment``, or else ``/bin/sh``."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = without_secrets(environment)
        self._secrets = {name: environment[name] for name in withheld_names(environment)}
        self._umask = umask_of(environment)
        self._shell = shutil.which(environment.get("SHELL", "")) or _PLAIN_SHELL
        self._run = f"{os.getpid()}-{os.urandom(4).hex()}"
        self._started = 0

    def withheld(self, passing: Collection[str]) -> tuple[str, ...]:
        """Return the names of the variables that a command does not get, because they look like secrets."""
        return tuple(name for name in self._secrets if name not in passing)

    def start(self, command: str, passing: Collection[str] = ()) -> ShellProcess:
        """Start a command without input and without a terminal; raise a ``JobError`` if that fails.

        The command gets the variables named in ``passing``, although they look like secrets.
        """
        if "\0" in command:
            raise JobError("The command contains a NUL character, so no shell can take it.")
        self._started += 1
        mark = f"{self._run}-{self._started}"
        passed = {name: value for name, value in self._secrets.items() if name in passing}
        environment = {**self._environment, **passed, _MARK: mark, _COMMAND: command}
        try:
            process = subprocess.Popen(
                [_PLAIN_SHELL, "-c", _SCRIPT, self._shell],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
                umask=self._umask,
                bufsize=0,
            )
        except (OSError, ValueError) as error:
            raise JobError(f"The command cannot be started: {error}.") from error
        return ShellProcess(process, mark)


class ShellProcess:
    """A command that was started, with its watcher; the environment of all its processes contains ``mark``."""

    def __init__(self, process: subprocess.Popen[bytes], mark: str) -> None:
        if process.stdin is None or process.stdout is None:
            raise ValueError("The input and the output of the command must be pipes.")
        self._process = process
        self._mark = mark
        self._watched, self._output = process.stdin, process.stdout
        self._loop = asyncio.get_running_loop()
        self._exit_code: asyncio.Future[int] = self._loop.create_future()
        self._reader: asyncio.StreamReader | None = None
        self._reading: asyncio.BaseTransport | None = None
        threading.Thread(target=self._reap, name="job", daemon=True).start()

    async def read(self) -> bytes:
        """Wait for the next output and return it, empty at the end. A command waits while nobody reads its output."""
        if self._reader is None:
            if self._output.closed:
                return b""
            self._reader = reader = asyncio.StreamReader()
            listening = self._loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), self._output)
            self._reading, _ = await listening
            if self._watched.closed:
                self._reading.close()
        return await self._reader.read(_READ_BYTES)

    async def wait(self) -> int:
        """Wait until the command ends; return its exit code, or the negative number of the signal that killed it."""
        return await asyncio.shield(self._exit_code)

    def send(self, number: Signals) -> None:
        """Send a signal to the whole group, and then SIGCONT, so that a suspended group receives it."""
        if self._watched.closed:
            return
        for each in (number, signal.SIGCONT):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, each)

    async def leftovers(self) -> tuple[Leftover, ...]:
        """Return the processes that the command started and that still run; without ``/proc``, return none."""
        return await asyncio.to_thread(marked_processes, f"{_MARK}={self._mark}", f"{_COMMAND}=", self._process.pid)

    def close(self) -> None:
        """Kill the processes left in the group and close the output; a second call does nothing."""
        if self._watched.closed:
            return
        self.send(signal.SIGKILL)
        self._watched.close()
        if self._reading is not None:
            self._reading.close()
        elif self._reader is None:
            self._output.close()

    def _reap(self) -> None:
        code = self._process.wait()
        with suppress(RuntimeError):
            # The loop may have ended; then nobody waits for the code.
            self._loop.call_soon_threadsafe(self._exit_code.set_result, code)
