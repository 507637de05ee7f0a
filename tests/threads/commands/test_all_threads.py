"""Commands over all threads of a persona: each says how many threads it concerns, if there are several."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chorus_cli.log.rows import thread_rows

if TYPE_CHECKING:
    from tests.world import World


@pytest.fixture
async def three(world: World) -> World:
    """Something said in each of three threads, of which the third is in focus."""
    await world.say("In the first")
    for said in ("In the second", "In the third"):
        await world.told("/thread new")
        await world.say(said)
    return world


async def seen_in_each(world: World) -> list[list[str]]:
    """Return what is in context in the three threads."""
    seen = []
    for number in (1, 2, 3):
        await world.told(f"/thread {number}")
        seen.append(await world.seen())
    return seen


EACH = [["In the first", "ok"], ["In the second", "ok"], ["In the third", "ok"]]


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("/new", "--- New conversation --- in all 3 threads of chorus"),
        ("/undo", "Undone: new conversation in all 3 threads of chorus"),
        ("/redo", "Redone: new conversation in all 3 threads of chorus"),
        ("/context undo", "Undone: new conversation in all 3 threads of chorus"),
        ("/context redo", "Redone: new conversation in all 3 threads of chorus"),
    ],
)
async def test_a_clear_and_its_undo_say_how_many_threads_they_concern(three: World, line: str, answer: str) -> None:
    before = {"/undo": ["/new"], "/redo": ["/new", "/undo"]}
    for earlier in before.get(f"/{line.rsplit(maxsplit=1)[-1].strip('/')}", []):
        await three.told(earlier)
    assert await three.told(line) == answer
    assert await seen_in_each(three) == (EACH if "Undone" in answer else [[], [], []])


async def test_with_one_thread_nothing_of_that_is_said(world: World) -> None:
    await world.say("Hello")
    assert await world.told("/new") == "--- New conversation ---"
    assert await world.told("/undo") == "Undone: new conversation"
    assert "thread" not in (await world.told("/context save")).splitlines()[0]
    assert "in thread" not in await world.told("/why")


async def test_a_saved_session_says_from_how_many_threads_and_a_restore_brings_each_back(three: World) -> None:
    saved, *_ = (await three.told("/context save Tests")).splitlines()
    assert saved.startswith("Saved session ")
    assert ": 6 messages in 3 threads, ~" in saved
    await three.told("/new")
    name = saved.split()[2].rstrip(":")
    restored = await three.told(f"/context restore {name}")
    assert restored.startswith(f"Restored session {name}: 6 messages in 3 threads in place of the old context.")
    assert three.current.thread_number == 3
    assert await seen_in_each(three) == EACH


async def test_a_restore_opens_threads_again_that_were_closed_since(three: World) -> None:
    name = (await three.told("/context save Tests")).split()[2].rstrip(":")
    await three.store.write(thread_rows.close, [2, 3], three.clock.now())
    await three.told("/thread 1")
    await three.told(f"/context restore {name}")
    assert [thread.number for thread in await three.threads.open_threads()] == [1, 2, 3]
    assert await seen_in_each(three) == EACH


async def test_why_says_which_thread_it_explains(three: World) -> None:
    await three.told("/thread 2")
    assert (await three.told("/why")).startswith("The next request in thread #2 of chorus:\n")
