"""``/undo list``, ``/undo N`` and ``/redo N``: what the user did in one series of numbers, and back again."""

from __future__ import annotations

from datetime import timedelta

import pytest

from chorus_cli.core.errors import ModelError
from chorus_cli.framework.replies import Refill
from chorus_cli.log.rows import operation_rows
from chorus_cli.log.rules.acts import Clear, Way
from chorus_cli.log.rules.log_acts import NO_IDS, Purge
from chorus_cli.log.rules.operations import NewOperation
from tests.stores.service.canary_talk import purged
from tests.threads.service.slow_replies import sent, slow_reply
from tests.world import World


@pytest.fixture
async def busy(world: World) -> World:
    """Two turns, a window, a memory item, and a turn in another thread: the numbers 1 to 4 of thread 1."""
    for line in ("/thread new", "Elsewhere", "/thread 1", "One", "/context 24h", "/remember the key is green", "Two"):
        world.clock.advance(timedelta(minutes=1))
        await (world.told(line) if line.startswith("/") else world.say(line))
    return world


ONE, TWO, WINDOW, ITEM = (
    'your message "One" and its reply',
    'your message "Two" and its reply',
    "window default → 24h",
    'remembered #1 "the key is green"',
)


async def test_undo_list_numbers_turns_and_acts_in_one_series_newest_first(busy: World) -> None:
    assert await busy.steps() == [ONE, WINDOW, ITEM, TWO]
    told = await busy.told("/undo list")
    assert [line.split()[0] for line in told.splitlines()[1:5]] == ["4", "3", "2", "1"]
    assert told.endswith("/undo 4 undoes only number 4; /redo 4 redoes it.")
    await busy.told("/thread 2")
    assert await busy.steps() == ['your message "Elsewhere" and its reply', WINDOW, ITEM]


async def test_undo_with_a_number_takes_back_that_one_alone_and_no_number_moves(busy: World) -> None:
    assert await busy.told("/undo 2") == f"Undone: {WINDOW}; it is the default again."
    reply = await busy.carry_out("/undo #1")
    assert reply == Refill(f"Undone: {ONE}", "One", gives_way=True)
    assert await busy.seen() == ["Two", "ok"]
    await busy.say("Three")
    three = 'your message "Three" and its reply'
    assert await busy.steps() == [f"{ONE}, undone", f"{WINDOW}, undone", ITEM, TWO, three]
    assert await busy.told("/undo 1") == "Number 1 is undone already. /redo 1 redoes it."
    assert (await busy.told("/redo")).startswith("Nothing was undone just now;")
    assert await busy.told("/redo 1") == f"Redone: {ONE}"
    assert await busy.seen() == ["One", "ok", "Two", "ok", "Three", "ok"]
    assert await busy.told("/redo 2") == f"Redone: {WINDOW}; it is 24h again."
    assert await busy.steps() == [ONE, WINDOW, ITEM, TWO, three]
    assert await busy.told("/undo") == f"Undone: {three}"


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("/undo 5", "There is no number 5 here. /undo list shows the numbers."),
        ("/redo 5", "There is no number 5 here. /undo list shows the numbers."),
        ("/redo 4", "Number 4 is not undone, so there is nothing to redo."),
        ("/undo lst", "'lst' is not a whole number above 0, such as 3 or #3."),
    ],
)
async def test_a_number_that_cannot_be_undone_or_redone_is_said(busy: World, line: str, sentence: str) -> None:
    assert await busy.told(line) == sentence


async def test_the_numbers_have_no_automatic_act_no_vain_retry_and_no_purge(world: World) -> None:
    assert await world.told("/undo list") == "There is nothing to undo here."
    await world.say("One")
    world.model.enqueue(ModelError("It is down."))
    async for _ in world.conversation.retry(world.current.target()):
        pass
    new = NewOperation("chorus", Clear(), world.clock.now(), automatic=True)
    await world.store.write(operation_rows.introduce, new)
    await world.store.write(operation_rows.introduce, new._replace(act=Purge(NO_IDS), automatic=False))
    assert await world.steps() == [ONE]


async def test_a_fork_is_undone_and_redone_by_its_number_in_the_thread_that_was_forked(world: World) -> None:
    await world.say("One")
    await world.told("/thread fork")
    assert await world.steps() == ["fork of thread #1, 2 messages"]
    await world.told("/thread 1")
    assert (await world.told("/undo 2")).startswith("Undone: fork of thread #1")
    assert (await world.told("/redo 2")).endswith("Thread #2 is open again, and you are in it.")


async def test_the_newest_message_is_undone_first_even_if_it_has_left_the_window(world: World) -> None:
    await world.told("/new")
    await world.say("One")
    world.clock.advance(timedelta(hours=9))
    assert await world.told("/undo") == f"Undone: {ONE}"
    assert await world.told("/undo") == "Undone: new conversation"


