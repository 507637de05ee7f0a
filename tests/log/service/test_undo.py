"""Taking back what was said and done, putting it back, and asking once more."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import timedelta

import pytest

from chorus_cli.core.errors import JournalError, ModelError
from chorus_cli.framework.replies import Refill, plain
from chorus_cli.log.rows import message_rows, operation_rows
from chorus_cli.log.rules.acts import Retry
from chorus_cli.log.rules.operations import NewOperation
from chorus_cli.models.rules.events import TextDelta, TurnEvent
from chorus_cli.storage.store import Connection
from tests.world import World, of_run, words_come


async def retried(world: World) -> str:
    events = [event async for event in world.conversation.retry(world.current.target())]
    return "".join(event.text for event in events if isinstance(event, TextDelta))


async def test_undo_takes_back_a_turn_and_gives_its_text_back(world: World) -> None:
    await world.say("One")
    await world.say("Two\nlines")
    reply = await world.carry_out("/undo")
    assert reply == Refill('Undone: your message "Two lines" and its reply', "Two\nlines", gives_way=True)
    assert await world.seen() == ["One", "ok"]
    assert await world.told("/undo") == 'Undone: your message "One" and its reply'
    assert await world.seen() == []
    assert await world.told("/undo") == "There is nothing to undo here."


@pytest.mark.parametrize(("message", "line"), [("/quit is a word", "//quit is a word"), ("!wow", "!!wow")])
async def test_a_message_comes_back_as_the_line_that_sends_it(world: World, message: str, line: str) -> None:
    await world.say(message)
    reply = await world.carry_out("/undo")
    assert reply == Refill(f'Undone: your message "{message}" and its reply', line, gives_way=True)


@pytest.mark.parametrize("ending", [ModelError("It is down.", status_code=400), TextDelta("\n\n")])
async def test_a_message_without_a_reply_is_taken_back_and_put_back_alone(
    world: World, ending: ModelError | TextDelta
) -> None:
    world.model.enqueue(ending)
    await world.say("Hello")
    assert await world.told("/undo") == 'Undone: your message "Hello"'
    assert await world.told("/redo") == 'Redone: your message "Hello"'
    assert await world.told("/undo") == 'Undone: your message "Hello"'
    assert await world.told("/context redo #1") == 'Redone: your message "Hello"'


async def test_with_nothing_in_context_there_is_nothing_to_retry(world: World) -> None:
    with pytest.raises(JournalError, match="nothing in context to be answered again"):
        await retried(world)


async def test_a_retry_that_brings_only_blank_lines_leaves_the_old_reply(world: World) -> None:
    world.model.say("first")
    await world.say("Hello")
    world.model.say("\n\n")
    await retried(world)
    assert await world.seen() == ["Hello", "first"]


async def test_a_retry_that_brought_nothing_is_not_put_back(world: World) -> None:
    await world.say("One")
    await world.say("Two")
    await world.told("/undo")
    world.model.enqueue(ModelError("It is down.", status_code=400))
    await retried(world)
    for number in (2, 3):
        told = await world.told(f"/context redo {number}")
        assert told == "Operation 2 brought no reply, so there is nothing to put back."
    assert await world.told("/redo") == 'Redone: your message "Two" and its reply'
    assert await world.seen() == ["One", "ok", "Two", "ok"]


async def test_a_retry_whose_process_was_killed_before_its_first_word_leaves_the_old_reply(world: World) -> None:
    world.model.say("first")
    await world.say("Hello")
    place, now = world.current.target(), world.clock.now()

    def retry_and_die(connection: Connection) -> None:
        question, old = message_rows.history(connection, "chorus", None, None, 0)
        new = NewOperation("chorus", Retry(frozenset({old.id})), now, thread_id=place.thread_id)
        message_rows.open_retry(connection, question, operation_rows.introduce(connection, new), "m", "dead")

    await world.store.write(retry_and_die)
    await world.say("Next")
    assert world.asked() == [("user", "Hello"), ("assistant", "first"), ("user", "Next")]


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


async def test_a_message_undone_by_another_chat_meanwhile_is_not_undone_twice(talked: World) -> None:
    target, journal = talked.current.target(), talked.services.journal
    found = await journal.newest(target)
    await journal.take_back(target, found)
    with pytest.raises(JournalError, match="meanwhile"):
        await journal.take_back(target, found)
    assert (await talked.told("/context ops")).count("undo of") == 1


async def said_in_another_chat(world: World, text: str) -> AsyncGenerator[TurnEvent, None]:
    """Send a message from another process that has the same thread open, up to its first words."""
    turn = of_run(world.conversation, "another").answer(world.current.target(), text)
    await words_come(turn)
    return turn


async def test_undo_asks_before_it_takes_back_a_message_of_another_chat(talked: World) -> None:
    async for _ in await said_in_another_chat(talked, "Said elsewhere"):
        pass
    question = await talked.asked_back("/undo")
    assert question.text == (
        'The newest message here was sent from another Chorus.\nUndo your message "Said elsewhere" and its reply?'
    )
    assert plain(await question.confirmed()).startswith("Undone:")
    assert await talked.told("/undo") == 'Undone: your message "How are you?" and its reply'


async def test_undo_asks_before_it_takes_back_a_reply_that_another_chat_is_writing(talked: World) -> None:
    writing = await said_in_another_chat(talked, "Said elsewhere")
    question = await talked.asked_back("/undo")
    assert question.text.startswith("The newest message here was sent from another Chorus, where it is being answered")
    assert plain(question.declined) == "Nothing was undone."
    await writing.aclose()


async def test_undo_takes_back_a_message_of_an_earlier_run_without_a_question(talked: World) -> None:
    services = replace(talked.services, conversation=of_run(talked.conversation, "a new run"))
    services = replace(services, conversation=replace(services.conversation, began_at=talked.clock.now()))
    assert await replace(talked, services=services).told("/undo") == 'Undone: your message "How are you?" and its reply'
