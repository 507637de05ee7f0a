"""Starts and stops the jobs of a run, in the foreground or background, and keeps their news for the model."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from signal import SIGINT, SIGKILL, SIGTERM, Signals
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.errors import JobError, PersonaError
from chorus_cli.core.text.phrases import first_few, shortened
from chorus_cli.jobs import rules
from chorus_cli.jobs.rules import BoundedOutput, EndedJob, Ending, RunningJob

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from chorus_cli.machine.ports import Clock, Leftover
    from chorus_cli.machine.shell import ShellProcess, UserShell
    from chorus_cli.memory.service.memory import Memory
    from chorus_cli.personas.rules.persona import Persona, Target

GRACE_SECONDS = 2.0
"""How long a job may run after it was asked to end; then it is killed."""

_BYTES_PER_SECOND = 8_000_000
"""Output is read no faster than this, so that a job that prints without end does not block the keyboard."""

_SHORTEST_PAUSE_SECONDS = 0.005
_DRAINING_SECONDS = 0.2
_MOST_DRAINS = 10
_QUICK_SECONDS = 2.0


class Job:
    """A command of a thread, and the processes that outlive it; if ``is_answered_for``, `Jobs.stop` reports its end."""

    def __init__(self, number: int, command: str, target: Target, process: ShellProcess, clock: Clock) -> None:
        self.number = number
        self.command = command
        self.target = target
        self.output = BoundedOutput()
        self.ending: Ending | None = None
        self.leftovers: tuple[Leftover, ...] = ()
        self.is_answered_for = False
        self.process = process
        self._clock = clock
        self._began = clock.monotonic()
        self._is_stopped = False
        self._killing: asyncio.TimerHandle | None = None
        self._reading: asyncio.Task[None] | None = None
        self._show: Callable[[bytes], None] | None = None

    @property
    def has_leftovers(self) -> bool:
        """Whether a process of the job's group has outlived the job."""
        return any(each.is_in_group for each in self.leftovers)

    @property
    def seconds(self) -> float:
        """How long the job ran, or has run so far."""
        return self.ending.seconds if self.ending else self._clock.monotonic() - self._began

    @property
    def state(self) -> str:
        """``running``, or how the job ended, such as ``exit code 2``."""
        return self.ending.describe() if self.ending else "running"

    def running(self) -> RunningJob:
        """Return the facts about the running job."""
        return RunningJob(self.number, self.command, self.seconds, self.output.last_line())

    def ended(self, ending: Ending) -> EndedJob:
        """Return the facts about the job, which ended as ``ending`` says."""
        lines = self.output.last_lines(rules.MOST_LINES, rules.MOST_CHARACTERS)
        return EndedJob(self.number, self.command, ending, lines, self.output.line_count, self._clock.now())

    async def attend(self, show: Callable[[bytes], None] | None = None) -> Ending:
        """Pass the output to ``show``, and return how the job ended; if ``show`` fails, kill the job and raise."""
        self._show = show
        self._reading = asyncio.create_task(self._read())
        leaving = asyncio.create_task(self.process.wait())
        await asyncio.wait({leaving, self._reading}, return_when=asyncio.FIRST_COMPLETED)
        if self._reading.done() and self._reading.exception():
            self.process.send(SIGKILL)
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
        """Send SIGINT to the job, as Ctrl-C does; if the job was asked to end before, kill it."""
        self._ask_to_end(SIGKILL if self._is_stopped else SIGINT)

    def terminate(self) -> None:
        """Ask the job to end, and kill it if it is still there after ``GRACE_SECONDS``."""
        self._ask_to_end(SIGTERM)

    async def close(self) -> None:
        """Kill the processes that are left in the job's group, and wait for the end of its output."""
        self.process.close()
        self.leftovers = tuple(each for each in self.leftovers if not each.is_in_group)
        if self._reading is not None:
            await asyncio.wait({self._reading})

    def _ask_to_end(self, number: Signals) -> None:
        self.process.send(number)
        if self.ending is not None:
            return
        self._is_stopped = True
        if self._killing is None:
            loop = asyncio.get_running_loop()
            self._killing = loop.call_later(GRACE_SECONDS, self.process.send, SIGKILL)

    async def _read(self) -> None:
        while piece := await self.process.read():
            self.output.add(piece)
            if self._show is not None:
                self._show(piece)
            await self._clock.sleep(max(_SHORTEST_PAUSE_SECONDS, len(piece) / _BYTES_PER_SECOND))

    async def _drain(self, reading: asyncio.Task[None]) -> None:
        """Wait for the rest of the output until nothing comes for 0.2 s, two seconds at most."""
        for _ in range(_MOST_DRAINS):
            size = self.output.total_bytes
            await asyncio.wait({reading}, timeout=_DRAINING_SECONDS)
            if reading.done() or self.output.total_bytes == size:
                return


