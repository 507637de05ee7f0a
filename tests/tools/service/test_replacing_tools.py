"""What a model may replace in the memory by ``remember``, and whose words its items have."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from chorus_cli.jobs.rules import EndedJob, Ending
from chorus_cli.memory.rules.items import Source, Tier
from chorus_cli.storage.store import Store
from tests.fakes import FakeClock, ScriptedModel
from tests.turns.service.tool_talk import TOOLS, call, calls, events_of, lines, results
from tests.world import Tools, World, built

LEEDS, YORK = "the office is in Leeds", "the office is in York, near the station"


@pytest.fixture
async def world(tmp_path: Path, store: Store, clock: FakeClock, model: ScriptedModel) -> World:
    return await built(tmp_path, store, clock, model, 10_000, Tools(TOOLS))


async def replaced(world: World, *before: str) -> tuple[str, str]:
    """Have the model call some tools, and then replace item 1; return the result and the line on the screen."""
    for name in before:
        calls(world, call(name, {"text": "x", "query": "office"}))
    calls(world, call("remember", {"type": "task", "content": YORK, "replaces": "#1"}))
    *_, line = lines(await events_of(world, "We have moved to York."))
    return results(world)[-1], line.rpartition("): ")[2]


async def source_of(world: World, item_id: int) -> Source:
    return (await world.services.memory.item("chorus", item_id)).source


async def test_a_model_replaces_a_fact_and_the_users_undo_reopens_it(world: World) -> None:
    await world.told(f"/remember {LEEDS}")
    world.clock.advance(timedelta(days=7))
    assert await replaced(world, "recall_memory") == ("Kept as #2 in place of #1.", "#2; /undo reopens #1")
    item = await world.services.memory.item("chorus", 2)
    assert (item.content, item.source, item.tier, item.source_message_id) == (YORK, Source.MODEL, Tier.WARM, 1)
    await world.told("/new")
    await world.say("Where is the office?")
    sent = str(world.model.requests[-1].messages)
    assert f"#2 (2026-02-19, from you): {YORK}" in sent
    assert "Leeds" not in sent
    await world.told("/undo")
    await world.told("/undo")
    assert await world.told("/undo") == f'Undone: replaced #1 by #2 "{YORK}"'
    await world.say("Where is the office?")
    sent = str(world.model.requests[-1].messages)
    assert LEEDS in sent
    assert YORK not in sent
    assert (
        await world.told("/redo")
        == "Nothing was undone just now; /undo list shows what was undone before, and /redo N redoes it."
    )
    await world.told("/context redo 2")
    await world.say("Where is the office?")
    assert "Leeds" not in str(world.model.requests[-1].messages)


async def test_a_model_does_not_replace_what_the_user_pinned(world: World) -> None:
    await world.told(f"/remember {LEEDS}")
    await world.told("/memory pin 1")
    told, outcome = await replaced(world)
    assert told == (
        "The user pinned memory item #1, so nothing was changed. "
        "Only the user can replace it, with /memory replace 1 TEXT."
    )
    assert outcome.startswith("The user pinned memory item #1")
    assert [item.content for item in await world.services.memory.listing("chorus")] == [LEEDS]


async def test_the_text_of_a_tool_replaces_nothing_that_the_user_said_and_a_model_cannot_make_it_its_own(
    world: World,
) -> None:
    await world.told(f"/remember {LEEDS}")
    told, _ = await replaced(world, "echo")
    assert told == (
        "Memory item #1 has the user's own words, and the new text may be a tool's, so nothing was changed. "
        "Only the user can replace it, with /memory replace 1 TEXT."
    )
    calls(world, call("echo", {"text": "x"}))
    calls(world, call("remember", {"type": "task", "content": "the harbour closes at noon"}))
    await events_of(world, "Look it up.")
    assert await source_of(world, 2) is Source.TOOL
    calls(world, call("remember", {"type": "task", "content": "the harbour closes at one", "replaces": 2}))
    await events_of(world, "Say it better.")
    assert await source_of(world, 3) is Source.TOOL
    assert (await world.services.memory.item("chorus", 3)).tier is Tier.WARM
    assert results(world)[-1] == "Kept as #3 in place of #2."
    calls(world, call("remember", {"type": "task", "content": "the harbour closes at one", "replaces": 1}))
    await events_of(world, "Is that all?")
    assert results(world)[-1] == "Memory item #3 has this content already."


@pytest.mark.parametrize("is_file", [False, True])
async def test_what_a_model_remembers_of_a_file_or_of_the_output_of_a_command_has_that_source(
    world: World, tmp_path: Path, *, is_file: bool
) -> None:
    await world.say("Hello")
    target = world.current.target()
    if is_file:
        (tmp_path / "plan.txt").write_text("We move to York.")
        await world.told(f"/attach {tmp_path / 'plan.txt'}")
    else:
        ended = EndedJob(1, "cat plan.txt", Ending(0, 1.0), ("We move to York.",), 1, world.clock.now())
        world.services.jobs.news.add(target.thread_id, ended)
    asked = await world.services.attachments.prepared("Note where we move.", "openai/gpt-5")
    calls(world, call("remember", {"type": "task", "content": YORK}))
    assert [event async for event in world.conversation.answer(target, asked.text, asked.attachments)]
    assert await source_of(world, 1) is (Source.FILE if is_file else Source.TOOL)
    calls(world, call("remember", {"type": "task", "content": "buy a map"}))
    await events_of(world, "And a map.")
    assert await source_of(world, 2) is Source.MODEL


async def test_a_model_is_told_why_it_cannot_replace_what_is_closed_unknown_or_the_same(world: World) -> None:
    assert (await replaced(world))[0] == "There is no memory item #1 here. /memory list shows the items."
    await world.told(f"/remember {YORK}")
    assert (await replaced(world))[0] == "Memory item #1 has this content already."
    await world.told(f"/memory replace 1 {LEEDS}")
    assert (await replaced(world))[0] == "#2 has replaced memory item #1; /memory show 1 shows both."


async def test_a_near_text_of_a_model_is_proposed_in_one_line(world: World) -> None:
    await world.told(f"/remember {LEEDS}")
    calls(world, call("remember", {"type": "task", "content": "the office is in York", "replaces": 0}))
    (line,) = lines(await events_of(world, "We have moved."))
    assert line.endswith("): #2, nearly the same as #1: see /memory inbox")
    assert "#2" in await world.told("/memory inbox")
