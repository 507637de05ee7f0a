"""One job: its output is read as fast as it is bounded, and it ends by itself or is stopped."""

from __future__ import annotations

import asyncio
from signal import SIGINT, SIGKILL, SIGTERM
from typing import TYPE_CHECKING

from chorus_cli.jobs.rules.output import BoundedOutput
from chorus_cli.jobs.rules.wording import MOST_CHARACTERS, MOST_LINES
from chorus_cli.machine.states import EndedJob, Ending, RunningJob

if TYPE_CHECKING:
    from collections.abc import Callable
    from signal import Signals

    from chorus_cli.machine.ports import Clock, JobProcess
    from chorus_cli.machine.states import Leftover
    from chorus_cli.personas.rules.target import Target

GRACE_SECONDS = 2.0
"""The time that a job has to end after it was asked to; then it is killed."""

_BYTES_PER_SECOND = 8_000_000
"""What is read at most, so that a job that prints without end leaves the keyboard its time."""

_SHORTEST_PAUSE_SECONDS = 0.005
_DRAINING_SECONDS = 0.2
_MOST_DRAINS = 10


class Job:
    """A command of the shell that a persona's thread has started.

    ``leftovers`` are the processes that outlived it. The answer of a command tells of its end if it
    ``is_answered_for``.
    """

    def __init__(self, number: int, command: str, target: Target, process: JobProcess, clock: Clock) -> None:
        self.number = number
        self.command = command
        self.target = target
        self.output = BoundedOutput()
        self.ending: Ending | None = None
        self.leftovers: tuple[Leftover, ...] = ()
        self.is_answered_for = False
        self._process = process
        self._clock = clock
        self._began = clock.monotonic()
        self._is_stopped = False
        self._killing: asyncio.TimerHandle | None = None
        self._reading: asyncio.Task[None] | None = None
        self._show: Callable[[bytes], None] | None = None

    @property
    def process(self) -> JobProcess:
        """The processes of the job."""
        return self._process

    @property
    def has_leftovers(self) -> bool:
        """Whether a process of its group has outlived it."""
        return any(each.is_in_group for each in self.leftovers)

    @property
    def seconds(self) -> float:
        """How long it ran, or has run so far."""
        return self.ending.seconds if self.ending else self._clock.monotonic() - self._began

    @property
    def state(self) -> str:
        """The state in words."""
        return self.ending.describe() if self.ending else "running"

    def running(self) -> RunningJob:
        """Return the values of a running job."""
        return RunningJob(self.number, self.command, self.seconds, self.output.last_line())

    def ended(self, ending: Ending) -> EndedJob:
        """Return the values of a job that has ended."""
        lines = self.output.last_lines(MOST_LINES, MOST_CHARACTERS)
        return EndedJob(self.number, self.command, ending, lines, self.output.line_count)

    async def attend(self, show: Callable[[bytes], None] | None = None) -> Ending:
        """Read the output, pass it on to ``show``, and return the end of the job.

        The job is over when its command has ended, although a process that it left behind may still hold the output.

        Raises:
            Exception: ``show`` failed; the job is killed.
        """
        self._show = show
        self._reading = asyncio.create_task(self._read())
        leaving = asyncio.create_task(self._process.wait())
        await asyncio.wait({leaving, self._reading}, return_when=asyncio.FIRST_COMPLETED)
        if self._reading.done() and self._reading.exception():
            self._process.send(SIGKILL)
        code = await leaving
        await self._drain(self._reading)
        self._show = None
        if self._killing is not None:
            self._killing.cancel()
        self.ending = Ending(code, self._clock.monotonic() - self._began, self._is_stopped)
        if self._reading.done():
            self._reading.result()
        return self.ending

    def interrupt(self) -> None:
        """Stop the job as Ctrl-C does; a second time kills it."""
        self._ask_to_end(SIGKILL if self._is_stopped else SIGINT)

    def terminate(self) -> None:
        """Ask the job to end, and kill it if it does not."""
        self._ask_to_end(SIGTERM)

    async def close(self) -> None:
        """Kill what is left of the job's group."""
        self._process.close()
        self.leftovers = tuple(each for each in self.leftovers if not each.is_in_group)
        if self._reading is not None:
            await asyncio.wait({self._reading})

    def _ask_to_end(self, number: Signals) -> None:
        self._process.send(number)
        if self.ending is not None:
            return
        self._is_stopped = True
        if self._killing is None:
            loop = asyncio.get_running_loop()
            self._killing = loop.call_later(GRACE_SECONDS, self._process.send, SIGKILL)

    async def _read(self) -> None:
        while piece := await self._process.read():
            self.output.add(piece)
            if self._show is not None:
                self._show(piece)
            await self._clock.sleep(max(_SHORTEST_PAUSE_SECONDS, len(piece) / _BYTES_PER_SECOND))

    async def _drain(self, reading: asyncio.Task[None]) -> None:
        """Read the rest of the output, as long as more comes."""
        for _ in range(_MOST_DRAINS):
            size = self.output.total_bytes
            await asyncio.wait({reading}, timeout=_DRAINING_SECONDS)
            if reading.done() or self.output.total_bytes == size:
                return
