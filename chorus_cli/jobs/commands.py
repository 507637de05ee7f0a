"""``/run`` and ``/jobs``: the commands that start a job in the background, list and stop jobs, and show output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated

from chorus_cli.core.text.phrases import shortened
from chorus_cli.framework.arguments import NUMBER, TEXT, Candidate, Parameter
from chorus_cli.framework.registry import CommandGroup
from chorus_cli.framework.replies import Output, Table, Text
from chorus_cli.jobs.rules import elapsed, readable
from chorus_cli.jobs.service import Job
from chorus_cli.services import Services

GROUP: CommandGroup[Services] = CommandGroup(
    "jobs", "Shell commands; !CMD runs one in the foreground.", only_in_chat=True
)

_ALL = "all"
_LONGEST_LINE = 200


def _every(services: Services, _text: str) -> Sequence[Candidate]:
    return _candidates(services.jobs.all)


def _running(services: Services, _text: str) -> Sequence[Candidate]:
    running = [job for job in services.jobs.all if job.ending is None]
    return [*_candidates(running), Candidate(_ALL, "all running jobs")]


def _candidates(jobs: Sequence[Job]) -> list[Candidate]:
    return [Candidate(str(job.number), f"{job.state}: {shortened(job.command)}") for job in reversed(jobs)]


def _chosen(text: str, now: datetime) -> int:
    return 0 if text.casefold() == _ALL else NUMBER.parse(text, now)


COMMAND_LINE = replace(TEXT, name="command", help="a shell command, as typed")
JOB = replace(NUMBER, name="job", help="a job's number, such as 1 or #1", complete=_every)
CHOSEN_JOBS = Parameter("job", _chosen, "a job's number, such as 1 or #1, or all", _running)


@GROUP.command("run", aliases=("run",))
async def run(services: Services, command: Annotated[str, COMMAND_LINE]) -> Text:
    """Run a shell command in the background.

    The command gets no input, no terminal, and no keys or passwords but those in job_env. When the command ends, Chorus
    tells you, and sends the last 50 lines of its output with your next message. When Chorus ends, it stops the command.

    Examples:
        /run pytest -q
        /run python3 -m http.server
    """
    job = services.jobs.run(services.current.target(), command)
    return Text(f"Job #{job.number} is running: {shortened(job.command)}")


@GROUP.command("", "list")
async def listing(services: Services) -> Table | Text:
    """List the jobs of this run, of all personas.

    Examples:
        /jobs
    """
    found = services.jobs.all
    if not found:
        return Text("No job has run yet. !CMD runs a shell command, /run CMD runs one in the background.")
    has_several = len({job.target.persona.slug for job in found}) > 1
    columns = ("Job", *(["Persona"] if has_several else []), "State", "Time", "Last line", "Command")
    rows = tuple(_row(job, job.target.persona.name if has_several else "") for job in found)
    return Table("", columns, rows, frozenset({"Last line", "Command"}))


def _row(job: Job, name: str) -> tuple[str, ...]:
    last_line = job.output.last_line(_LONGEST_LINE)
    return (f"#{job.number}", *([name] if name else []), job.state, elapsed(job.seconds), last_line, job.command)


@GROUP.command("kill", guesses=("kill",))
async def kill(services: Services, job: Annotated[int, CHOSEN_JOBS]) -> Text:
    """Stop a job with all its processes, or all jobs of all personas.

    A job that does not end within two seconds is killed.

    Examples:
        /jobs kill 1
        /jobs kill all
    """
    jobs = (services.jobs.find(job),) if job else services.jobs.all
    lines = await services.jobs.stop([each for each in jobs if each.ending is None or each.has_leftovers])
    if lines:
        return Text("\n".join(lines))
    return Text(f"Job #{job} has ended already: {jobs[0].state}." if job else "No job is running.")


@GROUP.command("log", guesses=("tail",))
async def log(services: Services, job: Annotated[int, JOB]) -> Output | Text:
    """Show the output of a job.

    Chorus keeps the first and the last half megabyte of a long output.

    Examples:
        /jobs log 1
    """
    found = services.jobs.find(job)
    text = readable(found.output.text())
    return Output(text.removesuffix("\n")) if text else Text(f"Job #{found.number} has no output.")
