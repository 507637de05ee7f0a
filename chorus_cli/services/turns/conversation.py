"""One turn: the message is stored, the context assembled, the model asked; and a reply asked for once more.

Nothing that was typed or answered is ever lost: the message is committed before the model is called, and a reply that
breaks off, for whatever reason, keeps what has arrived together with a status that says so.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from chorus_cli.core.context.preamble import pause_notice, preamble
from chorus_cli.core.context.tokens import text_tokens
from chorus_cli.core.errors import JournalError, ModelError, StorageError
from chorus_cli.core.log.messages import Role, Status
from chorus_cli.core.log.operations import Kind
from chorus_cli.core.models.events import Notice, TurnDone
from chorus_cli.core.text.safe_text import cleaned_input
from chorus_cli.services.cancellation import run_to_completion
from chorus_cli.services.personas.greeting import members_notice
from chorus_cli.services.turns.answering import Answering
from chorus_cli.services.turns.opened_turn import Limits, Opened, Ready, Reopened, Seen, request
from chorus_cli.services.turns.refusals import refuse_unfitting, refuse_unreadable, shortfalls
from chorus_cli.storage.sqlite.context.rows import context_rows, view_of
from chorus_cli.storage.sqlite.log import introduced_rows, message_rows, operation_rows, orphans
from chorus_cli.storage.sqlite.log.message_rows import Question
from chorus_cli.storage.sqlite.log.operation_rows import NewOperation

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from datetime import datetime

    from chorus_cli.core.context.assembly import Prompt
    from chorus_cli.core.context.snapshot import Target
    from chorus_cli.core.log.messages import Message
    from chorus_cli.core.log.operations import Operation
    from chorus_cli.core.models.events import TurnEvent
    from chorus_cli.services.context.context import Context
    from chorus_cli.services.folding.making_room import MakingRoom
    from chorus_cli.services.turns.answering import Outside
    from chorus_cli.storage.sqlite.store import Connection, Store

_MAKING_ROOM = "The conversation no longer fits its model; the older part is being summarised."
_PREAMBLE_TOKENS = 64
_ALTERED = "Some characters of your message are not valid text and were replaced."


@dataclass(frozen=True, slots=True)
class Conversation:
    """Answers messages. ``run`` names this process in the rows that it is writing."""

    store: Store
    context: Context
    outside: Outside
    room: MakingRoom
    run: str

    async def answer(self, target: Target, text: str) -> AsyncGenerator[TurnEvent, None]:
        """Store ``text``, ask the model, and yield what happens; the last event is ``TurnDone``.

        When the caller stops listening or is cancelled, what has arrived is kept as ``interrupted``; a message that was
        handed over is stored first, however early that happens.

        Raises:
            MessageRefusedError: the message is empty, too large, or does not fit the model; nothing was stored.
            StorageError, ModelError: it could not be stored or measured; it is kept in a file that the sentence names.
        """
        content, altered = cleaned_input(text)
        ready, stopped = await run_to_completion(self._open(target, content))
        if stopped:
            await self._answering.abandon(ready.reply)
            raise asyncio.CancelledError
        told = replace(ready, notices=(*([_ALTERED] if altered else []), *ready.notices))
        async with aclosing(self._reply(target, told)) as events:
            async for event in events:
                yield event

    async def retry(self, target: Target) -> AsyncGenerator[TurnEvent, None]:
        """Ask for the last reply in context once more; the old one leaves the context, not the log.

        A retry that brings nothing is taken back, so that the old reply stays.

        Raises:
            JournalError: nothing in context could be answered again, or it is being answered now.
            StorageError, ModelError: the retry could not be stored or measured.
        """
        ready, stopped = await run_to_completion(self._reopen(target))
        try:
            if stopped:
                await self._answering.abandon(ready.reply)
                raise asyncio.CancelledError
            async with aclosing(self._reply(target, ready)) as events:
                async for event in events:
                    yield event
        finally:
            await run_to_completion(self._take_back_if_empty(ready.reply))

    @property
    def _answering(self) -> Answering:
        return Answering(self.store, self.outside)

    async def _reply(self, target: Target, ready: Ready) -> AsyncGenerator[TurnEvent, None]:
        """Have a stored question answered, after making room for it if need be, and learn from how that went."""
        self.room.turn_begins(target)
        try:
            if ready.is_crowded:
                is_due = await self.room.is_worth_trying(target)
                if is_due:
                    yield Notice(_MAKING_ROOM)
                notice = await self.room.at_once(target) if is_due else ""
                ready = await self._reassembled(target, ready, notice)
            self.context.beginnings.hold(target, ready.prompt)
        except BaseException:
            await self._answering.abandon(ready.reply)
            raise
        notices = (*ready.notices, *self.room.news(target, shortfalls(target, ready.prompt)))
        async with aclosing(self._answering.reply(ready.reply, request(target, ready), notices)) as events:
            async for event in events:
                if isinstance(event, TurnDone):
                    await self._learn(target, ready.prompt, event)
                    self.room.behind(target)
                yield event

    async def _reassembled(self, target: Target, ready: Ready, notice: str) -> Ready:
        """Return the request with the summary that stands by now; what others said meanwhile is no part of it."""
        slug, thread_id = target.persona.slug, target.thread_id
        rows = await self.store.read(context_rows, slug, thread_id, ready.seen.since)
        limits = await self._limits(target, rows.operations)
        seen = ready.seen.with_summary((await self.context.view(target, rows)).summary)
        prompt = await self._prompt(target, seen, limits)
        return replace(
            ready, seen=seen, prompt=prompt, allowed=limits.allowed, notices=(*ready.notices, *filter(None, [notice]))
        )

    async def _limits(self, target: Target, operations: Sequence[Operation] = ()) -> Limits:
        return Limits(await self.context.foundation(target.persona), await self.context.budget(target, operations))

    def _limits_after(self, target: Target, limits: Limits, operations: Sequence[Operation]) -> Limits:
        return replace(limits, allowed=self.context.budget_after(target, limits.allowed, operations))

    async def _prompt(self, target: Target, seen: Seen, limits: Limits) -> Prompt:
        foundation = limits.foundation.with_summary(seen.summary)
        return await self.context.assembled(
            target, foundation, seen.messages[seen.folded_number :], limits.allowed.room
        )

    async def _learn(self, target: Target, prompt: Prompt, done: TurnDone) -> None:
        reported = done.usage.get("prompt_tokens")
        if reported:
            await self.context.learn(target.choice.model, prompt.tokens, reported)

    async def _reopen(self, target: Target) -> Ready:
        """Store the retry with its empty reply, and return that reply and the request to send."""
        limits = await self._limits(target)
        reopened = await self.store.write(self._reopened, target, limits, self.outside.clock.now())
        seen = replace(reopened.seen, messages=await self.context.counted(reopened.seen.messages))
        prompt = await self._prompt(target, seen, reopened.limits)
        return Ready(reopened.reply, seen, prompt, reopened.limits.allowed)

    def _reopened(self, connection: Connection, target: Target, limits: Limits, now: datetime) -> Reopened:
        """Do what has to be one transaction: find the last turn in context, and begin its reply anew."""
        orphans.mend(connection, self.outside.is_alive, now)
        rows = self.context.rows(connection, target, now)
        view = view_of(rows, target.thread_id)
        before, replies = _last_turn(view.messages)
        limits = self._limits_after(target, limits, rows.operations)
        refuse_unfitting(target, text_tokens(before[-1], self.outside.counter.count), limits)
        new = NewOperation(
            target.persona.slug,
            Kind.RETRY,
            now,
            thread_id=target.thread_id,
            replaced=frozenset(reply.id for reply in replies),
        )
        retry = operation_rows.introduce(connection, new)
        self.context.hold(connection, target, rows.since, now)
        reply = introduced_rows.open_retry(connection, before[-1], retry, target.choice.model, self.run)
        seen = Seen(before, view.base.id if view.base else None, rows.since)
        # What is answered once more must be there word for word.
        is_whole = view.folded_number < len(before)
        return Reopened(seen.with_summary(view.summary) if is_whole else seen, limits, reply)

    async def _take_back_if_empty(self, reply: Message) -> None:
        await self.store.write(orphans.take_back_if_empty, reply.id, self.outside.clock.now())

    async def _open(self, target: Target, content: str) -> Ready:
        """Store the question with its empty reply, and return that reply and the request to send."""
        refuse_unreadable(content)
        try:
            return await self._stored(target, content)
        except (StorageError, ModelError) as error:
            raise self._answering.rescued(error, target.persona.slug, "user", content) from error

    async def _stored(self, target: Target, content: str) -> Ready:
        """Read the context and store the question in one transaction, so that nothing can come between the two."""
        count = await asyncio.to_thread(self.outside.counter.count, content)
        limits = await self._limits(target)
        now = self.outside.clock.now()
        question = Question(target.persona.slug, target.thread_id, content, now, "", count)
        opened = await self.store.write(self._opened, target, question, limits)
        view = await self.context.view(target, opened.rows)
        base_id = view.base.id if view.base else None
        seen = Seen((*view.messages, opened.turn.question), base_id, view.cutoff, view.summary, view.folded_number)
        prompt = await self._prompt(target, seen, opened.limits)
        told = (
            pause_notice(opened.rows.last_spoken, now) if opened.turn.question.preamble else "",
            members_notice(view, opened.since_before, now, target.persona.settings.context_hours),
        )
        return Ready(opened.turn.reply, seen, prompt, opened.limits.allowed, tuple(filter(None, told)))

    def _opened(self, connection: Connection, target: Target, question: Question, limits: Limits) -> Opened:
        """Do what has to be one transaction: mend orphans, read the context, store the question with its preamble."""
        orphans.mend(connection, self.outside.is_alive, question.timestamp)
        rows = self.context.rows(connection, target, question.timestamp)
        limits = self._limits_after(target, limits, rows.operations)
        refuse_unfitting(target, question.token_count, limits, preamble_tokens=_PREAMBLE_TOKENS)
        since_before = self.context.since_before(target, rows.last_spoken)
        self.context.hold(connection, target, rows.since, question.timestamp)
        seen = view_of(rows, target.thread_id).messages
        clock = target.persona.settings.clock and bool(seen)
        before = preamble(rows.last_spoken, question.timestamp, clock=clock)
        count = question.token_count + self.outside.counter.count(before)
        told = replace(question, preamble=before, token_count=count)
        turn = message_rows.open_turn(connection, told, target.choice.model, self.run)
        return Opened(rows, turn, limits, since_before)


def _last_turn(seen: tuple[Message, ...]) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """Part what is in context behind its last question: what stays, and what answers it.

    Raises:
        JournalError: there is none, or its reply is still being written.
    """
    end = next((target + 1 for target in reversed(range(len(seen))) if seen[target].role is Role.USER), 0)
    if not end:
        raise JournalError("There is nothing in context to be answered again.")
    if any(row.status is Status.STREAMING for row in seen[end:]):
        raise JournalError("The last message is being answered now, in another window; there is nothing to retry yet.")
    return seen[:end], seen[end:]
