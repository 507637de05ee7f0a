"""The report of a context tells the thoughts that go back to their model apart from the messages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from chorus_cli.context.service.report import context_report
from chorus_cli.framework.command_line import resolve
from chorus_cli.framework.replies import Reply, plain
from chorus_cli.models.rules.costs import THOUGHT
from chorus_cli.models.rules.events import ReasoningDelta, ReplyEnd, TextDelta
from chorus_cli.models.rules.request import NO_ECHO, Echo, Span
from chorus_cli.storage.store import Store
from tests.fakes import FakeClock, ScriptedModel
from tests.turns.service.tool_talk import TOOLS, call
from tests.world import Tools, World, built

REASON = "before 2 replies, sent back to the model that had them"


@pytest.fixture
async def thoughtful(tmp_path: Path, store: Store, clock: FakeClock, model: ScriptedModel) -> World:
    """A world in which a tool was called after 300 tokens of thoughts, and the answer came after 40."""
    world = await built(tmp_path, store, clock, model, 10_000, Tools(TOOLS))
    called = (call("echo", {"text": "gold"}),)
    model.enqueue(ReasoningDelta("I must look."), TextDelta("Hm."), ReplyEnd("tool_calls", {THOUGHT: 300}, called))
    model.enqueue(ReasoningDelta("Gold!"), TextDelta("It is gold."), ReplyEnd("stop", {THOUGHT: 40}))
    await world.say("What is it?")
    return world


def echoing(world: World, echo: Echo) -> World:
    """Return the same world with a model that is sent its thoughts again."""
    context = replace(world.context, echo_of=lambda _model: echo)
    return replace(world, services=replace(world.services, context=context))


@pytest.mark.parametrize(
    ("echo", "tokens"),
    [(NO_ECHO, None), (Echo(Span.TURN), None), (Echo(Span.EVER), 300), (Echo(Span.EVER, calls_only=False), 340)],
)
async def test_thoughts_that_go_back_are_a_part_of_their_own(thoughtful: World, echo: Echo, tokens: int | None) -> None:
    without = await context_report(thoughtful.context, thoughtful.current.target(), thoughtful.clock.now())
    world = echoing(thoughtful, echo)
    report = await context_report(world.context, world.current.target(), world.clock.now())
    parts = {part.name: part.tokens for part in report.parts}
    assert parts.pop("thoughts", None) == tokens
    assert parts == {part.name: part.tokens for part in without.parts}
    assert sum(part.tokens for part in report.parts) == report.plan.meter.tokens
    told = report.as_json()["messages"]
    assert isinstance(told, list)
    thoughts = [message["thoughts"] for message in told if "thoughts" in message]
    assert thoughts == ["I must look.", "Gold!"][: {None: 0, 300: 1, 340: 2}[tokens]]


@pytest.mark.parametrize(("line", "words"), [("/context", ("thoughts", "340")), ("/why", ("thoughts", "340", REASON))])
async def test_the_user_reads_them_apart(thoughtful: World, line: str, words: tuple[str, ...]) -> None:
    services = echoing(thoughtful, Echo(Span.EVER, calls_only=False)).services
    answer = await resolve(services.registry, line, thoughtful.clock.now()).run(services)
    assert isinstance(answer, Reply)
    row = next(row for row in plain(answer).splitlines() if row.startswith("thoughts"))
    assert all(word in row for word in words)
