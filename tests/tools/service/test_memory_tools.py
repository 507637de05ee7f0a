"""The tools by which a model uses the memory of its persona."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chorus_cli.context.service.report import context_report
from chorus_cli.log.rows.search_index import Scope
from chorus_cli.memory.rules.items import ItemType
from chorus_cli.tools.service import BUILT_IN
from tests.turns.service.tool_talk import call, calls, events_of, lines, results
from tests.world import Tools, World, built

if TYPE_CHECKING:
    from pathlib import Path

    from chorus_cli.storage.store import Store
    from tests.fakes import FakeClock, ScriptedModel

PLUMBER = "call the plumber about the boiler"


@pytest.fixture
async def world(tmp_path: Path, store: Store, clock: FakeClock, model: ScriptedModel) -> World:
    return await built(tmp_path, store, clock, model, 10_000, Tools(BUILT_IN))


async def result_of(world: World, name: str, **arguments: object) -> tuple[str, str]:
    """Have the model call a tool; return its result and the line on the screen."""
    calls(world, call(name, arguments))
    (line,) = lines(await events_of(world, "Well?"))
    return results(world)[-1], line


async def test_a_model_remembers_and_names_the_question_as_the_source(world: World) -> None:
    result, line = await result_of(world, "remember", type="TASK", content=PLUMBER)
    (item,) = await world.services.memory.listing("chorus")
    question = next(row for row in await world.log() if row.role == "user")
    assert (item.item_type, item.content, item.source_message_id) == (ItemType.TASK, PLUMBER, question.id)
    assert result == f"Kept as #{item.id}."
    assert line.endswith(f"): #{item.id}; /undo takes it back")


async def test_an_undo_takes_back_what_a_model_remembered(world: World) -> None:
    await result_of(world, "remember", type="TASK", content=PLUMBER)
    await world.carry_out("/undo")
    assert await world.services.memory.listing("chorus") == []


async def test_the_same_is_kept_once(world: World) -> None:
    await result_of(world, "remember", type="TASK", content=PLUMBER)
    result, line = await result_of(world, "remember", type="TASK", content=PLUMBER)
    assert (result, line.rpartition(": ")[2]) == ("That is in your memory already, as #1.", "known as #1")


@pytest.mark.parametrize("way", ["forget", "undo"])
async def test_a_model_cannot_bring_back_what_the_user_forgot(world: World, way: str) -> None:
    await result_of(world, "remember", type="TASK", content=PLUMBER)
    if way == "forget":
        await world.services.memory.forget("chorus", 1)
    else:
        await world.carry_out("/undo")
    assert await world.services.memory.listing("chorus") == []
    result, shown = await result_of(world, "remember", type="CODE", content=PLUMBER)
    assert (result, shown.rpartition(": ")[2]) == ("The user has asked to forget this.",) * 2
    assert await world.services.memory.listing("chorus") == []
    await world.carry_out(f"/remember {PLUMBER}")
    assert [item.id for item in await world.services.memory.listing("chorus")] == [1]


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("plumber", f"From memory:\n#1 TASK: {PLUMBER}"),
        ("#1", f"From memory:\n#1 TASK: {PLUMBER}"),
        ("Did anybody ever see the boiler?", f"From memory:\n#1 TASK: {PLUMBER}"),
        ("violin", "Nothing in your memory contains any of these words."),
        ("!", "Nothing in your memory contains any of these words."),
    ],
)
async def test_a_model_looks_into_its_memory(world: World, query: str, told: str) -> None:
    await world.services.memory.remember("chorus", ItemType.TASK, PLUMBER)
    result, _line = await result_of(world, "recall_memory", query=query)
    assert result == told


async def test_looking_counts_as_an_access(world: World) -> None:
    item = (await world.services.memory.remember("chorus", ItemType.PRD_SECTION, PLUMBER)).item
    await result_of(world, "recall_memory", query="boiler")
    assert (await world.services.memory.item("chorus", item.id)).access_count == 2


async def test_a_model_sees_the_memory_of_its_own_persona_only(world: World) -> None:
    await world.services.memory.remember("frodo", ItemType.TASK, PLUMBER)
    result, _line = await result_of(world, "recall_memory", query="plumber #1")
    assert result == "Nothing in your memory contains any of these words."


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"type": "TASK", "content": "  "}, "Content cannot be empty or whitespace-only"),
        ({"type": "TASK", "content": "x" * 100_001}, "Content exceeds maximum length of 100000 characters"),
    ],
)
async def test_a_refusal_is_told_to_the_model(world: World, arguments: dict[str, object], told: str) -> None:
    result, _line = await result_of(world, "remember", **arguments)
    assert told in result


async def test_a_forgotten_item_leaves_the_calls_and_results_of_tools_until_an_undo(world: World) -> None:
    await result_of(world, "remember", type="TASK", content=PLUMBER)
    await result_of(world, "recall_memory", query="boiler")
    await world.services.memory.forget("chorus", 1)
    await world.say("And now?")
    sent = world.model.requests[-1].messages
    assert not any("plumber" in f"{message.content} {message.tool_calls}" for message in sent)
    assert [message.content for message in sent if message.role == "tool"] == ["Kept as #1.", "(forgotten)"]
    await world.carry_out("/undo")
    await world.carry_out("/undo")
    await world.say("And now?")
    sent = world.model.requests[-1].messages
    assert sum("plumber" in f"{message.content} {message.tool_calls}" for message in sent[1:]) == 3


async def test_a_forgotten_item_leaves_calls_whose_arguments_were_repaired(world: World) -> None:
    calls(world, call("remember", f"{{'type': 'TASK', 'content': '{PLUMBER}',}}"))
    await events_of(world, "Well?")
    calls(world, call("recall_memory", "{'query': 'boiler',}"))
    await events_of(world, "And?")
    await world.services.memory.forget("chorus", 1)
    await world.say("And now?")
    sent = world.model.requests[-1].messages
    assert not any("plumber" in f"{message.content} {message.tool_calls}" for message in sent)
    kept, recalled = (message.content for message in sent if message.role == "tool")
    assert kept == "Kept as #1."
    assert recalled.endswith('understood as {"query": "boiler"}.)\n\n(forgotten)')
    found = await world.services.search.find("plumber", Scope(None, "chorus", 20), lambda _news: None)
    assert [match.message.role for match in found.matches if match.message.role == "tool_result"] == []


async def test_of_many_long_items_whole_ones_are_told_so_that_each_can_be_forgotten(world: World) -> None:
    for number in range(1, 6):
        await world.services.memory.remember("chorus", ItemType.CODE, f"boiler {number}\n" + "x\n" * 1_400 + "end")
    result, line = await result_of(world, "recall_memory", query="boiler")
    told = [int(row[1]) for row in result.splitlines() if row.startswith("#")]
    assert len(told) == 3
    assert result.endswith("\n  end\n\nLeft out: 2 items with these words; other words, or a number, find them.")
    assert line.endswith(": 3 items")
    for item in told:
        await world.services.memory.forget("chorus", item)
    await world.say("And now?")
    assert results(world)[-1].startswith("Left out: 2 items")


async def test_an_item_too_long_for_a_result_is_cut_in_the_middle_and_can_be_forgotten(world: World) -> None:
    await world.services.memory.remember("chorus", ItemType.CODE, "boiler\n" + "\n" * 40_000 + "end")
    result, _line = await result_of(world, "recall_memory", query="boiler")
    assert result.startswith("From memory:\n#1 CODE: boiler\n")
    assert "characters left out here" in result
    assert result.endswith("\n  end")
    await world.services.memory.forget("chorus", 1)
    await world.say("And now?")
    assert results(world)[-1] == "(forgotten)"


async def test_why_names_an_item_that_came_by_a_tool(world: World) -> None:
    await world.services.memory.remember("chorus", ItemType.PRD_SECTION, PLUMBER)
    await result_of(world, "recall_memory", query="boiler")
    report = await context_report(world.context, world.current.target(), world.clock.now())
    (use,) = report.memory
    assert use.sent
    assert use.reason.startswith("recalled in message #")


async def test_a_search_of_messages_does_not_find_what_a_model_recalled(world: World) -> None:
    await world.services.memory.remember("chorus", ItemType.PRD_SECTION, PLUMBER)
    await result_of(world, "recall_memory", query="boiler")
    found = await world.services.search.find("plumber", Scope(None, "chorus", 20), lambda _news: None)
    assert found.matches == ()
