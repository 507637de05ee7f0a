"""Folds that meet something else: another Chorus, other folds, a pause, or a user who does not wait."""

from __future__ import annotations

import asyncio

import pytest

from chorus_cli.core.errors import ModelError
from chorus_cli.models.rules.events import Notice
from chorus_cli.turns.service.folding import Folding
from tests.remembering import PREFIX
from tests.sessions.service.saved_sessions import sql
from tests.turns.folding.long_talk import Talk, facts
from tests.world import unexpected

FAILED = "The older part of the conversation could not be summarised"


async def test_a_fold_that_is_overtaken_by_new_is_thrown_away(talk: Talk) -> None:
    await talk.say(*facts(6))
    place = talk.world.current.target()
    talk.model.gate = asyncio.Event()
    folding = asyncio.create_task(talk.world.services.folding.fold_all(place, ""))
    await talk.model.asked.wait()
    await talk.world.told("/new")
    talk.model.gate.set()
    assert (await folding).summary is None
    assert await talk.folds() == []


async def test_a_fold_of_another_process_meanwhile_wins(talk: Talk) -> None:
    await talk.say(*facts(6))
    place = talk.world.current.target()
    other = folding_elsewhere(talk)
    talk.model.gate = asyncio.Event()
    mine = asyncio.create_task(talk.world.services.folding.fold_all(place, ""))
    await talk.model.asked.wait()
    talk.model.gate.set()
    theirs = await other.fold_all(place, "")
    results = [(await mine).summary, theirs.summary]
    assert sum(result is not None for result in results) == 1
    assert len(await talk.folds()) == 1


def folding_elsewhere(talk: Talk) -> Folding:
    return Folding(talk.world.context, talk.world.services.folding.summarizer, unexpected)


async def test_turns_of_one_thread_never_fold_twice_at_once(talk: Talk) -> None:
    await talk.say(*facts(6))
    place = talk.world.current.target()
    folding = talk.world.services.folding
    results = await asyncio.gather(folding.fold_all(place, ""), folding.fold_all(place, ""))
    assert [result.messages for result in results] == [8, 0]
    assert len(await talk.folds()) == 1


async def test_a_fold_behind_the_talk_uses_the_pause_and_says_so(talk: Talk) -> None:
    told = asyncio.Queue[str]()
    folds = talk.folding_in_background(told.put_nowait)
    assert await talk.say(*facts(7)) == []
    async with asyncio.timeout(5):
        sentence = await told.get()
    assert sentence.startswith("The oldest 8 messages in context are summarised now.")
    assert await talk.say("next!") == []
    assert f"{PREFIX} f0! f1! f2!" in talk.last_request()
    await folds.close()


@pytest.mark.parametrize(
    ("failure", "told", "beside"),
    [
        pytest.param(None, "The oldest 8 messages in context are summarised now.", [], id="done"),
        pytest.param(ModelError("It is down."), f"{FAILED}: It is down.", ["The oldest 8 messages"], id="failed"),
    ],
)
async def test_a_turn_that_waits_for_a_fold_does_not_fold_again(
    talk: Talk, failure: ModelError | None, told: str, beside: list[str]
) -> None:
    said = asyncio.Queue[str]()
    folds = talk.folding_in_background(said.put_nowait)
    talk.model.gate, talk.model.failure = asyncio.Event(), failure
    await talk.say(*facts(7))
    await talk.model.asked.wait()
    events = talk.world.conversation.answer(talk.world.current.target(), " ".join(["next!", *["w"] * 100]))
    assert isinstance(await anext(events), Notice)
    talk.model.gate.set()
    others = [event.text async for event in events if isinstance(event, Notice)]
    assert [other.partition(" in the window")[0] for other in others] == beside
    assert (await said.get()).startswith(told)
    assert len(talk.summaries()) == 1
    await folds.close()


