"""Opens turns: refuses a question, or stores it with its preamble and an empty reply, in one transaction.

A retry opens the last turn in context once more, with another empty reply; /continue starts it with the old words.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from chorus_cli.attachments.rules.tokens import attachment_tokens
from chorus_cli.attachments.service.attachments import refuse_untaken
from chorus_cli.context.rows.thread_views import others_at_work, replaced_before, thread_at_work
from chorus_cli.context.rules.earlier import EARLIER_HEADING, EarlierTurn, earlier_lines
from chorus_cli.context.rules.preamble import NOTICEABLE_GAP, gap_line, job_lines, pause_notice, preamble, thread_lines
from chorus_cli.context.rules.view import ContextSnapshot, RequestSettings
from chorus_cli.context.service.context import Context
from chorus_cli.core import limits
from chorus_cli.core.errors import (
    DatabaseBusyError,
    DatabaseUnconfirmedError,
    JournalError,
    LogUnreachableError,
    MessageNotStoredError,
    MessageRefusedError,
    ModelError,
    StorageError,
    ThreadBusyError,
)
from chorus_cli.core.text.code_points import cleaned_input
from chorus_cli.core.text.phrases import shortened
from chorus_cli.jobs.rules import EndedJob, RunningJob, brief_news_text, news_text
from chorus_cli.jobs.service import Jobs
from chorus_cli.log.rows import interrupted_replies, message_rows, operation_rows, search_index, thread_rows
from chorus_cli.log.rows.words import IndexDamagedError
from chorus_cli.log.rules.acts import Retry, Way
from chorus_cli.log.rules.attachments import Attachment, Kind
from chorus_cli.log.rules.messages import Message, MessageContent, Role, Status, is_filled, last_question
from chorus_cli.log.rules.operations import NewOperation
from chorus_cli.log.rules.wording import local
from chorus_cli.machine.ports import Clock, TokenCounter
from chorus_cli.memory.rows import item_rows
from chorus_cli.memory.rules.items import Item
from chorus_cli.memory.rules.recall import memory_lines, without_keys
from chorus_cli.memory.service.memory import Memory
from chorus_cli.models.rules.budget import TOKENS_PER_MESSAGE, own_tokens
from chorus_cli.models.rules.choice import ELIZA
from chorus_cli.models.rules.events import IN_LOG
from chorus_cli.personas.rules.persona import Target
from chorus_cli.recall import service as recall
from chorus_cli.settings.rules.table import BY_HISTORY
from chorus_cli.storage.port import Connection
from chorus_cli.turns.rules import fits, members_notice, refuse_unfitting, refuse_unreadable_settings, reopened_notice
from chorus_cli.turns.service.reply import ReplyRunner

JobsBeside = tuple[Sequence[RunningJob], Sequence[EndedJob]]

_ALTERED = "Chorus replaced some characters of your message that are not valid text."

OTHER_TOKENS = 64
"""Tokens that every message leaves free for the part of its preamble that is always sent: the line about a pause."""


_NONE: Sequence[Item] = ()

_LONGEST_SEARCH_SECONDS = 0.1
_INDEXED_AT_ONCE = 100
"""The most messages that are indexed before a question, because `chorus ask` indexes none in the background."""


@dataclass(frozen=True, slots=True)
class PreambleWriter:
    """Writes the preamble of ``question``, which is asked in the context of ``snapshot``."""

    snapshot: ContextSnapshot
    question: MessageContent
    counter: TokenCounter

    def written(
        self, connection: Connection, in_progress: Sequence[int], beside: JobsBeside, *, has_memory: bool
    ) -> tuple[str, Sequence[Item]]:
        """Return the preamble except the line about a pause, and the recalled items; omit parts that do not fit."""
        running, ended = beside
        active = self._active(connection, in_progress, running) if in_progress or running else ""
        if ended:
            fitting = (text for text in _news_texts(ended) if self._fits(preamble(active, text)))
            active = preamble(active, next(fitting, ""))
        recalled = recall.recalled(connection, self.snapshot, self.question, self._tokens(active)) if has_memory else []
        persona = self.snapshot.request_settings.target.persona
        return preamble(active, memory_lines(recalled, persona) if recalled else ""), recalled

    def earlier(self, connection: Connection, told: str, clock: Clock) -> Sequence[EarlierTurn]:
        """Return turns from before the window that fit into a preamble after ``told``, if the settings want any.

        ELIZA gets none, because it reads no preamble.
        """
        target, begun = self.snapshot.request_settings.target, clock.monotonic()
        if target.persona.settings.recall != BY_HISTORY or target.choice.model == ELIZA:
            return ()

        def is_late() -> bool:
            return clock.monotonic() - begun > _LONGEST_SEARCH_SECONDS

        taken_tokens = self._tokens(told)
        return recall.earlier_turns(
            connection, self.snapshot, self.question, taken_tokens, self.counter.at_most, is_late
        )

    def _active(self, connection: Connection, in_progress: Sequence[int], jobs: Sequence[RunningJob]) -> str:
        """Return the lines about the other threads at work and the running jobs; empty if they do not fit the model."""
        question, now = self.question, self.question.timestamp
        persona = self.snapshot.request_settings.target.persona.slug
        others = others_at_work(connection, persona, question.thread_id, in_progress)
        own = thread_at_work(connection, question.thread_id, question.content, now) if others else None
        lines = preamble(thread_lines(own, others, now) if own else "", job_lines(jobs))
        return lines if self._fits(lines) else ""

    def _fits(self, lines: str) -> bool:
        return fits(self.snapshot, self._tokens(lines) + (self.question.token_count or 0))

    def _tokens(self, lines: str) -> int:
        return OTHER_TOKENS + (self.counter.at_most(lines) if lines else 0)


class OpenedTurn(NamedTuple):
    """A stored turn: the context that includes its question, the question, the empty reply, the time, and notices."""

    snapshot: ContextSnapshot
    question: Message
    reply: Message
    at: datetime
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnOpener:
    """Opens turns. ``run`` names this process in the rows that it writes; preambles tell the model about ``jobs``."""

    context: Context
    runner: ReplyRunner
    memory: Memory
    jobs: Jobs
    run: str

    async def ask(self, target: Target, text: str, files: tuple[Attachment, ...]) -> OpenedTurn | ThreadBusyError:
        """Store a question with the news of jobs and an empty reply, or return why it must wait.

        If the question waits, or has no room for the news, the news is kept for the next question.
        """
        news = self.jobs.news.take(target.thread_id)
        try:
            opened = await self._stored(target, text, files, (self.jobs.running(target.persona.slug), news))
        except BaseException as error:
            self.jobs.news.add(target.thread_id, *news)
            if isinstance(error, ThreadBusyError):
                return error
            raise
        if not any(text in opened.question.preamble for text in _news_texts(news)):
            self.jobs.news.add(target.thread_id, *news)
            news = ()
        self.jobs.news.sent(target.thread_id, news, opened.reply.turn_id)
        return opened

    async def ask_again(self, target: Target, way: Way) -> OpenedTurn | ThreadBusyError:
        """Store the retry of the last turn and its empty reply, or return why the retry waits."""
        refuse_unreadable_settings(target.persona)
        request_settings, now = await self.context.request_settings(target), self.runner.rows.clock.now()
        try:
            return await self.context.store.write(self._store_retry, request_settings, now, way)
        except ThreadBusyError as busy:
            return busy
        except DatabaseUnconfirmedError:
            await self._given_up(target)
            raise

    async def _stored(self, target: Target, text: str, files: tuple[Attachment, ...], beside: JobsBeside) -> OpenedTurn:
        """Check, measure and store a question; if the memory's index is damaged, rebuild it and try again."""
        content, altered = cleaned_input(text)
        # A message with attachments may have no words.
        if not files and not content.strip():
            raise MessageRefusedError("The message is empty, so there is nothing to send.")
        if (size := len(content.encode())) > limits.MESSAGE.most:
            raise MessageRefusedError(
                f"The message is {size / 1e6:.1f} MB; Chorus takes at most {limits.MESSAGE.size}. "
                "It was not stored; send only the part that matters."
            )
        if target.persona.unreadable:
            refuse_unreadable_settings(target.persona)
        attached = attachment_tokens(files, target.choice.model) if files else 0
        try:
            request_settings, count = await self.context.measured(target, content, OTHER_TOKENS + attached)
            await self._index(target)
            now, tokens = self.runner.rows.clock.now(), count + attached
            question = MessageContent(target.thread_id, Role.USER, content, now, token_count=tokens, attachments=files)
            opened = await self.memory.renewing(
                lambda: self.context.store.write(self._store, request_settings, question, beside)
            )
        except (DatabaseBusyError, LogUnreachableError) as error:
            raise MessageNotStoredError(str(error)) from error
        except (StorageError, ModelError) as error:
            if isinstance(error, DatabaseUnconfirmedError) and await self._given_up(target):
                raise DatabaseUnconfirmedError(f"{error} {IN_LOG}") from error
            raise self.runner.rescued(error, target.persona.slug, "user", content) from error
        if files or altered:
            named = [f"+ {', '.join(each.label for each in files)}"] if files else []
            opened = opened._replace(notices=(*([_ALTERED] if altered else []), *named, *opened.notices))
        return opened

    async def _index(self, target: Target) -> None:
        """Index the newest messages if the setting ``recall`` wants earlier turns; the next search reports errors."""
        if target.persona.settings.recall != BY_HISTORY or target.choice.model == ELIZA:
            return
        with suppress(StorageError, IndexDamagedError):
            if not (await self.context.store.read(search_index.progress)).is_whole:
                await self.context.store.write(search_index.index_batch, _INDEXED_AT_ONCE)

    async def _given_up(self, target: Target) -> bool:
        """Give up the empty reply of a turn that the database did not confirm; return whether the turn was stored.

        A row that this run has in progress can only be this reply: no turn is opened while another reply is being
        written in the thread, and a process that opens a thread with its message has no other turn.
        """
        with suppress(StorageError):
            # If the message opens a thread, only the log has the id of the thread.
            rows = await self.context.store.read(interrupted_replies.in_progress, target.thread_id or None)
            fresh = {id_ for id_, run in rows if run == self.run} - self.runner.given_up
            self.runner.given_up.update(fresh)
            return bool(fresh)
        return False

    def _store(
        self, connection: Connection, request_settings: RequestSettings, question: MessageContent, beside: JobsBeside
    ) -> OpenedTurn:
        """Read the context and store the question with its preamble, in one transaction."""
        target, now, count = request_settings.target, question.timestamp, question.token_count or 0
        slug = target.persona.slug
        own = None if target.thread_id else thread_rows.new(connection, slug, "", now)
        if own:
            target = target._replace(thread_id=own.id, thread_number=own.number)
            request_settings, question = replace(request_settings, target=target), question._replace(thread_id=own.id)
        given_up, counter = self.runner.given_up, self.context.counter
        mended = interrupted_replies.mark_interrupted(connection, self.runner.is_alive, now, given_up)
        in_progress = mended.in_progress
        has_memory = item_rows.number(connection, slug) > 0
        if has_memory and item_rows.is_renewal_due(connection, slug, now):
            item_rows.renew(connection, slug, now)
        snapshot = self.context.read(connection, request_settings, now)
        if request_settings.fixed_tokens + count + OTHER_TOKENS + TOKENS_PER_MESSAGE > snapshot.budget.room.budget:
            refuse_unfitting(snapshot, count, preamble_tokens=OTHER_TOKENS)
        if in_progress:
            self.runner.refuse_busy(connection, target)
        pause = _noticeable_pause(snapshot, now)
        told, recalled = gap_line(pause, now) if pause else "", _NONE
        writer = PreambleWriter(snapshot, question, counter)
        if in_progress or has_memory or any(beside):
            besides, recalled = writer.written(connection, in_progress, beside, has_memory=has_memory)
            told = preamble(told, besides)
        earlier = writer.earlier(connection, told, self.runner.rows.clock)
        told = preamble(told, earlier_lines(earlier, target.persona.speakers))
        last_window = self.context.prefixes.last_window(target)
        left = "" if snapshot.view.boundary is None else members_notice(snapshot, last_window, now)
        # If ``count`` is only an upper bound, it is not stored: the message is counted when a count is needed.
        tokens = count + counter.at_most(told) if request_settings.is_exact else None
        question = question._replace(preamble=told, token_count=tokens)
        model, is_aside = target.choice.model, target.is_aside
        reopened = message_rows.reopen_thread(connection, target.thread_id)
        asked, reply = message_rows.open_turn(connection, slug, question, model, self.run, aside=is_aside)
        again = reopened_notice(target) if reopened.rowcount > 0 else ""
        if own:
            # `take_broken_off` recognises such a thread, because its times of opening and closing are the same.
            thread_rows.close(connection, [own.id], now)
        later = pause_notice(pause, now) if pause else ""
        named = ", ".join(f"#{item.id} {shortened(without_keys(item.content))}" for item in recalled)
        loaded = f"From memory: {named}" if recalled else ""
        brought = _told_of(earlier)
        view = replace(snapshot.view, messages=(*snapshot.view.messages, asked))
        # Only the first request of this process in the thread has these notices.
        at_first = () if last_window else (snapshot.unread, snapshot.withheld_notice)
        notices = tuple(filter(None, (again, later, left, loaded, brought, *at_first)))
        return OpenedTurn(replace(snapshot, view=view), asked, reply, now, notices)

    def _store_retry(
        self, connection: Connection, request_settings: RequestSettings, now: datetime, way: Way
    ) -> OpenedTurn:
        """Find the last turn in context, and store an empty reply that replaces or continues the old one."""
        target = request_settings.target
        interrupted_replies.mark_interrupted(connection, self.runner.is_alive, now, self.runner.given_up)
        self.runner.refuse_busy(connection, target)
        snapshot = self.context.read(connection, request_settings, now)
        asked = last_question(snapshot.view.messages)
        question, replies = snapshot.view.messages[asked], snapshot.view.messages[asked + 1 :]
        # An attachment that no model takes does not prevent a retry.
        refuse_untaken(target.choice.model, question.attachments, request_settings.accepted | {Kind.OTHER})
        try:
            refuse_unfitting(snapshot, own_tokens(question, self.context.counter.count, target.choice.model))
        except MessageRefusedError as error:
            raise JournalError(
                f"Your last message no longer fits {target.choice.model}, so it cannot be answered again. The "
                "log keeps it. Choose a model with a larger limit, or shorten the system prompt and the documents."
            ) from error
        continued = _to_continue(replies, target.choice.model) if way is Way.CONTINUE else None
        view = snapshot.view.through(asked + 1)
        if continued:
            # The model continues this reply, so the request must not mark it as broken off.
            unmarked = continued._replace(status=Status.COMPLETE)
            view = replace(snapshot.view, messages=(*snapshot.view.messages[:-1], unmarked))
        earlier = replaced_before(connection, snapshot.view, replies[-1], target.thread_id) if replies else set()
        act = Retry(frozenset(earlier.union([continued.id] if continued else [reply.id for reply in replies])), way)
        retry = operation_rows.introduce(connection, NewOperation(question.persona, act, now, target.thread_id))
        reply = message_rows.open_retry(connection, question, retry, target.choice.model, self.run, continued)
        if continued:
            operation_rows.store_wording(connection, retry.id, reply.id)
        snapshot = replace(snapshot, view=view, newest_operation_id=retry.id)
        is_closed = message_rows.reopen_thread(connection, target.thread_id).rowcount > 0
        return OpenedTurn(snapshot, question, reply, now, (reopened_notice(target),) if is_closed else ())


