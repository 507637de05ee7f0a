"""A reply: asked for, streamed, written into its row while it arrives, and closed with a status however it ends."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from chorus_cli.context.rules.rounds import Echoed
from chorus_cli.core.errors import (
    DatabaseReadOnlyError,
    MessageNotStoredError,
    ModelError,
    RequestRejectedError,
    StorageError,
    ThreadBusyError,
    ToolsRefusedError,
)
from chorus_cli.log.rows import interrupted_replies
from chorus_cli.log.rules.messages import Status
from chorus_cli.machine.notifier import run_to_completion
from chorus_cli.models.rules.events import (
    PAUSES_SECONDS,
    Asking,
    Lengths,
    Notice,
    ReasoningDelta,
    ReplyEnd,
    TextDelta,
    TurnDone,
    calls_to_answer,
    outcome,
    pause_before_retry,
)
from chorus_cli.models.rules.request import with_plain_history
from chorus_cli.turns.service.calls import CallLog, CallRound, with_unique_ids
from chorus_cli.turns.service.reply_rows import ReplyWriter

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
    from pathlib import Path

    from chorus_cli.core.errors import ChorusError
    from chorus_cli.log.rules.messages import Message
    from chorus_cli.machine.ports import Clock, TokenCounter
    from chorus_cli.models.rules.declaration import ReadCall
    from chorus_cli.models.rules.events import ModelClient, ModelEvent, TurnEvent
    from chorus_cli.models.rules.request import ModelRequest
    from chorus_cli.personas.rules.persona import Target
    from chorus_cli.storage.store import Connection, Store
    from chorus_cli.tools.service import Toolbox
    from chorus_cli.turns.service.reply_rows import ReplyRows, WrittenReply


_POLL_SECONDS = 0.2
_NO_CALLS: Sequence[ReadCall] = ()


@dataclass(frozen=True, slots=True)
class TurnDependencies:
    """The outside world of a conversation: the model, the clock, the token counter, and a file of last resort.

    ``is_alive`` says whether the process that owns a reply in progress still runs.
    """

    model: ModelClient
    clock: Clock
    counter: TokenCounter
    rescue: Callable[[Mapping[str, str]], Path | None]
    is_alive: Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class ToolsRefused:
    """The model takes no tools; it is being asked without them."""

    model: str


@dataclass(frozen=True, slots=True)
class HistoryRefused:
    """The model has refused a request that it takes with earlier turns as plain text."""

    model: str


@dataclass(frozen=True, slots=True)
class Called:
    """The reply ended with calls; the first of them is stored and in progress. ``thoughts`` are what led to them."""

    round: CallRound
    usage: Mapping[str, int]
    thoughts: Echoed


@dataclass(frozen=True, slots=True)
class ReplyRunner:
    """Streams replies into rows that are there already, empty; ``toolbox`` reads the calls that a reply ends with.

    ``given_up`` are the replies and calls whose end could not be written; the next turn marks them as interrupted.
    """

    store: Store
    rows: ReplyRows
    dependencies: TurnDependencies
    toolbox: Toolbox
    given_up: set[int] = field(default_factory=set, init=False)

    async def reply(
        self, row: Message, request: ModelRequest, notices: Sequence[str] = ()
    ) -> AsyncGenerator[TurnEvent | ToolsRefused | HistoryRefused | Called, None]:
        """Ask the model, write what it says into ``row``, and yield what happens.

        The last event is ``TurnDone``, or ``Called`` if the model wants tools to be used: the turn goes on then.

        Raises:
            StorageError: the end of the reply could not be stored; it is kept in a file that the sentence names.
        """
        writer = ReplyWriter(self.rows, row, self.dependencies.clock.monotonic())
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
                    yield event
                    lengths.take(event)
            calls = await self._calls(request, end) if end.calls else ()
        except ModelError as error:
            failure = error
        except BaseException:
            await run_to_completion(self._finish(writer, row, Status.INTERRUPTED, end))
            raise
        if calls:
            yield await self._called(writer, calls, end)
            return
        ended = outcome(request.model, "".join(writer.pieces), end, failure, has_thought=lengths.thought > 0)
        written, stopped = await run_to_completion(self._finish(writer, row, ended.status, end))
        if stopped:
            raise asyncio.CancelledError
        yield TurnDone(row.id, ended.status, end.usage, ended.error, thought=written.row.thought)

    async def abandon(self, row: Message) -> None:
        """Mark a reply as interrupted that was stopped before it began."""
        writer = ReplyWriter(self.rows, row, self.dependencies.clock.monotonic())
        await run_to_completion(self._finish(writer, row, Status.INTERRUPTED, ReplyEnd(None)))

    def refuse_busy(self, connection: Connection, target: Target, run: str) -> None:
        """Check that no reply is being written in the thread of ``target``; ``run`` names this process.

        Raises:
            ThreadBusyError: there is one.
        """
        writer = self._writer(connection, target.thread_id)
        if writer is not None:
            written = "is still being written here" if writer == run else "another Chorus is writing"
            raise ThreadBusyError(f"Waiting for the reply in thread #{target.thread_number} that {written} …")

    async def wait_until_free(self, thread_id: int) -> None:
        """Wait until no reply is being written in a thread, or its process has died."""
        # The attempt to store a message tells of a database that cannot be read.
        with suppress(StorageError):
            while await self.store.read(self._writer, thread_id):
                await self.dependencies.clock.sleep(_POLL_SECONDS)

    def _writer(self, connection: Connection, thread_id: int) -> str | None:
        """Return the live run that is writing a reply in a thread, ``None`` if there is none."""
        rows = interrupted_replies.in_progress(connection, thread_id)
        runs = (run for id_, run in rows if run is not None and id_ not in self.given_up)
        return next(filter(self.dependencies.is_alive, runs), None)

    def rescued(self, error: ChorusError, persona: str, role: str, content: str) -> ChorusError:
        """Keep a text that the database refused in a file, and return the error that names the file.

        A message that nothing can be stored beside, or that no file takes, stays with the caller. One that the caller
        cannot keep (``MessageNotStoredError``), and a reply, is in the sentence if no file takes it.
        """
        if isinstance(error, DatabaseReadOnlyError):
            return DatabaseReadOnlyError(f"{str(error).removesuffix('.')} and nothing was sent.")
        path = self.dependencies.rescue({"persona": persona, "role": role, "content": content, "error": str(error)})
        if path is None and role == "user" and not isinstance(error, MessageNotStoredError):
            return MessageNotStoredError(str(error))
        kept = f"The text is kept in {path}." if path else f"It could not be kept in a file either: {content}"
        return type(error)(f"{error} {kept}")

    async def _calls(self, request: ModelRequest, end: ReplyEnd) -> Sequence[ReadCall]:
        """Read the calls that a reply ends with."""
        calls = calls_to_answer(request, end)
        taken = (message.tool_call_id for message in request.messages if message.tool_call_id)
        return await self.toolbox.read(with_unique_ids(calls, taken)) if calls else ()

    async def _called(self, writer: ReplyWriter, calls: Sequence[ReadCall], end: ReplyEnd) -> Called:
        """Store the end of the reply and its first call, which is in progress then."""
        reply, stopped = await run_to_completion(writer.finished(Status.COMPLETE, end))
        log = CallLog(self.store, self.dependencies.clock, self.dependencies.counter, self.given_up)
        called = CallRound(log, self.toolbox, reply.row, calls)
        try:
            await called.begin(reply)
            if stopped:
                await called.stop()
                raise asyncio.CancelledError
        except StorageError as error:
            self.given_up.add(reply.row.id)
            raise self.rescued(error, reply.row.persona, "assistant", writer.text) from error
        thought = reply.row.thought
        return Called(called, end.usage, Echoed(reply.thoughts, thought.tokens if thought else None))

    async def _finish(self, writer: ReplyWriter, row: Message, status: Status, end: ReplyEnd) -> WrittenReply:
        try:
            return await writer.finish(status, end)
        except StorageError as error:
            self.given_up.add(row.id)
            raise self.rescued(error, row.persona, "assistant", writer.text) from error

    async def _attempts(
        self, request: ModelRequest, notices: Sequence[str]
    ) -> AsyncGenerator[ModelEvent | Asking | ToolsRefused | HistoryRefused, None]:
        """Yield the notices and stream the reply; retry as long as nothing of it has arrived.

        Refused tools are left out, and a request that is rejected is made once more with earlier turns as plain text.
        """
        for notice in notices:
            yield Notice(notice)
        failures = 0
        found_out: list[ToolsRefused | HistoryRefused] = []
        while True:
            started = False
            yield Asking(request.model)
            try:
                async with aclosing(self.dependencies.model.stream(request)) as events:
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
                yield Notice(f"{error.problem} Retrying in {pause:g} s ({failures} of {len(PAUSES_SECONDS)}) …")
                await self.dependencies.clock.sleep(pause)
            else:
                return


def _adapted(request: ModelRequest, error: ModelError) -> tuple[ModelRequest, ToolsRefused | HistoryRefused] | None:
    """Return a request without what the provider refused, and what that was; ``None`` if nothing can be left out."""
    if isinstance(error, ToolsRefusedError) and request.tools:
        return replace(request, tools=()), ToolsRefused(request.model)
    if isinstance(error, RequestRejectedError):
        plain = with_plain_history(request)
        return None if plain.messages == request.messages else (plain, HistoryRefused(request.model))
    return None
