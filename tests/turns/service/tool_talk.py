"""A persona whose model calls tools: three simple ones beside the built-in, and what came of the calls."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from itertools import pairwise

import pytest

from chorus_cli.log.rules.calls import ToolCall
from chorus_cli.models.rules.declaration import Arguments, Kind, Parameter
from chorus_cli.models.rules.events import ReplyEnd, TextDelta, ToolUsed, TurnDone, TurnEvent
from chorus_cli.models.rules.request import PromptMessage
from chorus_cli.tools.service import BUILT_IN, Answer, Caller, ToolServices, built_in
from tests.world import World


@built_in(
    "Say a text again.",
    Parameter("text", "Any text."),
    Parameter("times", "How often.", Kind.NUMBER, is_required=False),
)
async def echo(_services: ToolServices, _caller: Caller, arguments: Arguments) -> Answer:
    times = arguments.number("times") if "times" in arguments.values else 1
    return Answer(arguments.text("text") * times, f"{times} times")


@built_in("Fail.")
async def broken(_services: ToolServices, _caller: Caller, _arguments: Arguments) -> Answer:
    raise RuntimeError("the wheel came off")


@built_in("Never end.")
async def endless(_services: ToolServices, _caller: Caller, _arguments: Arguments) -> Answer:
    await asyncio.Event().wait()
    raise AssertionError("nothing sets it")


TOOLS = (*BUILT_IN, echo, broken, endless)


def call(name: str, arguments: object = "", id_: str = "c1") -> ToolCall:
    """Return a call; arguments that are no text are written as JSON."""
    return ToolCall(id_, name, arguments if isinstance(arguments, str) else json.dumps(arguments))


def calls(world: World, *called: ToolCall, before: str = "", reason: str | None = "tool_calls") -> None:
    """Enqueue a reply that ends with calls, after some words."""
    world.model.enqueue(*([TextDelta(before)] if before else []), ReplyEnd(reason, {}, called))


async def events_of(world: World, text: str) -> list[TurnEvent]:
    """Send a message and return the events of the turn."""
    return [event async for event in world.conversation.answer(world.current.target(), text)]


async def stop_at(events: AsyncGenerator[TurnEvent, None], kind: type[TurnEvent], number: int = 1) -> None:
    """Follow a turn until an event of a kind has come so often, and cancel it a little later, as Ctrl-C does."""
    has_come = asyncio.Event()

    async def listen() -> None:
        left = number
        async with aclosing(events):
            async for event in events:
                left -= isinstance(event, kind)
                if not left:
                    has_come.set()

    turn = asyncio.create_task(listen())
    await has_come.wait()
    await asyncio.sleep(0.01)
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn


def lines(events: list[TurnEvent]) -> list[str]:
    """Return the line of each tool that was used."""
    return [event.line for event in events if isinstance(event, ToolUsed)]


def end_of(events: list[TurnEvent]) -> TurnDone:
    assert isinstance(events[-1], TurnDone)
    return events[-1]


async def rows(world: World) -> list[tuple[str, str, str | None, str]]:
    """Return role, content, id of the call and status of every row."""
    return [(row.role, row.content, row.tool_call_id, row.status) for row in await world.log()]


def results(world: World, number: int = -1) -> list[str]:
    """Return the results in a request."""
    return [message.content for message in world.model.requests[number].messages if message.role == "tool"]


def assert_each_request_begins_with_the_one_before(world: World) -> None:
    """No provider's cache is lost, and the results of all calls of a reply come directly after it."""
    sent = [request.messages for request in world.model.requests]
    for before, after in pairwise(sent):
        assert after[: len(before)] == before
    for messages in sent:
        assert_pairs_are_whole(messages)


async def assert_repeated_later(world: World) -> None:
    """Whatever a turn sent is in the next request too, where it was."""
    await world.say("Thanks")
    assert_each_request_begins_with_the_one_before(world)


def assert_pairs_are_whole(messages: tuple[PromptMessage, ...]) -> None:
    open_ids: list[str] = []
    for message in messages:
        assert (message.role == "tool") == bool(open_ids)
        if message.role == "tool":
            assert message.tool_call_id == open_ids.pop(0)
        for each in json.loads(message.tool_calls or "[]"):
            assert isinstance(json.loads(each["function"]["arguments"]), dict)
            open_ids.append(each["id"])
    assert not open_ids
