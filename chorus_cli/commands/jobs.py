"""``/run`` and ``/jobs``: commands of the shell in the background, their output and their end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated

from chorus_cli.commands.framework.arguments import NUMBER, TEXT, Candidate, Parameter
from chorus_cli.commands.framework.registry import CommandGroup
from chorus_cli.commands.framework.replies import Output, Table, Text
from chorus_cli.commands.framework.services import Services
from chorus_cli.core.jobs.wording import elapsed, started_line
from chorus_cli.core.text.phrases import shortened

GROUP: CommandGroup[Services] = CommandGroup("jobs", "Commands of your shell; !CMD runs one in the foreground.")

_ALL = "all"
_LONGEST_LINE = 200


@dataclass(frozen=True, slots=True)
class ChosenJobs:
    """The number of a job, ``None`` for all that run."""

    number: int | None


def _jobs(services: Services, _text: str) -> Sequence[Candidate]:
    found = services.jobs.of_persona(services.focus.slug)
    return [Candidate(str(job.number), f"{job.state}: {shortened(job.command)}") for job in reversed(found)]


def _running_jobs(services: Services, text: str) -> Sequence[Candidate]:
    running = {str(job.number) for job in services.jobs.running(services.focus.slug)}
    return [*(each for each in _jobs(services, text) if each.text in running), Candidate(_ALL, "all that run")]


def _chosen(text: str, now: datetime) -> ChosenJobs:
    return ChosenJobs(None if text.casefold() == _ALL else NUMBER.parse(text, now))


COMMAND_LINE = replace(TEXT, name="command", help="a command of your shell, as typed")
JOB = replace(NUMBER, name="job", help="a job's number, such as 1 or #1", complete=_jobs)
CHOSEN_JOBS = Parameter("job", _chosen, "a job's number, such as 1 or #1, or all", _running_jobs)


@GROUP.command("run", aliases=("run",))
async def run(services: Services, command: Annotated[str, COMMAND_LINE]) -> Text:
    """Run a command of your shell in the background.

    It gets no input, no terminal and none of your keys. A line says when it ends, and its last 50 lines go with your
    next message. It ends with Chorus.

    Examples:
        /run pytest -q
        /run python3 -m http.server
    """
    job = services.jobs.run(services.focus.target(), command)
    return Text(started_line(job.number, job.command))


@GROUP.command("", "list")
async def listing(services: Services) -> Table | Text:
    """List the jobs of this run: those of ! and of /run.

    Examples:
        /jobs
    """
    found = services.jobs.of_persona(services.focus.slug)
    if not found:
        return Text("No job has run yet. !CMD runs a command of your shell, /run CMD runs one in the background.")
    rows = tuple(
        (f"#{job.number}", job.state, elapsed(job.seconds), job.output.last_line(_LONGEST_LINE), job.command)
        for job in found
    )
    return Table("", ("Job", "State", "Time", "Last line", "Command"), rows, frozenset({"Last line", "Command"}))


@GROUP.command("kill", guesses=("kill",))
async def kill(services: Services, job: Annotated[ChosenJobs, CHOSEN_JOBS]) -> Text:
    """Stop a job with all its processes, or all jobs that run.

    A job that does not end within two seconds is killed.

    Examples:
        /jobs kill 1
        /jobs kill all
    """
    slug = services.focus.slug
    jobs = services.jobs.of_persona(slug) if job.number is None else (services.jobs.find(slug, job.number),)
    lines = await services.jobs.stop([each for each in jobs if each.ending is None or each.has_leftovers])
    if lines:
        return Text("\n".join(lines))
    return Text("No job runs." if job.number is None else f"Job #{job.number} has ended already: {jobs[0].state}.")


@GROUP.command("log", guesses=("tail",))
async def log(services: Services, job: Annotated[int, JOB]) -> Output | Text:
    """Show the output of a job, of which the first and the last half megabyte are kept.

    Examples:
        /jobs log 1
    """
    found = services.jobs.find(services.focus.slug, job)
    text = found.output.text()
    return Output(text.removesuffix("\n")) if text else Text(f"Job #{found.number} has printed nothing so far.")
