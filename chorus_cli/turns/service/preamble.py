"""The preamble of a message that opens a turn: written from the context, the other threads, the jobs and the memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.context.rules.preamble import job_lines, preamble, thread_lines
from chorus_cli.jobs.service.news import News
from chorus_cli.memory.rules.prompt import memory_lines
from chorus_cli.recall.service import recall
from chorus_cli.turns.rows import active_threads
from chorus_cli.turns.service.notices import fits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chorus_cli.context.rules.snapshot import ContextSnapshot
    from chorus_cli.log.rules.messages import MessageContent
    from chorus_cli.machine.ports import TokenCounter
    from chorus_cli.machine.states import RunningJob
    from chorus_cli.memory.rules.items import Item
    from chorus_cli.storage.store import Connection

OTHER_TOKENS = 64
"""Room that every message leaves for the parts of its preamble that are always sent."""


class JobsBeside(NamedTuple):
    """The jobs beside a turn: those that run, and the news of those that have ended."""

    running: Sequence[RunningJob]
    news: News


NO_JOBS = JobsBeside((), News(0))


class Preamble(NamedTuple):
    """A preamble with its tokens, and the memory items recalled in it."""

    text: str
    tokens: int
    recalled: Sequence[Item] = ()


@dataclass(frozen=True, slots=True)
class PreambleWriter:
    """Writes the preamble of ``question``, which is asked in the context of ``snapshot``."""

    snapshot: ContextSnapshot
    question: MessageContent
    counter: TokenCounter

    def written(
        self, connection: Connection, gap: str, in_progress: Sequence[int], beside: JobsBeside, *, has_memory: bool
    ) -> Preamble:
        """Return the preamble, which begins with the line about the ``gap``; parts that do not fit are left out.

        ``in_progress`` are the rows that are being written in any thread.
        """
        active = self._active(connection, in_progress, beside.running) if in_progress or beside.running else ""
        if beside.news.ended:
            active = preamble(active, self._news(active, beside.news))
        recalled = recall.recalled(connection, self.snapshot, self.question, self._tokens(active)) if has_memory else []
        text = preamble(gap, active, memory_lines(recalled) if recalled else "")
        return Preamble(text, self.counter.at_most(text), recalled)

    def _active(self, connection: Connection, in_progress: Sequence[int], jobs: Sequence[RunningJob]) -> str:
        """Return the lines about the other threads at work and the running jobs; empty if they do not fit the model."""
        question, now = self.question, self.question.timestamp
        persona = self.snapshot.target.persona.slug
        others = active_threads.others(connection, persona, question.thread_id, in_progress)
        own = active_threads.beginning(connection, question.thread_id, question.content, now) if others else None
        lines = preamble(thread_lines(own, others, now) if own else "", job_lines(jobs))
        return lines if self._fits(lines) else ""

    def _news(self, before: str, news: News) -> str:
        """Return the lines about ended jobs that fit the model after the lines ``before``; empty if none do."""
        return next((text for text in (news.text, news.brief_text) if self._fits(preamble(before, text))), "")

    def _fits(self, lines: str) -> bool:
        return fits(self.snapshot, self._tokens(lines) + (self.question.token_count or 0))

    def _tokens(self, lines: str) -> int:
        """Tokens of these lines and of the room that is always left."""
        return OTHER_TOKENS + (self.counter.at_most(lines) if lines else 0)
