"""The memory in requests: in the system message, in preambles, and out of both again."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import pytest

from chorus_cli.context.service.report import context_report
from chorus_cli.memory.rules.items import Item, ItemType, Tier
from chorus_cli.models.rules.events import TurnDone
from tests.remembering import wants_summary
from tests.turns.folding.long_talk import Talk
from tests.world import World

PLUMBER = "call the plumber about the boiler"
HUMAN = "(2026-02-12, from the human)"
CODE = "def walk(path):\n    for step in path:\n        yield step"


async def remembered(world: World, content: str, item_type: ItemType = ItemType.TASK) -> Item:
    return (await world.services.memory.remember(world.current.slug, item_type, content)).items[0]


async def warm(world: World, content: str) -> Item:
    """Return an item that is WARM: a TASK of yesterday."""
    item = await remembered(world, content)
    world.clock.advance(timedelta(days=1))
    await world.services.memory.renew_if_due(world.current.slug)
    return await current(world, item)


async def current(world: World, item: Item) -> Item:
    return await world.services.memory.item(world.current.slug, item.id)


def system(world: World, number: int = -1) -> str:
    return world.model.requests[number].messages[0].content


async def test_a_fresh_task_is_in_the_system_message_of_a_first_request(world: World) -> None:
    item = await remembered(world, PLUMBER)
    await world.say("Hello")
    assert system(world).endswith(f"\n\nMemory:\n#{item.id} {HUMAN}: {PLUMBER}")
    assert world.asked() == [("user", "Hello")]


async def test_while_the_prefix_is_warm_a_new_item_goes_before_the_question_once(world: World) -> None:
    await world.say("Hello")
    item = await remembered(world, PLUMBER)
    await world.say("What next?")
    await world.say("And then?")
    before = f"From memory:\n#{item.id} {HUMAN}: {PLUMBER}\n\nWhat next?"
    assert [content for role, content in world.asked() if role == "user"] == ["Hello", before, "And then?"]
    assert "plumber" not in system(world)
    for earlier, later in pairwise(request.messages for request in world.model.requests):
        assert later[: len(earlier)] == earlier


async def test_the_block_is_renewed_when_the_prefix_is_cold(world: World) -> None:
    await world.say("Hello")
    item = await remembered(world, PLUMBER)
    world.clock.advance(timedelta(minutes=6))
    await world.say("What next?")
    assert system(world).endswith(f"#{item.id} {HUMAN}: {PLUMBER}")
    assert world.asked()[-1] == ("user", "What next?")


@pytest.mark.parametrize(
    ("question", "accesses"),
    [
        ("Did the plumber come?", 1),
        ("What about #1?", 1),
        ("What about the weather there?", 0),
        ("Could you look at it again and tell me what you think about all of this?", 0),
    ],
)
async def test_a_warm_item_comes_by_its_words_or_its_number(world: World, question: str, accesses: int) -> None:
    item = await warm(world, PLUMBER)
    assert (item.id, item.tier) == (1, Tier.WARM)
    await world.say(question)
    assert ("plumber about the boiler" in world.asked()[-1][1]) == bool(accesses)
    assert "plumber" not in system(world)
    assert (await current(world, item)).access_count == item.access_count + accesses


@pytest.mark.parametrize("tier", [Tier.COLD, Tier.ARCHIVED])
async def test_a_cold_or_archived_item_is_not_sent_though_a_message_names_it(world: World, tier: Tier) -> None:
    item = await remembered(world, PLUMBER, ItemType.PRD_SECTION)
    world.clock.advance(timedelta(days=30))
    await world.services.memory.renew_if_due(world.current.slug)
    if tier is Tier.ARCHIVED:
        await world.carry_out("/memory flash --force")
    assert (await current(world, item)).tier is tier
    await world.say(f"What about #{item.id}, the plumber and the boiler?")
    assert PLUMBER not in system(world) + world.asked()[-1][1]


@pytest.mark.parametrize(("words", "number"), [([90, 90, 90, 66], 4), ([90, 90, 90, 67], 3), ([1] * 6, 5)])
async def test_recalled_items_have_a_twentieth_of_the_budget(world: World, words: list[int], number: int) -> None:
    world.configure('{"context_token_limit": 10000}')
    items = [await remembered(world, f"{position}{' word' * (most - 1)}") for position, most in enumerate(words)]
    world.clock.advance(timedelta(days=1))
    await world.services.memory.renew_if_due(world.current.slug)
    await world.say(" ".join(f"#{item.id}" for item in items))
    assert world.asked()[-1][1].count(f" {HUMAN}: ") == number


async def test_a_forgotten_item_is_in_no_request_and_an_undo_brings_it_back(world: World) -> None:
    item = await remembered(world, PLUMBER)
    await world.say("Hello")
    await warm(world, "sell the violin")
    await world.say("Who wants the violin?")
    violin = world.asked()[-1][1]
    assert "violin" in violin.partition("\n\n")[0]
    await world.services.memory.forget(world.current.slug, item.id)
    await world.services.memory.forget(world.current.slug, item.id + 1)
    await world.say("Really?")
    whole = "\n".join(message.content for message in world.model.requests[-1].messages)
    assert "plumber" not in whole
    assert "sell the violin" not in whole
    assert "Who wants the violin?" in whole
    await world.journal.undo(world.current.target(), None)
    await world.say("And now?")
    assert any(content == violin for _, content in world.asked())


async def test_code_is_captured_told_and_not_repeated_while_its_message_is_in_context(world: World) -> None:
    notices = await world.notices(f"Look:\n```python\n{CODE}\n```")
    (item,) = await world.services.memory.listing(world.current.slug)
    question = next(row for row in await world.log() if row.role == "user")
    assert (item.item_type, item.content, item.source_message_id) == (ItemType.CODE, CODE, question.id)
    told = f'Remembered #{item.id} "def walk(path): for step in path: yield…". /memory forget {item.id} removes it.'
    assert notices == [told]
    await world.services.memory.pin(world.current.slug, item.id)
    world.clock.advance(timedelta(minutes=6))
    await world.say("What does walk do?")
    assert "def walk" not in system(world)
    assert world.asked()[-1] == ("user", "What does walk do?")


async def test_loading_counts_as_an_access_once_a_turn(world: World) -> None:
    item = await remembered(world, PLUMBER)
    assert item.access_count == 1
    await world.say("Hello")
    await world.say("Hello again")
    assert (await current(world, item)).access_count == 3


async def test_a_hundred_hot_items_are_sent_pinned_ones_first_and_no_more_later(world: World) -> None:
    world.configure('{"context_token_limit": 100000}')
    pinned = await remembered(world, "The ring must go.", ItemType.PRD_SECTION)
    await world.services.memory.pin(world.current.slug, pinned.id)
    first, second = [await remembered(world, f"an early task {number}") for number in range(2)]
    world.clock.advance(timedelta(seconds=9))
    for number in range(98):
        await remembered(world, f"a later task {number}")
    await world.say("Hello")
    await world.say("Hello again")
    lines = system(world).partition("\n\nMemory:\n")[2].splitlines()
    sent = [int(line.partition(" ")[0].removeprefix("#")) for line in lines]
    assert sent == [pinned.id, *range(second.id, second.id + 99)]
    assert first.id not in sent
    assert [content for role, content in world.asked() if role == "user"] == ["Hello", "Hello again"]


async def test_items_that_have_no_room_stay_out(world: World) -> None:
    await remembered(world, "word " * 18_000)
    item = await remembered(world, PLUMBER)
    await world.say("Hello")
    assert system(world).endswith(f"Memory:\n#{item.id} {HUMAN}: {PLUMBER}")
    report = await context_report(world.context, world.current.target(), world.clock.now())
    assert (False, "too large: HOT items may take 1,000 tokens") in [(use.sent, use.reason) for use in report.memory]


async def test_a_corrected_item_is_sent_again_and_why_does_not_claim_otherwise(world: World) -> None:
    await world.say("Hello")
    item = await remembered(world, "the dentist comes on Monday")
    await world.say("What next?")
    await world.services.memory.edit(item, "the dentist comes on Tuesday")
    report = await context_report(world.context, world.current.target(), world.clock.now())
    (use,) = report.memory
    assert (use.sent, use.reason) == (False, "corrected: the new wording will be sent with your next message")
    await world.say("Sure?")
    assert world.asked()[-1][1] == f"From memory:\n#{item.id} {HUMAN}: the dentist comes on Tuesday\n\nSure?"
    await world.say("Really?")
    assert world.asked()[-1][1] == "Really?"


async def test_an_item_in_the_system_message_that_is_corrected_is_sent_before_the_question(world: World) -> None:
    item = await remembered(world, "the dentist comes on Monday")
    await world.say("Hello")
    await world.services.memory.edit(item, "the dentist comes on Tuesday")
    await world.say("When?")
    assert "Monday" in system(world)
    assert world.asked()[-1][1] == f"From memory:\n#{item.id} {HUMAN}: the dentist comes on Tuesday\n\nWhen?"


async def test_an_item_that_is_named_comes_before_those_that_are_only_new(world: World) -> None:
    violin = await remembered(world, "the violin is sold")
    world.clock.advance(timedelta(days=1))
    await world.say("Hello")
    for number in range(8):
        await remembered(world, f"task number {number}")
    await world.say(f"Tell me about #{violin.id}, please.")
    assert f"#{violin.id} {HUMAN}: the violin is sold" in world.asked()[-1][1]


async def test_a_lower_limit_chooses_the_block_anew(world: World) -> None:
    await remembered(world, "word " * 700)
    await world.say("Hello")
    world.configure('{"context_token_limit": 1000}')
    await world.say("Hello again")
    assert "Memory:" not in system(world)


async def test_many_captured_items_are_told_in_a_line(world: World) -> None:
    (notice,) = await world.notices("\n".join(f"```\na = {number}\nb\nc\n```" for number in range(40)))
    assert notice.endswith(", 37 more. /memory forget N removes one.")
    assert len(notice) < 200


async def test_a_crowded_turn_archives_cold_items_and_says_so_once(world: World) -> None:
    section = await remembered(world, "an old section", ItemType.PRD_SECTION)
    world.clock.advance(timedelta(days=60))
    told = [await world.notices("word " * 2_000) for _ in range(6)]
    archived = "Chorus archived 1 COLD memory item; /memory restore 1 reverts this."
    crowded = [number for number, notices in enumerate(told) if archived in notices]
    assert crowded == [3]
    assert (await current(world, section)).tier is Tier.ARCHIVED
    (checkpoint,) = await world.services.memory.checkpoints(world.current.slug)
    assert (checkpoint.items_count, checkpoint.items_archived) == (1, 1)


async def test_a_captured_item_is_no_step_of_undo_and_can_be_undone_by_its_number(world: World) -> None:
    await world.say("Look:\n```\na = 1\nb = 2\nc = 3\n```")
    await world.told("/undo")
    assert await world.seen() == []
    assert len(await world.services.memory.listing("chorus")) == 1
    await world.told("/redo")
    assert len(await world.seen()) == 2
    assert (await world.told("/context undo 1")).startswith("Undone: captured #1")
    assert await world.services.memory.listing("chorus") == []


async def test_code_of_a_reply_is_captured_only_when_a_later_message_names_it(world: World) -> None:
    world.model.say(f"So:\n```python\n{CODE}\n```")
    assert await world.notices("How do I go along a path?") == []
    assert await world.notices("Thanks. And what is the weather?") == []
    assert await world.services.memory.listing("chorus") == []
    (notice,) = await world.notices("Why does walk use yield?")
    assert notice.startswith('Remembered #1 "def walk(path)')
    (item,) = await world.services.memory.listing("chorus")
    assert item.source_message_id == 2


async def test_nothing_is_captured_from_an_attached_file(world: World) -> None:
    (world.folder / "walk.py").write_text(f"```\n{CODE}\n```\n1 passed in 0.01s\n")
    await world.told(f"/attach {world.folder}/walk.py")
    message = await world.services.attachments.prepared("Look at it.", "openai/gpt-5")
    events = [event async for event in world.conversation.answer(world.current.target(), *message)]
    assert world.model.requests[-1].messages[-1].attachments
    assert not [event for event in events if isinstance(event, TurnDone) and event.remembered]
    assert await world.services.memory.listing("chorus") == []


async def test_a_pinned_item_is_in_every_request_of_a_folded_talk(talk: Talk) -> None:
    memory = talk.world.services.memory
    await talk.say("one!", "two!")
    item = (await memory.remember("chorus", ItemType.TASK, "the precious violin")).items[0]
    await memory.pin("chorus", item.id)
    await talk.say(*(f"fact{number}!" for number in range(20)))
    asked = [request for request in talk.model.requests if not wants_summary(request.messages[0].content)]
    assert len(talk.summaries()) > 1
    assert all("violin" in "\n".join(message.content for message in request.messages) for request in asked[2:])