def _noticeable_pause(snapshot: ContextSnapshot, now: datetime) -> timedelta:
    """Return the pause before a message; zero if the model gets no line about it."""
    is_told = snapshot.request_settings.target.persona.settings.clock and bool(snapshot.view.verbatim)
    before = snapshot.last_spoken if is_told else None
    # A clock that was set back makes no pause.
    pause = now - before if before is not None else timedelta()
    return pause if pause > NOTICEABLE_GAP else timedelta()


def _news_texts(ended: Sequence[EndedJob]) -> tuple[str, ...]:
    """Return the texts with the news of jobs, the longest first; one of them goes into a preamble."""
    return news_text(ended), brief_news_text(ended)


def _told_of(earlier: Sequence[EarlierTurn]) -> str:
    """Name to the user the messages by which earlier turns were found; empty if there are none."""
    rows = [each.found for each in earlier]
    dated = ", ".join(f"#{row.id} ({local(row.timestamp)}) {shortened(row.content)}" for row in rows)
    return f"{EARLIER_HEADING} {dated}" if dated else ""


def _to_continue(replies: Sequence[Message], model: str) -> Message:
    """Return the reply that ends a context; raise `JournalError` if there is none, or ELIZA wrote or continues it."""
    last = replies[-1] if replies else None
    if last is None or last.role is not Role.ASSISTANT or not is_filled(last):
        raise JournalError("There is no reply to continue. /retry asks for one.")
    if ELIZA in {last.model, model}:
        raise JournalError("ELIZA cannot continue a reply, nor can others continue ELIZA's. /retry asks again.")
    return last
