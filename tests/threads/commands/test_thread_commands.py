"""``/thread``: several conversations with one persona."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.context.files import OpenThreads
from chorus_cli.storage.file_lock import hold

if TYPE_CHECKING:
    from tests.world import World


async def test_each_thread_has_a_context_of_its_own(world: World) -> None:
    await world.say("In the first")
    assert await world.told("/thread new The trip to Rome") == "Thread #2: The trip to Rome"
    assert await world.seen() == []
    await world.say("In the second")
    assert await world.told("/t 1") == "Thread #1: In the first"
    assert await world.seen() == ["In the first", "ok"]
    assert world.asked() == [("user", "In the second")]


async def test_the_list_marks_where_you_are_and_says_what_each_is_about(world: World) -> None:
    await world.say("Hello")
    await world.told("/thread new Rome")
    lines = (await world.told("/thread")).splitlines()
    assert lines[1].split()[:3] == ["#1", "Hello", "2"]
    assert lines[2].split()[:4] == ["●", "#2", "Rome", "0"]
    assert lines[1].endswith("idle")
    assert lines[2].endswith("empty")


async def test_the_thread_is_remembered(world: World) -> None:
    await world.told("/thread new")
    await world.told("/thread new")
    await world.told("/thread 2")
    await world.current.open(None)
    assert world.current.target().thread_id == 2


async def test_a_thread_that_is_not_there_is_a_sentence(world: World) -> None:
    assert await world.told("/thread 7") == "There is no thread #7 here. /thread lists them, /thread new opens one."
    await world.told("/persona new Ada")
    assert (await world.told("/thread 2")).startswith("There is no thread #2 here.")


async def test_each_persona_counts_its_own_threads(world: World) -> None:
    await world.told("/thread new")
    await world.told("/persona new Ada")
    assert await world.told("/thread new Rome") == "Thread #2: Rome"
    assert (await world.told("/thread 1")).startswith("Thread #1")
    assert world.current.target().thread_number == 1
    assert world.current.target().thread_id == 3


async def test_clear_concerns_every_thread_and_undo_of_a_turn_only_this_one(world: World) -> None:
    await world.say("One")
    await world.told("/thread new")
    await world.say("Two")
    await world.told("/new")
    assert await world.seen() == []
    await world.told("/thread 1")
    assert await world.seen() == []
    assert await world.told("/undo") == "Undone: new conversation in all 2 threads of chorus"
    assert await world.told("/undo") == 'Undone: your message "One" and its reply'
    await world.told("/thread 2")
    assert await world.seen() == ["Two", "ok"]


async def test_new_says_how_many_threads_it_concerns_if_there_are_several(world: World) -> None:
    assert await world.told("/new") == "--- New conversation ---"
    await world.told("/persona new Frodo")
    await world.told("/thread new")
    await world.told("/thread new")
    assert await world.told("/new") == "--- New conversation --- in all 3 threads of Frodo"
    await world.told("/persona chorus")
    assert await world.told("/new") == "--- New conversation ---"


async def test_a_new_persona_of_an_old_folder_has_no_old_threads(world: World) -> None:
    await world.told("/persona new Ada")
    await world.told("/thread new Secrets")
    await world.told("/persona archive")
    await world.persona_admin.delete("ada")
    await world.told("/persona new Ada")
    assert "Secrets" not in await world.told("/thread")


async def test_a_thread_in_which_any_reply_still_arrives_is_running(world: World) -> None:
    await world.say("From here")
    await world.say("From another terminal, answered sooner")
    await world.store.write(lambda log: log.execute("UPDATE messages SET status = 'streaming' WHERE id = 2"))
    assert (await world.told("/thread")).endswith("running")


async def test_another_chat_in_the_same_thread_is_told_once_until_it_leaves_or_the_thread_changes(world: World) -> None:
    shared = "Another Chorus is open in this thread."
    runs = world.folder / "run"
    OpenThreads(runs, "other").announce("chorus", 1)
    with hold(runs / "other"):
        assert await world.current.notices() == (shared,)
        assert await world.current.notices() == ()
        assert shared not in await world.told("/thread new")
        assert OpenThreads(runs, "other").is_shared("chorus", 2) is False
        assert shared in await world.told("/thread 1")
    assert world.current.sharing_notices() == ()
    with hold(runs / "other"):
        assert world.current.sharing_notices() == (shared,)
