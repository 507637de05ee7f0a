"""One turn: the message is stored, the context assembled, the model asked, and the reply written as it streams.

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
from chorus_cli.core.errors import MessageRefusedError, ModelError, StorageError
from chorus_cli.core.events import Notice, ReplyEnd, TextDelta, TurnDone
from chorus_cli.core.exchange import ModelRequest
from chorus_cli.core.messages import Status
from chorus_cli.core.outcome import outcome
from chorus_cli.core.preamble import preamble
from chorus_cli.core.retry import PAUSES_SECONDS, pause_before_retry
from chorus_cli.core.safe_text import cleaned_input
from chorus_cli.core.view import cutoff
from chorus_cli.services.reply_writer import ReplyWriter
from chorus_cli.services.uninterrupted import finished
from chorus_cli.storage import message_log
from chorus_cli.storage.context_rows import context_rows
from chorus_cli.storage.message_log import Question

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping
    from datetime import datetime
    from pathlib import Path

    from chorus_cli.core.assembly import Foundation, Prompt
    from chorus_cli.core.budget import Budget
    from chorus_cli.core.errors import ChorusError
    from chorus_cli.core.events import ModelEvent, TurnEvent
    from chorus_cli.core.messages import Message
    from chorus_cli.ports import Clock, ModelClient, TokenCounter
    from chorus_cli.services.context import Context
    from chorus_cli.services.place import Place
    from chorus_cli.storage.context_rows import ContextRows
    from chorus_cli.storage.database import Connection, Store
    from chorus_cli.storage.message_log import OpenedTurn

LARGEST_MESSAGE_BYTES = 8_000_000


@dataclass(frozen=True, slots=True)
class Outside:
    """What a conversation needs of the world: the model, the time, a count of tokens, and a place of last resort.

    ``is_alive`` says whether the process that owns a reply in progress still runs.
    """

    model: ModelClient
    clock: Clock
    counter: TokenCounter
    rescue: Callable[[Mapping[str, str]], Path | None]
    is_alive: Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class _Opened:
    """What the opening transaction read and wrote, and the moment that the window reached back to."""

    rows: ContextRows
    turn: OpenedTurn
    since: datetime


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
        (reply, prompt), stopped = await finished(self._open(place, content))
        if stopped:
            await finished(self._finish(self._writer(reply), reply, Status.INTERRUPTED, {}))
            raise asyncio.CancelledError
        async with aclosing(self._reply(place, reply, prompt, altered=altered)) as events:
            async for event in events:
                yield event

    async def _open(self, place: Place, content: str) -> tuple[Message, Prompt]:
        """Store the question with its empty reply, and return that reply and the request to send."""
        _refuse_unreadable(content)
        try:
            return await self._stored(place, content)
        except (StorageError, ModelError) as error:
            raise self._rescued(error, place.persona.slug, "user", content) from error

    async def _stored(self, place: Place, content: str) -> tuple[Message, Prompt]:
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
        return opened.turn.reply, assemble(foundation, [*view.messages, opened.turn.question], allowed.tokens)

    def _opened(self, connection: Connection, place: Place, question: Question, since: datetime) -> _Opened:
        """Do what has to be one transaction: mend orphans, read the context, store the question with its preamble."""
        message_log.interrupt_orphans(connection, self.outside.is_alive)
        rows = context_rows(connection, question.persona, question.thread_id, since)
        seen = views.view(place.thread_id, rows.messages, rows.operations, since).messages
        clock = place.persona.settings.clock and bool(seen)
        before = preamble(rows.last_spoken, question.timestamp, clock=clock)
        count = question.token_count + self.outside.counter.count(before)
        told = replace(question, preamble=before, token_count=count)
        turn = message_log.open_turn(connection, told, place.choice.model, self.run)
        return _Opened(rows, turn, since)

    async def _reply(
        self, place: Place, reply: Message, prompt: Prompt, *, altered: bool
    ) -> AsyncGenerator[TurnEvent, None]:
        writer = self._writer(reply)
        end = ReplyEnd(None)
        failure: ModelError | None = None
        try:
            if altered:
                yield Notice("Some characters of your message are not valid text and were replaced.")
            if prompt.too_large:
                yield Notice(_dropped_sentence(place, prompt))
            async with aclosing(self._attempts(_request(place, prompt))) as events:
                async for event in events:
                    if isinstance(event, ReplyEnd):
                        end = event
                        continue
                    if isinstance(event, TextDelta):
                        writer.add(event.text)
                    yield event
        except ModelError as error:
            failure = error
        except BaseException:
            await finished(self._finish(writer, reply, Status.INTERRUPTED, {}))
            raise
        ended = outcome(writer.text, end.finish_reason, failure)
        _, stopped = await finished(self._finish(writer, reply, ended.status, end.usage))
        if stopped:
            raise asyncio.CancelledError
        yield TurnDone(reply.id, ended.status, end.usage, ended.error)

    def _writer(self, reply: Message) -> ReplyWriter:
        return ReplyWriter(self.store, self.outside.counter, self.outside.clock, reply)

    async def _finish(self, writer: ReplyWriter, reply: Message, status: Status, usage: Mapping[str, int]) -> None:
        try:
            await writer.finish(status, usage)
        except StorageError as error:
            raise self._rescued(error, reply.persona, "assistant", writer.text) from error

    async def _attempts(self, request: ModelRequest) -> AsyncGenerator[ModelEvent | Notice, None]:
        """Stream the reply, trying again, in the open, while nothing of it has arrived yet."""
        failures = 0
        while True:
            started = False
            try:
                async with aclosing(self.outside.model.stream(request)) as events:
                    async for event in events:
                        started = True
                        yield event
            except ModelError as error:
                failures += 1
                pause = None if started else pause_before_retry(error, failures)
                if pause is None:
                    raise
                yield Notice(f"{error} Trying again in {pause:g} s ({failures} of {len(PAUSES_SECONDS)}).")
                await self.outside.clock.sleep(pause)
            else:
                return

    def _rescued(self, error: ChorusError, persona: str, role: str, content: str) -> ChorusError:
        """Keep what the database refused in a file, and say where."""
        path = self.outside.rescue({"persona": persona, "role": role, "content": content, "error": str(error)})
        kept = f"The text is kept in {path}." if path else f"It could not be kept in a file either: {content}"
        return type(error)(f"{error} {kept}")


def _request(place: Place, prompt: Prompt) -> ModelRequest:
    chosen = place.persona.settings
    return ModelRequest(place.choice.model, prompt.messages, chosen.temperature, chosen.max_output_tokens)


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


def _dropped_sentence(place: Place, prompt: Prompt) -> str:
    number = len(prompt.too_large)
    return (
        f"The oldest {number} message{'s' if number != 1 else ''} in the window did not fit {place.choice.model} and "
        "stayed out of this request. They are still in the log."
    )
