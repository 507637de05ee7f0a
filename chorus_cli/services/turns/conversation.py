"""One turn: the message is stored, its request planned, the model asked; and a reply asked for once more.

Nothing that was typed or answered is ever lost: the message is committed before the model is called, and a reply that
breaks off, for whichever reason, keeps the text that has arrived together with a status that says so. A thread answers
one message at a time: while a reply is being written in it, by this process or another, the next turn waits.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from chorus_cli.core.attachments.tokens import attachment_tokens
from chorus_cli.core.context.budget import own_tokens
from chorus_cli.core.context.preamble import pause_notice
from chorus_cli.core.errors import JournalError, MessageRefusedError, ModelError, StorageError, ThreadBusyError
from chorus_cli.core.log.acts import Retry
from chorus_cli.core.log.messages import MessageContent, Role, last_question
from chorus_cli.core.log.operations import NewOperation
from chorus_cli.core.memory.capture import capture_notice
from chorus_cli.core.models.events import Notice, TextDelta, ToolStarted, TurnDone, WaitBegun, WaitOver
from chorus_cli.core.text.surrogates import cleaned_input
from chorus_cli.core.time.window import cutoff
from chorus_cli.services.cancellation import run_to_completion
from chorus_cli.services.memory import recall
from chorus_cli.services.turns.notices import (
    members_notice,
    notices_of_message,
    recall_notice,
    refuse_unfitting,
    refuse_unreadable,
    refuse_unreadable_settings,
    refuse_untaken_again,
    reopened,
)
from chorus_cli.services.turns.preamble import OTHER_TOKENS, JobsBeside, PreambleWriter
from chorus_cli.services.turns.rounds import OpenedTurn
from chorus_cli.storage.sqlite.log import message_rows, operation_rows, orphans, thread_rows

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
    from datetime import datetime

    from chorus_cli.core.context.snapshot import ContextSnapshot, Frame
    from chorus_cli.core.context.target import Target
    from chorus_cli.core.jobs.states import RunningJob
    from chorus_cli.core.log.attachments import Attachment
    from chorus_cli.core.log.messages import Message
    from chorus_cli.core.models.events import TurnEvent
    from chorus_cli.services.context.context import Context
    from chorus_cli.services.jobs.news import News, NewsDesk
    from chorus_cli.services.memory.memory import Memory
    from chorus_cli.services.turns.reply import Answering
    from chorus_cli.services.turns.rounds import Rounds
    from chorus_cli.storage.sqlite.store import Connection

    _Files = tuple[Attachment, ...]
    _Storing = Callable[[], Awaitable[OpenedTurn]]


@dataclass(frozen=True, slots=True)
class Conversation:
    """Answers messages. ``run`` names this process, which began at ``began_at``, in the rows that it is writing.

    ``jobs`` returns the running jobs of a persona; ``news`` are those of ended ones, which go with the next message.
    """

    rounds: Rounds
    memory: Memory
    run: str
    began_at: datetime
    news: NewsDesk
    jobs: Callable[[str], Sequence[RunningJob]] = lambda _persona: ()

    async def answer(self, target: Target, text: str, attachments: _Files = ()) -> AsyncGenerator[TurnEvent, None]:
        """Store ``text``, ask the model, and yield the events of the turn; the last one is ``TurnDone``.

        The bytes of ``attachments`` are stored already.

        When the caller stops listening or is cancelled, the reply is kept as ``interrupted`` as far as it has come; a
        message that was handed over is stored first, however early that happens, except between ``WaitBegun`` and
        ``WaitOver``: then nothing is stored.

        Raises:
            MessageRefusedError: the message is empty, too large, or does not fit the model; nothing was stored.
            SettingsError: settings of the persona cannot be read; nothing was stored.
            StorageError, ModelError: it could not be stored or measured; it is kept in a file that the sentence names.
        """
        content, altered = cleaned_input(text)
        notices = notices_of_message(attachments, altered=altered)
        store = partial(self._open, target, content, attachments, notices)
        async with aclosing(self._turn(target.thread_id, store)) as events:
            async for event in events:
                yield event

    async def retry(self, target: Target) -> AsyncGenerator[TurnEvent, None]:
        """Ask for the last reply in context once more; the old one leaves the context, not the log.

        A retry without a reply is taken back, so that the old reply stays.

        Raises:
            JournalError, AttachmentError: nothing in context could be answered again, or not by this model.
            SettingsError: settings of the persona cannot be read.
            StorageError, ModelError: the retry could not be stored or measured.
        """
        async with aclosing(self._turn(target.thread_id, partial(self._reopen, target))) as events:
            async for event in events:
                yield event

    async def close_unused(self, target: Target) -> None:
        """Close a thread that was opened for a message that was refused."""
        now = self.answering.outside.clock.now()
        await self.context.store.write(thread_rows.close, [target.thread_id], now)

    async def _turn(self, thread_id: int, store: _Storing) -> AsyncGenerator[TurnEvent, None]:
        """Have ``store`` open a turn once no other reply is being written in the thread, and have it answered."""
        opened, stopped = await run_to_completion(_unless_busy(store))
        has_waited = False
        while isinstance(opened, ThreadBusyError):
            if not has_waited:
                yield WaitBegun(str(opened))
            if stopped:
                raise asyncio.CancelledError
            has_waited = True
            await self.answering.wait_until_free(thread_id)
            opened, stopped = await run_to_completion(_unless_busy(store))
        is_asked = False
        try:
            if has_waited:
                yield WaitOver()
            if not stopped:
                is_asked = True
                async with aclosing(self._reply(opened)) as events:
                    async for event in events:
                        yield event
        finally:
            if not is_asked:
                await self.answering.abandon(opened.reply)
            await self._settle(opened.reply)
        if stopped:
            raise asyncio.CancelledError

    async def _open(self, target: Target, content: str, files: _Files, notices: tuple[str, ...]) -> OpenedTurn:
        """Store the question and its empty reply; news of jobs that cannot go with it wait for the next one.

        ``notices`` come before those about the turn.
        """
        refuse_unreadable(content, is_alone=not files)
        refuse_unreadable_settings(target.persona)
        news = self.news.take(target.thread_id)
        try:
            opened = await self._opened(target, content, files, news)
        except BaseException:
            self.news.put_back(news)
            raise
        if news.ended:
            self.news.sent(news, opened.reply.turn_id)
        return replace(opened, notices=(*notices, *opened.notices))

    async def _opened(self, target: Target, content: str, files: _Files, news: News) -> OpenedTurn:
        attached = attachment_tokens(files, target.choice.model)
        try:
            frame, count = await self.context.measured(target, content, OTHER_TOKENS + attached)
            now, tokens = self.answering.outside.clock.now(), count + attached
            question = MessageContent(target.thread_id, Role.USER, content, now, token_count=tokens, attachments=files)
            beside = JobsBeside(self.jobs(target.persona.slug), news)
            return await self.memory.access.write(self._store_turn, frame, question, beside)
        except (StorageError, ModelError) as error:
            raise self.answering.rescued(error, target.persona.slug, "user", content) from error

    def _store_turn(
        self, connection: Connection, frame: Frame, question: MessageContent, beside: JobsBeside
    ) -> OpenedTurn:
        """Read the context and store the question with its preamble, in one transaction, so that nothing comes between.

        Raises:
            MessageRefusedError: the question does not fit the model.
            ThreadBusyError: a reply is being written in the thread.
        """
        target, now, count = frame.target, question.timestamp, question.token_count or 0
        in_progress = self.answering.mend(connection, now)
        has_memory = recall.renew_if_due(connection, target.persona.slug, now)
        snapshot = self.context.read(connection, frame, now)
        refuse_unfitting(snapshot, count, preamble_tokens=OTHER_TOKENS)
        if in_progress:
            self.answering.refuse_busy(connection, target, self.run)
        left = self._members_notice(snapshot, now) if snapshot.view.boundary else ""
        writer = PreambleWriter(snapshot, question, self.answering.outside.counter)
        told = writer.written(connection, in_progress, beside, has_memory=has_memory)
        # A bound is not stored: the message is counted when a count is needed.
        tokens = count + told.tokens if frame.is_exact else None
        question = replace(question, preamble=told.text, token_count=tokens)
        slug, model = target.persona.slug, target.choice.model
        asked, reply = message_rows.open_turn(connection, slug, question, model, self.run, aside=target.is_aside)
        pause = pause_notice(snapshot.last_spoken, now) if told.has_gap else ""
        view = replace(snapshot.view, messages=(*snapshot.view.messages, asked))
        loaded = recall_notice(told.recalled) if told.recalled else ""
        notices = (*reopened(connection, target), pause, left, loaded)
        return OpenedTurn(replace(snapshot, view=view), reply, now, tuple(filter(None, notices)))

    def _members_notice(self, snapshot: ContextSnapshot, now: datetime) -> str:
        """Say that the members of the boundary have left the window, if that of the last request still held them."""
        if snapshot.last_spoken is None:
            return members_notice(snapshot, None, now)
        hours = snapshot.target.persona.settings.context_hours
        since_before = self.context.prefixes.last_window(snapshot.target) or cutoff(snapshot.last_spoken, hours)
        return members_notice(snapshot, since_before, now)

    async def _reopen(self, target: Target) -> OpenedTurn:
        """Store the retry of the last turn and its empty reply."""
        refuse_unreadable_settings(target.persona)
        frame = await self.context.frame(target)
        return await self.context.store.write(self._store_retry, frame, self.answering.outside.clock.now())

    def _store_retry(self, connection: Connection, frame: Frame, now: datetime) -> OpenedTurn:
        """Find the last turn in context and begin its reply anew, in one transaction.

        Raises:
            JournalError: there is none, or its question does not fit the model.
            AttachmentError: the model does not take a file of the question.
            ThreadBusyError: a reply is being written in the thread.
        """
        self.answering.mend(connection, now)
        self.answering.refuse_busy(connection, frame.target, self.run)
        snapshot = self.context.read(connection, frame, now)
        asked = last_question(snapshot.view.messages)
        question, replies = snapshot.view.messages[asked], snapshot.view.messages[asked + 1 :]
        refuse_untaken_again(frame, question)
        try:
            counter, model = self.answering.outside.counter, frame.target.choice.model
            refuse_unfitting(snapshot, own_tokens(question, counter.count, model))
        except MessageRefusedError as error:
            raise JournalError(
                f"Your last message no longer fits {frame.target.choice.model}, so it cannot be answered again. It "
                "stays in the log. Choose a model with a larger limit, or shorten the system prompt and the documents."
            ) from error
        act = Retry(frozenset(reply.id for reply in replies))
        new = NewOperation(question.persona, act, now, frame.target.thread_id)
        retry = operation_rows.introduce(connection, new)
        reply = message_rows.open_retry(connection, question, retry, frame.target.choice.model, self.run)
        snapshot = replace(snapshot, view=snapshot.view.through(asked + 1), newest_operation_id=retry.id)
        return OpenedTurn(snapshot, reply, now, reopened(connection, frame.target))

    async def _reply(self, opened: OpenedTurn) -> AsyncGenerator[TurnEvent, None]:
        """Have a stored question answered, and remember what the turn has for the memory."""
        said: list[str] = []
        async with aclosing(self.rounds.answered(opened)) as events:
            async for event in events:
                match event:
                    case TextDelta(text):
                        said.append(text)
                    case ToolStarted():
                        said.clear()
                    case TurnDone():
                        for notice in await self._captured(opened, event.message_id, "".join(said)):
                            yield notice
                yield event

    async def _captured(self, opened: OpenedTurn, reply_id: int, reply: str) -> list[Notice]:
        """Capture memory items from a question and its reply, those of each in an operation of its own."""
        seen, persona = opened.snapshot.view.messages, opened.snapshot.target.persona
        question = seen[last_question(seen)]
        notices: list[Notice] = []
        # The turn is stored; a memory that cannot be written now must not spoil it.
        with suppress(StorageError):
            for message_id, text in ((question.id, question.content), (reply_id, reply)):
                added = await self.memory.capture(persona, text, message_id)
                notices += [Notice(capture_notice(added.items))] if added.operation else []
        return notices

    @property
    def context(self) -> Context:
        """The contexts that messages are answered in."""
        return self.rounds.context

    @property
    def answering(self) -> Answering:
        """The writing of replies."""
        return self.rounds.answering

    async def _settle(self, reply: Message) -> None:
        """Take the retry of ``reply`` back, if it is one and brought no word."""
        if reply.introduced_by is not None:
            now = self.answering.outside.clock.now()
            _, stopped = await run_to_completion(self.context.store.write(orphans.take_back_if_empty, reply.id, now))
            if stopped:
                raise asyncio.CancelledError


async def _unless_busy(store: _Storing) -> OpenedTurn | ThreadBusyError:
    """Open a turn, or return why it must wait; a cancellation meanwhile is not lost then."""
    try:
        return await store()
    except ThreadBusyError as busy:
        return busy
