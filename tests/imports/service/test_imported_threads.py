"""Imported threads beside the others: out of the way until they are opened, and gone when the import is undone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import pytest

from chorus_cli.context.service.report import request_report
from chorus_cli.core.time import timestamps
from chorus_cli.core.time.timeline import MAXIMUM_CONTEXT_HOURS
from chorus_cli.imports.rows import whole_threads
from chorus_cli.log.rows.search_index import Scope
from chorus_cli.threads.commands.thread import THREAD
from tests.imports.service.foreign_talk import ITALY, LATIUM, OFTEN, OSLO, ROME, WHERE, reported, taken_in
from tests.world import World


def at(world: World, line: Mapping[str, object], hours_ago: float) -> dict[str, object]:
    return {**line, "timestamp": timestamps.to_text(world.clock.now() - timedelta(hours=hours_ago))}


@pytest.fixture
async def rome(world: World) -> World:
    """A world in which a conversation of today was imported and is open."""
    await taken_in(world, ROME, at(world, WHERE, 2), at(world, ITALY, 1.9), at(world, LATIUM, 1.8))
    await world.carry_out("/thread rome")
    return world


async def titles(world: World, *, closed: bool = True) -> list[str]:
    return [each.thread.title for each in await world.threads.listed(closed=closed)]


async def found(world: World, words: str) -> list[str]:
    findings = await world.search.find(words, Scope(None, None, 10), lambda _line: None)
    return [match.message.content for match in findings.matches]


async def test_they_are_closed_and_not_the_thread_last_used(world: World) -> None:
    await taken_in(world, ROME, WHERE)
    assert await titles(world, closed=False) == [""]
    assert await world.told("/new") == "--- New conversation ---"


async def test_a_thread_is_opened_by_its_title_with_an_empty_context(world: World) -> None:
    await taken_in(world, ROME, WHERE, LATIUM)
    assert "Rome" in await world.told("/thread rome")
    assert await world.seen() == []


async def test_its_title_is_found_until_the_import_is_undone(world: World) -> None:
    await taken_in(world, {**ROME, "title": "Capitals"}, WHERE)
    assert await world.told("/search capitals") == "Thread #2 of chorus: «Capitals»  [closed]"
    await world.carry_out("/context undo")
    assert await world.told("/search capitals") == "Nothing was found."


async def test_messages_that_the_window_reaches_are_in_context_but_for_other_branches(rome: World) -> None:
    assert await rome.seen() == ["Where is Rome?", "In Latium"]
    assert [row.content for row in (await rome.view()).taken_back] == ["In Italy"]


async def test_a_saved_session_of_it_is_restored_as_it_was_also_after_the_import_was_undone(rome: World) -> None:
    rome.model.say("It is about Rome.")
    await rome.carry_out("/context save Rome")
    for emptying in ("/new", "/context undo 1"):
        await rome.carry_out(emptying)
        assert await rome.seen() == []
        await rome.carry_out("/context restore Rome")
        assert await rome.seen() == ["Where is Rome?", "In Latium"]
        await rome.carry_out("/undo")


async def test_a_newer_export_may_go_on_from_another_branch(rome: World) -> None:
    why = {"key": "m4", "parent": "m2", "role": "user", "content": "Which region?"}
    italy, latium = {**at(rome, ITALY, 1.9), "superseded": False}, {**at(rome, LATIUM, 1.8), "superseded": True}
    await taken_in(rome, ROME, at(rome, WHERE, 2), italy, latium, at(rome, why, 1))
    assert await rome.seen() == ["Where is Rome?", "In Italy", "Which region?"]
    assert "In Latium [replaced by another reply]" in await rome.told("/thread history")
    await rome.carry_out("/context undo")
    assert await rome.seen() == ["Where is Rome?", "In Latium"]


async def test_an_older_export_moves_nothing_back(world: World) -> None:
    question, italy = at(world, WHERE, 2), at(world, ITALY, 1.9)
    await taken_in(world, ROME, question, italy, at(world, LATIUM, 1.8))
    await world.carry_out("/thread rome")
    older = await reported(world, ROME, question, {**italy, "superseded": False})
    assert "nothing was changed" in older.text()
    assert await world.seen() == ["Where is Rome?", "In Latium"]


async def test_messages_of_other_branches_and_undone_imports_are_not_counted(world: World) -> None:
    question, italy, latium = at(world, WHERE, 2), at(world, ITALY, 1.9), at(world, LATIUM, 1.8)
    await taken_in(world, ROME, question, italy, latium)
    why = at(world, {"key": "m4", "parent": "m3", "role": "user", "content": "Which region?"}, 1)
    await taken_in(world, ROME, question, italy, latium, why)
    await world.carry_out("/thread rome")
    for number in (3, 2):
        assert [each.thread.messages for each in await world.threads.listed(closed=True)] == [0, number]
        report = await request_report(world.context, world.current.target(), world.clock.now())
        assert len(report.moments) == number
        assert (report.plan.snapshot.last_spoken == timestamps.from_text(str(why["timestamp"]))) == (number == 3)
        await world.carry_out("/context undo")


async def test_messages_of_other_branches_are_not_out_of_reach(world: World) -> None:
    await taken_in(world, ROME, at(world, WHERE, 2), at(world, ITALY, 9_000), at(world, LATIUM, 1.8))
    await world.carry_out("/thread rome")
    assert not (await world.window.begun(MAXIMUM_CONTEXT_HOURS)).is_out_of_reach
    await taken_in(world, OSLO, at(world, OFTEN, 9_000))
    await world.carry_out("/thread oslo")
    assert (await world.window.begun(MAXIMUM_CONTEXT_HOURS)).is_out_of_reach


async def test_an_undone_import_leaves_lists_search_and_context(world: World) -> None:
    await taken_in(world, ROME, at(world, WHERE, 2), OSLO, at(world, OFTEN, 2))
    await world.carry_out("/thread rome")
    await world.carry_out("/thread 1")
    await world.carry_out("/context undo")
    assert (await titles(world), await found(world, "Rome")) == ([""], [])
    assert "no thread called 'rome'" in await world.told("/thread rome")
    await world.carry_out("/context redo")
    assert (await titles(world), await found(world, "Rome")) == (["", "Rome", "Oslo"], ["Where is Rome?"])


async def test_a_thread_that_was_talked_in_since_stays_when_its_import_is_undone(world: World) -> None:
    await taken_in(world, ROME, WHERE)
    await world.carry_out("/thread rome")
    world.model.say("Fine")
    await world.say("And now?")
    await world.carry_out("/context undo")
    assert await titles(world) == ["", "Rome"]
    assert await world.seen() == ["And now?", "Fine"]


async def test_an_export_has_no_message_of_an_undone_import(world: World) -> None:
    await taken_in(world, ROME, WHERE)
    await taken_in(world, ROME, WHERE, LATIUM)
    await world.carry_out("/context undo")
    rome = next(each for each in await world.threads.all() if each.title == "Rome")
    thread = whole_threads.ThreadOfPersona("chorus", rome.id)
    exported = await world.store.read(whole_threads.conversation, thread)
    assert ([each.content for each in exported.messages], exported.live) == (["Where is Rome?"], ("m1",))


async def test_an_edit_offers_imported_messages_of_the_live_branch(world: World) -> None:
    await taken_in(world, ROME, WHERE, ITALY, LATIUM)
    await world.carry_out("/thread rome")
    await world.carry_out("/context edit")
    sheet = world.editor.shown[-1]
    assert ("Where is Rome?" in sheet, "In Latium" in sheet, "In Italy" in sheet) == (True, True, False)


async def test_an_earlier_import_that_is_undone_is_redone_by_the_same_file(world: World) -> None:
    await taken_in(world, ROME, WHERE)
    await world.carry_out("/context undo")
    report = await reported(world, ROME, WHERE)
    assert report.text().endswith(
        "The undone import is redone in full (1 operation), including what is not in these files."
    )
    assert await titles(world) == ["", "Rome"]


async def test_completion_offers_titles_of_closed_threads_that_begin_so_and_not_all(world: World) -> None:
    lines = [line for n in range(80) for line in ({**ROME, "key": f"c{n}", "title": f"Trip {n}"}, WHERE)]
    await taken_in(world, *lines)
    await world.threads.all()
    candidates = THREAD.candidates(world.services, (), "trip")
    offered = [each.text for each in candidates if each.text.startswith("Trip")]
    assert (len(offered), offered[-1]) == (50, "Trip 79")
