"""Acts that keep messages in context: one of the tests alone, which no service knows, and the pin."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from chorus_cli.context.rules.view import Reason
from chorus_cli.storage.store import Store
from tests.fakes import FakeClock, ScriptedModel
from tests.log.rules.keeping import Keep, registered
from tests.world import World, built


@pytest.fixture(autouse=True)
def _keep() -> Iterator[None]:
    with registered():
        yield


@pytest.fixture
async def talked(world: World) -> World:
    """Two turns were said in the first thread, the messages 1 to 4."""
    for question in ("Who are you?", "Where to?"):
        world.model.say(f"{question} I do not know.")
        await world.say(question)
    return world


async def keep(world: World, *members: int) -> int:
    return (await world.journal.introduce(world.current.target(), Keep(members))).id


async def test_the_report_counts_the_kept_messages_apart(talked: World) -> None:
    await keep(talked, 1)
    assert "3 in the 8h window, 1 kept whatever their age" in await talked.told("/why")
    talked.clock.advance(timedelta(days=30))
    told = await talked.told("/why")
    assert "0 in the 8h window, 1 kept whatever their age" in told
    assert [line.split()[:5] for line in told.splitlines() if line.startswith("older than")] == [
        ["older", "than", "the", "window", "3"]
    ]


async def test_an_edit_counts_the_kept_messages_as_its_own(talked: World) -> None:
    await talked.told("/new")
    await keep(talked, 1)
    talked.model.say("Hello.")
    await talked.say("Hi")
    opened = await talked.services.context_editing.open(talked.current.target())
    await talked.services.context_editing.save(opened, opened.sheet.text.replace("Hello.", "Good day."))
    assert await talked.seen() == ["Who are you?", "Hi", "Good day."]


async def test_a_session_has_a_thread_of_which_only_a_kept_message_is_left(talked: World) -> None:
    await keep(talked, 1)
    talked.clock.advance(timedelta(days=30))
    await talked.told("/thread new")
    talked.model.say("A summary.")
    assert "1 message" in await talked.told("/context save kept")


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


async def test_unpin_lets_it_leave_and_redo_pins_it_again(pinned: World) -> None:
    pinned.clock.advance(timedelta(days=30))
    pinned.model.say("Yes.")
    await pinned.say("Do you remember?")
    assert pinned.asked()[0] == ("user", SECRET)
    for line, told, is_seen in (
        ("/unpin #1", f'No longer pinned: #1 "{SECRET}".', False),
        ("/redo", "Redone: pinned #1", True),
        ("/context undo 1", "Undone: pinned #1", False),
    ):
        assert await pinned.told(line) == told
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
        ("/pin x", "'x' is not a number from 1 upwards, such as 3 or #3."),
    ):
        assert await pinned.told(line) == refusal


async def test_a_new_conversation_ends_it(pinned: World) -> None:
    await pinned.told("/new")
    assert await pinned.seen() == []
    assert await pinned.told("/unpin 1") == ("Message #1 is not pinned in this thread. /pin lists the pinned messages.")
    assert (await pinned.told("/pin")).startswith("No message is pinned.")


async def test_a_full_request_leaves_out_others(small: World) -> None:
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


async def test_requests_that_leave_others_out_still_begin_alike(small: World) -> None:
    await talk(small, 1)
    await small.told("/pin 1")
    await talk(small, 12)
    alike = 0
    for number in range(-1, -6, -1):
        later, earlier = small.asked(number), small.asked(number - 1)
        alike += later[: len(earlier)] == earlier
    assert alike >= 3


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
