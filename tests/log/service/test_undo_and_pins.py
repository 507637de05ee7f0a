"""Taking back what was said and done, putting it back, asking once more, and keeping messages in context."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from chorus_cli.context.rules.view import Reason
from chorus_cli.core.errors import JournalError, ModelError
from chorus_cli.framework.replies import Refill, plain
from chorus_cli.jobs.rules import EndedJob
from chorus_cli.log.rows import message_rows, operation_rows
from chorus_cli.log.rules.acts import Retry
from chorus_cli.log.rules.operations import NewOperation
from chorus_cli.models.rules.events import TextDelta, TurnEvent
from chorus_cli.storage.port import Connection
from chorus_cli.storage.store import Store
from tests.fakes import FakeClock, ScriptedModel
from tests.log.rules.keeping import Keep, registered
from tests.stores.service.canary_talk import purged
from tests.world import World, built, of_run, words_come


async def retried(world: World) -> None:
    async for _ in world.conversation.retry(world.current.target()):
        pass


async def test_undo_takes_back_a_turn_and_gives_its_text_back(world: World) -> None:
    await world.say("One")
    await world.say("Two\nlines")
    reply = await world.carry_out("/undo")
    assert reply == Refill('Undone: your message "Two lines" and its reply', "Two\nlines", gives_way=True)
    assert await world.seen() == ["One", "ok"]
    assert await world.told("/undo") == 'Undone: your message "One" and its reply'
    assert await world.seen() == []
    assert await world.told("/undo") == "There is nothing to undo here."


async def test_a_turn_without_its_first_message_is_not_redone(world: World) -> None:
    await world.say("One")
    await world.told("/undo")
    await world.store.write(lambda log: log.execute("DELETE FROM messages WHERE id = 1"))
    assert await world.told("/redo") == "Turn 1 cannot be redone: its first message is not in the log."


@pytest.mark.parametrize(("message", "line"), [("/quit is a word", "//quit is a word"), ("!wow", "!!wow")])
async def test_a_message_comes_back_as_the_line_that_sends_it(world: World, message: str, line: str) -> None:
    await world.say(message)
    reply = await world.carry_out("/undo")
    assert reply == Refill(f'Undone: your message "{message}" and its reply', line, gives_way=True)


@pytest.mark.parametrize("ending", [ModelError("It is down."), TextDelta("\n\n")])
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
    with pytest.raises(JournalError, match="no message of yours in context to answer again"):
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
    world.model.enqueue(ModelError("It is down."))
    await retried(world)
    for number in (2, 3):
        assert f"nothing to redo in operation {number}." in await world.told(f"/context redo {number}")
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
    assert "Nothing was undone just now; /undo list shows what was undone before" in await world.told("/context redo")
    assert await world.told("/context redo 1") == "Redone: edit of the context, 2 messages kept"
    assert await world.seen() == ["ONE", "ok", "Two", "ok"]


async def test_a_newer_boundary_binds_until_it_is_undone(world: World) -> None:
    await edited(world)
    await world.told("/context undo 1")
    world.clock.advance(timedelta(minutes=1))
    await world.told("/new")
    await world.told("/context redo 1")
    assert await world.seen() == []
    await world.told("/context undo 3")
    assert await world.seen() == ["ONE", "ok"]


async def test_what_cannot_be_put_back_is_said(world: World) -> None:
    for line in ("/new", "/undo", "/redo"):
        await world.told(line)
    for number in (1, 2, 3):
        told = await world.told(f"/context redo {number}")
        assert told == f"There is nothing to redo in operation {number}. /context ops lists what is undone."
    assert await world.told("/context redo 4") == "There is no operation 4 here. /context ops lists them."


async def test_a_message_undone_by_another_chat_meanwhile_is_not_undone_twice(talked: World) -> None:
    target, journal = talked.current.target(), talked.services.journal
    done = (await journal.steps(target))[-1].done
    assert not isinstance(done, EndedJob)
    await journal.take_back(target, done)
    with pytest.raises(JournalError, match="meanwhile"):
        await journal.take_back(target, done)
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
        "The newest message in this thread was sent from another Chorus.\n"
        'Undo your message "Said elsewhere" and its reply?'
    )
    assert plain(await question.confirmed()).startswith("Undone:")
    assert await talked.told("/undo") == 'Undone: your message "How are you?" and its reply'


async def test_undo_with_a_number_does_not_ask_which_chat_sent_the_message(talked: World) -> None:
    async for _ in await said_in_another_chat(talked, "Said elsewhere"):
        pass
    await talked.say("Said here")
    number = len(await talked.steps()) - 1
    assert await talked.told(f"/undo {number}") == 'Undone: your message "Said elsewhere" and its reply'


async def test_undo_asks_before_it_takes_back_a_reply_that_another_chat_is_writing(talked: World) -> None:
    writing = await said_in_another_chat(talked, "Said elsewhere")
    question = await talked.asked_back("/undo")
    assert question.text.startswith("The newest message in this thread was sent from another Chorus.\n")
    assert plain(question.declined) == "Nothing was undone."
    await writing.aclose()


async def test_undo_takes_back_a_message_of_an_earlier_run_without_a_question(talked: World) -> None:
    services = replace(talked.services, conversation=of_run(talked.conversation, "a new run"))
    services = replace(services, conversation=replace(services.conversation, began_at=talked.clock.now()))
    assert await replace(talked, services=services).told("/undo") == 'Undone: your message "How are you?" and its reply'


# An act of the tests alone, which no service knows, keeps messages in context


@pytest.fixture
def keeping(talked: World) -> Iterator[World]:
    with registered():
        yield talked


async def keep(world: World, *members: int) -> int:
    return (await world.journal.introduce(world.current.target(), Keep(members))).id


async def test_the_report_counts_the_kept_messages_apart(keeping: World) -> None:
    await keep(keeping, 1)
    assert "3 in the 8h window, 1 kept at any age" in await keeping.told("/why")
    keeping.clock.advance(timedelta(days=30))
    told = await keeping.told("/why")
    assert "0 in the 8h window, 1 kept at any age" in told
    assert [line.split()[:5] for line in told.splitlines() if line.startswith("older than")] == [
        ["older", "than", "the", "window", "3"]
    ]


async def test_an_edit_counts_the_kept_messages_as_its_own(keeping: World) -> None:
    await keeping.told("/new")
    await keep(keeping, 1)
    keeping.model.say("Hello.")
    await keeping.say("Hi")
    opened = await keeping.services.context_editing.open(keeping.current.target())
    await keeping.services.context_editing.save(opened, opened.sheet.text.replace("Hello.", "Good day."))
    assert await keeping.seen() == ["Hello", "Hi", "Good day."]


async def test_a_session_has_a_thread_of_which_only_a_kept_message_is_left(keeping: World) -> None:
    await keep(keeping, 1)
    keeping.clock.advance(timedelta(days=30))
    await keeping.told("/thread new")
    keeping.model.say("A summary.")
    assert "1 message" in await keeping.told("/context save kept")


# Pins

SECRET = "The password is swordfish."


@pytest.fixture
async def pinned(world: World) -> World:
    """Three turns, the messages 1 to 6; message 1 is pinned."""
    for said in (SECRET, "Who are you?", "Where to?"):
        world.model.say("I see.")
        await world.say(said)
    told = await world.told("/pin 1")
    assert told == f'Pinned: #1 "{SECRET}". /unpin 1 ends that.'
    return world


@pytest.fixture
async def small(tmp_path: Path, store: Store, clock: FakeClock, model: ScriptedModel) -> World:
    """A model that takes 300 tokens."""
    return await built(tmp_path, store, clock, model, 300)


async def talk(world: World, turns: int, words: int = 10) -> None:
    begun = len(await world.log())
    for number in range(begun, begun + turns):
        world.model.say(" ".join(["yes"] * words))
        await world.say(f"question {number} " + " ".join(["so"] * words))


async def test_unpin_lets_it_leave_and_is_a_step_of_its_own(pinned: World) -> None:
    pinned.clock.advance(timedelta(days=30))
    pinned.model.say("Yes.")
    await pinned.say("Do you remember?")
    assert pinned.asked()[0] == ("user", SECRET)
    for line, told, is_seen in (
        ("/unpin #1", f'No longer pinned: #1 "{SECRET}".', False),
        ("/undo", "Undone: unpinned #1", True),
        ("/redo", "Redone: unpinned #1", False),
        ("/pin 1", f'Pinned: #1 "{SECRET}". /unpin 1 ends that.', True),
        ("/context undo 5", "Undone: pinned #1", False),
    ):
        assert (await pinned.told(line)).startswith(told)
        assert (SECRET in await pinned.seen()) is is_seen


async def test_it_is_listed_in_pin_context_and_why(pinned: World) -> None:
    for line in ("/pin", "/context", "/why"):
        told = await pinned.told(line)
        assert SECRET in told.partition("Pinned")[2]
    assert "5 in the 8h window, 1 pinned" in await pinned.told("/why")
    assert "pinned #1" in await pinned.told("/context ops")


async def test_what_cannot_be_pinned_is_a_sentence(pinned: World) -> None:
    await pinned.told("/thread new")
    pinned.model.say("Elsewhere.")
    await pinned.say("And here?")
    await pinned.told("/thread 1")
    for line, refusal in (
        ("/pin 1", "Message #1 is pinned already. /unpin 1 ends that."),
        ("/pin 99", "There is no message #99 in this thread. /search shows the numbers of messages."),
        ("/pin 7", "There is no message #7 in this thread. /search shows the numbers of messages."),
        ("/unpin 2", "Message #2 is not pinned in this thread. /pin lists the pinned messages."),
        ("/pin x", "'x' is not a whole number above 0, such as 3 or #3."),
    ):
        assert await pinned.told(line) == refusal


async def test_what_was_undone_or_replaced_is_not_pinned(pinned: World) -> None:
    await retried(pinned)
    await pinned.told("/undo 2")
    before = await pinned.steps()
    for number in (3, 6):
        told = await pinned.told(f"/pin {number}")
        assert told.startswith(f"Message #{number} is undone, replaced or purged, so it cannot be pinned.")
    assert await pinned.steps() == before


async def test_what_was_purged_is_no_longer_pinned(pinned: World) -> None:
    await purged(pinned, "/purge message 1")
    assert (await pinned.told("/unpin 1")).startswith("Message #1 is not pinned in this thread.")


async def test_a_new_conversation_ends_it(pinned: World) -> None:
    await pinned.told("/new")
    assert await pinned.seen() == []
    assert await pinned.told("/unpin 1") == ("Message #1 is not pinned in this thread. /pin lists the pinned messages.")
    assert (await pinned.told("/pin")).startswith("No message is pinned.")


async def test_a_full_request_leaves_out_others_and_the_next_ones_begin_alike(small: World) -> None:
    await talk(small, 1)
    await small.told("/pin 1")
    await talk(small, 9)
    sent = [content for _, content in small.asked()]
    assert any("question 0 " in content for content in sent)
    assert not any("question 2 " in content for content in sent)
    plan = await small.context.planned(small.current.target(), small.clock.now())
    assert 3 in [row.id for reason, row in plan.left_out() if reason is Reason.NO_ROOM]
    assert 1 in [row.id for row in plan.sent]
    assert plan.meter.tokens <= plan.snapshot.budget.tokens
    await talk(small, 3)
    requests = [small.asked(number) for number in range(-6, 0)]
    assert sum(later[: len(earlier)] == earlier for earlier, later in pairwise(requests)) >= 3


async def test_a_fold_sends_it_beside_the_summary(pinned: World) -> None:
    await talk(pinned, 2)
    pinned.model.say("They talked.")
    assert "messages" in await pinned.told("/compact")
    pinned.model.say("Yes.")
    await pinned.say("Do you remember?")
    sent = [content for _, content in pinned.asked()]
    assert sent[0] == SECRET
    assert "Who are you?" not in sent
    assert "They talked." in pinned.model.requests[-1].messages[0].content


async def test_a_summary_stands_while_what_it_stands_for_leaves_by_age(pinned: World) -> None:
    pinned.clock.advance(timedelta(hours=5))
    await talk(pinned, 3)
    pinned.model.say("They talked.")
    await pinned.told("/compact")
    pinned.clock.advance(timedelta(hours=4))
    view = await pinned.view()
    assert view.summary is not None
    assert view.verbatim[0].content == SECRET
    assert "Who are you?" not in await pinned.seen()


async def test_a_summary_can_be_extended_and_its_pin_undone(pinned: World) -> None:
    await talk(pinned, 2)
    for text in ("First.", "Second."):
        pinned.model.say(text)
        await pinned.told("/compact")
        await talk(pinned, 3)
    await pinned.told("/unpin 1")
    view = await pinned.view()
    assert view.summary is not None
    assert view.summary.content == "Second."
    assert SECRET not in [row.content for row in view.verbatim]


async def test_a_pin_that_has_no_room_beside_the_question_is_left_out_or_cut(small: World) -> None:
    await talk(small, 1, words=80)
    await small.told("/pin 1")
    await talk(small, 1, words=120)
    plan = await small.context.planned(small.current.target(), small.clock.now())
    assert plan.meter.tokens <= plan.snapshot.budget.tokens
