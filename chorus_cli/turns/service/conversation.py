"""Answers a message: stores it, plans the request, asks the model, and carries out the tools that the model calls.

While this process or another writes a reply in a thread, the next turn of the thread waits. The request of each round
is planned from the rows, so it begins with the bytes of the request before.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from chorus_cli.attachments.service.attachments import KIND_NAMES
from chorus_cli.context.rules.plan import RequestPlan
from chorus_cli.context.rules.view import ContextSnapshot, RequestStart
from chorus_cli.context.service.context import Context
from chorus_cli.core.errors import StorageError, ThreadBusyError
from chorus_cli.core.text.phrases import enumerated, open_fence
from chorus_cli.log.rows import interrupted_replies, message_rows, operation_rows, thread_rows
from chorus_cli.log.rules.acts import Way
from chorus_cli.log.rules.attachments import ALL_SENT, Attachment
from chorus_cli.log.rules.messages import Message, Role, Status
from chorus_cli.log.rules.operations import Operation
from chorus_cli.machine.notifier import run_to_completion, to_its_end
from chorus_cli.mcp.toolbox import Toolbox
from chorus_cli.memory.service.memory import Memory
from chorus_cli.models.rules.choice import ELIZA
from chorus_cli.models.rules.declaration import NO_OFFER
from chorus_cli.models.rules.events import (
    Connecting,
    Fence,
    Notice,
    TextDelta,
    ThreadOpened,
    TurnDone,
    TurnEvent,
    WaitBegun,
    WaitOver,
)
from chorus_cli.models.rules.request import ModelRequest, PromptMessage, Span
from chorus_cli.personas.rules.persona import Target
from chorus_cli.tools.service import Caller
from chorus_cli.turns.rules import flash_notice, shortfalls
from chorus_cli.turns.service.folding import Folding
from chorus_cli.turns.service.opening import OpenedTurn, TurnOpener
from chorus_cli.turns.service.reply import ENOUGH, MOST_ROUNDS, Called, ReplyRunner, Untaken

_Files = tuple[Attachment, ...]
_OpenTurn = Callable[[], Coroutine[None, None, OpenedTurn | ThreadBusyError]]


_PLAIN_HISTORY = "{model} rejected this conversation, so it gets earlier turns as plain text until /new."
_FOLDING = "The conversation no longer fits the model, so Chorus is summarising the older part."


@dataclass(slots=True)
class _Turn:
    """A turn that is being answered; ``row`` is the reply in progress, ``None`` when the turn is over.

    ``unsent`` has sentences about attachments that are not sent. ``rounds`` counts the replies with calls. ``called``
    is the newest of these until its calls are answered. ``asked`` has the messages of the last request.
    """

    target: Target
    plan: RequestPlan
    row: Message | None
    at: datetime
    notices: list[str]
    unsent: Mapping[str, str]
    rounds: int = 0
    called: Called | None = None
    asked: tuple[PromptMessage, ...] = ()


@dataclass(frozen=True, slots=True)
class Conversation:
    """Answers messages in rounds, until the model calls no more tools. This process began at ``began_at``.

    ``missing`` returns the attachments whose bytes are gone.
    """

    context: Context
    runner: ReplyRunner
    folds: Folding
    toolbox: Toolbox
    memory: Memory
    missing: Callable[[Sequence[Attachment]], Awaitable[set[Attachment]]]
    opener: TurnOpener
    began_at: datetime

    def answer(self, target: Target, text: str, attachments: _Files = ()) -> AsyncGenerator[TurnEvent, None]:
        """Store ``text``, ask the model, and yield the events of the turn; the last one is ``TurnDone``.

        The bytes of ``attachments`` are stored already. If the caller stops listening or is cancelled, the part of
        the reply that has arrived is kept as ``interrupted``. The message is stored even if the caller stops at once,
        except between ``WaitBegun`` and ``WaitOver``. An error says where the message is, or that it was not stored.
        """
        return self._turn(target.thread_id, partial(self.opener.ask, target, text, attachments))

    def retry(self, target: Target, way: Way = Way.AGAIN) -> AsyncGenerator[TurnEvent, None]:
        """Answer the last question in context again, or continue its reply; the log keeps the old reply.

        If the retry brings no reply, it is undone, so the old reply stays.
        """
        return self._turn(target.thread_id, partial(self.opener.ask_again, target, way))

    async def close_unused(self, target: Target) -> None:
        """Close a thread that was opened for a message that was refused."""
        now = self.runner.rows.clock.now()
        await self.context.store.write(thread_rows.close, [target.thread_id], now)

    async def _turn(self, thread_id: int, open_turn: _OpenTurn) -> AsyncGenerator[TurnEvent, None]:
        """Open a turn as soon as no other reply is being written in the thread, and answer it."""
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
            if not thread_id:
                yield ThreadOpened(opened.snapshot.request_settings.target.thread_number)
            if stopped:
                raise asyncio.CancelledError
            is_asked = True
            async with aclosing(self._answered(opened)) as events:
                async for event in events:
                    yield event
        finally:
            if not is_asked:
                await self.runner.abandon(opened.reply)
            if opened.reply.introduced_by is not None:
                now, write = self.runner.rows.clock.now(), self.context.store.write
                await to_its_end(write(interrupted_replies.take_back_if_empty, opened.reply.id, now))

    async def _answered(self, opened: OpenedTurn) -> AsyncGenerator[TurnEvent, None]:
        """Ask the model round by round, and yield the events of the turn; the last one is ``TurnDone``."""
        try:
            snapshot, target = opened.snapshot, opened.snapshot.request_settings.target
            if servers := self.toolbox.connecting(target):
                yield Connecting(servers)
            for sentence in await self.toolbox.connected(target):
                yield Notice(sentence)
            if servers or self.toolbox.of_servers(target):
                snapshot = await self.context.offered_anew(snapshot)
            plan = await self.context.plan_turn(snapshot)
            unsent = await self._unsent(plan)
        except BaseException:
            await self.runner.abandon(opened.reply)
            raise
        turn = _Turn(plan.snapshot.request_settings.target, plan, opened.reply, opened.at, [*opened.notices], unsent)
        if not plan.is_crowded:
            turn.notices += self.folds.news(turn.target, unsent)
        # Neither /continue nor a talk with ELIZA makes memory items.
        is_captured = opened.reply.revises is None and turn.target.choice.model != ELIZA
        fence = open_fence(opened.reply.content) if opened.reply.content else ""
        while turn.row is not None:
            async with aclosing(self._round(turn, turn.row)) as events:
                async for event in events:
                    if fence and isinstance(event, TextDelta):
                        # If /continue extends a reply that ended within a block of code, the rest is shown as code.
                        yield Fence(f"{fence}\n")
                        fence = ""
                    if isinstance(event, TurnDone) and is_captured:
                        told = await self.memory.capture_turn(turn.target.persona, opened.snapshot.view.messages)
                        yield replace(event, remembered=told)
                    else:
                        yield event

    async def _unsent(self, plan: RequestPlan) -> dict[str, str]:
        """Say which attachments a request only names; the key of each sentence is its subject."""
        rows = [row for row in plan.sent if row.role in {Role.USER, Role.TOOL_RESULT}]
        attached = dict.fromkeys(each for row in rows for each in row.attachments)
        settings, told = plan.snapshot.request_settings, dict[str, str]()
        model, taken = settings.target.choice.model, [each for each in attached if each.kind in settings.accepted]
        gone = await self.missing(taken) if taken else ()
        if lost := enumerated([each.name for each in taken if each in gone]):
            way = "Attach it again." if self.context.store.server else "chorus doctor looks for it in the backups."
            told[f"lost: {lost}"] = f"Chorus has lost {lost}, so the model gets only the name. {way}"
        for kind in dict.fromkeys(each.kind for each in attached if each.kind in ALL_SENT - settings.accepted):
            names = enumerated([each.name for each in attached if each.kind is kind])
            untaken = f"{model} takes no {KIND_NAMES[kind]}, so Chorus sends it only the name of {names}."
            told[untaken] = untaken
        return told

    async def _round(self, turn: _Turn, row: Message) -> AsyncGenerator[TurnEvent, None]:
        try:
            if turn.plan.is_crowded:
                async with aclosing(self._make_room(turn)) as notices:
                    async for notice in notices:
                        yield notice
            snapshot = turn.plan.snapshot
            if snapshot.request_settings.echo.is_bound and not _begins_with(turn.plan.request.messages, turn.asked):
                # Such thoughts are valid only while all messages before them stay the same.
                turn.plan = await self.context.plan(replace(snapshot, echoed={}))
        except BaseException:
            await self.runner.abandon(row)
            raise
        async with aclosing(self._asked(turn, row)) as events:
            async for event in events:
                yield event
        if turn.called is None:
            turn.row = None
            return
        try:
            await self._learn(turn, turn.called.usage)
            caller = Caller(turn.target.persona, row.turn_id, turn.target.choice.model)
            refusal = ENOUGH if turn.rounds > MOST_ROUNDS else None
            async with aclosing(turn.called.round.carried_out(caller, refusal)) as used:
                async for each in used:
                    yield each
            turn.plan = await self.context.plan_turn(_with_results(turn.plan, turn.called))
        except BaseException:
            await turn.called.round.stop()
            raise
        turn.row, turn.notices, turn.called = turn.called.round.current, [], None
        turn.at = self.runner.rows.clock.now()

    async def _make_room(self, turn: _Turn) -> AsyncGenerator[Notice, None]:
        """Fold the oldest turns of a crowded request, archive COLD memory items, and plan the request again."""
        if await self.folds.is_worth_trying(turn.target):
            yield Notice(_FOLDING)
            turn.notices += filter(None, [await self.folds.at_once(turn.target)])
        # If the memory cannot be written, the next crowded request archives the items.
        with suppress(StorageError):
            saved = await self.memory.flash_automatically(turn.target.persona.slug)
            turn.notices += [flash_notice(saved)] if saved else []
        turn.plan = await self._replanned(turn.plan)
        turn.notices += self.folds.news(turn.target, {**turn.unsent, **shortfalls(turn.plan)})

    async def _asked(self, turn: _Turn, row: Message) -> AsyncGenerator[TurnEvent, None]:
        turn.asked = turn.plan.request.messages
        self.context.prefixes.hold(turn.plan, turn.at)
        request = _going_on(turn.plan.request) if row.revises is not None else turn.plan.request
        if turn.rounds > MOST_ROUNDS:
            # After the last round the model must answer without tools.
            request = replace(request, may_call=False)
        async with aclosing(self.runner.reply(row, request, turn.notices)) as events:
            async for event in events:
                match event:
                    case Untaken.TOOLS | Untaken.SERVER_TOOLS:
                        offer = turn.plan.snapshot.request_settings.offer.built_in
                        kept = offer if event is Untaken.SERVER_TOOLS else NO_OFFER
                        turn.plan = turn.plan.with_offer(kept)
                        yield Notice(await self.toolbox.refused(request.model, kept))
                    case Untaken.HISTORY:
                        turn.plan = turn.plan.with_plain_history()
                        turn.asked = turn.plan.request.messages
                        await self.context.remember_refusal(turn.plan.snapshot)
                        yield Notice(_PLAIN_HISTORY.format(model=request.model))
                    case Called():
                        turn.called = event
                        turn.rounds += 1
                    case TurnDone():
                        if event.usage:
                            await self._learn(turn, event.usage)
                        if self.folds.tell is not None:
                            self.folds.begin_in_background(turn.target)
                        yield event
                    case _:
                        yield event

    async def _learn(self, turn: _Turn, usage: Mapping[str, int]) -> None:
        reported = usage.get("prompt_tokens")
        if reported and turn.plan.is_exact:
            await self.context.learn(turn.target.choice.model, turn.plan.tokens, reported)

    async def _replanned(self, plan: RequestPlan) -> RequestPlan:
        """Plan the request again with the present summary, but without messages that arrived meanwhile."""
        request_settings, view = plan.snapshot.request_settings, plan.snapshot.view
        now = await self.context.store.read(self.context.read, request_settings, RequestStart(view.cutoff))
        summary = (await self.context.counted(now)).view.summary
        snapshot = replace(plan.snapshot, view=view.with_summary(summary), budget=now.budget)
        replanned = await self.context.plan(snapshot)
        before = plan.snapshot.first_message_id, plan.snapshot.view.summary
        if (replanned.begins_at, replanned.snapshot.view.summary) == before:
            return replanned
        # A fold or an omission has changed the beginning. The cache is lost anyway, so the HOT items are renewed.
        return await self.context.plan(replace(snapshot, hot=now.hot))


async def made_elsewhere(conversation: Conversation, done: Message | Operation) -> str:
    """Say that another process sent a message or made an operation since this process began, or is answering now."""
    if isinstance(done, Message):
        replies = await _replies(conversation, done)
        runs = {row.run for row in replies if row.run}
        is_new = done.timestamp >= conversation.began_at or any(row.status is Status.STREAMING for row in replies)
        told = "The newest message in this thread was sent from another Chorus."
    else:
        runs = {await conversation.context.store.read(operation_rows.run_of, done.id)} - {""}
        is_new = done.created_at >= conversation.began_at
        told = "The newest action in this thread was made in another Chorus."
    return told if is_new and runs and conversation.opener.run not in runs else ""


async def is_answering(conversation: Conversation, question: Message) -> bool:
    """Return whether this process is writing a reply to ``question``."""
    rows = await _replies(conversation, question)
    return any(row.status is Status.STREAMING and row.run == conversation.opener.run for row in rows)


async def _replies(conversation: Conversation, question: Message) -> list[Message]:
    return await conversation.context.store.read(message_rows.replies, question)


def _with_results(plan: RequestPlan, called: Called) -> ContextSnapshot:
    """Return the context of the next round: the context of ``plan``, with the calls and their results."""
    snapshot, rows = plan.snapshot, called.round.rows
    view = replace(snapshot.view, messages=(*snapshot.view.messages, *rows))
    echoed = dict(snapshot.echoed)
    if any(called.thoughts.thoughts) and snapshot.request_settings.echo.span is not Span.NEVER:
        echoed[rows[0].id] = called.thoughts
    return replace(snapshot, view=view, echoed=echoed, first_message_id=plan.begins_at)


def _going_on(request: ModelRequest) -> ModelRequest:
    """Let the model continue the reply with which a request ends.

    The model may call no tools, because the request after the calls would have the beginning of the reply twice.
    """
    *before, reply = request.messages
    return replace(request, messages=(*before, reply._replace(thoughts=None)), may_call=False, goes_on=True)


def _begins_with(messages: Sequence[PromptMessage], before: Sequence[PromptMessage]) -> bool:
    """Return whether a request begins with the messages of the request before; thoughts do not count."""
    return len(messages) >= len(before) and all(
        message._replace(thoughts=None) == known._replace(thoughts=None)
        for message, known in zip(messages, before, strict=False)
    )
