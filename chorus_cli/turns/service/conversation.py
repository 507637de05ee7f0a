"""One turn: the message is stored, its request planned, the model asked; and a reply asked for once more.

Nothing that was typed or answered is ever lost: the message is committed before the model is called, and a reply that
breaks off, for whichever reason, keeps the text that has arrived together with a status that says so. A thread answers
one message at a time: while a reply is being written in it, by this process or another, the next turn waits.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from chorus_cli.core.errors import ThreadBusyError
from chorus_cli.log.rows import interrupted_replies, message_rows, thread_rows
from chorus_cli.log.rules.messages import Status, is_filled
from chorus_cli.machine.notifier import run_to_completion
from chorus_cli.models.rules.events import WaitBegun, WaitOver
from chorus_cli.turns.service.opening import OpenedTurn, TurnOpener

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine
    from datetime import datetime

    from chorus_cli.context.service.context import Context
    from chorus_cli.jobs.service import Jobs
    from chorus_cli.log.rules.attachments import Attachment
    from chorus_cli.log.rules.messages import Message
    from chorus_cli.models.rules.events import TurnEvent
    from chorus_cli.personas.rules.persona import Target
    from chorus_cli.turns.service.reply import ReplyRunner
    from chorus_cli.turns.service.rounds import ToolLoop

    _Files = tuple[Attachment, ...]
    _OpenTurn = Callable[[], Coroutine[None, None, OpenedTurn | ThreadBusyError]]


@dataclass(frozen=True, slots=True)
class Conversation:
    """Answers messages. ``run`` names this process, which began at ``began_at``, in the rows that it is writing.

    ``jobs`` run beside the turns; the news of ended ones go with the next message.
    """

    tool_loop: ToolLoop
    run: str
    began_at: datetime
    jobs: Jobs

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
        open_turn = partial(self.opener.ask, target, text, attachments)
        async with aclosing(self._turn(target.thread_id, open_turn)) as events:
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
        async with aclosing(self._turn(target.thread_id, partial(self.opener.ask_again, target))) as events:
            async for event in events:
                yield event

    async def close_unused(self, target: Target) -> None:
        """Close a thread that was opened for a message that was refused."""
        now = self.runner.dependencies.clock.now()
        await self.context.store.write(thread_rows.close, [target.thread_id], now)

    @property
    def opener(self) -> TurnOpener:
        """The opening of turns."""
        return TurnOpener(self.tool_loop.context, self.tool_loop.runner, self.tool_loop.memory, self.jobs, self.run)

    async def _turn(self, thread_id: int, open_turn: _OpenTurn) -> AsyncGenerator[TurnEvent, None]:
        """Have a turn opened once no other reply is being written in the thread, and have it answered."""
        opened, stopped = await run_to_completion(open_turn())
        has_waited = False
        while isinstance(opened, ThreadBusyError):
            if not has_waited:
                yield WaitBegun(str(opened))
            if stopped:
                raise asyncio.CancelledError
            has_waited = True
            await self.runner.wait_until_free(thread_id)
            opened, stopped = await run_to_completion(open_turn())
        is_asked = False
        try:
            if has_waited:
                yield WaitOver()
            if not stopped:
                is_asked = True
                async with aclosing(self.tool_loop.answered(opened)) as events:
                    async for event in events:
                        yield event
        finally:
            if not is_asked:
                await self.runner.abandon(opened.reply)
            if opened.reply.introduced_by is not None:
                await self._settle(opened.reply)
        if stopped:
            raise asyncio.CancelledError

    @property
    def context(self) -> Context:
        """The contexts that messages are answered in."""
        return self.tool_loop.context

    @property
    def runner(self) -> ReplyRunner:
        """The writing of replies."""
        return self.tool_loop.runner

    async def _settle(self, reply: Message) -> None:
        """Take the retry of ``reply`` back, if it brought no word."""
        now = self.runner.dependencies.clock.now()
        _, stopped = await run_to_completion(
            self.context.store.write(interrupted_replies.take_back_if_empty, reply.id, now)
        )
        if stopped:
            raise asyncio.CancelledError


_SENT_ELSEWHERE = "The newest message here was sent from another Chorus."
_WRITTEN_ELSEWHERE = f"{_SENT_ELSEWHERE[:-1]}, where it is being answered now."


async def made_elsewhere(conversation: Conversation, question: Message) -> str:
    """Return a sentence if another process made the turn of ``question`` while this one runs, or is writing it now."""
    replies = [row for row in await _replies(conversation, question) if row.run is not None]
    if not replies or any(row.run == conversation.run for row in replies):
        return ""
    is_alive = conversation.runner.dependencies.is_alive
    if any(row.status is Status.STREAMING and is_alive(row.run or "") for row in replies):
        return _WRITTEN_ELSEWHERE
    return _SENT_ELSEWHERE if question.timestamp >= conversation.began_at else ""


async def is_answering(conversation: Conversation, question: Message) -> bool:
    """Return whether this process is writing a reply to ``question``."""
    rows = await _replies(conversation, question)
    return any(row.status is Status.STREAMING and row.run == conversation.run for row in rows)


async def is_answered(conversation: Conversation, question: Message) -> bool:
    """Return whether ``question`` has a reply with words or calls, or one in progress."""
    rows = await _replies(conversation, question)
    return any(is_filled(row) or row.tool_calls or row.status is Status.STREAMING for row in rows)


async def _replies(conversation: Conversation, question: Message) -> list[Message]:
    return await conversation.context.store.read(message_rows.replies, question)