async def test_a_fold_behind_the_talk_that_fails_is_tried_again_some_turns_later(talk: Talk) -> None:
    told = asyncio.Queue[str]()
    folds = talk.folding_in_background(told.put_nowait)
    talk.model.failure = ModelError("The provider is down.")
    await talk.say(*facts(7))
    assert "could not be summarised: The provider is down." in await told.get()
    talk.model.failure = None
    await talk.say(*facts(2, 7), words=0)
    assert len(talk.summaries()) == 1
    await talk.say("later!", words=0)
    async with asyncio.timeout(5):
        assert (await told.get()).startswith("The oldest ")
    await folds.close()


async def test_the_wait_after_a_failed_summary_is_the_same_in_every_process(talk: Talk) -> None:
    await talk.say(*facts(7))
    talk.model.failure = ModelError("The provider is down.")
    asked: list[int] = []
    for fact in facts(4, 7):
        talk.continue_in_another_process()
        await talk.say(fact)
        asked.append(len(talk.summaries()))
    assert asked == [1, 1, 1, 2]


async def test_a_summary_that_is_written_ends_the_wait_after_a_failed_one(talk: Talk) -> None:
    await talk.say(*facts(7))
    talk.model.failure = ModelError("The provider is down.")
    await talk.say("f7!")
    talk.model.failure = None
    await talk.world.told("/compact")
    await talk.say("f8!", "f9!", words=600)
    assert "f6!" in await talk.summary()


async def test_leaving_gives_up_what_is_being_folded(talk: Talk) -> None:
    folds = talk.folding_in_background(pytest.fail)
    talk.model.gate = asyncio.Event()
    await talk.say(*facts(7))
    await talk.model.asked.wait()
    await folds.close()
    assert await talk.folds() == []


async def test_ctrl_c_while_it_is_summarised_keeps_the_message_and_ends_its_reply(talk: Talk) -> None:
    await talk.say(*facts(7))
    talk.model.gate = asyncio.Event()
    turn = asyncio.create_task(talk.world.say(" ".join(["stop!", *["w"] * 100])))
    await talk.model.asked.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    *_, question, reply = await talk.world.log()
    assert (question.content.split()[0], reply.status) == ("stop!", "interrupted")
    assert await talk.folds() == []


async def test_what_another_window_is_still_answering_is_not_folded(talk: Talk) -> None:
    await talk.say(*facts(6))
    await sql(talk.world, "UPDATE messages SET status = 'streaming', run = 'elsewhere' WHERE id = 4")
    await talk.world.told("/compact")
    assert "f0!" in await talk.summary()
    assert "f1!" not in await talk.summary()
    assert any(seen.startswith("f1! w") for seen in await talk.world.seen())


async def test_a_notice_comes_before_the_wait(talk: Talk) -> None:
    await talk.say(*facts(7))
    talk.model.gate = asyncio.Event()
    events = talk.world.conversation.answer(talk.world.current.target(), " ".join(["x!", *["w"] * 60]))
    first = await anext(events)
    assert isinstance(first, Notice)
    assert first.text.startswith("The conversation no longer fits")
    assert talk.summaries() == []
    talk.model.gate.set()
    async for _ in events:
        pass


async def test_what_another_window_does_while_it_is_summarised_is_no_part_of_the_request(talk: Talk) -> None:
    await talk.say(*facts(7))
    talk.model.gate = asyncio.Event()
    turn = asyncio.create_task(talk.world.say(" ".join(["mine!", *["w"] * 60])))
    await talk.model.asked.wait()
    await talk.world.told("/new")
    talk.model.gate.set()
    await turn
    assert "mine! w" in talk.last_request()
    assert await talk.folds() == []


async def test_whoever_stops_listening_at_the_notice_leaves_no_reply_in_progress(talk: Talk) -> None:
    await talk.say(*facts(7))
    events = talk.world.conversation.answer(talk.world.current.target(), " ".join(["x!", *["w"] * 60]))
    await anext(events)
    await events.aclose()
    assert (await talk.world.log())[-1].status == "interrupted"
