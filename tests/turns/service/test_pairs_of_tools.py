"""A call and its result stay together wherever rows go: budget, fold, edit, session, export, search."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from chorus_cli.models.rules.events import ModelEvent, ReplyEnd, TextDelta
from chorus_cli.models.rules.request import ModelRequest
from chorus_cli.storage.store import Store
from tests.fakes import FakeClock, ScriptedModel
from tests.remembering import wants_summary
from tests.turns.service.tool_talk import assert_pairs_are_whole, call, calls, echo, results, rows
from tests.world import Tools, World, built


@pytest.fixture
async def used(tooled: World) -> World:
    """A world in which a tool was used between two plain turns."""
    await tooled.say("Hello")
    calls(tooled, call("echo", {"text": "gold of the river"}), before="Let me see.")
    tooled.model.say("It is gold.")
    await tooled.say("What is it?")
    await tooled.say("Thanks")
    return tooled


async def test_a_pair_is_one_block_of_an_edit_that_can_be_deleted(used: World) -> None:
    block = '(tool): echo {"text": "gold of the river"}\n→ gold of the river'

    def without_tool(text: str) -> str:
        head, _, rest = text.partition(block)
        return head[: head.rindex("\n[")] + "\n" + rest.lstrip("\n")

    used.editor.enqueue(lambda path: path.write_text(without_tool(path.read_text())))
    answer = await used.told("/context edit")
    assert block in used.editor.shown[0]
    assert answer.startswith("Context edited:")
    await used.say("Again")
    assert results(used) == []
    assert "Let me see." in [content for _, content in used.asked()]


async def test_a_session_brings_the_pair_back(used: World) -> None:
    before = used.model.requests[-1].messages[1:]
    await used.told("/context save about the river")
    await used.told("/new")
    assert "Restored" in await used.told("/context restore 2026-02-12_about-the-river")
    await used.say("Again")
    assert used.model.requests[-1].messages[1 : len(before) + 1] == before
    assert results(used) == ["gold of the river"]


async def test_a_pair_is_restored_from_a_file_alone(used: World, tools: Tools, store: Store) -> None:
    await used.told("/context save about the river")
    await store.write(lambda connection: connection.execute("UPDATE messages SET content = content || '.'") and None)
    assert "Restored" in await used.told("/context restore 2026-02-12_about-the-river")
    await used.say("Again")
    assert results(used) == ["gold of the river"]
    assert_pairs_are_whole(used.model.requests[-1].messages)
    assert tools.bugs == []


async def test_a_search_finds_what_a_tool_said(used: World) -> None:
    assert "gold of the «river»" in await used.told("/search river")


async def test_the_report_of_the_context_counts_no_empty_reply(tooled: World) -> None:
    calls(tooled, call("echo", {"text": "gold"}))
    await tooled.say("What is it?")
    await tooled.say("Thanks")
    told = await tooled.told("/why")
    assert "blank" not in told
    assert "6 in the 8h window" in told


class SummarisingModel(ScriptedModel):
    """Writes a summary when it is asked for one."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        if wants_summary(request.messages[0].content):
            self.requests.append(request)
            yield TextDelta("Summary: it was gold!")
            yield ReplyEnd("stop")
        else:
            async for event in super().stream(request):
                yield event


@pytest.fixture
async def cramped(tmp_path: Path, store: Store, clock: FakeClock) -> World:
    """A world whose requests have 800 words, and whose model summarises."""
    world = await built(tmp_path, store, clock, SummarisingModel(), 1_000, Tools((echo,)))
    world.configure('{"system_prompt": "Short."}')
    return world


async def test_where_there_is_no_room_a_pair_is_left_out_together(cramped: World) -> None:
    cramped.configure('{"system_prompt": "Short.", "summary_model": "chorus/eliza"}')
    world, model = cramped, cramped.model
    for number in range(12):
        calls(world, call("echo", {"text": f"w{number} " * 60}, f"c{number}"), before="b " * 20)
        model.say("a " * 40)
        await world.say(f"q{number} " * 10)
    assert any(len(request.messages) < 40 for request in model.requests)
    for request in model.requests:
        assert_pairs_are_whole(request.messages)


async def test_a_result_too_large_for_the_model_is_cut_and_keeps_its_call(cramped: World) -> None:
    cramped.configure('{"system_prompt": "Short.", "summary_model": "chorus/eliza"}')
    world, model = cramped, cramped.model
    calls(world, call("echo", {"text": "w ", "times": 5_000}))
    done = await world.say("Much?")
    assert done.error is None
    (result,) = results(world)
    assert "tokens left out here" in result
    assert_pairs_are_whole(model.requests[-1].messages)
    await world.say("And then?")
    assert_pairs_are_whole(model.requests[-1].messages)


async def test_a_fold_takes_the_pair_in_and_later_requests_have_neither(cramped: World) -> None:
    world, model = cramped, cramped.model
    calls(world, call("echo", {"text": "gold of the river"}))
    await world.say("What is it?")
    for number in range(8):
        calls(world, call("echo", {"text": f"w{number} " * 40}, f"d{number}"))
        model.say("a " * 40)
        await world.say(f"q{number} " * 20)
    folded = next(each.messages[-1].content for each in model.requests if wants_summary(each.messages[0].content))
    assert "gold of the river" in folded
    assert "chorus calls a tool" in folded
    assert "it was gold!" in model.requests[-1].messages[0].content
    assert "gold of the river" not in results(world)
    for request in model.requests:
        assert_pairs_are_whole(request.messages)


async def test_a_fold_in_a_later_round_leaves_the_turn_whole(cramped: World) -> None:
    world, model = cramped, cramped.model
    for number in range(4):
        model.say("a " * 60)
        await world.say(f"q{number} " * 60)
    calls(world, call("echo", {"text": "w " * 250}))
    calls(world, call("echo", {"text": "v " * 10}))
    done = await world.say("Much?")
    assert done.error is None
    assert "it was gold!" in model.requests[-1].messages[0].content
    assert len(results(world)) == 2
    assert_pairs_are_whole(model.requests[-1].messages)
    assert [row[0] for row in (await rows(world))[8:]] == [
        "user", "assistant", "tool_use", "tool_result", "assistant", "tool_use", "tool_result", "assistant"
    ]  # fmt: skip
