"""The preamble of a user's message: facts for the model that change from turn to turn.

It is computed once, when the turn opens, and stored with the message, so that every later request repeats it byte for
byte and a provider's prompt cache stays warm.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from chorus_cli.core.text.phrases import shortened
from chorus_cli.core.text.safe_text import safe_text
from chorus_cli.core.time.timeline import duration, gap
from chorus_cli.jobs.rules import RunningJob

NOTICEABLE_GAP = timedelta(hours=1)
THREADS_HEADING, JOBS_HEADING = "Active threads:", "Running jobs:"
MOST_LISTED = 10  # the most threads, and the most jobs, that a preamble names
_TITLE = r"(?m)^  #[0-9]+(?: \(this thread\))?: (.*), step [0-9]+"
_WAITING, _WRITING = "waiting for the model", "writing"
_LONGEST_TITLE = _LONGEST_COMMAND = 40
_LONGEST_NAME = 30
_LONGEST_OUTPUT = 80


class ActiveThread(NamedTuple):
    """A thread whose turn began at ``began_at``; ``step`` is the number of its round, ``tool`` any running tool."""

    number: int
    title: str
    began_at: datetime
    step: int = 1
    has_words: bool = False
    tool: str = ""


def preamble(*parts: str) -> str:
    """Join parts, each of one or more lines, into a preamble; empty parts are left out."""
    return "\n".join(filter(None, parts))


def gap_line(pause: timedelta, now: datetime) -> str:
    """Return the line in brackets before a message that follows a pause; ``now`` is in local time."""
    return f"[{gap(pause)} later: {now:%A} {now.day} {now:%B %Y}, {now:%H:%M}]"


def pause_notice(pause: timedelta, now: datetime) -> str:
    """Return the line that tells the user of a pause: ``7 h 12 m later, Tue 08:03``; ``now`` is in local time."""
    return f"{gap(pause)} later, {now:%a %H:%M}"


def thread_lines(own: ActiveThread, others: Sequence[ActiveThread], now: datetime) -> str:
    """Return lines about ``own`` and at most nine other threads at work; empty if there are no others."""
    if not others:
        return ""
    named = sorted([own, *sorted(others)[: MOST_LISTED - 1]])
    lines = [_thread_line(thread, now, is_own=thread is own) for thread in named]
    return _listed(THREADS_HEADING, lines, 1 + len(others))


def titles_in(preamble: str) -> list[str]:
    """Return the titles of the threads that a preamble lists."""
    _, _, lines = preamble.partition(THREADS_HEADING)
    return re.findall(_TITLE, lines)


def job_lines(jobs: Sequence[RunningJob]) -> str:
    """Return lines about at most ten running jobs; empty without any."""
    if not jobs:
        return ""
    return _listed(JOBS_HEADING, [_job_line(job) for job in jobs[:MOST_LISTED]], len(jobs))


def _thread_line(thread: ActiveThread, now: datetime, *, is_own: bool) -> str:
    whose = " (this thread)" if is_own else ""
    title = _one_line(thread.title, _LONGEST_TITLE)
    since = duration(now - thread.began_at)
    activity = _WRITING if thread.has_words else _WAITING
    if thread.tool:
        activity = f"using {_one_line(thread.tool, _LONGEST_NAME)}"
    return f"#{thread.number}{whose}: {title}, step {thread.step}, {since}, currently: {activity}"


def _job_line(job: RunningJob) -> str:
    begun = f"#{job.number} {_one_line(job.command, _LONGEST_COMMAND)} ({duration(timedelta(seconds=job.seconds))})"
    output = _one_line(job.last_line, _LONGEST_OUTPUT)
    return f"{begun}, last line: {output}" if output else begun


def _listed(heading: str, lines: Sequence[str], number: int) -> str:
    more = [f"and {number - len(lines):,} more"] if number > len(lines) else []
    return "\n  ".join([heading, *lines, *more])


def _one_line(text: str, longest: int) -> str:
    # Only the beginning is needed, and a message may be large.
    return shortened(safe_text(text[: 10 * longest]), longest)
