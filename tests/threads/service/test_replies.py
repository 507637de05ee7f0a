"""Several replies at once: one in each thread, shown or not; messages that wait or come from the editor."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from io import StringIO

import pytest

from chorus_cli.core.errors import CommandError, EditorError, JournalError, MessageNotStoredError, ModelError
from chorus_cli.framework.command_line import resolve
from chorus_cli.framework.replies import Refill
from chorus_cli.log.rows import thread_rows
from chorus_cli.log.rules.acts import Way
from chorus_cli.log.rules.messages import Role, Status
from chorus_cli.models.rules.events import ReplyEnd, TextDelta, WaitBegun
from chorus_cli.personas.rules.persona import Target
from chorus_cli.threads.service.running_turn import RunningTurn
from tests.threads.service.slow_replies import refuse, replies, rows, sent, settled, slow_reply, unsent
from tests.world import World, of_run, words_come


async def begun(world: World, *words: str) -> tuple[Target, asyncio.Event, RunningTurn]:
    """Send "first" to the thread in focus; its reply stops after the first word until the gate is opened."""
    here, gate = world.current.target(), slow_reply(world, *words)
    return here, gate, await sent(world, here, "first")


async def test_killing_a_thread_says_how_many_messages_waited_and_keeps_them_as_drafts(world: World) -> None:
    here, aside = world.current.target(), await world.services.threads.new_aside()
    for target, waiting in ((here, ["second"]), (aside, ["third", "fourth"])):
        slow_reply(world, "half")
        await sent(world, target, "first")
        for text in waiting:
            await replies(world).send(target, text)
    assert "\nNot sent: 2 messages, kept for the next start." in await world.told("/thread kill 2")
    assert "\nNot sent: 1 message, kept for the next start." in await world.told("/thread kill 1")
    assert sorted(await unsent(world)) == ["fourth", "second", "third"]
    assert "Not sent" not in await world.told("/thread kill 3")


async def test_a_private_chat_keeps_no_message_that_waited(world: World) -> None:
    replies(world)._outbox = replies(world)._outbox._replace(is_in_memory=True)
    here, _gate, _turn = await begun(world, "half")
    await replies(world).send(here, "second")
    assert "\nNot sent: 1 message.\n" in await world.told("/thread kill 1")


async def test_a_waiting_message_is_taken_back_newest_first(world: World) -> None:
    here, gate, _turn = await begun(world, "first")
    for text in ("second", "third"):
        await replies(world).send(here, text)
    third = await replies(world).take_back(here.thread_id)
    assert third is not None
    assert third.text == "third"
    assert await unsent(world) == ["second"]
    assert await world.told("/undo") == "Not sent: second"
    assert (await replies(world).take_back(here.thread_id), await unsent(world)) == (None, [])
    gate.set()
    await settled(world)
    assert [row.content for row in await world.log()] == ["first", "first"]


async def test_a_message_that_would_wait_without_a_row_is_refused(world: World) -> None:
    here, gate, _ = await begun(world, "one")
    await refuse(world, "outbox")
    with pytest.raises(MessageNotStoredError, match="does not wait for the reply, and is back at the prompt"):
        await replies(world).send(here, "second")
    assert replies(world).waiting_count == 0
    gate.set()
    await settled(world)


async def test_leaving_the_chat_keeps_what_waits_and_what_has_come(world: World) -> None:
    here, _gate, _turn = await begun(world, "half")
    await replies(world).send(here, "second")
    assert await replies(world).close() == [
        "Stopped: 1 reply in thread #1. What had arrived is kept; /retry asks again.",
        "Not sent: 1 message, kept for the next start.",
    ]
    assert await rows(world, here) == [
        (Role.USER, "first", Status.COMPLETE),
        (Role.ASSISTANT, "half", Status.INTERRUPTED),
    ]
    assert await unsent(world) == ["second"]


async def test_a_reply_that_never_began_is_told_with_its_cause(world: World) -> None:
    told: list[str] = []
    here = world.current.target()
    world.model.enqueue(ModelError("Cannot reach it.", advice="Start it."))
    with world.services.notifier.heard_by(told.append, told.append):
        await replies(world).send(here, "first")
        await settled(world)
    assert told == [
        '"first" in thread #1 was not answered: Cannot reach it. Start it. Your message is kept; /retry asks again.'
    ]


async def test_leaving_the_chat_names_the_commands_whose_replies_are_stopped(world: World) -> None:
    await world.say("first")
    slow_reply(world, "half")
    await words_come(replies(world).retry(world.current.target(), Way.CONTINUE).followed())
    slow_reply(world, "half")
    await sent(world, await world.services.threads.new_aside(), "second")
    await world.told("/persona new Ada")
    (told,) = await replies(world).close()
    assert told.startswith("Stopped: 2 replies in thread #1 of chorus and thread #2 of chorus.")
    assert told.endswith("What had arrived is kept; /continue or /retry asks again.")


async def test_a_reply_that_is_left_goes_on_and_is_shown_whole_later(world: World) -> None:
    told: list[str] = []
    here, gate, turn = await begun(world, "one", " two")
    with world.services.notifier.heard_by(told.append, told.append):
        gate.set()
        await settled(world)
    assert told == ['The reply to "first" in thread #1 is done; /thread 1 shows it.']
    assert replies(world).in_thread(here.thread_id) is turn
    words = [event.text async for event in turn.followed() if isinstance(event, TextDelta)]
    assert (words, replies(world).in_thread(here.thread_id)) == (["one", " two"], None)


async def test_a_retry_is_shown_in_place_of_a_reply_that_was_not_seen(world: World) -> None:
    here, gate, _turn = await begun(world, "old")
    gate.set()
    await settled(world)
    retried = replies(world).retry(here)
    await settled(world)
    assert replies(world).in_thread(here.thread_id) is retried


async def test_a_reply_that_is_followed_to_its_end_is_not_told(world: World) -> None:
    told: list[str] = []
    with world.services.notifier.heard_by(told.append, told.append):
        turn = await replies(world).send(world.current.target(), "question")
        assert turn is not None
        assert [event async for event in turn.followed()] == list(turn.events)
    assert (told, replies(world).in_thread(world.current.target().thread_id)) == ([], None)


async def test_a_message_that_is_stopped_before_anything_has_happened_is_stored(world: World) -> None:
    turn = await replies(world).send(world.current.target(), "question")
    assert turn is not None
    await turn.stop()
    question, reply = await world.log()
    assert (question.content, reply.status) == ("question", Status.INTERRUPTED)


async def test_a_reply_in_progress_is_not_asked_for_again(world: World) -> None:
    slow_reply(world, "half")
    await sent(world, world.current.target(), "question")
    with pytest.raises(JournalError, match="is being answered now"):
        replies(world).retry(world.current.target())
    await replies(world).close()


async def test_neither_a_stopped_reply_nor_a_killed_one_is_told_as_done(world: World) -> None:
    told: list[str] = []
    here, aside = world.current.target(), await world.services.threads.new_aside()
    slow_reply(world, "half")
    slow_reply(world, "half")
    followed, killed = await sent(world, here, "first"), await sent(world, aside, "second")
    with world.services.notifier.heard_by(told.append, told.append):
        await followed.stop()
        await replies(world).stop(killed.target.thread_id)
    unseen = [replies(world).in_thread(target.thread_id) for target in (here, aside)]
    assert (told, unseen) == ([], [None, None])


@pytest.mark.parametrize("is_stopped", [False, True])
async def test_a_message_that_has_waited_follows_the_turn_that_it_waited_for(world: World, *, is_stopped: bool) -> None:
    here, gate, turn = await begun(world, "first")
    await replies(world).send(here, "second")
    if is_stopped:
        await turn.stop()
        assert turn.next is not None
    gate.set()
    await settled(world)
    assert turn.next is not None
    assert (turn.next.text, turn.next.is_over, turn.next.target.is_aside) == ("second", True, True)
    assert [row.content for row in await world.log()] == ["first", "first", "second", "ok"]


async def test_an_undone_turn_is_answered_no_further(world: World) -> None:
    await begun(world, "half")
    assert await world.told("/undo") == 'Undone: your message "first" and its reply'
    assert replies(world).running == ()
    assert (await world.log())[-1].status is Status.INTERRUPTED


async def test_a_refused_message_aside_is_kept_and_leaves_no_thread(world: World) -> None:
    told: list[str] = []
    with world.services.notifier.heard_by(told.append, told.append):
        await world.told("/bg " + "word " * 200_000)
        await settled(world)
    (text,) = await unsent(world)
    assert text.startswith("word word")
    assert "in thread #2 was not answered: " in told[-1]
    assert "Your text is kept; /rescue shows it." in told[-1]
    assert [thread.thread.number for thread in await world.services.threads.listed(closed=False)] == [1]
    assert "word word" in await world.told("/rescue")


async def test_a_message_aside_that_nothing_takes_is_in_the_sentence(world: World) -> None:
    told: list[str] = []
    world.kept.is_full = True
    aside = await world.threads.new_aside()
    for table in ("messages", "outbox"):
        await refuse(world, table)
    with world.services.notifier.heard_by(told.append, told.append):
        await replies(world).send_aside(aside, "Precious words")
        await settled(world)
    assert "It could not be kept in a file either: Precious words" in told[-1]


async def test_a_failing_notice_does_not_hold_up_the_message_that_waits(world: World) -> None:
    def fail(_line: str) -> None:
        raise OSError

    here, gate, _turn = await begun(world, "first")
    await replies(world).send(here, "second")
    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: failures.append(context["exception"]))
    with world.services.notifier.heard_by(fail, fail):
        gate.set()
        await settled(world)
    assert [row.content for row in await world.log()] == ["first", "first", "second", "ok"]
    assert {type(failure) for failure in failures} == {OSError}


async def test_the_next_run_goes_on_where_the_user_is(world: World) -> None:
    await world.told("/bg aside")
    await settled(world)
    assert (await world.store.read(thread_rows.last_used, world.current.slug)) == (world.current.thread_id, 1)


async def test_no_silence_is_kept_while_a_reply_is_written_in_the_background(world: World) -> None:
    gate = slow_reply(world, "first")
    await sent(world, world.current.target(), "first")
    assert world.services.idle_timer._busy
    gate.set()
    await settled(world)
    assert not world.services.idle_timer._busy


async def test_an_undone_turn_that_was_not_seen_is_not_shown_any_more(world: World) -> None:
    here, gate, turn = await begun(world, "first", " reply")
    await replies(world).send(here, "second")
    gate.set()
    await settled(world)
    assert turn.next is not None
    assert await world.told("/undo") == 'Undone: your message "second" and its reply'
    assert turn.next is None
    await world.told("/undo")
    assert replies(world).in_thread(here.thread_id) is None


async def test_a_message_whose_reply_an_undo_stops_before_its_first_word_is_taken_back_alone(world: World) -> None:
    world.model.enqueue(asyncio.Event())
    await replies(world).send(world.current.target(), "first")
    await world.log_row_with_status(1, Status.STREAMING)
    assert await world.told("/undo") == 'Undone: your message "first"'


async def test_after_an_undone_turn_the_message_that_waited_is_shown_in_its_place(world: World) -> None:
    here, gate, turn = await begun(world, "first")
    slow_reply(world, "half")
    for text in ("second", "third"):
        await replies(world).send(here, text)
    gate.set()
    await turn.over()
    await asyncio.sleep(0)
    second = turn.next
    assert second is not None
    await words_come(second.followed())
    await replies(world).break_off(here.thread_id)
    await settled(world)
    assert [each.text for each in turn.chain] == ["first", "third"]
    assert replies(world).in_thread(here.thread_id) is turn


@pytest.fixture
async def busy(world: World) -> AsyncGenerator[World, None]:
    """A world whose thread another process is writing in."""
    hold = asyncio.Event()
    world.model.enqueue(TextDelta("Half"), hold, ReplyEnd("stop"))
    events = of_run(world.conversation, "another").answer(world.current.target(), "First")
    await words_come(events)
    yield world
    hold.set()
    assert [event async for event in events]


async def waiting(world: World, text: str) -> RunningTurn:
    turn = await world.services.replies.send(world.current.target(), text)
    assert turn is not None
    assert isinstance(await anext(turn.followed()), WaitBegun)
    return turn


async def test_it_counts_as_waiting_and_undo_takes_it_back(busy: World) -> None:
    await waiting(busy, "/quit is a word")
    assert (replies(busy).running, replies(busy).waiting_count) == ((), 1)
    # Its row is the line that sends it.
    assert await unsent(busy) == ["//quit is a word"]
    reply = await busy.carry_out("/undo")
    assert reply == Refill("Not sent: /quit is a word", "//quit is a word")
    assert (replies(busy).waiting_count, await unsent(busy)) == (0, [])
    assert [message.content for message in await busy.log() if message.role == "user"] == ["First"]


async def test_a_retry_that_waits_is_taken_back_by_name(busy: World) -> None:
    assert isinstance(await anext(replies(busy).retry(busy.current.target()).followed()), WaitBegun)
    assert await busy.carry_out("/undo") == Refill("Not sent: /retry", "")
    assert (replies(busy).waiting_count, len(await busy.log())) == (0, 2)


async def test_the_end_of_the_chat_says_that_it_was_not_sent(busy: World) -> None:
    await waiting(busy, "Second")
    assert await busy.services.replies.close() == ["Not sent: 1 message, kept for the next start."]
    assert await unsent(busy) == ["Second"]


async def test_it_is_kept_even_if_it_is_stopped_before_it_is_known_to_wait(busy: World) -> None:
    turn = await busy.services.replies.send(busy.current.target(), "Second")
    assert turn is not None
    await turn.stop()
    assert (turn.is_waiting, await unsent(busy)) == (True, ["Second"])
    assert await busy.services.replies.give_back(turn) == "Second"
    assert await unsent(busy) == []


@pytest.mark.parametrize(
    ("is_full", "end"), [(False, "The text is kept in {}."), (True, "It could not be kept in a file either: Second")]
)
async def test_one_that_no_row_holds_is_in_a_file_or_in_the_sentence(busy: World, *, is_full: bool, end: str) -> None:
    await refuse(busy, "outbox")
    busy.kept.is_full = is_full
    await waiting(busy, "Second")
    told = f"A message that waited was not sent. {end.format(busy.folder / 'rescue.jsonl')}"
    assert await busy.services.replies.close() == [told]
    assert [record["content"] for record in busy.rescued] == ([] if is_full else ["Second"])


async def test_it_is_kept_when_its_thread_is_killed_whatever_waits_there_later(busy: World) -> None:
    await waiting(busy, "Second")
    assert "\nNot sent: 1 message, kept for the next start.\n" in await busy.told("/thread kill 1")
    await busy.told("/thread 1")
    assert isinstance(await anext(replies(busy).retry(busy.current.target()).followed()), WaitBegun)
    assert replies(busy).not_sent_line([busy.current.thread_id]) == ""
    await busy.told("/undo")
    assert await unsent(busy) == ["Second"]


async def test_one_without_a_row_whose_thread_was_stopped_is_told_of_in_the_end(busy: World) -> None:
    await refuse(busy, "outbox")
    turn = await waiting(busy, "Second")
    assert await busy.services.replies.stop(turn.target.thread_id)
    [told] = await busy.services.replies.close()
    assert told.startswith("A message that waited was not sent. The text is kept in ")


@pytest.mark.parametrize("steps", range(24))
async def test_a_reply_that_is_broken_off_at_any_step_has_the_words_that_were_shown(world: World, steps: int) -> None:
    gate = slow_reply(world, "one", *(f" {number}" for number in range(9)))
    turn = await sent(world, world.current.target(), "question")
    screen = StringIO()

    async def follow() -> None:
        try:
            async for event in turn.followed():
                screen.write(event.text if isinstance(event, TextDelta) else "")
        except asyncio.CancelledError:
            await turn.stop()
            raise

    listener = asyncio.create_task(follow())
    await asyncio.sleep(0)
    gate.set()
    for _ in range(steps):
        await asyncio.sleep(0)
    listener.cancel()
    await asyncio.wait({listener})
    reply = (await world.log())[-1]
    assert (turn.is_over, reply.content) == (True, screen.getvalue())


async def composed(world: World) -> RunningTurn:
    """Run /editor and return the turn that it begins."""
    answer = await resolve(world.services.registry, "/editor", world.clock.now()).run(world.services)
    assert isinstance(answer, RunningTurn)
    return answer


def drafts(world: World) -> list[str]:
    return [path.read_text(encoding="utf-8") for path in (world.folder / "drafts").glob("draft-*")]


async def test_what_is_saved_is_sent_without_the_line_ends_around_it_and_the_draft_is_gone(world: World) -> None:
    world.editor.enqueue("\n  /new is no command here\n\nsecond paragraph \n")
    assert len([event async for event in (await composed(world)).followed()]) > 0
    assert [message.content for message in await world.log()] == ["  /new is no command here\n\nsecond paragraph", "ok"]
    assert (drafts(world), await unsent(world)) == ([], [])
    assert world.editor.opened[0].suffix == ".md"


@pytest.mark.parametrize("saved", [None, "", " \n\n"])
async def test_an_empty_text_is_not_sent(world: World, saved: str | None) -> None:
    world.editor.enqueue(saved)
    assert await world.told("/editor") == "Nothing was sent: the message is empty."
    assert await world.log() == []
    assert drafts(world) == []


async def test_an_editor_that_ends_with_an_error_brings_the_text_to_the_prompt(world: World) -> None:
    world.editor.enqueue("half a thought\n", complaint="The editor ended with code 1.")
    answer = await world.carry_out("/editor")
    assert isinstance(answer, Refill)
    assert answer.typed == "half a thought"
    assert answer.text.startswith("The editor ended with code 1. Nothing was sent")
    assert drafts(world) == ["half a thought\n"]
    assert await world.log() == []


async def test_an_editor_that_returned_at_once_keeps_the_draft_for_its_window(world: World) -> None:
    world.editor.enqueue(None, seconds=0.1)
    assert f"What the editor saves later is in {world.folder / 'drafts'}" in await world.told("/editor")
    assert drafts(world) == [""]


async def test_a_message_that_is_refused_is_kept(world: World) -> None:
    world.editor.enqueue("word " * 20_000)
    with pytest.raises(CommandError, match=r"too large.*Your text is kept; /rescue shows it\."):
        _ = [event async for event in (await composed(world)).followed()]
    assert (drafts(world), await unsent(world)) == ([], [("word " * 20_000).rstrip()])
    assert await world.log() == []


async def test_without_an_editor_there_is_a_sentence(world: World) -> None:
    world.editor.enqueue(EditorError("No editor was found."))
    assert await world.told("/editor") == "No editor was found."
