"""The jobs of a run: started in the foreground or behind the conversation, listed, stopped, and told to the model."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from chorus_cli.core.errors import JobError, StorageError
from chorus_cli.core.text.phrases import shortened
from chorus_cli.jobs.rules.wording import (
    ended_line,
    foreground_line,
    going_line,
    leftover_lines,
    stopped_line,
    withheld_line,
)
from chorus_cli.jobs.service.job import Job
from chorus_cli.jobs.service.news import NewsDesk
from chorus_cli.memory.rules.capture import capture_notice

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from chorus_cli.machine.ports import Clock, Shell
    from chorus_cli.machine.states import Ending, RunningJob
    from chorus_cli.memory.service.memory import Memory
    from chorus_cli.personas.rules.target import Target

EXIT_GRACE_SECONDS = 0.6
_MOST_LOOKS, _LOOK_SECONDS = 3, 0.1


@dataclass(slots=True)
class Jobs:
    """The jobs of all personas, numbered from 1 in each run.

    ``in_focus`` returns the slug of the persona and the id of the thread in focus. ``done`` tells the user about a job
    that has ended in the background; ``report_bug`` keeps a traceback. Unless it ``has_any``, none was ever started.
    """

    shell: Shell
    clock: Clock
    memory: Memory
    in_focus: Callable[[], tuple[str, int]]
    done: Callable[[str], None]
    report_bug: Callable[[Exception], str]
    news: NewsDesk = field(default_factory=NewsDesk, init=False)
    has_any: bool = field(default=False, init=False)
    _jobs: list[Job] = field(default_factory=list, init=False)
    _tasks: dict[int, asyncio.Task[list[str]]] = field(default_factory=dict, init=False)
    _forgotten: set[int] = field(default_factory=set, init=False)
    _is_closing: bool = field(default=False, init=False)

    @property
    def running_count(self) -> int:
        """The number of jobs that run, of all personas."""
        return sum(job.ending is None for job in self._jobs)

    @property
    def all(self) -> tuple[Job, ...]:
        """The jobs of all personas, oldest first, but for those of deleted ones."""
        return tuple(job for job in self._jobs if job.number not in self._forgotten)

    def running(self, slug: str) -> tuple[RunningJob, ...]:
        """Return the running jobs of a persona, oldest first."""
        return tuple(job.running() for job in self.of_persona(slug) if job.ending is None)

    def of_persona(self, slug: str) -> tuple[Job, ...]:
        """Return the jobs of a persona, oldest first."""
        return tuple(job for job in self.all if job.target.persona.slug == slug)

    def find(self, number: int, slug: str | None = None) -> Job:
        """Return a job; with ``slug``, only if it is one of that persona.

        Raises:
            JobError: there is none of this number.
        """
        candidates = self.all if slug is None else self.of_persona(slug)
        found = next((job for job in candidates if job.number == number), None)
        if found is None:
            raise JobError(f"There is no job #{number} here. /jobs lists those of this run.")
        return found

    def start(self, target: Target, command: str) -> Job:
        """Start a command; its output is read as soon as it is attended.

        Raises:
            JobError: it cannot be started.
        """
        job = Job(len(self._jobs) + 1, command, target, self.shell.start(command), self.clock)
        self._jobs.append(job)
        self.has_any = True
        return job

    def run(self, target: Target, command: str) -> Job:
        """Start a command in the background.

        Raises:
            JobError: it cannot be started.
        """
        job = self.start(target, command)
        self._tasks[job.number] = asyncio.create_task(self._attend(job))
        return job

    async def attend(self, job: Job, show: Callable[[bytes], None]) -> list[str]:
        """Pass the output of a job in the foreground on to ``show``, and return the lines about its end."""
        ending = await job.attend(show)
        first = "" if ending.is_quick_success else foreground_line(ending)
        return await self._concluded(job, ending, first, says_nothing_of_silence=True)

    async def stop(self, jobs: Sequence[Job]) -> list[str]:
        """Stop jobs in the background and the processes that they have left behind, and return the lines about them."""
        lines: list[str] = []
        for job in jobs:
            job.terminate()
        for job in jobs:
            if job.ending is None and job.number in self._tasks:
                job.is_answered_for = True
                lines += await self._tasks[job.number]
            elif job.has_leftovers:
                lines.append(f"Stopped the processes that job #{job.number} left running.")
            await job.close()
        return lines

    async def forget(self, slug: str) -> list[str]:
        """Stop the jobs of a persona that is gone, and return the lines about them; a new one of its name has none."""
        jobs = self.of_persona(slug)
        self._forgotten.update(job.number for job in jobs)
        return await self.stop([job for job in jobs if job.ending is None or job.has_leftovers])

    async def close(self) -> list[str]:
        """Stop all jobs within a second, and return a line for each and for the processes that left their jobs."""
        self._is_closing = True
        stopped = [job for job in self._jobs if job.ending is None]
        suspects = [*stopped, *(job for job in self._jobs if job.ending is not None and job.leftovers)]
        for job in suspects:
            job.terminate()
        tasks = [task for task in self._tasks.values() if not task.done()]
        if tasks:
            await asyncio.wait(tasks, timeout=EXIT_GRACE_SECONDS)
        lines = [stopped_line(job.number, job.command) for job in stopped]
        for job in suspects:
            await job.close()
            left = [each for each in await job.process.leftovers() if not each.is_in_group]
            lines += leftover_lines(job.number, left)
        if tasks:
            await asyncio.wait(tasks, timeout=EXIT_GRACE_SECONDS)
        return lines

    async def _attend(self, job: Job) -> list[str]:
        """Wait for the end of a job in the background, and tell the lines about it unless an answer has them."""
        try:
            ending = await job.attend()
            if self._is_closing:
                return []
            lines = await self._concluded(job, ending, ended_line(job.number, job.command, ending))
        except Exception as error:  # noqa: BLE001 - nothing may await this task
            lines = [self.report_bug(error)]
        if not job.is_answered_for:
            self.done("\n".join(lines))
        return lines

    async def _concluded(
        self, job: Job, ending: Ending, first: str, *, says_nothing_of_silence: bool = False
    ) -> list[str]:
        """Keep what the end of a job has for the memory and for the model, and return the lines for the user."""
        if ending.is_stopped:
            await job.close()
        await self._look_for_leftovers(job)
        if not job.leftovers:
            await job.close()
        if job.number in self._forgotten:
            return [first, *leftover_lines(job.number, job.leftovers)]
        withheld = withheld_line(self.shell.withheld) if ending.is_failure else ""
        captured = await self._captured(job)
        ended = job.ended(ending)
        going = ""
        if ended.last_lines or not (says_nothing_of_silence and ending.code == 0):
            self.news.add(job.target.thread_id, ended, self.clock.now())
            going = going_line(ended, self._elsewhere(job.target))
        told = " ".join(filter(None, (first, withheld)))
        return [*filter(None, (told, captured, *leftover_lines(job.number, job.leftovers), going))]

    def _elsewhere(self, target: Target) -> str:
        """Name the thread of a job; empty if it is in focus."""
        slug, thread_id = self.in_focus()
        return "" if (target.persona.slug, target.thread_id) == (slug, thread_id) else target.thread_label(slug)

    async def _look_for_leftovers(self, job: Job) -> None:
        """Find the processes that outlive a job; most that are found at once are about to end too."""
        for _ in range(_MOST_LOOKS):
            job.leftovers = await job.process.leftovers()
            if not job.leftovers:
                return
            await asyncio.sleep(_LOOK_SECONDS)

    async def _captured(self, job: Job) -> str:
        """Capture memory items from the output, and return the notice about them."""
        # A memory that cannot be written now must not spoil the job's end.
        with suppress(StorageError):
            title = f"the output of {shortened(job.command)}"
            added = await self.memory.capture(job.target.persona, job.output.text(), None, is_output=True, title=title)
            return capture_notice(added.items) if added.operation else ""
        return ""
