"""Streams a reply into its row while it arrives, and gives the row a final status however the reply ends.

If the reply ends with calls, each call is stored before its tool runs, and the next row takes the result.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from chorus_cli.attachments.rules.tokens import attachment_tokens
from chorus_cli.context.rules.view import Echoed
from chorus_cli.core import limits
from chorus_cli.core.errors import (
    ChorusError,
    DatabaseReadOnlyError,
    MessageNotStoredError,
    ModelError,
    RequestRejectedError,
    StorageError,
    ThreadBusyError,
    ToolsRefusedError,
)
from chorus_cli.log.rows import interrupted_replies, message_rows
from chorus_cli.log.rules.attachments import Attachment
from chorus_cli.log.rules.calls import ToolCall, calls_as_json, unique_id
from chorus_cli.log.rules.messages import Message, MessageContent, Role, Status, sent_content
from chorus_cli.machine.notifier import run_to_completion
from chorus_cli.mcp.toolbox import MOST_CALLS, Toolbox
from chorus_cli.models.rules.declaration import ReadCall
from chorus_cli.models.rules.events import (
    GOES_ON,
    PAUSES_SECONDS,
    Asking,
    Lengths,
    ModelClient,
    ModelEvent,
    Notice,
    PermissionAsked,
    ReasoningDelta,
    ReplyEnd,
    TextDelta,
    ToolStarted,
    ToolUsed,
    TurnDone,
    TurnEvent,
    calls_to_answer,
    outcome,
    pause_before_retry,
)
from chorus_cli.models.rules.request import ModelRequest, with_plain_history
from chorus_cli.personas.rules.persona import Target
from chorus_cli.storage.port import Connection
from chorus_cli.tools.service import Answer, Caller
from chorus_cli.turns.service.reply_rows import ReplyRows, ReplyWriter, WrittenReply

_POLL_SECONDS = 0.2
_NO_CALLS: Sequence[ReadCall] = ()
MOST_ROUNDS = limits.ROUNDS.most
"""The most replies of a turn whose calls are carried out."""

STOPPED = "(The user stopped this tool before it finished; it may have taken effect all the same.)"
NOT_RUN = "(This tool was not run, because the user stopped first.)"
ENOUGH = Answer(
    f"This was not carried out: tools may be used {MOST_ROUNDS} times for one message. Answer now with what you know.",
    f"not carried out (at most {MOST_ROUNDS} rounds for a message)",
    was_refused=True,
)
TOO_MANY = Answer(
    f"({{number:,}} more calls of this reply were not carried out: a reply may have {MOST_CALLS}. Make them again if "
    "they still matter.)",
    f"not carried out (at most {MOST_CALLS} calls for a reply)",
)


_CallEvent = ToolStarted | PermissionAsked | ToolUsed


class Untaken(Enum):
    """The parts of requests that a model may refuse: later requests lack them, or have ``HISTORY`` as plain text."""

    TOOLS = "tools"
    SERVER_TOOLS = "server tools"
    HISTORY = "history"


class Called(NamedTuple):
    """The reply ended with calls; the first call is stored and in progress. ``thoughts`` led to the calls."""

    round: CallRound
    usage: Mapping[str, int]
    thoughts: Echoed


@dataclass(frozen=True, slots=True)
class ReplyRunner:
    """Streams replies into empty rows that are stored already; ``toolbox`` reads the calls that a reply ends with.

    ``rescue`` keeps a text in a file and returns the path, ``None`` if it fails. ``is_alive`` says whether the process
    of a run lives. ``given_up`` has the ids of rows whose end was not written; the next turn marks them as interrupted.
    """

    rows: ReplyRows
    model: ModelClient
    rescue: Callable[[Mapping[str, str]], Path | None]
    is_alive: Callable[[str], bool]
    toolbox: Toolbox
    given_up: set[int] = field(default_factory=set, init=False)

    async def reply(
        self, row: Message, request: ModelRequest, notices: Sequence[str] = ()
    ) -> AsyncGenerator[TurnEvent | Untaken | Called, None]:
        """Ask the model, write its reply into ``row``, and yield events; the last is ``TurnDone`` or ``Called``."""
        now = self.rows.clock.monotonic()
        writer = ReplyWriter(self.rows, row, asked_at=now, written_at=now)
        end, calls, lengths, failure = ReplyEnd(None), _NO_CALLS, Lengths(), None
        try:
            async with aclosing(self._attempts(request, notices)) as events:
                async for event in events:
                    if isinstance(event, ReplyEnd):
                        end = event
                        continue
                    if isinstance(event, TextDelta):
                        writer.add(event.text)
                    elif isinstance(event, ReasoningDelta):
                        writer.think(event.text)
                    elif isinstance(event, Asking):
                        # A failed attempt, and the pause after it, do not count as thinking.
                        writer.asked_at = self.rows.clock.monotonic()
                    yield event
                    lengths.take(event)
            calls = await self._calls(request, end) if end.calls else ()
        except ModelError as error:
            failure = error
        except BaseException:
            await run_to_completion(self._finish(writer, Status.INTERRUPTED, end))
            raise
        if calls:
            yield await self._called(writer, calls, end)
            return
        ended = outcome(request, "".join(writer.pieces), end, failure, has_thought=lengths.thought > 0)
        written, stopped = await run_to_completion(self._finish(writer, ended.status, end))
        if stopped:
            raise asyncio.CancelledError
        done = TurnDone(row.id, ended.status, end.usage, ended.error, thought=written.row.thought)
        yield replace(done, again=GOES_ON) if request.goes_on else done

    async def abandon(self, row: Message) -> None:
        """Mark as interrupted a reply that was stopped before it began."""
        now = self.rows.clock.monotonic()
        writer = ReplyWriter(self.rows, row, asked_at=now, written_at=now)
        await run_to_completion(self._finish(writer, Status.INTERRUPTED, ReplyEnd(None)))

    def refuse_busy(self, connection: Connection, target: Target) -> None:
        """Raise a ``ThreadBusyError`` if this process or another writes a reply in the target's thread."""
        if self._is_busy(connection, target.thread_id):
            raise ThreadBusyError(f"Waiting for the reply in progress in thread #{target.thread_number} …")

    async def wait_until_free(self, thread_id: int) -> None:
        """Wait until no live process is writing a reply in a thread."""
        # If the database cannot be read, storing the message reports that.
        with suppress(StorageError):
            while await self.rows.store.read(self._is_busy, thread_id):
                await self.rows.clock.sleep(_POLL_SECONDS)

    def _is_busy(self, connection: Connection, thread_id: int) -> bool:
        rows = interrupted_replies.in_progress(connection, thread_id)
        return any(run and id_ not in self.given_up and self.is_alive(run) for id_, run in rows)

    def rescued(self, error: ChorusError, persona: str, role: str, content: str) -> ChorusError:
        """Put a text that the database refused into a file, unless the database is read-only; return an error for it.

        The error names the file. If no file can be written, the error for a message is a ``MessageNotStoredError``, and
        the caller keeps the text. For a reply, or if ``error`` has this class already, the error contains the text.
        """
        if isinstance(error, DatabaseReadOnlyError):
            return DatabaseReadOnlyError(f"{str(error).removesuffix('.')} and nothing was sent.")
        path = self.rescue({"persona": persona, "role": role, "content": content, "error": str(error)})
        if path is None and role == "user" and not isinstance(error, MessageNotStoredError):
            return MessageNotStoredError(str(error))
        kept = f"The text is kept in {path}." if path else f"It could not be kept in a file either: {content}"
        return type(error)(f"{error} {kept}")

    async def _calls(self, request: ModelRequest, end: ReplyEnd) -> Sequence[ReadCall]:
        calls = calls_to_answer(request, end)
        taken = (message.tool_call_id for message in request.messages if message.tool_call_id)
        return await self.toolbox.read(_with_unique_ids(calls, taken), request.tools) if calls else ()

    async def _called(self, writer: ReplyWriter, calls: Sequence[ReadCall], end: ReplyEnd) -> Called:
        """Store the end of the reply, and its first call as in progress."""
        row = writer.reply
        called = CallRound(self, row, calls)
        try:
            reply, stopped = await run_to_completion(called.begin(writer, end))
        except StorageError as error:
            self.given_up.add(row.id)
            raise self.rescued(error, row.persona, "assistant", writer.text) from error
        if stopped:
            await called.stop()
            raise asyncio.CancelledError
        thought = reply.row.thought
        return Called(called, end.usage, Echoed(reply.thoughts, thought.tokens if thought else None))

    async def _finish(self, writer: ReplyWriter, status: Status, end: ReplyEnd) -> WrittenReply:
        """Write the whole reply with its final status, and return it; a reply without text is dated at its end."""
        try:
            reply = await writer.finished(status, end)
            await self.rows.store.write(message_rows.update_reply, *reply)
        except StorageError as error:
            self.given_up.add(writer.reply.id)
            raise self.rescued(error, writer.reply.persona, "assistant", writer.text) from error
        return reply

    async def _attempts(
        self, request: ModelRequest, notices: Sequence[str]
    ) -> AsyncGenerator[ModelEvent | Asking | Untaken, None]:
        """Yield the notices and stream the reply; if it fails before anything arrives, ask again if that may help."""
        for notice in notices:
            yield Notice(notice)
        failures = 0
        found_out: list[Untaken] = []
        while True:
            started = False
            yield Asking(request.model)
            try:
                async with aclosing(self.model.stream(request)) as events:
                    async for event in events:
                        started = started or not isinstance(event, Notice)
                        while started and found_out:
                            yield found_out.pop(0)
                        yield event
            except ModelError as error:
                adapted = None if started else _adapted(request, error)
                if adapted is not None:
                    request = adapted[0]
                    found_out.append(adapted[1])
                    continue
                failures += 1
                pause = None if started else pause_before_retry(error, failures)
                if pause is None:
                    raise
                retrying = f"Retrying in {pause:g} s ({failures} of {len(PAUSES_SECONDS)}) …"
                yield Notice(f"{error.problem} {retrying}")
                await self.rows.clock.sleep(pause)
            else:
                return


