"""One turn: the message is stored, the context assembled, the model asked; and a reply asked for once more.

Nothing that was typed or answered is ever lost: the message is committed before the model is called, and a reply that
breaks off, for whatever reason, keeps what has arrived together with a status that says so.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from chorus_cli.core import view as views
from chorus_cli.core.assembly import assemble
from chorus_cli.core.budget import TOKENS_PER_MESSAGE
from chorus_cli.core.errors import JournalError, MessageRefusedError, ModelError, StorageError
from chorus_cli.core.exchange import ModelRequest
from chorus_cli.core.messages import Role, Status
from chorus_cli.core.operations import Kind
from chorus_cli.core.preamble import pause_notice, preamble
from chorus_cli.core.safe_text import cleaned_input
from chorus_cli.core.view import cutoff
from chorus_cli.services.answering import Answering
from chorus_cli.services.arrival import members_notice
from chorus_cli.services.uninterrupted import finished
from chorus_cli.storage import introduced_rows, message_log, operation_log, orphans
from chorus_cli.storage.context_rows import context_rows
from chorus_cli.storage.message_log import Question
from chorus_cli.storage.operation_log import NewOperation

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from datetime import datetime

    from chorus_cli.core.assembly import Foundation, Prompt
    from chorus_cli.core.budget import Budget
    from chorus_cli.core.events import TurnEvent
    from chorus_cli.core.messages import Message
    from chorus_cli.services.answering import Outside
    from chorus_cli.services.context import Context
    from chorus_cli.services.place import Place
    from chorus_cli.storage.context_rows import ContextRows
    from chorus_cli.storage.database import Connection, Store
    from chorus_cli.storage.message_log import OpenedTurn

LARGEST_MESSAGE_BYTES = 8_000_000
_ALTERED = "Some characters of your message are not valid text and were replaced."


@dataclass(frozen=True, slots=True)
class _Opened:
    """What the opening transaction read and wrote, and the moment that the window reached back to."""

    rows: ContextRows
    turn: OpenedTurn
    since: datetime


@dataclass(frozen=True, slots=True)
class _Ready:
    """A stored question's empty reply, the request to send, what the user should know of it, and the model's limit."""

    reply: Message
    prompt: Prompt
    notices: tuple[str, ...]
    limit_tokens: int


@dataclass(frozen=True, slots=True)
class _Reopened:
    """What stays of the context when a reply is asked for once more, and the empty reply."""

    before: tuple[Message, ...]
    reply: Message


@dataclass(frozen=True, slots=True)
class Conversation:
    """Answers messages. ``run`` names this process in the rows that it is writing."""

    store: Store
    context: Context
    outside: Outside
    run: str

    async def answer(self, place: Place, text: str) -> AsyncGenerator[TurnEvent, None]:
        """Store ``text``, ask the model, and yield what happens; the last event is ``TurnDone``.

        When the caller stops listening or is cancelled, what has arrived is kept as ``interrupted``; a message that was
        handed over is stored first, however early that happens.

        Raises:
            MessageRefusedError: the message is empty, too large, or does not fit the model; nothing was stored.
            StorageError, ModelError: it could not be stored or measured; it is kept in a file that the sentence names.
        """
        content, altered = cleaned_input(text)
        ready, stopped = await finished(self._open(place, content))
        if stopped:
            await self._answering.abandon(ready.reply)
            raise asyncio.CancelledError
        notices = (*([_ALTERED] if altered else []), *ready.notices)
        async with aclosing(self._answering.reply(ready.reply, _request(place, ready), notices)) as events:
            async for event in events:
                yield event

    async def retry(self, place: Place) -> AsyncGenerator[TurnEvent, None]:
        """Ask for the last reply in context once more; the old one leaves the context, not the log.

        A retry that brings nothing is taken back, so that the old reply stays.

        Raises:
            JournalError: nothing in context could be answered again, or it is being answered now.
            StorageError, ModelError: the retry could not be stored or measured.
        """
        ready, stopped = await finished(self._reopen(place))
        try:
            if stopped:
                await self._answering.abandon(ready.reply)
                raise asyncio.CancelledError
            request = _request(place, ready)
            async with aclosing(self._answering.reply(ready.reply, request, ready.notices)) as events:
                async for event in events:
                    yield event
        finally:
            await finished(self._take_back_if_empty(ready.reply))

    @property
    def _answering(self) -> Answering:
        return Answering(self.store, self.outside)

    async def _reopen(self, place: Place) -> _Ready:
        """Store the retry with its empty reply, and return that reply and the request to send."""
        foundation = await self.context.foundation(place.persona)
        allowed = await self.context.budget(place)
        reopened = await self.store.write(self._reopened, place, self.outside.clock.now())
        prompt = assemble(foundation, await self.context.counted(reopened.before), allowed.tokens)
        return _Ready(reopened.reply, prompt, _notices(place, prompt), allowed.limit.tokens)

    def _reopened(self, connection: Connection, place: Place, now: datetime) -> _Reopened:
        """Do what has to be one transaction: find the last turn in context, and begin its reply anew."""
        orphans.mend(connection, self.outside.is_alive, now)
        since = cutoff(now, place.persona.settings.context_hours)
        rows = context_rows(connection, place.persona.slug, place.thread_id, since)
        seen = views.view(place.thread_id, rows.messages, rows.operations, since).messages
        before, replies = _last_turn(seen)
        new = NewOperation(
            place.persona.slug,
            Kind.RETRY,
            now,
            thread_id=place.thread_id,
            replaced=frozenset(reply.id for reply in replies),
        )
        retry = operation_log.introduce(connection, new)
        reply = introduced_rows.open_retry(connection, before[-1], retry, place.choice.model, self.run)
        return _Reopened(before, reply)

    async def _take_back_if_empty(self, reply: Message) -> None:
        await self.store.write(orphans.take_back_if_empty, reply.id, self.outside.clock.now())

    async def _open(self, place: Place, content: str) -> _Ready:
        """Store the question with its empty reply, and return that reply and the request to send."""
        _refuse_unreadable(content)
        try:
            return await self._stored(place, content)
        except (StorageError, ModelError) as error:
            raise self._answering.rescued(error, place.persona.slug, "user", content) from error

    async def _stored(self, place: Place, content: str) -> _Ready:
        """Read the context and store the question in one transaction, so that nothing can come between the two."""
        count = await asyncio.to_thread(self.outside.counter.count, content)
        foundation = await self.context.foundation(place.persona)
        allowed = await self.context.budget(place)
        if foundation.tokens + count + TOKENS_PER_MESSAGE > allowed.tokens:
            raise _unfitting(place, count, foundation, allowed)
        now = self.outside.clock.now()
        question = Question(place.persona.slug, place.thread_id, content, now, "", count)
        opened = await self.store.write(
            self._opened, place, question, cutoff(now, place.persona.settings.context_hours)
        )
        view = await self.context.view(place, opened.rows, opened.since)
        prompt = assemble(foundation, [*view.messages, opened.turn.question], allowed.tokens)
        told = (
            pause_notice(opened.rows.last_spoken, now) if opened.turn.question.preamble else "",
            members_notice(view.base, opened.rows.last_spoken, now, place.persona.settings.context_hours),
            *_notices(place, prompt),
        )
        return _Ready(opened.turn.reply, prompt, tuple(filter(None, told)), allowed.limit.tokens)

    def _opened(self, connection: Connection, place: Place, question: Question, since: datetime) -> _Opened:
        """Do what has to be one transaction: mend orphans, read the context, store the question with its preamble."""
        orphans.mend(connection, self.outside.is_alive, question.timestamp)
        rows = context_rows(connection, question.persona, question.thread_id, since)
        seen = views.view(place.thread_id, rows.messages, rows.operations, since).messages
        clock = place.persona.settings.clock and bool(seen)
        before = preamble(rows.last_spoken, question.timestamp, clock=clock)
        count = question.token_count + self.outside.counter.count(before)
        told = replace(question, preamble=before, token_count=count)
        turn = message_log.open_turn(connection, told, place.choice.model, self.run)
        return _Opened(rows, turn, since)


def _request(place: Place, ready: _Ready) -> ModelRequest:
    chosen, messages = place.persona.settings, ready.prompt.messages
    return ModelRequest(place.choice.model, messages, chosen.temperature, chosen.max_output_tokens, ready.limit_tokens)


def _refuse_unreadable(content: str) -> None:
    if not content.strip():
        raise MessageRefusedError("The message is empty, so there is nothing to send.")
    size = len(content.encode())
    if size > LARGEST_MESSAGE_BYTES:
        raise MessageRefusedError(
            f"The message has {size / 1e6:.1f} MB; the largest that is taken has {LARGEST_MESSAGE_BYTES / 1e6:g} MB. "
            "It was not stored. Put it in a file and send the part that matters."
        )


def _unfitting(place: Place, count: int, foundation: Foundation, allowed: Budget) -> MessageRefusedError:
    if foundation.tokens >= allowed.tokens:
        return MessageRefusedError(
            f"{place.persona.name} leaves no room for a message: the system prompt has "
            f"~{foundation.system_prompt_tokens:,} tokens and the documents {foundation.document_tokens:,}, "
            f"but a request to {place.choice.model} may have {allowed.tokens:,}. "
            "The message was not stored; shorten them, or choose a model with a larger limit."
        )
    return MessageRefusedError(
        f"The message is too large for {place.choice.model}: it has ~{count:,} tokens and the system prompt and "
        f"documents {foundation.tokens:,}, but a request may have {allowed.tokens:,} of the model's "
        f"{allowed.limit.tokens:,}. It was not stored; shorten it or choose a model with a larger limit."
    )


def _notices(place: Place, prompt: Prompt) -> tuple[str, ...]:
    number = len(prompt.too_large)
    dropped = (
        f"The oldest {number} message{'s' if number != 1 else ''} in the window did not fit {place.choice.model} and "
        "stayed out of this request. They are still in the log."
    )
    return (dropped,) if number else ()


def _last_turn(seen: tuple[Message, ...]) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """Part what is in context behind its last question: what stays, and what answers it.

    Raises:
        JournalError: there is none, or its reply is still being written.
    """
    end = next((place + 1 for place in reversed(range(len(seen))) if seen[place].role is Role.USER), 0)
    if not end:
        raise JournalError("There is nothing in context to be answered again.")
    if any(row.status is Status.STREAMING for row in seen[end:]):
        raise JournalError("The last message is being answered now, in another window; there is nothing to retry yet.")
    return seen[:end], seen[end:]
