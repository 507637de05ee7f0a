"""Conversations that outgrow their model are summarised; nothing is lost or mixed up, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import timedelta

import pytest

from chorus_cli.context.service.report import context_report
from chorus_cli.core.errors import CommandError, JournalError, MessageRefusedError, ModelError
from chorus_cli.log.rows import message_rows
from chorus_cli.models.rules.events import Notice, ReplyEnd, TextDelta
from chorus_cli.turns.rules import task
from chorus_cli.turns.service.folding import Folding
from tests.remembering import PREFIX
from tests.sessions.service.saved_sessions import sql
from tests.turns.folding.long_talk import Talk, facts


async def test_long_conversation_is_folded_to_half_and_the_last_two_turns_stay(talk: Talk) -> None:
    assert await talk.say(*facts(7)) == []
    assert talk.summaries() == []
    assert all(fact in talk.last_request() for fact in facts(7))
    notices = await talk.say("f7!")
    assert notices[0] == "The conversation no longer fits the model, so Chorus is summarising the older part."
    assert notices[1].startswith("The model now gets a summary of the oldest 10 messages.")
    [asked] = talk.summaries()
    assert [fact in asked for fact in facts(8)] == [True] * 5 + [False] * 3
    sent = talk.last_request()
    assert f"Summary of the earlier conversation:\n{PREFIX} f0! f1! f2! f3! f4!" in sent
    assert sent.count("f0!") == 1
    assert all(f"{fact} w" in sent for fact in facts(3, 5))
    assert [row.content.split()[0] for row in await talk.world.log()][::2] == facts(8)


async def test_calls_grow_with_what_is_said_not_with_turns(talk: Talk) -> None:
    await talk.say(*facts(40), words=20)
    few = len(talk.summaries())
    await talk.say(*facts(40, 40), words=100)
    assert few <= 2
    assert 7 <= len(talk.summaries()) - few <= 14


async def test_a_fact_of_the_first_turn_is_in_the_request_of_the_two_hundredth(talk: Talk) -> None:
    await talk.say("bridge!", *["w"] * 199, words=60)
    assert "bridge!" in talk.last_request()
    assert "bridge! w" not in talk.last_request()
    assert len(await talk.world.log()) == 400
    for fold in reversed(await talk.folds()):
        await talk.world.told(f"/context undo {fold.id}")
    await talk.world.told("/settings set context_token_limit 100000")
    await talk.say("and!")
    assert "bridge! w" in talk.last_request()
    assert await talk.summary() == ""


async def test_an_undone_fold_stays_undone_until_there_is_nearly_no_room(talk: Talk) -> None:
    await talk.say(*facts(8))
    [fold] = await talk.folds()
    assert "10 messages summarised" in await talk.world.told(f"/context undo {fold.id}")
    # 862 of 1,000 words: more than the mark, less than what is allowed after an undo.
    assert await talk.say("f8!", words=20) == []
    assert "f0! w" in talk.last_request()
    assert len(talk.summaries()) == 1
    await talk.say(*facts(2, 9))
    assert len(talk.summaries()) == 2
    assert len(await talk.folds()) == 2


async def test_after_an_undone_fold_a_message_may_be_as_large_as_a_request(talk: Talk) -> None:
    await talk.say(*facts(8))
    await talk.world.told("/context undo 1")
    # 850 of 1,000 words: more than the mark.
    await talk.say("f8!", words=1700)
    assert "f8!" in talk.last_request()


@pytest.mark.parametrize(
    ("line", "stands"),
    [("/context 24h", True), ("/context 1h", True), ("/new", False), ("/thread new", False), ("/undo", True)],
)
async def test_what_is_done_to_the_context_keeps_or_ends_a_summary(talk: Talk, line: str, *, stands: bool) -> None:
    await talk.say(*facts(9))
    await talk.world.told(line)
    assert bool(await talk.summary()) is stands


async def test_a_wider_window_brings_words_in_that_the_summary_does_not_know(talk: Talk) -> None:
    await talk.say("old!")
    talk.world.clock.advance(timedelta(hours=9))
    await talk.say(*facts(9))
    assert "f0!" in await talk.summary()
    await talk.world.told("/context 24h")
    assert await talk.summary() == ""
    await talk.say("new!")
    assert "old!" in await talk.summary()


async def test_a_summary_slides_out_with_the_last_message_that_it_stands_for(talk: Talk) -> None:
    await talk.say(*facts(5))
    talk.world.clock.advance(timedelta(hours=4))
    await talk.say(*facts(4, 5))
    assert await talk.summary() != ""
    talk.world.clock.advance(timedelta(hours=3, minutes=59))
    assert await talk.summary() != ""
    talk.world.clock.advance(timedelta(hours=1))
    assert await talk.summary() == ""
    await talk.say("late!")
    assert "f8! w" in talk.last_request()
    assert "f0!" not in talk.last_request()


@pytest.mark.parametrize(
    "failure", [ModelError("The provider is down."), ModelError("It said nothing.")], ids=["refused", "empty"]
)
async def test_a_summariser_that_fails_stops_no_turn_and_each_failure_is_said(talk: Talk, failure: ModelError) -> None:
    await talk.say(*facts(7))
    talk.model.failure = failure
    notices = await talk.say(*facts(3, 7))
    said = [notice for notice in notices if "could not summarise" in notice]
    sentence = f"Chorus could not summarise the older part of the conversation: {failure} Chorus will try again later."
    assert said == [sentence]
    assert sum("had no room" in notice for notice in notices) == 1
    assert len(talk.summaries()) == 1
    assert await talk.folds() == []
    assert "f9!" in talk.last_request()
    assert "f0!" not in talk.last_request()
    assert re.search(r"Left out.*\nWhy.*\n.*no room in the request +[0-9]+ ", await talk.world.told("/context"))
    assert (await talk.world.told("/context summary")).startswith("There is no summary")
    assert sentence in await talk.say("again!")
    talk.model.failure = None
    await talk.say(*facts(2, 20), "now!")
    assert "f0!" in await talk.summary()


async def test_while_nothing_is_summarised_the_requests_begin_alike_for_a_while(talk: Talk) -> None:
    talk.model.failure = ModelError("The provider is down.")
    beginnings: list[str] = []
    notices: list[str] = []
    for fact in facts(40):
        notices += await talk.say(fact, words=50)
        assert len(talk.last_request().split()) <= 800
        beginnings.append(talk.world.asked()[0][1])
        report = await context_report(talk.world.context, talk.world.current.target(), talk.world.clock.now())
        assert report.plan.request.messages[1].content == beginnings[-1]
    assert len(set(beginnings)) == 6
    assert sum("had no room" in notice for notice in notices) == 1


async def test_a_first_fold_of_far_more_than_the_summariser_takes_goes_in_slices(talk: Talk) -> None:
    await talk.world.told("/settings set context_token_limit 100000")
    await talk.say(*facts(30))
    await talk.world.told("/settings set context_token_limit 1000")
    await talk.say("now!")
    asked = talk.summaries()
    assert len(asked) > 3
    assert all(len(text.split()) <= 800 for text in asked)
    summary = await talk.summary()
    assert all(fact in summary for fact in facts(28))


async def test_giants_among_the_last_two_turns_are_cut_and_the_user_is_told(talk: Talk) -> None:
    notices = await talk.say("a!", "b!", words=900)
    assert any(notice.startswith("Chorus cut the middle out of 2 messages to fit openai/test.") for notice in notices)
    assert "tokens left out here …]" in talk.last_request()
    assert len(talk.last_request().split()) <= 800
    assert len((await talk.world.log())[0].content.split()) == 451


async def test_usage_that_is_reported_corrects_the_estimate(talk: Talk) -> None:
    await talk.say(*facts(3))
    sent = len(talk.last_request().split())
    talk.model.enqueue(TextDelta("ok"), ReplyEnd("stop", {"prompt_tokens": 2 * sent + 100}))
    await talk.world.say("count!")
    report = await talk.world.told("/context")
    assert "Chorus multiplies its estimates for this model by " in report
    tokens = int(report.partition("\ntotal")[2].split()[0].replace(",", ""))
    assert tokens > 1.5 * sent


async def test_a_prompt_that_fills_most_of_the_limit_is_not_folded_turn_by_turn(talk: Talk) -> None:
    talk.world.configure(json.dumps({"system_prompt": "p " * 680}))
    told: list[str] = []
    folds = talk.continue_in_another_process(told.append)
    await talk.say(*facts(5), words=10)
    await folds.close()
    assert (talk.summaries(), told) == ([], [])


async def test_a_question_that_has_outgrown_its_model_is_not_answered_once_more(talk: Talk) -> None:
    await talk.world.told("/settings set context_token_limit 4000")
    await talk.say("long!", words=3000)
    await talk.world.told("/settings unset context_token_limit")
    before = len(talk.model.requests)
    with pytest.raises(JournalError, match="no longer fits openai/test"):
        [event async for event in talk.world.conversation.retry(talk.world.current.target())]
    assert len(talk.model.requests) == before
    assert len(await talk.world.seen()) == 2


async def test_words_of_the_users_own_that_would_fill_every_request_are_refused(talk: Talk) -> None:
    await talk.say(*facts(8))
    snapshot = await talk.world.context.snapshot(talk.world.current.target(), talk.world.clock.now())
    with pytest.raises(MessageRefusedError, match="it may have at most 200"):
        await talk.world.services.folding.reword(snapshot, "word " * 201)
    assert await talk.world.services.folding.reword(snapshot, "word " * 200) is not None


async def test_other_words_taken_back_leave_the_fold_and_its_budget(talk: Talk) -> None:
    await talk.say(*facts(8))
    talk.world.editor.enqueue("My words.")
    await talk.world.told("/context summary edit")
    await talk.world.told("/undo")
    notices = await talk.say(*facts(6, 8))
    assert any("no longer fits" in notice for notice in notices)


async def test_a_fork_goes_on_with_the_summary_of_its_origin_and_extends_it_for_itself(talk: Talk) -> None:
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
    await talk.say(*facts(5, 9))
    assert summary in talk.summaries()[-1]
    assert all(fact in talk.last_request() for fact in facts(14))
    await talk.world.told("/thread 1")
    assert await talk.summary() == summary


async def test_a_fork_that_ends_within_the_summary_has_the_words(talk: Talk) -> None:
    await talk.say(*facts(8))
    await talk.world.told("/thread fork 3")
    assert await talk.summary() == ""
    assert [text.split()[0] for text in await talk.world.seen()] == ["f0!", "so", "f1!", "so"]


async def test_compact_summarises_all_but_the_last_two_turns(talk: Talk) -> None:
    await talk.say(*facts(4))
    told = await talk.world.told("/compact  the  bridge")
    assert told == f"4 messages summarised; the summary has ~3 tokens. /undo reverts this.\n\n{PREFIX} f0! f1!"
    assert talk.model.requests[-1].messages[0].content == task(125, "the bridge")
    assert await talk.world.told("/context compact") == (
        "Not enough messages to compact: the last two turns always stay word for word."
    )
    assert len(talk.summaries()) == 1
    await talk.say("f4!")
    assert "f1! w" not in talk.last_request()
    assert await talk.world.told("/context compact") == (
        f"2 messages summarised; the summary has ~4 tokens. /undo reverts this.\n\n{PREFIX} f0! f1! f2!"
    )
    assert f"Summary of the conversation so far:\n\n{PREFIX} f0! f1!" in talk.summaries()[-1]
    assert "f1! w" not in talk.summaries()[-1]
    for line, told, summary in (("/undo", "Undone", "f0! f1!"), ("/redo", "Redone", "f0! f1! f2!")):
        assert await talk.world.told(line) == f"{told}: 6 messages summarised"
        assert await talk.summary() == f"{PREFIX} {summary}"


@pytest.fixture
async def compacted(talk: Talk) -> Talk:
    """A talk of four turns, of which the first two are summarised."""
    await talk.say(*facts(4))
    await talk.world.told("/compact")
    return talk


async def test_the_list_of_threads_counts_only_the_messages_that_are_sent_word_for_word(compacted: Talk) -> None:
    async def counts() -> list[int]:
        return [each.in_view for each in await compacted.world.threads.listed(closed=False)]

    assert await counts() == [4]
    await compacted.world.told("/thread fork")
    assert await counts() == [4, 4]


async def test_the_list_of_threads_does_not_count_a_talk_with_eliza_beside_a_summary(compacted: Talk) -> None:
    made_eliza = "UPDATE messages SET model = 'chorus/eliza' WHERE id = (SELECT max(id) FROM messages)"
    await compacted.world.store.write(lambda connection: connection.execute(made_eliza).rowcount)
    assert [each.in_view for each in await compacted.world.threads.listed(closed=False)] == [2]


async def test_summary_shows_what_it_stands_for_and_who_wrote_it(talk: Talk) -> None:
    assert (await talk.world.told("/context summary")).startswith("There is no summary")
    await talk.say(*facts(4))
    await talk.world.told("/compact")
    told = await talk.world.told("/context summary")
    assert told.startswith("Summary of 4 messages (#1 to #4), by openai/test, Thu 2026-02-12 ")
    assert told.endswith(f"~3 tokens. /context undo 1 reverts it.\n\n{PREFIX} f0! f1!")


async def test_summary_edit_makes_it_the_users_own(compacted: Talk) -> None:
    compacted.world.editor.enqueue("We met at the bridge.\n\nIt rained.\n")
    assert await compacted.world.told("/context summary edit") == "Summary replaced. /undo restores the previous one."
    assert compacted.world.editor.shown == [f"{PREFIX} f0! f1!\n"]
    assert ", by you, " in await compacted.world.told("/context summary")
    await compacted.say("next!")
    assert "Summary of the earlier conversation:\nWe met at the bridge.\n\nIt rained." in compacted.last_request()
    await compacted.world.told("/undo")
    assert await compacted.world.told("/undo") == "Undone: another wording of the summary"
    assert await compacted.summary() == f"{PREFIX} f0! f1!"


async def test_summary_edit_that_leaves_it_or_empties_it_changes_nothing(compacted: Talk) -> None:
    assert await compacted.world.told("/context summary edit") == "Nothing was changed."
    compacted.world.editor.enqueue("\n")
    assert (await compacted.world.told("/context summary edit")).startswith("Nothing was changed")
    assert await compacted.summary() == f"{PREFIX} f0! f1!"
    assert await compacted.world.told("/context summary nonsense") == (
        "/context summary takes only the argument edit, not 'nonsense'."
    )


async def test_the_journal_names_folds_and_the_past_has_their_summaries(compacted: Talk) -> None:
    assert "4 messages summarised" in await compacted.world.told("/context ops")
    compacted.world.clock.advance(timedelta(minutes=5))
    await compacted.world.told("/new")
    told = await compacted.world.told("/context at 2m")
    assert f"The first 4 messages were summarised as: {PREFIX} f0! f1!" in told


async def test_a_session_keeps_the_summary_and_restoring_it_lets_it_stand_again(talk: Talk) -> None:
    await talk.say(*facts(5))
    await talk.world.told("/compact")
    await talk.world.told("/context save bridge")
    await talk.world.told("/new")
    await talk.say("between!")
    await talk.world.told("/context restore 2026-02-12_bridge")
    assert await talk.summary() == f"{PREFIX} f0! f1! f2!"
    assert "by session 2026-02-12_bridge" in await talk.world.told("/context summary")
    await talk.say("after!")
    assert f"{PREFIX} f0! f1! f2!" in talk.last_request()
    assert "f3! w" in talk.last_request()
    assert "between!" not in talk.last_request()
    await talk.world.told("/undo")
    await talk.world.told("/undo")
    assert await talk.summary() == ""
    rows = await talk.world.store.read(message_rows.history, "chorus", None, None, 0)
    assert len(rows) == 14


FAILED = "Chorus could not summarise the older part of the conversation"


async def test_a_fold_of_another_process_meanwhile_wins(talk: Talk) -> None:
    await talk.say(*facts(6))
    place = talk.world.current.target()
    other = Folding(talk.world.context, talk.world.services.folding.summarizer)
    talk.model.gate = asyncio.Event()
    mine = asyncio.create_task(talk.world.services.folding.fold_all(place, ""))
    await talk.model.asked.wait()
    talk.model.gate.set()
    results = await asyncio.gather(other.fold_all(place, ""), mine, return_exceptions=True)
    assert sum(isinstance(result, CommandError) for result in results) == 1
    assert len(await talk.folds()) == 1


async def test_turns_of_one_thread_never_fold_twice_at_once(talk: Talk) -> None:
    await talk.say(*facts(6))
    place = talk.world.current.target()
    folding = talk.world.services.folding
    both = (folding.fold_all(place, ""), folding.fold_all(place, ""))
    first, second = await asyncio.gather(*both, return_exceptions=True)
    assert not isinstance(first, BaseException)
    assert first[1] == 8
    assert isinstance(second, CommandError)
    assert len(await talk.folds()) == 1


@pytest.mark.parametrize(("in_focus", "where"), [(1, ""), (2, "In thread #1 of chorus: ")])
async def test_a_fold_behind_the_talk_uses_the_pause_and_says_so(talk: Talk, in_focus: int, where: str) -> None:
    told = asyncio.Queue[str]()
    folds = talk.continue_in_another_process(told.put_nowait)
    folds.in_focus = lambda: in_focus
    assert await talk.say(*facts(7)) == []
    async with asyncio.timeout(5):
        sentence = await told.get()
    assert sentence.startswith(f"{where}The model now gets a summary of the oldest 8 messages.")
    assert await talk.say("next!") == []
    assert f"{PREFIX} f0! f1! f2!" in talk.last_request()
    await folds.close()


@pytest.mark.parametrize(
    ("failure", "told", "beside"),
    [
        pytest.param(None, "The model now gets a summary of the oldest 8 messages.", [], id="done"),
        pytest.param(
            ModelError("It is down."),
            f"{FAILED}: It is down.",
            ["8 messages"],
            id="failed",
        ),
    ],
)
async def test_a_turn_that_waits_for_a_fold_does_not_fold_again(
    talk: Talk, failure: ModelError | None, told: str, beside: list[str]
) -> None:
    said = asyncio.Queue[str]()
    folds = talk.continue_in_another_process(said.put_nowait)
    talk.model.gate, talk.model.failure = asyncio.Event(), failure
    await talk.say(*facts(7))
    await talk.model.asked.wait()
    events = talk.world.conversation.answer(talk.world.current.target(), " ".join(["next!", *["w"] * 100]))
    assert isinstance(await anext(events), Notice)
    talk.model.gate.set()
    others = [event.text async for event in events if isinstance(event, Notice)]
    assert [other.partition(" the oldest ")[2].partition(" in the window")[0] for other in others] == beside
    assert (await said.get()).startswith(told)
    assert len(talk.summaries()) == 1
    await folds.close()


async def test_a_fold_behind_the_talk_that_fails_is_tried_again_some_turns_later(talk: Talk) -> None:
    told = asyncio.Queue[str]()
    folds = talk.continue_in_another_process(told.put_nowait)
    talk.model.failure = ModelError("The provider is down.")
    await talk.say(*facts(7))
    assert "could not summarise the older part of the conversation: The provider is down." in await told.get()
    talk.model.failure = None
    await talk.say(*facts(2, 7), words=0)
    assert len(talk.summaries()) == 1
    await talk.say("later!", words=0)
    async with asyncio.timeout(5):
        assert (await told.get()).startswith("The model now gets a summary of the oldest ")
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
    folds = talk.continue_in_another_process(pytest.fail)
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