def _adapted(request: ModelRequest, error: ModelError) -> tuple[ModelRequest, Untaken] | None:
    """Return a request that lacks the refused part or has it as plain text, and the part; ``None`` if there is none."""
    if isinstance(error, ToolsRefusedError) and any(tool.origin for tool in request.tools):
        # The declaration of a server's tool may be the cause, so the other tools are tried again.
        return replace(request, tools=tuple(tool for tool in request.tools if not tool.origin)), Untaken.SERVER_TOOLS
    if isinstance(error, ToolsRefusedError) and request.tools:
        return replace(request, tools=()), Untaken.TOOLS
    if isinstance(error, RequestRejectedError):
        plain = with_plain_history(request)
        return None if plain.messages == request.messages else (plain, Untaken.HISTORY)
    return None


class CallRound:
    """Carries out the first sixteen calls of a reply, one after the other.

    ``rows`` are stored and finished. ``current`` is in progress: a call, or the next reply after the last call.
    """

    def __init__(self, runner: ReplyRunner, reply: Message, calls: Sequence[ReadCall]) -> None:
        self.rows: list[Message] = []
        self.current = reply
        self._runner = runner
        self._calls = calls[:MOST_CALLS]
        self._surplus = [each.call for each in calls[MOST_CALLS:]]
        self._has_run: Callable[[], bool] = _never

    async def begin(self, writer: ReplyWriter, end: ReplyEnd) -> WrittenReply:
        """Store the end of the reply, which is returned, and the first call as in progress."""
        reply = await writer.finished(Status.COMPLETE, end)
        content = await self._call(reply.row, [self._calls[0].call], reply.row.id)
        begin = message_rows.begin_call
        ended, self.current = await self._runner.rows.store.write(begin, reply.row, reply.thoughts, content)
        self.rows.append(ended)
        return reply

    async def carried_out(self, caller: Caller, refusal: Answer | None) -> AsyncGenerator[_CallEvent, None]:
        """Carry out the calls, or answer them all with ``refusal``; call ``stop`` if you do not iterate to the end."""
        for position, call in enumerate(self._calls, 1):
            asked = None if refusal else self._runner.toolbox.asked(call, caller)
            self._has_run = asked.is_answered if asked else lambda: refusal is None
            if asked:
                yield asked
            yield ToolStarted(call.shown, self.rows[0].thought if position == 1 else None)
            answer = refusal or await self._runner.toolbox.answer(call, caller)
            following = [each.call for each in self._calls[position : position + 1]]
            surplus = [] if following else self._surplus
            told = f"{answer.text}\n\n{TOO_MANY.text.format(number=len(surplus))}" if surplus else answer.text
            (ended, answered, *_, self.current), stopped = await run_to_completion(
                self._ended(self.current, answer._replace(text=told), following, surplus)
            )
            self.rows += (ended, answered)
            self._has_run = _never
            if stopped:
                raise asyncio.CancelledError
            yield ToolUsed(call.shown, answer.outcome, answer.has_changed)
        if self._surplus:
            yield ToolUsed(f"{len(self._surplus):,} more calls", TOO_MANY.outcome)

    async def _ended(
        self, row: Message, answer: Answer, following: Sequence[ToolCall], surplus: Sequence[ToolCall]
    ) -> list[Message]:
        """Store the result of a call and the next row in progress: the following call or, without one, a reply.

        The ``surplus`` calls get one row. It has no result, so no request contains it.
        """
        status = Status.FAILED if answer.was_refused else Status.COMPLETE
        after = [(await self._result(row, answer.text, answer.attachments))._replace(status=status)]
        if surplus:
            after.append((await self._call(row, surplus, row.reply_id))._replace(status=Status.COMPLETE))
        if following:
            after.append(await self._call(row, following, row.reply_id))
        else:
            after.append(message_rows.empty_reply(row.thread_id, row.turn_id, self._now(row), row.model or ""))
        return await self._runner.rows.store.write(message_rows.end_call, row, after)

    async def stop(self) -> None:
        """Store that the user stopped the row in progress; if that fails, the row is given up."""
        await run_to_completion(self._stopped(self.current))

    async def _stopped(self, row: Message) -> None:
        store, at = self._runner.rows.store, self._now(row)
        try:
            if row.role is Role.TOOL_USE:
                nothing = message_rows.empty_reply(row.thread_id, row.turn_id, at, row.model or "")
                result = await self._result(row, STOPPED if self._has_run() else NOT_RUN)
                result = result if self._has_run() else result._replace(status=Status.FAILED)
                following = [result, nothing._replace(status=Status.INTERRUPTED)]
                await store.write(message_rows.end_call, row, following)
            else:
                interrupted = row._replace(status=Status.INTERRUPTED, timestamp=at, token_count=0)
                await store.write(message_rows.update_reply, interrupted)
        except StorageError:
            self._runner.given_up.add(row.id)

    def _now(self, before: Message) -> datetime:
        """Return the present time, or the time of ``before`` if that is later."""
        return max(before.timestamp, self._runner.rows.clock.now())

    async def _call(self, before: Message, calls: Sequence[ToolCall], reply_id: int | None) -> MessageContent:
        written = calls_as_json(calls)
        return MessageContent(
            before.thread_id, Role.TOOL_USE, "", self._now(before), before.turn_id, tool_calls=written,
            tool_call_id=calls[0].id, status=Status.STREAMING, model=before.model,
            token_count=await self._count(written), reply_id=reply_id,
        )  # fmt: skip

    async def _result(self, call: Message, text: str, files: tuple[Attachment, ...] = ()) -> MessageContent:
        result = MessageContent(
            call.thread_id, Role.TOOL_RESULT, text, self._now(call), call.turn_id, tool_call_id=call.tool_call_id,
            attachments=files,
        )  # fmt: skip
        tokens = await self._count(sent_content(result))
        attached = attachment_tokens(files, call.model or "")
        return result._replace(token_count=tokens if tokens is None else tokens + attached)

    async def _count(self, text: str) -> int | None:
        """Count a text; return ``None`` if the vocabulary is not loaded, because loading takes long."""
        counter = self._runner.rows.counter
        return await asyncio.to_thread(counter.count, text) if counter.is_ready else None


def _never() -> bool:
    return False


def _with_unique_ids(calls: Iterable[ToolCall], taken: Iterable[str]) -> list[ToolCall]:
    """Give each call an id that no other call has and that is not ``taken``."""
    known = set(taken)
    unique: list[ToolCall] = []
    for call in calls:
        unique.append(call._replace(id=unique_id(call.id, known)))
        known.add(unique[-1].id)
    return unique
