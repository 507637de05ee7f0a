"""One turn: the message is stored, the context assembled, the model asked, and the reply written as it streams.

Nothing that was typed or answered is ever lost: the message is committed before the model is called, and a reply that
breaks off, for whatever reason, keeps what has arrived together with a status that says so.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chorus_cli.core.assembly import assemble
from chorus_cli.core.errors import MessageRefusedError, ModelError, StorageError
from chorus_cli.core.events import Notice, ReplyEnd, TextDelta, TurnDone
from chorus_cli.core.exchange import ModelRequest
from chorus_cli.core.messages import Status
from chorus_cli.core.outcome import outcome
from chorus_cli.core.preamble import joined, preamble
from chorus_cli.core.retry import PAUSES_SECONDS, pause_before_retry
from chorus_cli.core.safe_text import cleaned_input
from chorus_cli.services.reply_writer import ReplyWriter
from chorus_cli.services.uninterrupted import finished
from chorus_cli.storage import message_log
from chorus_cli.storage.message_log import OpenedTurn, Question

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping
    from pathlib import Path

    from chorus_cli.core.assembly import Foundation, Prompt
    from chorus_cli.core.budget import Budget
    from chorus_cli.core.events import ModelEvent, TurnEvent
    from chorus_cli.core.messages import Message
    from chorus_cli.ports import Clock, ModelClient, TokenCounter
    from chorus_cli.services.context import Context
    from chorus_cli.services.focus import Place
    from chorus_cli.storage.database import Store

LARGEST_MESSAGE_BYTES = 8_000_000


@dataclass(frozen=True, slots=True)
class Outside:
    """What a conversation needs of the world: the model, the time, a count of tokens, and a place of last resort."""

    model: ModelClient
    clock: Clock
    counter: TokenCounter
    rescue: Callable[[Mapping[str, str]], Path | None]


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
            StorageError: the message could not be stored; it is kept in a file that the sentence names.
        """
        content, altered = cleaned_input(text)
        if altered:
            yield Notice("Some characters of your message are not valid text and were replaced.")
        (reply, prompt), stopped = await finished(self._open(place, content))
        if stopped:
            await finished(self._finish(self._writer(reply), reply, Status.INTERRUPTED, {}))
            raise asyncio.CancelledError
        async with aclosing(self._reply(place, reply, prompt)) as events:
            async for event in events:
                yield event

    async def _open(self, place: Place, content: str) -> tuple[Message, Prompt]:
        """Store the question with its empty reply, and return that reply and the request to send."""
        _refuse_unreadable(content)
        now = self.outside.clock.now()
        seen = await self.context.seen(place, now)
        before = preamble(seen.last_spoken, now, clock=place.persona.settings.clock)
        count = await asyncio.to_thread(self.outside.counter.count, joined(before, content))
        foundation = await self.context.foundation(place.persona)
        allowed = await self.context.budget(place)
        if foundation.tokens + count > allowed.tokens:
            raise _unfitting(place, count, foundation, allowed)
        question = Question(place.persona.slug, place.thread_id, content, now, before, count)
        opened = await self._store(place, question)
        return opened.reply, assemble(foundation, [*seen.view.messages, opened.question], allowed.tokens)

    async def _store(self, place: Place, question: Question) -> OpenedTurn:
        try:
            return await self.store.write(message_log.open_turn, question, place.choice.model, self.run)
        except StorageError as error:
            raise self._rescued(error, question.persona, "user", question.content) from error

    async def _reply(self, place: Place, reply: Message, prompt: Prompt) -> AsyncGenerator[TurnEvent, None]:
        writer = self._writer(reply)
        end = ReplyEnd(None)
        failure: ModelError | None = None
        try:
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
        await self._finish(writer, reply, ended.status, end.usage)
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

    def _rescued(self, error: StorageError, persona: str, role: str, content: str) -> StorageError:
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