_MOST_JOBS = 10


class KeptBack(NamedTuple):
    """A job whose news an undo keeps back, and the journal's newest operation at the time of the undo."""

    ended: EndedJob
    after: int


class JobReports:
    """Keeps the news of jobs for the next message of their thread, and remembers the news sent with each turn."""

    def __init__(self) -> None:
        self._waiting: dict[int, tuple[EndedJob, ...]] = {}
        self._kept_back: dict[int, tuple[KeptBack, ...]] = {}
        self._sent: dict[int, tuple[int, tuple[EndedJob, ...]]] = {}

    def waiting(self, thread_id: int) -> tuple[EndedJob, ...]:
        """Return the jobs whose news the next message of a thread will take, oldest first."""
        return self._waiting.get(thread_id, ())

    def kept_back(self, thread_id: int) -> tuple[KeptBack, ...]:
        """Return the jobs whose news is kept back from the next message of a thread, in the order of the undos."""
        return self._kept_back.get(thread_id, ())

    def take(self, thread_id: int) -> tuple[EndedJob, ...]:
        """Remove and return the waiting news of a thread."""
        return self._waiting.pop(thread_id, ())

    def add(self, thread_id: int, *ended: EndedJob) -> None:
        """Keep news for the next message of a thread, but only of the thread's last ten jobs."""
        self._drop(thread_id, ended)
        together = sorted((*self.waiting(thread_id), *ended), key=lambda each: (each.at, each.number))
        self._waiting[thread_id] = tuple(together)[-_MOST_JOBS:]

    def keep_back(self, thread_id: int, kept: KeptBack) -> None:
        """Keep back the news of a job until it is added again or a message is sent."""
        self._drop(thread_id, (kept.ended,))
        self._kept_back[thread_id] = (*self.kept_back(thread_id), kept)

    def sent(self, thread_id: int, ended: tuple[EndedJob, ...], turn_id: int) -> None:
        """Remember the news sent with a turn, and forget the news that was kept back from the turn."""
        self._kept_back.pop(thread_id, None)
        self._sent[turn_id] = thread_id, ended

    def turn_undone(self, turn_id: int) -> tuple[EndedJob, ...]:
        """Keep the news of an undone turn for the next message again, and return its jobs."""
        thread_id, ended = self._sent.get(turn_id, (0, ()))
        self.add(thread_id, *ended)
        return ended

    def turn_redone(self, turn_id: int) -> None:
        """Drop the news of a redone turn, which is back in context."""
        self._drop(*self._sent.get(turn_id, (0, ())))

    def _drop(self, thread_id: int, jobs: Sequence[EndedJob]) -> None:
        self._waiting[thread_id] = tuple(each for each in self.waiting(thread_id) if each not in jobs)
        self._kept_back[thread_id] = tuple(each for each in self.kept_back(thread_id) if each.ended not in jobs)


EXIT_GRACE_SECONDS = 0.6
_MOST_LOOKS, _LOOK_SECONDS = 3, 0.1