@pytest.mark.parametrize(
    "lines", [("/remember The zork is blue.",), ("/remember Zork", "/memory replace 1 The zork is blue.")]
)
async def test_what_a_purge_has_made_final_is_passed_over(world: World, lines: tuple[str, ...]) -> None:
    await world.say("One")
    for line in lines:
        await world.told(line)
    await purged(world, "/purge search zork")
    assert await world.told("/undo") == f"Undone: {ONE}"


async def test_undoing_a_fork_says_how_many_messages_waited_in_it(world: World) -> None:
    await world.say("One")
    await world.told("/thread fork")
    slow_reply(world, "half")
    await sent(world, world.current.target(), "Two")
    await world.services.replies.send(world.current.target(), "Three")
    await world.told("/thread 1")
    assert (await world.told("/undo 2")).endswith("in thread #1.\nNot sent: 1 message, kept for the next start.")


async def test_many_steps_are_listed_from_the_newest(world: World) -> None:
    for _ in range(20):
        await world.told("/new")
    told = (await world.told("/undo list")).splitlines()
    assert [line.split()[0] for line in told[1:16]] == [str(number) for number in range(20, 5, -1)]
    assert await world.told("/undo 3") == "Undone: new conversation"


@pytest.mark.parametrize("way", Way)
async def test_an_earlier_retry_edit_or_continuation_is_undone_and_redone_without_a_second_reply(
    world: World, way: Way
) -> None:
    async def replace_reply(words: str) -> None:
        if way is Way.EDIT:
            world.editor.enqueue(words)
            await world.told("/edit")
            return
        world.model.say(words)
        async for _ in world.conversation.retry(world.current.target(), way):
            pass

    await world.say("One")
    for words in ("2", "3"):
        await replace_reply(words)
    newest = await world.seen()
    assert len(newest) == 2
    await world.told("/undo 2")
    assert await world.seen() == newest
    await world.told("/undo 3")
    assert await world.seen() == ["One", "ok"]
    await replace_reply("4")
    newest = await world.seen()
    await world.told("/redo 2")
    assert await world.seen() == newest


async def test_an_edit_in_a_fork_is_undone_without_a_second_reply(world: World) -> None:
    await world.say("One")
    await world.told("/thread fork")
    world.editor.enqueue("2")
    await world.told("/edit")
    for words in ("3", "4"):
        world.model.say(words)
        async for _ in world.conversation.retry(world.current.target()):
            pass
    await world.told("/context undo 2")
    assert await world.seen() == ["One", "4"]


async def test_a_pinned_reply_of_a_retry_leaves_with_the_undo_of_the_retry(world: World) -> None:
    await world.say("One")
    world.model.say("2")
    async for _ in world.conversation.retry(world.current.target()):
        pass
    await world.told("/pin 3")
    await world.told("/undo 2")
    assert await world.seen() == ["One", "ok"]


WALKS = (
    "6363024336623241412160462",
    "1466602036335361030633466",
    "6600026156562241404513536",
    "1441243540406324115346433",
)
"""Acts drawn by lot, each a digit that ``take_a_step`` reads."""


@pytest.mark.parametrize("walk", WALKS)
async def test_undo_all_and_redo_all_is_the_same_walk(world: World, walk: str) -> None:
    await world.say("First")
    for number, act in enumerate(walk):
        world.clock.advance(timedelta(seconds=1))
        await take_a_step(world, int(act), number)
    states = [await state(world)]
    undone: list[str] = []
    while (told := await world.told("/undo")).startswith("Undone: "):
        undone.append(told.removeprefix("Undone: ").partition("; it is ")[0])
        states.append(await state(world))
    assert all(each.endswith(", undone") for each in await world.steps())
    assert len(undone) == len(await world.steps())
    for what in reversed(undone):
        assert await state(world) == states.pop()
        assert (await world.told("/redo")).startswith(f"Redone: {what}")
    assert (await world.told("/redo")).startswith("Nothing was undone just now;")
    assert [await state(world)] == states


async def take_a_step(world: World, act: int, number: int) -> None:
    if act == 0:
        await world.say(f"Message {number}")
    elif act == 1 and await world.seen():
        async for _ in world.conversation.retry(world.current.target()):
            pass
    elif act > 1:
        pin = "/unpin 1" if (await world.view()).pinned else "/pin 1"
        await world.told((pin, "/new", f"/context {number + 2}h", f"/remember item {number}", "/memory pin 1")[act - 2])


async def state(world: World) -> tuple[object, ...]:
    """Return what a user sees of the context and the memory."""
    items = await world.services.memory.listing("chorus")
    hours = world.current.target().persona.settings.context_hours
    return await world.seen(), (await world.view()).pinned, sorted((item.id, item.pinned) for item in items), hours
