"""The calls of a reply: each stored before its tool is at work, and answered in the row after it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chorus_cli.core import limits
from chorus_cli.core.errors import StorageError
from chorus_cli.log.rows import message_rows
from chorus_cli.log.rules.calls import calls_as_json, unique_id
from chorus_cli.log.rules.messages import Message, MessageContent, Role, Status
from chorus_cli.machine.notifier import run_to_completion
from chorus_cli.models.rules.events import ToolStarted, ToolUsed
from chorus_cli.tools.service import MOST_CALLS, Answer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Sequence
    from datetime import datetime

    from chorus_cli.log.rules.calls import ToolCall
    from chorus_cli.machine.ports import Clock, TokenCounter
    from chorus_cli.models.rules.declaration import ReadCall
    from chorus_cli.storage.store import Store
    from chorus_cli.tools.service import Caller, Toolbox
    from chorus_cli.turns.service.reply_rows import WrittenReply

MOST_ROUNDS = limits.ROUNDS.most
"""The most replies of a turn whose calls are carried out."""

STOPPED = "(The human stopped this tool before it was done.)"
ENOUGH = Answer(
    f"This was not carried out: tools may be used {MOST_ROUNDS} times for one message. Answer now with what you know.",
    f"not carried out, {MOST_ROUNDS} rounds are the most",
)
TOO_MANY = Answer(
    f"({{number:,}} more calls of this reply were not carried out: {MOST_CALLS} are the most. Make them again if they "
    "still matter.)",
    f"not carried out, {MOST_CALLS} are the most",
)


@dataclass(frozen=True, slots=True)
class CallLog:
    """Writes calls and their results to the log. ``given_up`` gets the rows whose end could not be written."""

    store: Store
    clock: Clock
    counter: TokenCounter
    given_up: set[int]

    async def begin(self, reply: WrittenReply, call: ToolCall) -> list[Message]:
        """Store the end of a reply and its first call, in progress; return both rows."""
        content = await self._call(reply.row, call.as_json, call.id, reply.row.id)
        return await self.store.write(message_rows.begin_call, reply.row, reply.thoughts, content)

    async def end(
        self, row: Message, result: str, following: ToolCall | None, surplus: Sequence[ToolCall] = ()
    ) -> list[Message]:
        """Store the result of a call and what comes next, in progress: another call or, without one, a reply.

        The ``surplus`` calls, which are never carried out, are one row without a result, which no request contains.
        """
        after = [await self._result(row, result)]
        if surplus:
            left_over = await self._call(row, calls_as_json(surplus), surplus[0].id, row.reply_id)
            after.append(left_over._replace(status=Status.COMPLETE))
        if following is None:
            after.append(self._reply(row))
        else:
            after.append(await self._call(row, following.as_json, following.id, row.reply_id))
        return await self.store.write(message_rows.end_call, row, after)

    async def stop(self, row: Message) -> None:
        """Store that a call or a reply was interrupted before it began to answer.

        A row that cannot be written is given up: raising would hide the error that may have brought this about.
        """
        try:
            await self._stop(row)
        except StorageError:
            self.given_up.add(row.id)

    async def _stop(self, row: Message) -> None:
        if row.role is Role.TOOL_USE:
            nothing = MessageContent(
                row.thread_id, Role.ASSISTANT, "", self._now(row), row.turn_id, status=Status.INTERRUPTED,
                model=row.model, token_count=0,
            )  # fmt: skip
            await self.store.write(message_rows.end_call, row, [await self._result(row, STOPPED), nothing])
        else:
            interrupted = row._replace(status=Status.INTERRUPTED, timestamp=self._now(row), token_count=0)
            await self.store.write(message_rows.update_reply, interrupted)

    def _now(self, before: Message) -> datetime:
        """Return the present, but never a time before that of the row before."""
        return max(before.timestamp, self.clock.now())

    def _reply(self, before: Message) -> MessageContent:
        return message_rows.empty_reply(before.thread_id, before.turn_id, self._now(before), before.model or "")

    async def _call(self, before: Message, written: str, id_: str, reply_id: int | None) -> MessageContent:
        return MessageContent(
            before.thread_id, Role.TOOL_USE, "", self._now(before), before.turn_id, tool_calls=written,
            tool_call_id=id_, status=Status.STREAMING, model=before.model, token_count=await self._count(written),
            reply_id=reply_id,
        )  # fmt: skip

    async def _result(self, call: Message, text: str) -> MessageContent:
        return MessageContent(
            call.thread_id, Role.TOOL_RESULT, text, self._now(call), call.turn_id, tool_call_id=call.tool_call_id,
            token_count=await self._count(text),
        )  # fmt: skip

    async def _count(self, text: str) -> int | None:
        """Count a text, unless the vocabulary would have to be loaded for it."""
        return await asyncio.to_thread(self.counter.count, text) if self.counter.is_ready else None


class CallRound:
    """The calls of one reply, carried out one after the other: the first sixteen.

    ``rows`` are stored and finished: the reply, and each call with its result. ``current`` is the row in progress: a
    call, and in the end the next reply.
    """

    def __init__(self, log: CallLog, toolbox: Toolbox, reply: Message, calls: Sequence[ReadCall]) -> None:
        self.rows: list[Message] = []
        self.current = reply
        self._log = log
        self._toolbox = toolbox
        self._calls = calls[:MOST_CALLS]
        self._surplus = [each.call for each in calls[MOST_CALLS:]]

    async def begin(self, reply: WrittenReply) -> None:
        """Store the reply and the first call.

        Raises:
            StorageError: they could not be stored.
        """
        (ended, self.current), stopped = await run_to_completion(self._log.begin(reply, self._calls[0].call))
        self.rows.append(ended)
        if stopped:
            await self.stop()
            raise asyncio.CancelledError

    async def carried_out(self, caller: Caller, refusal: Answer | None) -> AsyncGenerator[ToolStarted | ToolUsed, None]:
        """Carry out the calls, or answer them all with ``refusal``; the last result tells of those left over.

        Call ``stop`` if you do not iterate to the end.

        Raises:
            StorageError: a result could not be stored.
        """
        for position, call in enumerate(self._calls, 1):
            yield ToolStarted(call.shown, self.rows[0].thought if position == 1 else None)
            answer = refusal or await self._toolbox.answer(call, caller)
            is_last = position == len(self._calls)
            surplus = self._surplus if is_last else []
            result = f"{answer.text}\n\n{TOO_MANY.text.format(number=len(surplus))}" if surplus else answer.text
            following = None if is_last else self._calls[position].call
            (ended, answered, *_, self.current), stopped = await run_to_completion(
                self._log.end(self.current, result, following, surplus)
            )
            self.rows += (ended, answered)
            if stopped:
                raise asyncio.CancelledError
            yield ToolUsed(call.shown, answer.outcome)
        if self._surplus:
            yield ToolUsed(f"{len(self._surplus):,} more calls", TOO_MANY.outcome)

    async def stop(self) -> None:
        """Store that the user stopped the row in progress."""
        await run_to_completion(self._log.stop(self.current))


def with_unique_ids(calls: Iterable[ToolCall], taken: Iterable[str]) -> list[ToolCall]:
    """Give each call an id that neither another call nor one of the messages before has."""
    known = set(taken)
    unique: list[ToolCall] = []
    for call in calls:
        unique.append(call._replace(id=unique_id(call.id, known)))
        known.add(unique[-1].id)
    return unique