@dataclass(slots=True)
class Jobs:
    """The jobs of all personas, numbered from 1 in each run; ``done`` tells the user that a background job ended.

    ``persona`` returns the persona with a slug as its files are now.
    """

    shell: UserShell
    clock: Clock
    memory: Memory
    persona: Callable[[str], Persona]
    in_focus: Callable[[], tuple[str, int]]
    done: Callable[[str], None]
    report_bug: Callable[[Exception], str]
    news: JobReports = field(default_factory=JobReports, init=False)
    _jobs: list[Job] = field(default_factory=list, init=False)
    _tasks: dict[int, asyncio.Task[list[str]]] = field(default_factory=dict, init=False)
    _forgotten: set[int] = field(default_factory=set, init=False)
    _is_closing: bool = field(default=False, init=False)

    @property
    def running_count(self) -> int:
        """The number of running jobs of all personas."""
        return sum(job.ending is None for job in self._jobs)

    @property
    def all(self) -> tuple[Job, ...]:
        """The jobs of all personas except deleted ones, oldest first."""
        return tuple(job for job in self._jobs if job.number not in self._forgotten)

    def running(self, slug: str) -> tuple[RunningJob, ...]:
        """Return the running jobs of a persona, oldest first."""
        return tuple(job.running() for job in self.of_persona(slug) if job.ending is None)

    def of_persona(self, slug: str) -> tuple[Job, ...]:
        """Return the jobs of a persona, oldest first."""
        return tuple(job for job in self.all if job.target.persona.slug == slug)

    def find(self, number: int, slug: str | None = None) -> Job:
        """Return the job with a number; raise `JobError` if there is none, or ``slug`` is another persona."""
        candidates = self.all if slug is None else self.of_persona(slug)
        found = next((job for job in candidates if job.number == number), None)
        if found is None:
            raise JobError(f"There is no job #{number} here. /jobs lists the jobs of this run.")
        return found

    def start(self, target: Target, command: str) -> Job:
        """Start a command; its output is not read until ``attend`` is called."""
        process = self.shell.start(command, target.persona.settings.job_env)
        job = Job(len(self._jobs) + 1, command, target, process, self.clock)
        self._jobs.append(job)
        return job

    def run(self, target: Target, command: str) -> Job:
        """Start a command in the background."""
        job = self.start(target, command)
        task = self._tasks[job.number] = asyncio.create_task(self._attend(job))
        task.add_done_callback(self._ended)
        return job

    async def attend(self, job: Job, show: Callable[[bytes], None]) -> list[str]:
        """Pass the output of a foreground job to ``show`` until the job ends, and return lines for the user."""
        ending = await job.attend(show)
        told = ending.told()
        # After a quick command without an error, the new prompt shows well enough that it has ended.
        is_quick = ending.code == 0 and not ending.is_stopped and ending.seconds < _QUICK_SECONDS
        first = "" if is_quick else told[0].upper() + told[1:]
        lines = await self._concluded(job, ending, first, says_nothing_of_silence=True)
        return [*lines, *filter(None, [rules.own_shell_line(job.command)])]

    async def stop(self, jobs: Sequence[Job]) -> list[str]:
        """Stop background jobs and the processes that outlived them, and return lines for the user about their ends."""
        lines: list[str] = []
        attended = [job for job in jobs if job.ending is None and job.number in self._tasks]
        for job in jobs:
            # A job may end while the end of another is awaited.
            job.is_answered_for |= job in attended
            job.terminate()
        for job in jobs:
            if job in attended:
                ended, _ = await asyncio.wait({self._tasks[job.number]})
                # ``_ended`` reports a bug in the task; the other jobs must be stopped all the same.
                lines += [line for task in ended if not task.exception() for line in task.result()]
            elif job.has_leftovers:
                lines.append(f"Stopped the processes that job #{job.number} left running.")
            await job.close()
        return lines

    async def forget(self, slug: str) -> list[str]:
        """Stop and forget the jobs of a deleted persona, and return lines for the user about their ends."""
        jobs = self.of_persona(slug)
        self._forgotten.update(job.number for job in jobs)
        return await self.stop([job for job in jobs if job.ending is None or job.has_leftovers])

    @property
    def has_output(self) -> bool:
        """Whether any job has printed anything."""
        return any(job.output.total_bytes for job in self._jobs)

    def forget_output(self) -> None:
        """Forget what all jobs have printed so far, and their news."""
        for job in self._jobs:
            job.output = BoundedOutput()
        self.news = JobReports()

    async def close(self) -> list[str]:
        """Stop all jobs in about a second; return a line for each, and one for processes that left a job's group."""
        self._is_closing = True
        stopped = [job for job in self._jobs if job.ending is None]
        suspects = [*stopped, *(job for job in self._jobs if job.ending is not None and job.leftovers)]
        for job in suspects:
            job.terminate()
        tasks = [task for task in self._tasks.values() if not task.done()]
        if tasks:
            await asyncio.wait(tasks, timeout=EXIT_GRACE_SECONDS)
        lines = [f"Stopped job #{job.number}: {shortened(job.command)}" for job in stopped]
        for job in suspects:
            await job.close()
            left = [each for each in await job.process.leftovers() if not each.is_in_group]
            lines += leftover_lines(job.number, left)
        if tasks:
            await asyncio.wait(tasks, timeout=EXIT_GRACE_SECONDS)
        return lines

    async def _attend(self, job: Job) -> list[str]:
        """Wait until a background job ends, and return lines about it; show them to the user, unless ``stop`` does."""
        ending = await job.attend()
        if self._is_closing:
            return []
        told = f"Job #{job.number} ({shortened(job.command)}): {ending.told()}"
        lines = await self._concluded(job, ending, told)
        if not job.is_answered_for:
            self.done("\n".join(lines))
        return lines

    def _ended(self, task: asyncio.Task[list[str]]) -> None:
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            self.done(self.report_bug(error))

    async def _concluded(
        self, job: Job, ending: Ending, first: str, *, says_nothing_of_silence: bool = False
    ) -> list[str]:
        """Capture memory items from the output of an ended job, keep its news, and return the lines for the user."""
        if ending.is_stopped:
            await job.close()
        await self._look_for_leftovers(job)
        if not job.leftovers:
            await job.close()
        if job.number in self._forgotten:
            return [first, *leftover_lines(job.number, job.leftovers)]
        persona, has_failed = job.target.persona, ending.is_stopped or ending.code != 0
        names = self.shell.withheld(persona.settings.job_env)
        # The user may have switched off auto_memory since the start.
        with suppress(PersonaError):
            persona = self.persona(persona.slug)
        withheld = rules.withheld_line(names) if has_failed and not ending.is_stopped else ""
        output = rules.readable(job.output.text())
        captured = await self.memory.capture_output(persona, job.command, output, has_failed=has_failed)
        ended = job.ended(ending)
        going = ""
        if ended.last_lines or not (says_nothing_of_silence and ending.code == 0):
            self.news.add(job.target.thread_id, ended)
            slug, thread_id = self.in_focus()
            is_here = (job.target.persona.slug, job.target.thread_id) == (slug, thread_id)
            going = rules.going_line("" if is_here else job.target.thread_label(slug))
        told = " ".join(filter(None, (first, withheld)))
        return [*filter(None, (told, captured, *leftover_lines(job.number, job.leftovers), going))]

    async def _look_for_leftovers(self, job: Job) -> None:
        """Find the processes that outlive a job; look three times, because most of them end right after it."""
        for _ in range(_MOST_LOOKS):
            job.leftovers = await job.process.leftovers()
            if not job.leftovers:
                return
            await asyncio.sleep(_LOOK_SECONDS)


def leftover_lines(number: int, leftovers: Sequence[Leftover]) -> list[str]:
    """Return lines for the user that name the processes that outlived a job."""
    inside = [each for each in leftovers if each.is_in_group]
    outside = [each for each in leftovers if not each.is_in_group]
    lines = []
    if inside:
        lines.append(f"Still running until Chorus ends or you type /jobs kill {number}: {_named(inside)}.")
    if outside:
        lines.append(f"Running outside job #{number}, and not stopped when Chorus ends: {_named(outside)}.")
    return lines


def _named(leftovers: Sequence[Leftover]) -> str:
    return first_few([f"{each.name} (process {each.process_id})" for each in leftovers])
