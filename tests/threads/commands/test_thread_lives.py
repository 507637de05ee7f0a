"""``/thread``: the lives of threads: found by title, renamed, closed and opened again."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from chorus_cli.framework.command_line import completions
from chorus_cli.framework.replies import plain

if TYPE_CHECKING:
    from tests.world import World

NOWHERE = "/thread lists them, /thread new opens one."


@pytest.fixture
async def rome(world: World) -> World:
    """Three threads: #1 by its first message, #2 Rome, #3 Rotterdam, which is in focus."""
    await world.say("Ravioli for\n  supper")
    await world.told("/thread new Rome")
    await world.say("When in Rome")
    await world.told("/thread new Rotterdam")
    return world


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("2", "Thread #2: Rome"),
        ("#2", "Thread #2: Rome"),
        ("rom", "Thread #2: Rome"),
        ("ROME", "Thread #2: Rome"),
        ("ravioli for  sup", "Thread #1: Ravioli for supper"),
        ("ro", "'ro' may be #2 (Rome) or #3 (Rotterdam). Give the number or more letters."),
        ("7", f"There is no thread #7 here. {NOWHERE}"),
        ("rime", f"There is no thread called 'rime' here. Did you mean /thread 2 (Rome)? {NOWHERE}"),
        ("his", f"There is no thread called 'his' here. Did you mean /thread history? {NOWHERE}"),
        ("#x", f"There is no thread called '#x' here. {NOWHERE}"),
    ],
)
async def test_a_thread_is_found_by_number_or_by_the_unique_beginning_of_its_title(
    rome: World, typed: str, answer: str
) -> None:
    assert await rome.told(f"/thread {typed}") == answer


async def test_a_title_that_another_begins_with_is_found_itself(rome: World) -> None:
    await rome.told("/thread new Rom")
    assert await rome.told("/thread rom") == "Thread #4: Rom"
    await rome.told("/thread new 2")
    assert await rome.told("/thread 2") == "Thread #2: Rome"


@pytest.mark.parametrize(
    ("typed", "answer", "title"),
    [
        ("rename Utrecht", "Thread #3 is now called Utrecht; its title was Rotterdam.", "3 Utrecht"),
        ("rename 1 Pasta", "Thread #1 is now called Pasta; it had no title.", "1 Pasta"),
        ("rename #2 Roma", "Thread #2 is now called Roma; its title was Rome.", "2 Roma"),
        ("rename 2", "Thread #3 is now called 2; its title was Rotterdam.", "3 2"),
        ("rename 12 monkeys", "Thread #3 is now called 12 monkeys; its title was Rotterdam.", "3 12 monkeys"),
        ("rename #12 monkeys", f"There is no thread #12 here. {NOWHERE}", "3 Rotterdam"),
        ("rename", "Thread #3 is called by its first message again; its title was Rotterdam.", "3 "),
    ],
)
async def test_a_rename_says_the_old_title(rome: World, typed: str, answer: str, title: str) -> None:
    assert await rome.told(f"/thread {typed}") == answer
    assert title in [f"{thread.number} {thread.title}" for thread in await rome.services.threads.all()]


async def test_a_killed_thread_is_no_longer_listed_and_can_be_opened_again(rome: World) -> None:
    answer = await rome.told("/thread kill rome")
    assert answer == "Thread #2: Rome is closed. /thread 2 opens it again."
    assert rome.current.thread_id == 3
    assert "Rome" not in await rome.told("/thread")
    (listed,) = [line for line in (await rome.told("/thread list all")).splitlines() if "Rome" in line]
    assert listed.endswith("closed")
    assert await rome.told("/thread kill 2") == "Thread #2 is closed already. /thread 2 opens it again."
    assert await rome.told("/thread rome") == "Thread #2 is open again.\n\nThread #2: Rome"
    assert await rome.seen() == ["When in Rome", "ok"]


async def test_an_open_thread_goes_before_a_closed_one_of_the_same_title(rome: World) -> None:
    await rome.told("/thread kill 2")
    await rome.told("/thread new Rome again")
    assert await rome.told("/thread rom") == "Thread #4: Rome again"


async def test_killing_the_thread_in_focus_moves_to_the_one_last_talked_in(rome: World) -> None:
    rome.clock.advance(timedelta(minutes=1))
    await rome.told("/thread 1")
    await rome.say("And now?")
    await rome.told("/thread 3")
    assert (await rome.told("/thread kill 3")).endswith("\n\nThread #1: Ravioli for supper")
    assert (await rome.told("/thread kill 1")).endswith("\n\nThread #2: Rome")
    assert (await rome.told("/thread kill 2")).endswith("\n\nThread #4")
    await rome.current.open(None)
    assert rome.current.thread_id == 4


async def test_all_are_killed_after_a_question(rome: World) -> None:
    question = await rome.asked_back("/thread kill all")
    assert question.text == "Close 3 threads of chorus? Replies are broken off; no message is deleted."
    assert question.declined.text == "No thread was closed."
    told = plain(await question.confirmed())
    assert told == "3 threads are closed. /thread list all shows them, /thread N opens one again.\n\nThread #4"
    assert len(await rome.log()) == 4


async def test_the_history_of_a_thread_is_printed_whole_also_of_a_closed_one(rome: World) -> None:
    await rome.told("/new")
    await rome.told("/thread kill 2")
    lines = [line.partition("] ")[2] for line in (await rome.told("/thread history 2")).split("\n\n")]
    assert lines == ["Human: When in Rome", "chorus: ok", "[CONTEXT_CLEARED]"]
    assert await rome.told("/thread history 1") != await rome.told("/thread history 2")


async def test_without_a_number_the_history_is_of_this_thread(rome: World) -> None:
    assert await rome.told("/thread history") == "Nothing was said in thread #3 yet."
    await rome.told("/thread 1")
    assert "Ravioli for\n  supper" in await rome.told("/thread history")


async def test_a_closed_thread_is_not_saved(rome: World) -> None:
    await rome.told("/thread kill 1")
    saved = await rome.services.sessions.save(rome.current.target(), "")
    session = await rome.sessions.load("chorus", saved.row.session_id)
    assert [message.content for message in session.messages] == ["When in Rome", "ok"]
    await rome.told("/thread kill 2")
    assert await rome.services.sessions.unsaved(rome.current.target()) == ()


async def test_threads_of_an_earlier_persona_of_the_folder_are_not_among_the_closed_ones(world: World) -> None:
    await world.told("/persona new Ada")
    await world.told("/thread new Secrets")
    await world.told("/persona archive")
    await world.persona_admin.delete("ada")
    await world.told("/persona new Ada")
    assert "Secrets" not in await world.told("/thread list all")
    assert "no thread called" in await world.told("/thread secrets")


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("/thread ", ["1", "2", "3", "Ravioli for supper", "Rome", "Rotterdam"]),
        ("/thread #", ["#1", "#2", "#3"]),
        ("/thread rO", ["Rome", "Rotterdam"]),
        ("/thread history 2", ["2"]),
        ("/thread kill a", ["all"]),
    ],
)
async def test_numbers_and_titles_are_offered(rome: World, typed: str, offered: list[str]) -> None:
    await rome.services.threads.all()
    found = completions(rome.services.registry, rome.services, typed).candidates
    names = {name for name in rome.services.registry.words["thread"].words if name}  # type: ignore[union-attr]
    assert [candidate.text for candidate in found if candidate.text not in names] == offered
