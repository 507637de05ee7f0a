"""Shows one turn without the chat: the reply goes to stdout, everything else to stderr."""

from __future__ import annotations

import json
import sys
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

from chorus_cli.attachments.rules.recognition import is_picture
from chorus_cli.core import limits
from chorus_cli.core.errors import DatabaseUnconfirmedError, MessageNotStoredError, MessageRefusedError
from chorus_cli.log.rules.messages import Status
from chorus_cli.models.rules.events import (
    IN_LOG,
    Fence,
    ReasoningDelta,
    TextDelta,
    ThreadOpened,
    ToolStarted,
    TurnDone,
    WaitBegun,
    WaitOver,
)
from chorus_cli.terminal.prompt.keyboard import suspendable
from chorus_cli.terminal.reply.plain import PlainReply
from chorus_cli.terminal.reply.stream import show_events

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from chorus_cli.attachments.service.attachments import Prepared
    from chorus_cli.core.json.jsonc import JsonValue
    from chorus_cli.machine.ports import Clock
    from chorus_cli.models.rules.events import TurnEvent
    from chorus_cli.models.service.costs import Costs
    from chorus_cli.personas.rules.persona import Persona, Target
    from chorus_cli.terminal.screen.output import Screen
    from chorus_cli.turns.service.conversation import Conversation

_LONGEST_SIGN = 16


async def shown(
    target: Target,
    events: AsyncGenerator[TurnEvent, None],
    conversation: Conversation,
    answers: Screen,
    asides: Screen,
    *,
    as_json: bool = False,
) -> int:
    """Show a turn as it arrives, or the whole turn as JSON. Return the exit code."""
    if as_json:
        return await shown_as_json(target, events, conversation.runner.rows.clock, answers, asides)
    with suspendable(answers.take_down, conversation.context.store.at_rest):
        return _code(await show_events(events, answers, asides, shows_thoughts=target.persona.settings.show_thoughts))


async def shown_as_json(
    target: Target, turn: AsyncGenerator[TurnEvent, None], clock: Clock, answers: Screen, asides: Screen
) -> int:
    """Write a turn as one JSON value when it ends or is stopped; all else goes to ``asides``. Return the exit code."""
    came: list[TurnEvent] = []
    told, began = PlainReply(asides, asides), clock.monotonic()
    try:
        async with aclosing(turn) as events:
            async for event in events:
                if isinstance(event, Fence):
                    continue
                came.append(event)
                if isinstance(event, WaitOver):
                    began = clock.monotonic()
                if not isinstance(event, TextDelta):
                    told.show(event)
    finally:
        # A message that still waits is not in the log, so there is no turn to write.
        if came and not isinstance(came[-1], WaitBegun):
            answers.write(json.dumps(_record(target, came, clock.monotonic() - began), indent=2) + "\n")
    return _code(told.done)


def _record(target: Target, came: Sequence[TurnEvent], seconds: float) -> dict[str, JsonValue]:
    begin = max((number for number, event in enumerate(came) if isinstance(event, ToolStarted)), default=0)
    done = came[-1] if isinstance(came[-1], TurnDone) else None
    facts: dict[str, JsonValue] = {
        "reply": "".join(event.text for event in came[begin:] if isinstance(event, TextDelta)),
        "usage": dict(done.usage) if done else {},
        "model": target.choice.model,
        "thread": next((each.number for each in came if isinstance(each, ThreadOpened)), target.thread_number),
        "seconds": round(seconds, 3),
    }
    if thoughts := "".join(event.text for event in came[begin:] if isinstance(event, ReasoningDelta)):
        facts["thoughts"] = thoughts
    if done is not None and done.thought is not None:
        facts["thought_seconds"], facts["thought_tokens"] = done.thought
    if done is None or done.error is not None:
        facts["status"] = str(done.status if done else Status.INTERRUPTED)
    return facts


async def answered(
    message: Prepared, target: Target, again: Callable[[int], str], conversation: Conversation
) -> AsyncGenerator[TurnEvent, None]:
    """Yield the events of a turn. A message that cannot be stored goes to a file or, if that fails, into the error."""
    try:
        async with aclosing(advised(target, conversation.answer(target, *message), again)) as events:
            async for event in events:
                yield event
    except MessageNotStoredError as error:
        raise conversation.runner.rescued(error, target.persona.slug, "user", message.text) from error


async def advised(
    target: Target, events: AsyncGenerator[TurnEvent, None], again: Callable[[int], str]
) -> AsyncGenerator[TurnEvent, None]:
    """Yield the events of a turn; ``again(thread_number)`` replaces advice that is meant for the chat."""
    number = target.thread_number
    try:
        async with aclosing(events):
            async for event in events:
                number = event.number if isinstance(event, ThreadOpened) else number
                yield replace(event, again=again(number)) if isinstance(event, TurnDone) else event
    except DatabaseUnconfirmedError as error:
        raise DatabaseUnconfirmedError(f"{error}".replace(IN_LOG, again(number)).rstrip()) from error


def _code(done: TurnDone | None) -> int:
    return 0 if done is not None and done.error is None else 1


async def refuse_overspent(costs: Costs, persona: Persona, model: str, asides: Screen) -> None:
    """Raise a `MessageRefusedError` if the budget of the day is spent; warn if it is nearly spent."""
    spending = await costs.spending(persona.settings.budget, model)
    if spending is None:
        return
    if spending.is_over:
        raise MessageRefusedError(
            f"{spending.sentence} Nothing was sent. chorus set budget N raises the budget, "
            "chorus set budget default removes it."
        )
    if warning := costs.warning(spending):
        asides.notice(warning)


def standard_input() -> str | bytes:
    """Return piped text, or a piped picture or PDF as bytes; empty without a pipe. Refuse long input and bad UTF-8."""
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    data = sys.stdin.buffer.read(limits.STANDARD_INPUT.most + 1)
    if len(data) > limits.STANDARD_INPUT.most:
        raise MessageRefusedError(
            f"Standard input is larger than {limits.STANDARD_INPUT.size}. Nothing was sent; pipe the part that matters."
        )
    if is_picture(data[:_LONGEST_SIGN]):
        return data
    try:
        return data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise MessageRefusedError(
            f"Standard input is not UTF-8 (byte {error.start + 1} is 0x{data[error.start]:02x}). Nothing was sent; "
            "convert it first, for example with iconv."
        ) from error
