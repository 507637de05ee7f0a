"""Sessions of a persona with a forked thread: each thread is saved and restored, and no message is stored twice."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.world import World


@pytest.fixture
async def forked(world: World) -> World:
    """A thread of two turns, a fork of its first turn with one more, and the first thread in focus."""
    await world.say("One")
    await world.say("Two")
    await world.told("/thread fork 1")
    await world.say("Three")
    await world.told("/thread 1")
    return world


async def contexts(world: World) -> dict[int, list[int]]:
    found = {}
    for thread in (1, 2):
        await world.told(f"/thread {thread}")
        found[thread] = [row.id for row in (await world.view()).messages]
    return found


async def test_a_session_has_the_forked_messages_in_both_threads(forked: World) -> None:
    forked.model.say("A summary.")
    assert "8 messages" in await forked.told("/context save both")
    [file] = (forked.folder / "personas" / "chorus" / "sessions").glob("*.json")
    messages = json.loads(file.read_text())["messages"]
    assert [(each["thread"], each["content"]) for each in messages] == [
        (1, "One"), (1, "ok"), (1, "Two"), (1, "ok"), (2, "One"), (2, "ok"), (2, "Three"), (2, "ok"),
    ]  # fmt: skip
    asked = forked.model.requests[-1].messages[-1].content
    assert asked.count("One") == 1


@pytest.mark.parametrize("before", ["/new", "/context undo 1"])
async def test_a_restored_session_has_the_rows_that_it_had_in_each_thread(forked: World, before: str) -> None:
    expected, rows = await contexts(forked), await forked.log()
    forked.model.say("A summary.")
    await forked.told("/context save both")
    await forked.told(before)
    for _ in range(2):
        await forked.told("/context restore 2026")
        assert await contexts(forked) == expected
    assert await forked.log() == rows
    await forked.told("/undo")
    assert await contexts(forked) == expected


async def test_a_fork_in_which_nothing_was_said_is_restored_as_itself(world: World) -> None:
    await world.say("One")
    await world.told("/thread fork")
    world.model.say("A summary.")
    await world.told("/thread 1")
    await world.told("/undo")
    await world.told("/context save fork alone")
    await world.told("/new")
    await world.told("/context restore 2026")
    assert await contexts(world) == {1: [], 2: [1, 2]}


async def test_what_a_fork_has_of_its_origin_was_not_said_again(forked: World) -> None:
    unsaved = await forked.sessions.unsaved(forked.current.target())
    assert [row.id for row in unsaved] == [1, 2, 3, 4, 5, 6]


async def test_a_closed_fork_is_not_saved(forked: World) -> None:
    await forked.told("/context undo 1")
    forked.model.say("A summary.")
    assert "4 messages" in await forked.told("/context save")
