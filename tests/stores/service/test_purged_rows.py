"""Rows and pages that only a purge touches: preambles, copies, forgotten items, and the file of the log itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chorus_cli.log.rows import message_rows
from chorus_cli.log.rules.messages import Role
from chorus_cli.models import rows as usage_rows
from chorus_cli.models.rules.costs import OtherRequest
from chorus_cli.models.rules.events import ReplyEnd, TextDelta
from tests.stores.service.canary_talk import holding, purged, sql
from tests.turns.service.tool_talk import TOOLS, call, calls, events_of
from tests.world import Tools, World, built

if TYPE_CHECKING:
    from pathlib import Path

    from chorus_cli.storage.store import Store
    from tests.fakes import FakeClock, ScriptedModel

SAID = "The gate of the old mill by the river opens if you pull the iron ring twice."


@pytest.fixture
async def tool_world(tmp_path: Path, store: Store, clock: FakeClock, model: ScriptedModel) -> World:
    return await built(tmp_path, store, clock, model, 10_000, Tools(TOOLS))


async def test_the_preamble_of_a_purged_message_is_overwritten(world: World) -> None:
    await world.say(SAID)
    await sql(world, "UPDATE messages SET preamble = 'plumed parrots', reasoning = 'pink panthers' WHERE id = 1")
    await purged(world, "/purge message 1")
    assert holding(world.folder, "parrots") == holding(world.folder, "panthers") == []


async def test_another_message_loses_a_preamble_that_repeats_it_and_nothing_else(world: World) -> None:
    for text in (SAID, "And now?"):
        await world.say(text)
    await sql(world, "UPDATE messages SET preamble = ? WHERE id = 3", f"Active threads:\n  #2: {SAID[:39]}…, step 1")
    await purged(world, "/purge message 1")
    [row] = await world.store.read(message_rows.rows, [3])
    assert (row.preamble, row.content) == ("", "And now?")


async def test_a_result_of_a_tool_that_quotes_it_goes_and_others_stay(tool_world: World) -> None:
    await tool_world.say(SAID)
    for text in (f"You said: {SAID}", "Nothing else."):
        calls(tool_world, call("echo", {"text": text}))
        await events_of(tool_world, "Say something.")
    await purged(tool_world, "/purge message 1")
    assert holding(tool_world.folder, "iron ring") == []
    assert [row.content for row in await tool_world.log() if row.role is Role.TOOL_RESULT] == ["Nothing else."]


async def test_the_calls_and_results_of_tools_for_a_purged_question_go_with_it(tool_world: World) -> None:
    for text in ("Red", "Green"):
        calls(tool_world, call("echo", {"text": text}))
        await events_of(tool_world, f"Say {text}.")
    await purged(tool_world, "/purge message 1")
    assert [row.content for row in await tool_world.log() if row.role is Role.TOOL_RESULT] == ["Green"]


async def test_a_result_of_a_tool_that_came_after_the_question_goes_too(tool_world: World) -> None:
    await tool_world.say(SAID)
    question = await tool_world.asked_back('/purge search "iron ring"')
    calls(tool_world, call("echo", {"text": "An iron ring."}))
    await events_of(tool_world, "Say something.")
    await question.confirmed()
    assert holding(tool_world.folder, "iron ring") == []


async def test_a_copy_of_the_same_words_and_time_goes_with_it(world: World) -> None:
    await world.say(SAID)
    await world.told("/thread new other")
    await sql(
        world,
        "INSERT INTO messages(persona, role, content, timestamp, thread_id) "
        "SELECT persona, role, content, timestamp, 2 FROM messages WHERE id = 1",
    )
    await purged(world, "/purge message 1")
    assert holding(world.folder, "iron ring") == []


async def test_an_item_that_was_forgotten_before_it_was_purged_is_brought_back_by_no_undo(world: World) -> None:
    await world.say("Hello")
    await world.told(f"/remember {SAID}")
    await (await world.asked_back("/memory forget 1")).confirmed()
    await purged(world, "/purge search iron")
    assert await world.told("/context undo 2") == "Memory item #1 is no longer there, so nothing was changed."
    assert "#1" not in await world.told("/memory list")


WORDING_GONE = "That text of memory item #1 was purged, so nothing was changed."


@pytest.mark.parametrize("said", ["Hello", "The code is zebulonix."])
@pytest.mark.parametrize("rest", [(), ("/memory flash --force",), ("edit",), ("/memory forget 1",)])
async def test_an_item_loses_an_earlier_wording_alone(world: World, said: str, rest: tuple[str, ...]) -> None:
    await world.say(said)
    await world.told("/remember the code is zebulonix")
    await world.told("/remember buy milk")
    await world.told("/memory flash --force")
    for number, line in enumerate(("edit", *rest)):
        if line == "edit":
            world.editor.enqueue(f"TASK\n\nclean again {number}")
            await world.told("/memory edit 1")
        elif line.startswith("/memory forget"):
            await (await world.asked_back(line)).confirmed()
        else:
            await world.told(line)
    question = await world.asked_back("/purge search zebulonix")
    assert "3 earlier texts of the memory" in question.text
    await question.confirmed()
    assert holding(world.folder, "zebulonix") == []
    assert holding(world.folder, "buy milk") != []
    assert await world.told("/context undo 4") == WORDING_GONE
    listed = await world.told("/memory list")
    assert ("clean again" in listed) is ("/memory forget 1" not in rest)
    assert "buy milk" in listed


async def test_a_purge_leaves_a_checkpoint_the_items_that_stay(world: World) -> None:
    for text in ("the code is zebulonix", "buy milk"):
        await world.told(f"/remember {text}")
    await world.told("/memory flash --force")
    await sql(world, "UPDATE context_items SET tier = 'ARCHIVED'")
    await purged(world, "/purge search zebulonix")
    assert "buy milk" in await world.told("/memory restore 1")
    assert "buy milk" in await world.told("/memory list")


async def test_words_of_several_texts_of_an_act_are_not_taken_together(world: World) -> None:
    await world.told("/remember the code is zebulonix")
    world.editor.enqueue("TASK\n\nclean again")
    await world.told("/memory edit 1")
    assert "nothing was purged" in await world.told("/purge search zebulonix again")
    await world.told("/context undo 2")
    assert "zebulonix" in await world.told("/memory list")


async def test_the_file_of_the_log_has_no_free_page_after_a_purge(world: World) -> None:
    for text in ("word" * 50_000, "Short."):
        await world.say(text)
    log = world.folder / "chorus.db"
    before = log.stat().st_size
    await purged(world, "/purge message 1")
    assert log.stat().st_size < before - 50_000
    assert log.with_name("chorus.db-journal").stat().st_size == 0


async def test_an_undo_takes_back_the_reply_to_a_purged_question(world: World) -> None:
    for text in (SAID, "And now?"):
        await world.say(text)
    await purged(world, "/purge message 3")
    assert await world.told("/undo") == "Undone: a purged message and its reply"
    assert await world.seen() == [SAID, "ok"]
    assert "a purged message" in await world.told("/redo")
    assert await world.seen() == [SAID, "ok", "ok"]


@pytest.mark.parametrize("line", ["/purge message 1", "/purge since 1h", "/purge thread 1", "/purge persona chorus"])
async def test_tokens_that_were_used_stay_those_of_summaries_too(world: World, line: str) -> None:
    world.model.enqueue(TextDelta("Hm."), ReplyEnd("stop", {"prompt_tokens": 7}))
    await world.say(SAID)
    request = OtherRequest("chorus", 1, "summary", "openai/test", world.clock.now(), {"prompt_tokens": 1})
    await world.store.write(usage_rows.store, [request])
    before = await world.store.read(usage_rows.uses)
    assert [use.tokens.prompt for use in before] == [7, 1]
    await purged(world, line)
    assert await world.store.read(usage_rows.uses) == before
