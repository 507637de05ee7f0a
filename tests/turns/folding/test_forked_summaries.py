"""A fork of a long conversation goes on with its summary, for which no model has to be asked again."""

from __future__ import annotations

from tests.turns.folding.long_talk import Talk, facts


async def test_a_fork_goes_on_with_the_summary_of_its_origin(talk: Talk) -> None:
    await talk.say(*facts(8))
    summary, asked = await talk.summary(), len(talk.summaries())
    before = await talk.world.view()
    await talk.world.told("/thread fork")
    after = await talk.world.view()
    assert (after.messages, after.folded_number) == (before.messages, before.folded_number)
    assert await talk.summary() == summary != ""
    await talk.say("f8!", words=20)
    assert all(fact in talk.last_request() for fact in facts(9))
    assert "f0! w" not in talk.last_request()
    assert len(talk.summaries()) == asked
    [operation] = [each.operation for each in await talk.world.journal.entries(talk.world.current.target())]
    assert operation.act.kind == "fork"


async def test_a_fold_in_a_fork_extends_the_summary_there_and_leaves_that_of_the_origin(talk: Talk) -> None:
    await talk.say(*facts(8))
    summary = await talk.summary()
    await talk.world.told("/thread fork")
    await talk.say(*facts(6, 8))
    assert summary in talk.summaries()[-1]
    assert all(fact in talk.last_request() for fact in facts(14))
    await talk.world.told("/thread 1")
    assert await talk.summary() == summary


async def test_a_fork_that_ends_within_the_summary_has_the_words(talk: Talk) -> None:
    await talk.say(*facts(8))
    await talk.world.told("/thread fork 3")
    assert await talk.summary() == ""
    assert [text.split()[0] for text in await talk.world.seen()] == ["f0!", "so", "f1!", "so"]


async def test_another_wording_of_the_summary_of_a_fork_can_be_undone(talk: Talk) -> None:
    await talk.say(*facts(8))
    await talk.world.told("/thread fork")
    summary, folding = await talk.summary(), talk.world.services.folding
    target = talk.world.current.target()
    await folding.reword(await talk.world.context.snapshot(target, talk.world.clock.now()), "My words.")
    assert await talk.summary() == "My words."
    await talk.world.told("/undo")
    assert await talk.summary() == summary
    assert (await talk.world.context.snapshot(target, talk.world.clock.now())).budget.room.budget == 800
