"""Putting back by number, whatever followed, so that nothing is ever one-way."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from chorus_cli.core.errors import ModelError

if TYPE_CHECKING:
    from tests.world import World


async def edited(world: World) -> None:
    """Say something and edit it: operation 1."""
    await world.say("One")
    world.editor.enqueue(lambda path: path.write_text(path.read_text().replace("Human: One", "Human: ONE")))
    await world.told("/context edit")


async def test_an_edit_comes_back_by_its_number_after_something_was_said(world: World) -> None:
    await edited(world)
    await world.told("/context undo")
    await world.say("Two")
    assert "/context redo NUMBER takes back any" in await world.told("/context redo")
    assert await world.told("/context redo 1") == "Redone: edit of the context, 2 messages kept"
    assert await world.seen() == ["ONE", "ok", "Two", "ok"]


async def test_a_message_comes_back_by_the_number_of_its_undo(world: World) -> None:
    await world.say("One")
    await world.told("/undo")
    await world.say("Two")
    assert await world.told("/context redo #1") == 'Redone: your message "One" and its reply'
    assert await world.seen() == ["One", "ok", "Two", "ok"]


async def test_the_sentence_of_a_second_undo_names_what_puts_it_back(world: World) -> None:
    await edited(world)
    await world.told("/context undo 1")
    await world.say("Two")
    assert await world.told("/context undo 1") == "Operation 1 is undone already. /context redo 1 puts it back."
    assert (await world.told("/context redo 1")).startswith("Redone: edit of the context")


async def test_what_was_put_back_by_number_can_be_taken_back_again(world: World) -> None:
    await edited(world)
    contexts = []
    for command in ("/context undo 1", "/context redo 1", "/context undo 1", "/context redo 4"):
        await world.told(command)
        contexts.append((await world.seen())[0])
    assert contexts == ["One", "ONE", "One", "ONE"]


async def test_a_newer_boundary_is_said_to_bind(world: World) -> None:
    await edited(world)
    await world.told("/context undo 1")
    world.clock.advance(timedelta(minutes=1))
    await world.told("/new")
    told = await world.told("/context redo 1")
    assert told.splitlines()[1].startswith("The context still starts at your /new of ")
    assert told.endswith("/context undo 3 reverts that.")
    await world.told("/context undo 3")
    assert await world.seen() == ["ONE", "ok"]


async def test_a_window_comes_back_by_its_number_unless_the_file_says_something_else_by_now(world: World) -> None:
    await world.told("/context 24h")
    await world.told("/undo")
    await world.say("One")
    assert await world.told("/context redo 1") == "Redone: window default → 24h; it is 24h again."
    await world.told("/context undo 1")
    world.configure('{"context_hours": 99}')
    assert "says 99 for context_hours by now" in await world.told("/context redo 1")


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (1, "Operation 1 is not undone, so there is nothing to put back."),
        (2, "Undo 2 is redone already, so there is nothing to put back."),
        (3, "Operation 3 puts something back itself; it cannot be redone."),
        (4, "There is no operation 4 here. /context ops lists them."),
    ],
)
async def test_what_cannot_be_put_back_is_said(world: World, number: int, sentence: str) -> None:
    await world.told("/new")
    await world.told("/undo")
    await world.told("/redo")
    assert await world.told(f"/context redo {number}") == sentence


async def test_a_retry_that_brought_nothing_is_not_put_back(world: World) -> None:
    await world.say("One")
    world.model.enqueue(ModelError("It is down.", status_code=400))
    async for _ in world.conversation.retry(world.current.target()):
        pass
    for number in (1, 2):
        told = await world.told(f"/context redo {number}")
        assert told == "Operation 1 brought no reply, so there is nothing to put back."
    assert await world.seen() == ["One", "ok"]
