"""Facts that a model proposes from the talk: what is sent, what is taken from the answer, and what a yes does."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from chorus_cli.core.errors import MemoryItemError, ModelError
from chorus_cli.framework.command_line import resolve
from chorus_cli.framework.replies import Question, plain
from chorus_cli.memory.rules.items import ItemType, Source
from chorus_cli.memory.service.memory import Author
from chorus_cli.models.rules.choice import ELIZA
from chorus_cli.models.rules.costs import Prices
from chorus_cli.models.rules.events import ReplyEnd, TextDelta
from chorus_cli.storage.store import Store
from tests.attachments.attached_talk import say as say_with_file
from tests.fakes import FakeClock, ScriptedModel
from tests.memory.remembered import Remembering
from tests.turns.service.tool_talk import call, calls, events_of
from tests.world import MODEL, World, built

LEFT_OUT = f"distilled before, said with {ELIZA}, or without room in this request"
MOVED, BEES = "Ann has moved to York.", "Ann keeps two hives of bees."


def answers(world: World, *facts: tuple[str, int]) -> None:
    world.model.say(json.dumps([{"fact": fact, "message": id_} for fact, id_ in facts]))


async def distilled(world: World, line: str = "/memory distil") -> str:
    """Distil, say yes, and return the answer."""
    return plain(await (await world.asked_back(line)).confirmed())


def sent(world: World) -> dict[int, str]:
    """Return the messages that the newest request distils, by id."""
    lines = map(json.loads, world.model.requests[-1].messages[1].content.splitlines())
    return {each["message"]: each["text"] for each in lines}


@pytest.fixture
async def talk(world: World) -> Remembering:
    """Return the memory after a talk of two turns, messages 1 to 4."""
    await world.say("We have moved to York, two hives of bees and all.")
    await world.say("Good morning.")
    return Remembering(world)


async def test_a_fact_waits_in_the_inbox_and_is_an_item_of_the_model_after_a_yes(talk: Remembering) -> None:
    world = talk.world
    before = await talk.told("/memory")
    answers(world, (MOVED, 1), (BEES, 1))
    told = await distilled(world)
    assert "2 facts in the inbox; no request has one before you accept it." in told
    world.clock.advance(timedelta(days=3))
    assert await talk.told("/memory") == before
    assert await talk.listed() == await talk.recalled("hives #1") == await talk.referred_to("the hives and #1") == []
    await world.say("What do you know of hives and of #2?")
    assert BEES not in str(world.model.requests[-1].messages)
    assert "only proposed; /memory inbox accept 2 keeps it" in await talk.told("/memory show 2")
    inbox = await talk.told("/memory inbox")
    assert f"#2    {BEES}  #1" in inbox
    assert await talk.told("/memory inbox accept 2") == f'Accepted #2 "{BEES}". /undo reverts this.'
    item = await talk.item(2)
    assert (item.source, item.source_message_id, item.created_at) == (Source.MODEL, 1, world.clock.now())
    assert await talk.told("/memory inbox drop all") == f'Dropped #1 "{MOVED}". /undo reverts this.'
    assert await talk.listed() == [BEES]
    await talk.told("/undo")
    await talk.told("/undo")
    assert await talk.listed() == []
    assert await talk.told("/memory inbox") == inbox
    # The question that was asked meanwhile is a step too.
    assert "Proposed 2 memory items from thread #1" in " ".join(await world.steps()).replace("proposed", "Proposed")
    await talk.told("/undo")
    await talk.told("/undo")
    assert (await talk.told("/memory inbox")).startswith("The inbox is empty.")


async def test_the_question_names_what_is_sent_and_its_price_and_a_no_sends_nothing(talk: Remembering) -> None:
    world, asked = talk.world, len(talk.world.model.requests)
    question = await world.asked_back("/memory distil")
    assert question.text.startswith(f"4 messages of thread #1 to {MODEL}: ~")
    assert question.text.endswith(" tokens, its price is not known.\nSend them?")
    assert question.declined.text == "Nothing was sent."
    assert len(world.model.requests) == asked


async def test_the_price_is_that_of_the_tokens_and_of_a_long_answer(talk: Remembering) -> None:
    services, now = talk.world.services, talk.world.clock.now()
    costs = replace(services.costs, prices=lambda _model: Prices(0.001, 0.002, 0, 0))
    priced = replace(services, distilling=replace(services.distilling, costs=costs))
    question = await resolve(services.registry, "/memory distil", now).run(priced)
    assert isinstance(question, Question)
    found = re.search(r"~([0-9,]+) tokens, about \$([0-9.]+) with an answer of 1,000 tokens", question.text)
    assert found
    assert float(found[2]) == pytest.approx(int(found[1]) * 0.001 + 1_000 * 0.002, abs=0.01)


async def test_what_was_undone_purged_or_distilled_before_and_what_tools_say_is_not_sent(tooled: World) -> None:
    world = tooled
    calls(world, call("echo", {"text": "the cat is called Tib"}))
    await events_of(world, "Say the name of the cat.")
    await world.say("I hate celery.")
    await world.say("My sister is called Ann.")
    await world.told("/undo")
    await (await world.asked_back("/purge message 6")).confirmed()
    answers(world, ("The user hates celery.", 6), ("The user has asked for a name.", 1))
    told = await distilled(world)
    assert list(sent(world).values()) == ["Say the name of the cat.", "ok", "ok"]
    assert "1 fact in the inbox" in told
    assert told.endswith("Dropped from the model's answer: 1 entry without a source, or known already.")
    assert await world.told("/memory distil #1") == "There is nothing new to distil in thread #1."
    await world.say("I have two brothers.")
    question = await world.asked_back("/memory distil")
    assert question.text.splitlines()[1] == f"Left out: 3 messages {LEFT_OUT}."
    await world.told("/undo")
    await world.told("/undo")
    assert (await world.asked_back("/memory distil")).text.startswith("3 messages of thread #1")


async def test_a_thread_and_all_threads_since_a_time_can_be_distilled(talk: Remembering) -> None:
    world = talk.world
    await talk.told("/thread new Boats")
    world.clock.advance(timedelta(days=30))
    await world.say("I have bought a boat.")
    await talk.told("/clear")
    answers(world, ("The user has a boat.", 5))
    assert "1 fact in the inbox" in await distilled(world, "/memory distil boats")
    assert list(sent(world)) == [5, 6]
    assert await talk.told("/memory distil") == "There is nothing new to distil in thread #2."
    answers(world)
    told = await distilled(world, "/memory distil #1")
    assert told.startswith("The model found no new fact. /memory distil does not send these messages again. /undo")
    assert list(sent(world)) == [1, 2, 3, 4]
    assert await talk.told("/memory distil #1") == "There is nothing new to distil in thread #1."
    assert await talk.told("/undo") == "Undone: proposed 0 memory items from thread #1"
    assert "no thread #7" in await talk.told("/memory distil 7")
    await talk.told("/undo")
    assert (await world.asked_back("/memory distil since 7d")).text.startswith("2 messages of all threads since ")
    assert (await world.asked_back("/memory distil since 90 days")).text.startswith("6 messages of all threads since ")


async def test_words_said_with_eliza_are_for_no_other_model_and_she_proposes_nothing(talk: Remembering) -> None:
    await talk.sql("UPDATE messages SET model = ? WHERE id = 2", ELIZA)
    question = await talk.world.asked_back("/memory distil")
    assert question.text.splitlines()[1] == f"Left out: 2 messages {LEFT_OUT}."
    await talk.told(f"/model {ELIZA}")
    assert (await talk.told("/memory distil")).startswith(f"{ELIZA} cannot propose facts.")


async def test_a_fact_from_a_turn_with_a_tools_or_a_files_text_keeps_that_source(tooled: World) -> None:
    world = tooled
    calls(world, call("echo", {"text": "the cat is called Tib"}))
    await events_of(world, "Say the name of the cat.")
    note = world.folder / "note.txt"
    note.write_text("the dog is called Bo", encoding="utf-8")
    await say_with_file(world, f"And of the dog: @{note}")
    await world.say("I am called Kim.")
    ids = {row.content: row.id for row in await world.log() if row.role == "user"}
    answers(world, *((f"fact from {text[:3]}", id_) for text, id_ in ids.items()))
    await distilled(world)
    await world.told("/memory inbox accept all")
    items = await world.services.memory.listing("chorus")
    found = {item.content: item.source for item in items}
    assert found == {"fact from Say": Source.TOOL, "fact from And": Source.FILE, "fact from I a": Source.MODEL}


async def test_a_fact_from_an_imported_conversation_has_that_source(talk: Remembering, tmp_path: Path) -> None:
    file = tmp_path / "talk.json"
    file.write_text(json.dumps([{"role": "user", "content": "I sail."}, {"role": "assistant", "content": "Nice."}]))
    await talk.told(f"/import {file}")
    answers(talk.world, ("The user sails.", 5))
    await distilled(talk.world, "/memory distil #2")
    assert [each.item.source for each in await talk.service.proposals(talk.slug)] == [Source.IMPORT]


@pytest.mark.parametrize("facts", [(("The user counts facts.", 11),), ()])
async def test_the_oldest_messages_for_which_there_is_no_room_are_named_and_come_next(
    tmp_path: Path, store: Store, clock: FakeClock, facts: tuple[tuple[str, int], ...]
) -> None:
    world = await built(tmp_path, store, clock, ScriptedModel(), 1_300)
    for number in range(6):
        await world.say(f"fact-{number} " + "word " * 40)
    question = await world.asked_back("/memory distil #1")
    left = re.search(rf"Left out: (\d+) messages {LEFT_OUT}", question.text)
    assert left
    number = 12 - int(left[1])
    assert 0 < number < 12
    assert question.text.startswith(f"{number} messages of thread #1")
    answers(world, *facts)
    await question.confirmed()
    assert max(sent(world)) == 12
    assert len(sent(world)) == number
    oldest = min(sent(world))
    answers(world, ("The user counts words.", 1))
    await distilled(world, "/memory distil #1")
    assert max(sent(world)) == oldest - 1


@pytest.mark.parametrize("answer", ["I know nothing about them.", '[{"fact": "cut off', ""])
async def test_an_answer_that_is_no_list_stores_nothing_and_says_so(talk: Remembering, answer: str) -> None:
    talk.world.model.enqueue(TextDelta(answer), ReplyEnd("stop", {"prompt_tokens": 90}))
    with pytest.raises(ModelError):
        await distilled(talk.world)
    assert (await talk.told("/memory inbox")).startswith("The inbox is empty.")
    assert await talk.sql("SELECT purpose FROM other_requests") == [("list of facts",)]
    assert "proposed" not in str(await talk.world.steps())


async def test_what_the_memory_has_or_has_forgotten_is_not_proposed_again(talk: Remembering) -> None:
    await talk.add(MOVED)
    await talk.add(BEES)
    await talk.forget(2)
    answers(talk.world, (MOVED, 1), (BEES, 1), ("Ann is up early.", 3))
    assert "Dropped from the model's answer: 2 entries" in await distilled(talk.world)
    assert [each.item.content for each in await talk.service.proposals(talk.slug)] == ["Ann is up early."]


async def test_a_fact_that_was_proposed_and_undone_can_be_proposed_again(talk: Remembering) -> None:
    for _ in range(2):
        answers(talk.world, (MOVED, 1))
        assert "1 fact in the inbox" in await distilled(talk.world)
        await talk.told("/undo")
    await talk.told("/redo")
    assert [each.item.id for each in await talk.service.proposals(talk.slug)] == [1]


async def test_a_fact_whose_yes_was_undone_too_can_be_proposed_again(talk: Remembering) -> None:
    answers(talk.world, (MOVED, 1))
    await distilled(talk.world)
    await talk.told("/memory inbox accept 1")
    await talk.told("/undo")
    await talk.told("/undo")
    assert await talk.told("/memory show 1") == "There is no memory item #1 here. /memory list shows the items."
    answers(talk.world, (MOVED, 1))
    assert "1 fact in the inbox" in await distilled(talk.world)


async def test_a_fact_that_the_user_has_dropped_is_not_proposed_again_unless_the_drop_is_undone(
    talk: Remembering,
) -> None:
    answers(talk.world, (MOVED, 1))
    await distilled(talk.world)
    await talk.told("/memory inbox drop 1")
    await talk.world.say("As I said, we live in York.")
    answers(talk.world, (MOVED, 5), (BEES, 5))
    assert "1 entry without a source, or known already" in await distilled(talk.world)
    assert [each.item.content for each in await talk.service.proposals(talk.slug)] == [BEES]
    for _ in range(3):
        await talk.told("/undo")
    assert [each.item.content for each in await talk.service.proposals(talk.slug)] == [MOVED]


async def test_an_undone_proposal_forbids_no_model_to_remember_the_fact(talk: Remembering) -> None:
    answers(talk.world, (MOVED, 1))
    await distilled(talk.world)
    await talk.told("/undo")
    await talk.service.remember(talk.slug, ItemType.TASK, MOVED, Author(Source.MODEL, 1))
    assert await talk.listed() == [MOVED]
    assert "was changed again since" in await talk.told("/context redo 1")


async def test_the_user_and_the_model_may_remember_a_proposed_fact_before_the_yes(talk: Remembering) -> None:
    await talk.add("Ann lives in Leeds.")
    answers(talk.world, (MOVED, 1), (BEES, 1))
    await distilled(talk.world)
    assert (await talk.service.remember(talk.slug, ItemType.TASK, BEES, Author(Source.MODEL, 1))).items[0].id == 3
    assert "it is hidden, and adding the text" in await talk.told(f"/memory replace 1 {MOVED}")
    await talk.add(MOVED)
    assert await talk.listed() == ["Ann lives in Leeds.", MOVED, BEES]
    assert (await talk.told("/memory inbox")).startswith("The inbox is empty.")
    await talk.told("/undo")
    assert await talk.listed() == ["Ann lives in Leeds.", BEES]
    assert [each.item.content for each in await talk.service.proposals(talk.slug)] == [MOVED]


async def test_an_accepted_fact_that_nearly_repeats_an_item_may_replace_it_after_another_yes(
    talk: Remembering,
) -> None:
    await talk.add("Ann lives in the old town of Leeds")
    answers(talk.world, ("Ann lives in the old town of York", 1))
    await distilled(talk.world)
    told = await talk.told("/memory inbox accept all")
    assert told.endswith("#1 has nearly the same words; see /memory inbox.")
    assert len(await talk.listed()) == 2
    await talk.told("/memory inbox accept 2")
    assert await talk.listed() == ["Ann lives in the old town of York"]


async def test_facts_and_replacements_are_settled_together_in_one_step(talk: Remembering) -> None:
    await talk.add("the boat lies in berth 12 of the harbour")
    await talk.add("the boat lies in berth 13 of the harbour")
    answers(talk.world, (MOVED, 1), (BEES, 1))
    await distilled(talk.world)
    inbox = await talk.told("/memory inbox")
    assert inbox.index(MOVED) < inbox.index("berth 13") < inbox.index("berth 12")
    assert await talk.told("/memory inbox accept all") == "Accepted 3 memory items. /undo reverts this."
    assert len(await talk.listed()) == 3
    await talk.told("/undo")
    assert await talk.told("/memory inbox") == inbox
    assert await talk.told("/memory inbox drop all") == "Dropped 3 memory items. /undo reverts this."
    await talk.told("/undo")
    assert await talk.told("/memory inbox") == inbox


async def test_what_is_purged_before_the_yes_is_not_sent_and_before_the_answer_not_proposed(talk: Remembering) -> None:
    world, asked = talk.world, len(talk.world.model.requests)
    question = await world.asked_back("/memory distil")
    await (await world.asked_back("/purge message 1")).confirmed()
    with pytest.raises(MemoryItemError, match="was purged meanwhile, so no fact was proposed"):
        await question.confirmed()
    assert len(world.model.requests) == asked
    question, gate = await world.asked_back("/memory distil"), asyncio.Event()
    # The model may repeat the words of the purged question with the number of its answer.
    world.model.enqueue(gate, TextDelta(json.dumps([{"fact": BEES, "message": 4}])), ReplyEnd("stop"))
    asking = asyncio.ensure_future(question.confirmed())
    await asyncio.wait({asking}, timeout=0.1)
    await (await world.asked_back("/purge message 3")).confirmed()
    gate.set()
    with pytest.raises(MemoryItemError, match="was purged meanwhile"):
        await asking
    assert await talk.sql("SELECT content FROM context_items") == []


async def test_a_purge_of_the_source_message_takes_the_proposal(talk: Remembering) -> None:
    world = talk.world
    answers(world, (BEES, 3))
    await distilled(world)
    await (await world.asked_back("/purge message 3")).confirmed()
    assert await talk.service.proposals(talk.slug) == []
    assert await talk.sql("SELECT content FROM context_items") == [("",)]
    assert BEES not in str(await talk.sql("SELECT detail FROM operations"))


async def test_ctrl_c_during_the_request_stores_nothing(talk: Remembering) -> None:
    world = talk.world
    world.model.enqueue(TextDelta('[{"fact": "Ann'), asyncio.Event())
    question = await world.asked_back("/memory distil")
    asking = asyncio.ensure_future(question.confirmed())
    await asyncio.wait({asking}, timeout=0.1)
    assert len(world.model.requests) == 3
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert question.stoppable
    assert await talk.sql("SELECT COUNT(*) FROM context_items") == [(0,)]
    assert "proposed" not in str(await world.steps())
