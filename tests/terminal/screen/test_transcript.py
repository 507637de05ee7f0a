"""``chorus log``: messages that were undone are marked, in text and for scripts."""

from __future__ import annotations

import io
from datetime import timedelta

from chorus_cli.context.service.transcript import Selection, operations_of, transcript
from chorus_cli.log.rules.journal import log_marks
from chorus_cli.log.rules.wording import entry_as_json
from chorus_cli.subcommands.log import show_transcript
from chorus_cli.terminal.screen.output import Screen
from tests.world import World

EVERYTHING = Selection("chorus")


async def logged(world: World, selection: Selection = EVERYTHING) -> list[str]:
    file = io.StringIO()
    operations = await operations_of(world.store, selection)
    entries = transcript(world.store, selection, operations)
    await show_transcript(entries, log_marks(operations), "Chorus", Screen(file, {}))
    return [line.partition("] ")[2] for line in file.getvalue().splitlines() if line]


async def json_logged(world: World) -> list[dict[str, object]]:
    operations = await operations_of(world.store, EVERYTHING)
    entries = transcript(world.store, EVERYTHING, operations)
    marks = log_marks(operations)
    return [entry_as_json(entry, marks) async for entry in entries]


async def retry(world: World) -> None:
    async for _ in world.conversation.retry(world.current.target()):
        pass


async def test_a_turn_that_was_taken_back_is_marked_until_it_is_put_back(world: World) -> None:
    await world.say("One")
    await world.say("Two")
    await world.told("/undo")
    kept = ["Human: One", "Chorus: ok"]
    assert await logged(world) == [*kept, "Human: Two [undone]", "Chorus: ok [undone]"]
    assert [row["undone"] for row in await json_logged(world)] == [False, False, True, True]
    await world.told("/redo")
    assert await logged(world) == [*kept, "Human: Two", "Chorus: ok"]


async def test_a_reply_that_another_took_the_place_of_is_marked(world: World) -> None:
    await world.say("One")
    world.model.say("again")
    await retry(world)
    assert await logged(world) == ["Human: One", "Chorus: ok [replaced by another reply]", "Chorus: again"]
    assert [row["replaced"] for row in await json_logged(world)] == [False, True, False]
    await world.told("/undo")
    assert await logged(world) == ["Human: One", "Chorus: ok", "Chorus: again [undone]"]
    assert [(row["undone"], row["replaced"]) for row in await json_logged(world)][1:] == [(False, False), (True, False)]


async def test_what_an_undone_edit_had_put_in_is_marked(world: World) -> None:
    await world.say("One")
    world.editor.enqueue(lambda path: path.write_text(path.read_text().replace("Human: One", "Human: ONE")))
    await world.told("/context edit")
    await world.told("/undo")
    assert await logged(world) == ["Human: One", "Chorus: ok", "Human: ONE [another wording] [undone]"]


async def test_clears_edits_and_restores_stand_where_they_were_made(world: World) -> None:
    await world.say("One")
    world.editor.enqueue(lambda path: path.write_text(path.read_text().replace("Human: One", "Human: ONE")))
    await world.told("/context edit")
    await world.told("/context save talk")
    await world.told("/new")
    await world.say("Two")
    await world.told("/context restore talk")
    lines = await logged(world)
    assert lines == [
        *("Human: One", "Chorus: ok"),
        "[PRIOR_CONTEXT_PROVIDED] edit of the context, 2 messages kept, in thread #1",
        "Human: ONE [another wording]",
        "[CONTEXT_CLEARED]",
        *("Human: Two", "Chorus: ok"),
        "[PRIOR_CONTEXT_PROVIDED] restored session, 2 messages",
    ]
    await world.told("/undo")
    assert await logged(world) == lines[:-1]


async def test_scripts_are_given_the_boundaries_with_their_members(world: World) -> None:
    await world.say("One")
    world.editor.enqueue(lambda path: path.write_text(path.read_text().replace("Human: One", "Human: ONE")))
    await world.told("/context edit")
    await world.told("/new")
    rows = await json_logged(world)
    assert [row.get("marker", row.get("content")) for row in rows] == [
        *("One", "ok", "[PRIOR_CONTEXT_PROVIDED]", "ONE", "[CONTEXT_CLEARED]")
    ]
    assert [{**row, "timestamp": ""} for row in rows if "marker" in row] == [
        {
            "marker": "[PRIOR_CONTEXT_PROVIDED]", "operation": 1, "kind": "edit", "thread": 1, "timestamp": "",
            "members": [3, 2],
        },
        {
            "marker": "[CONTEXT_CLEARED]", "operation": 2, "kind": "clear", "thread": None, "timestamp": "",
            "members": [],
        },
    ]  # fmt: skip


async def test_what_was_done_in_another_thread_is_marked_in_the_log_of_all(world: World) -> None:
    await world.say("One")
    await world.told("/thread new")
    await world.say("Two")
    await world.told("/undo")
    assert (await logged(world))[2:] == ["Human: Two [undone]", "Chorus: ok [undone]"]
    assert await logged(world, Selection("chorus", 1)) == ["Human: One", "Chorus: ok"]


async def test_the_marks_are_there_also_for_what_is_younger_than_a_moment(world: World) -> None:
    await world.say("One")
    world.clock.advance(timedelta(hours=2))
    await world.say("Two")
    await world.told("/undo")
    since = world.clock.now() - timedelta(hours=1)
    assert await logged(world, Selection("chorus", None, since)) == ["Human: Two [undone]", "Chorus: ok [undone]"]
