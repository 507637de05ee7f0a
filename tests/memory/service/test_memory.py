"""Items are remembered, corrected, pinned, recalled, forgotten and archived, and every change of them is undone."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from datetime import timedelta

import pytest

from chorus_cli.core.errors import ChorusError, MemoryItemError
from chorus_cli.memory.rules.items import ItemType, Source, Tier
from chorus_cli.memory.service.memory import Author, Memory
from chorus_cli.personas.files import CARD_FILE
from chorus_cli.storage.sqlite import Sqlite
from chorus_cli.storage.store import Store
from tests.fakes import WordCounter
from tests.memory.remembered import FIGURES, Remembering
from tests.recall.test_search import damage, integrity
from tests.storage.database import of_sqlite, traced
from tests.world import World

PLUMBER = "call the plumber"


async def test_an_item_that_is_added_by_hand_is_hot_because_adding_is_its_first_access(memory: Remembering) -> None:
    remembered = await memory.service.remember(memory.slug, ItemType.TASK, f"  {PLUMBER}\n")
    item = await memory.item(remembered.items[0].id)
    assert (item.content, item.tier, item.access_count) == (PLUMBER, Tier.HOT, 1)
    assert round(item.importance_score, 4) == 0.8139
    assert item.token_count == 3
    assert remembered.operation is not None
    assert remembered.operation.describe() == f'remembered #{item.id} "{PLUMBER}"'
    assert remembered.new == remembered.items


async def test_equal_content_is_stored_once_and_is_young_again(memory: Remembering) -> None:
    first = await memory.add(PLUMBER)
    memory.world.clock.advance(timedelta(days=30))
    again = await memory.service.remember(memory.slug, ItemType.TASK, PLUMBER)
    (item,) = again.items
    assert (item.id, again.new, again.operation) == (first.id, (), None)
    assert (item.access_count, item.tier) == (2, Tier.HOT)
    assert await memory.listed() == [PLUMBER]


async def test_the_undo_of_an_addition_of_a_known_text_gives_its_age_and_use_back(memory: Remembering) -> None:
    item = await memory.add(PLUMBER, ItemType.CODE)
    memory.world.clock.advance(timedelta(days=10))
    old = (await memory.service.listing(memory.slug))[0]
    young = await memory.add(PLUMBER, ItemType.TASK)
    assert (young.tier, young.access_count) == (Tier.HOT, 2)
    await memory.told("/undo")
    assert await memory.item(item.id) == old
    await memory.told("/redo")
    assert await memory.item(item.id) == young
    memory.world.clock.advance(timedelta(hours=1))
    await memory.service.count_access(memory.slug, [item.id])
    await memory.told("/undo")
    used = await memory.item(item.id)
    assert (used.created_at, used.last_accessed, used.access_count) == (old.created_at, memory.world.clock.now(), 2)


async def test_a_forgotten_item_is_nowhere_until_it_is_undone(memory: Remembering) -> None:
    item = await memory.add(PLUMBER)
    await memory.forget(item.id)
    assert await memory.listed() == await memory.recalled(f"#{item.id} plumber") == []
    assert (await memory.told(f"/memory show {item.id}")).startswith(f"Memory item #{item.id} is forgotten.")
    assert await memory.told("/undo") == f'Undone: forgot #{item.id} "{PLUMBER}"'
    assert await memory.listed() == await memory.recalled("plumber") == [PLUMBER]
    assert await memory.told("/redo") == f'Redone: forgot #{item.id} "{PLUMBER}"'
    assert await memory.listed() == []
    await memory.told("/context undo 2")
    await memory.told("/context undo 1")
    await memory.told("/context redo 1")
    assert await memory.listed() == [PLUMBER]


async def test_an_item_keeps_its_id_when_it_is_corrected(memory: Remembering) -> None:
    item = await memory.add(PLUMBER)
    await memory.service.edit(item, "call the electrician at noon")
    corrected = await memory.item(item.id)
    assert (corrected.content, corrected.token_count, corrected.access_count) == ("call the electrician at noon", 5, 2)
    assert await memory.recalled("the plumber") == []
    assert await memory.recalled("the electrician") == [corrected.content]
    await memory.told("/undo")
    assert await memory.recalled("the plumber") == [PLUMBER]


async def test_a_correction_that_another_item_has_is_refused(memory: Remembering) -> None:
    item, other, gone = [await memory.add(content) for content in (PLUMBER, "buy milk", "buy bread")]
    await memory.forget(gone.id)
    for content, sentence in [
        ("buy milk", f"Memory item #{other.id} has this content already."),
        ("buy bread", f"#{gone.id} has this content already; it is hidden, and adding the text"),
    ]:
        with pytest.raises(MemoryItemError, match=sentence):
            await memory.service.edit(item, content)
    assert await memory.listed() == [PLUMBER, "buy milk"]


async def test_an_undo_is_refused_if_the_item_was_changed_again_since(memory: Remembering) -> None:
    item = await memory.add(PLUMBER)
    first = await memory.service.edit(item, "call the electrician")
    assert first is not None
    await memory.service.edit(await memory.item(item.id), "call the gardener")
    refusal = await memory.told(f"/context undo {first.number}")
    assert refusal == f"Memory item #{item.id} was changed again since, so nothing was changed."
    assert await memory.listed() == ["call the gardener"]
    assert "undone" not in (await memory.told("/context ops"))


async def test_a_pinned_item_is_hot_and_first_whatever_its_score(memory: Remembering) -> None:
    section = await memory.add("# Scope", ItemType.PRD_SECTION)
    await memory.add(PLUMBER)
    operation = await memory.service.pin(memory.slug, section.id)
    assert operation.describe() == f'pinned #{section.id} "# Scope"'
    first, _ = await memory.service.listing(memory.slug)
    assert (first.id, first.tier) == (section.id, Tier.HOT)
    memory.world.clock.advance(timedelta(days=400))
    assert [item.tier for item in await memory.service.listing(memory.slug)] == [Tier.HOT, Tier.WARM]
    for refused in (memory.service.pin(memory.slug, section.id), memory.service.unpin(memory.slug, section.id + 1)):
        with pytest.raises(MemoryItemError, match=r"is (pinned already|not pinned)\."):
            await refused
    await memory.told("/undo")
    assert (await memory.item(section.id)).tier is Tier.COLD


async def test_neither_looking_at_an_item_nor_renewing_is_a_use(memory: Remembering) -> None:
    item = await memory.add(PLUMBER)
    added_at = item.last_accessed
    memory.world.clock.advance(timedelta(days=1))
    await memory.service.renew_if_due(memory.slug)
    aged = await memory.item(item.id)
    assert (aged.access_count, aged.last_accessed, aged.tier) == (1, added_at, Tier.WARM)
    await memory.told(f"/memory show {item.id}")
    assert await memory.item(item.id) == aged


async def test_scores_are_renewed_at_most_every_five_minutes(memory: Remembering) -> None:
    await memory.add(PLUMBER)
    scores = []
    for minutes in (0, 4, 2, -60):
        memory.world.clock.advance(timedelta(minutes=minutes))
        await memory.service.renew_if_due(memory.slug)
        scores += [score for (score,) in await memory.sql("SELECT importance_score FROM context_items")]
    # A clock that was set back renews them too.
    assert scores[0] == scores[1] > scores[2] < scores[3]


async def test_an_item_put_in_with_plain_sql_is_found_scored_counted_and_known(memory: Remembering) -> None:
    await memory.sql("INSERT INTO context_items(persona, item_type, content) VALUES ('chorus', 'TASK', 'feed the cat')")
    assert await memory.recalled("where is the cat?") == ["feed the cat"]
    (item,) = await memory.service.listing(memory.slug)
    assert item.token_count == 3
    assert not (await memory.service.remember(memory.slug, ItemType.TASK, "feed the cat")).new
    await memory.sql("UPDATE context_items SET content = 'feed the 東京 dog twice a day'")
    assert [found.token_count for found in await memory.service.listing(memory.slug)] == [7]
    memory.world.clock.advance(timedelta(minutes=6))
    await memory.service.renew_if_due(memory.slug)
    assert await memory.recalled("東京") == await memory.recalled("my dog") == ["feed the 東京 dog twice a day"]


async def test_a_message_full_of_common_words_recalls_nothing(memory: Remembering) -> None:
    for number in range(100):
        await memory.add(f"the report number {number} about the weather")
    assert await memory.referred_to("what about the weather report?") == []
    assert await memory.referred_to("and number 42?") == ["the report number 42 about the weather"]
    memory.world.clock.advance(timedelta(days=30))
    await memory.service.renew_if_due(memory.slug)
    await memory.service.flash_automatically(memory.slug)
    assert len(await memory.recalled("#7")) == 1


async def test_a_new_item_is_compared_only_with_those_that_have_the_most_of_its_words(memory: Remembering) -> None:
    for number in range(60):
        await memory.add(f"the report number {number} about the weather")
    statements = await traced(memory.world.store)
    await memory.add("the report number 60 about the weather")
    lists = (re.findall(r"json_each\('\[(.*?)\]'\)", each) for each in statements)
    assert max(len(ids.split(", ")) for found in lists for ids in found) == 50


CODE = "Try this:\n\n```python\nfor name in names:\n    print(name)\n    count += 1\n```\n"


async def test_code_of_a_message_is_captured_once_with_its_source(memory: Remembering) -> None:
    notice = 'Remembered #1 "for name in names: print(name) count +=…". /memory forget 1 removes it.'
    assert await memory.capture(CODE) == notice
    item = await memory.item(1)
    assert (item.item_type, item.source, item.source_message_id) == (ItemType.CODE, Source.YOU, 7)
    assert item.access_count == 0
    assert 'captured #1 "for name in names: print(name) count += 1"' in await memory.told("/context ops")
    assert await memory.capture(CODE, 9) == ""
    await memory.forget(item.id)
    assert await memory.capture(CODE, 9) == ""
    assert await memory.listed() == []


@pytest.mark.parametrize("plays_a_role", [False, True])
async def test_nothing_is_captured_without_auto_memory_or_in_a_role(memory: Remembering, *, plays_a_role: bool) -> None:
    if plays_a_role:
        (memory.world.personas.folder / "chorus" / CARD_FILE).write_text("{}")
    memory.world.configure("{}" if plays_a_role else '{"auto_memory": false}')
    assert await memory.capture(CODE) == ""
    persona = memory.world.current.target().persona
    assert await memory.service.capture_output(persona, "pytest", "1 passed in 0.02s\n") == ""
    assert await memory.listed() == []


async def test_a_newer_result_of_a_command_replaces_the_older_one(memory: Remembering) -> None:
    persona = memory.world.current.target().persona

    async def captured(command: str, output: str) -> str:
        return (await memory.service.capture_output(persona, command, output)).partition(". ")[0]

    assert await captured("pytest", "1 failed in 0.09s\n") == 'Remembered #1 "1 failed in 0.09s"'
    memory.world.clock.advance(timedelta(days=2))
    assert await captured("pytest", "1 passed in 0.06s\n") == await captured("pytest", "1 passed in 0.06s\n") == ""
    (item,) = await memory.service.listing(memory.slug)
    assert (item.id, item.content, item.created_at) == (1, "1 passed in 0.06s", memory.world.clock.now())
    assert (item.access_count, item.token_count) == (0, 4)
    assert await captured("pytest -x", "2 passed in 0.01s\n") == 'Remembered #2 "2 passed in 0.01s"'
    await memory.told("/context undo 2")
    assert await memory.listed() == ["1 failed in 0.09s", "2 passed in 0.01s"]


async def test_an_output_replaces_all_of_the_earlier_one_but_what_the_user_has_touched(memory: Remembering) -> None:
    persona = memory.world.current.target().persona
    error = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nValueError: no ring\n'
    await memory.service.capture_output(persona, "make", f"{error}2 failed in 0.01s\n")
    await memory.service.capture_output(persona, "make", "2 passed in 0.01s\n")
    assert await memory.listed() == ["2 passed in 0.01s"]
    await memory.service.pin(memory.slug, 1)
    await memory.service.capture_output(persona, "make", "3 passed in 0.01s\n")
    assert await memory.listed() == ["2 passed in 0.01s", "3 passed in 0.01s"]


async def test_a_clean_output_drops_an_error_which_comes_back_when_it_occurs_again(memory: Remembering) -> None:
    persona = memory.world.current.target().persona
    error = "a.c:1:2: error: no ring"
    for output, has_failed, kept in (
        (f"{error}\n", True, [error]),
        ("Interrupted\n", True, [error]),
        ("Built\n", False, []),
        (f"{error}\n", True, [error]),
    ):
        await memory.service.capture_output(persona, "make", output, has_failed=has_failed)
        assert await memory.listed() == kept
    assert f'dropped #1 "{error}"' in await memory.told("/context ops")


async def test_a_model_may_remember_what_an_output_dropped(memory: Remembering) -> None:
    persona = memory.world.current.target().persona
    for output in ("a.c:1:2: error: no ring\n", "Built\n"):
        await memory.service.capture_output(persona, "make", output)
    assert await memory.listed() == []
    await memory.service.remember(memory.slug, ItemType.ERROR, "a.c:1:2: error: no ring", Author(Source.MODEL))
    assert await memory.listed() == ["a.c:1:2: error: no ring"]


@pytest.mark.parametrize("work", ["capture", "import"])
async def test_a_long_text_is_searched_beside_the_event_loop(memory: Remembering, work: str) -> None:
    turned = asyncio.Event()
    asyncio.get_running_loop().call_soon(turned.set)
    if work == "capture":
        await memory.capture("We went over the plan again.\n" * 1000)
    else:
        with pytest.raises(MemoryItemError, match="holds no text"):
            await memory.service.import_sections(memory.slug, "\n" * 1000, "blank.md")
    assert turned.is_set()


async def test_the_memory_of_another_persona_is_not_touched(memory: Remembering) -> None:
    item = await memory.add(PLUMBER)
    for work in (
        memory.service.item("frodo", item.id),
        memory.service.forget("frodo", item.id),
        memory.service.pin("frodo", item.id),
    ):
        with pytest.raises(ChorusError, match=f"There is no memory item #{item.id} here"):
            await work
    assert await memory.service.recall("frodo", "plumber") == await memory.service.listing("frodo") == []


async def test_a_new_persona_does_not_see_the_memory_of_an_earlier_one_of_its_name(memory: Remembering) -> None:
    persona_admin = memory.world.persona_admin
    slug, _ = await persona_admin.create("Sam")
    old = (await memory.service.remember(slug, ItemType.TASK, PLUMBER)).items[0]
    await memory.service.flash(slug, *FIGURES, force=True)
    await persona_admin.archive(slug)
    await persona_admin.delete(slug)
    await persona_admin.create("Sam")
    assert await memory.service.listing(slug) == []
    assert await memory.service.checkpoints(slug) == []
    with pytest.raises(MemoryItemError, match="There is no memory item"):
        await memory.service.item(slug, old.id)
    new = await memory.service.remember(slug, ItemType.TASK, PLUMBER)
    assert new.new == new.items
    assert new.items[0].id != old.id
    assert await memory.service.recall(slug, "plumber") == [*new.items]


LIGHTHOUSE = "Keys: lighthouse, beacon; with: night, storm\nIt was built in 1820."


@pytest.fixture
async def keyed(world: World) -> World:
    """A world in which item #1 has keys, and #2 has not."""
    await world.services.memory.remember("chorus", ItemType.PRD_SECTION, LIGHTHOUSE)
    await world.services.memory.remember("chorus", ItemType.PRD_SECTION, "The harbour freezes.")
    return world


async def recalled(world: World, question: str, reply: str = "So.") -> bool:
    """Ask, and return whether item #1 went with the question."""
    world.model.say(reply)
    await world.say(question)
    asked = (await world.log())[-2]
    return "From memory:" in asked.preamble and "#1 (" in asked.preamble


@pytest.mark.parametrize(
    ("question", "is_sent"),
    [
        ("The lighthouse at night", True),
        ("BEACONS in a storm", True),
        ("The lighthouse", False),
        ("The night", False),
        ("It was built in 1820", False),
        ("tell me of #1", True),
    ],
)
async def test_an_item_is_called_by_its_keys_alone_or_its_number(keyed: World, question: str, *, is_sent: bool) -> None:
    assert await recalled(keyed, question) is is_sent


async def test_the_reply_before_calls_it_too(keyed: World) -> None:
    assert not await recalled(keyed, "hello", "At night the lighthouse shines.")
    assert await recalled(keyed, "does it?")
    assert not await recalled(keyed, "the lighthouse at night"), "it is in the request already"


async def test_it_is_called_in_every_tier_unless_it_is_forgotten(keyed: World) -> None:
    keyed.clock.advance(timedelta(days=60))
    assert "sent when a message has one of its keys" in await keyed.told("/why")
    await keyed.told("/memory flash --force")
    assert "ARCHIVED" in await keyed.told("/memory show 1")
    assert await recalled(keyed, "The lighthouse at night")
    await keyed.told("/new")
    await keyed.services.memory.forget("chorus", 1)
    assert not await recalled(keyed, "The lighthouse at night")


async def test_the_question_goes_before_the_reply_where_room_is_short(world: World) -> None:
    for number in range(1, 41):
        text = f"Keys: k{number:02}\n{'word ' * 40}{number}"
        await world.services.memory.remember("chorus", ItemType.PRD_SECTION, text)
    world.model.say(" ".join(f"k{number:02}" for number in range(1, 40)))
    await world.say("hello")
    world.model.say("So.")
    await world.say("k40")
    preamble = (await world.log())[-2].preamble
    assert "word 40" in preamble
    assert preamble.count(", from the human): word") < 40
    assert "Keys" not in preamble


async def offered(memory: Remembering) -> dict[int, str]:
    """Press a key, wait until the store is idle, and press another."""
    memory.service.offers(memory.slug)
    for _ in range(2):
        await memory.sql("SELECT 1")
    return dict(memory.service.offers(memory.slug))


async def test_the_newest_items_are_offered_by_their_beginnings(memory: Remembering) -> None:
    for number in range(302):
        await memory.sql("INSERT INTO context_items(persona, item_type, content) VALUES ('chorus', 'TASK', ?)", number)
    await memory.add("x" * 90_000)
    found = await offered(memory)
    assert list(found) == [*range(303, 3, -1)]
    assert found[303] == "x" * 80


async def test_changes_of_this_and_of_another_program_are_seen(memory: Remembering) -> None:
    assert await offered(memory) == {}
    await memory.add("call the plumber")
    assert await offered(memory) == {1: "call the plumber"}
    await memory.forget(1)
    assert await offered(memory) == {}
    await memory.told("/undo")
    await memory.sql("INSERT INTO context_items(persona, item_type, content) VALUES ('chorus', 'TASK', 'buy milk')")
    assert await offered(memory) == {2: "buy milk", 1: "call the plumber"}


TOLD = ["The index of the memory was damaged. Chorus has rebuilt it; no memory item is damaged."]


@pytest.fixture
def told(memory: Remembering) -> Iterator[list[str]]:
    sentences: list[str] = []
    with memory.world.services.notifier.heard_by(sentences.append, sentences.append):
        yield sentences


async def filled(memory: Remembering) -> None:
    for number in range(200):
        await memory.add(f"item {number} of {number * number} about subject{number}")


@of_sqlite("an index of FTS5")
@pytest.mark.parametrize("table", ["data", "idx", "config"])
async def test_an_index_that_cannot_be_read_is_made_again(memory: Remembering, told: list[str], table: str) -> None:
    await filled(memory)
    path = memory.world.folder / "chorus.db"
    damage(path, f"context_item_words_{table}", b"\x05\xa7\x13")
    store = Store(Sqlite(path))
    await store.open()
    service = Memory(store, memory.world.clock, WordCounter(), told.append)
    assert [item.id for item in await service.recall(memory.slug, "subject42")] == [43]
    await service.remember(memory.slug, ItemType.TASK, "one more about subject42")
    assert len(await service.recall(memory.slug, "subject42")) == 2
    await store.close()
    assert told == TOLD
    assert integrity(path) == "ok"


@of_sqlite("an index of FTS5")
async def test_an_index_that_is_gone_is_made_again_when_an_item_is_added(memory: Remembering, told: list[str]) -> None:
    await filled(memory)
    await memory.sql("DROP TABLE context_item_words")
    await memory.add("one more about subject42")
    assert len(await memory.recalled("subject42")) == 2
    assert told == TOLD


@of_sqlite("an index of FTS5")
async def test_a_damaged_memory_index_is_no_damage_of_the_log(memory: Remembering) -> None:
    await memory.world.say("about subject42")
    await memory.sql("DROP TABLE message_words")
    await memory.sql("UPDATE context_item_words_config SET v = NULL")
    assert "«subject42»" in await memory.told("/search subject42")


LONG_AGO = timedelta(days=60)


@pytest.fixture
async def aged(memory: Remembering) -> Remembering:
    """Two COLD items of seven words together, a WARM one of three, and a HOT one of three."""
    await memory.add("an old section", ItemType.PRD_SECTION)
    await memory.add("an old test result", ItemType.TEST_RESULT)
    await memory.add("the old task", ItemType.TASK)
    memory.world.clock.advance(LONG_AGO)
    await memory.add("the new task", ItemType.TASK)
    await memory.service.renew_if_due(memory.slug)
    return memory


async def tiers(memory: Remembering) -> dict[str, str]:
    return dict(await memory.sql("SELECT content, tier FROM context_items ORDER BY id"))


COLD = {"an old section": "COLD", "an old test result": "COLD", "the old task": "WARM", "the new task": "HOT"}
ARCHIVED = COLD | {"an old section": "ARCHIVED", "an old test result": "ARCHIVED"}


async def test_the_report_is_right_to_the_token(aged: Remembering) -> None:
    assert await tiers(aged) == COLD
    report = await aged.flash()
    assert (report.items_count, report.items_archived, report.hot_items_retained) == (4, 2, 1)
    assert (report.token_count_before, report.token_count_after, report.reduction_percentage) == (13, 6, 53.85)
    assert await tiers(aged) == ARCHIVED


async def test_it_is_refused_below_the_mark_with_the_figures(aged: Remembering) -> None:
    with pytest.raises(MemoryItemError, match="Chorus archives memory only if it has 100 or more"):
        await aged.service.flash(aged.slug, *FIGURES)
    assert await tiers(aged) == COLD
    assert await aged.service.checkpoints(aged.slug) == []
    assert (await aged.service.flash(aged.slug, 100, 100)).items_archived == 2


async def flash_number(memory: Remembering) -> int:
    """Return the number of the newest flash save in the journal."""
    ((number,),) = await memory.sql("SELECT MAX(number) FROM operations WHERE kind = 'flash'")
    return int(number)


async def test_an_automatic_one_needs_a_cold_item_and_is_taken_back_by_its_number_only(aged: Remembering) -> None:
    assert await aged.service.flash_automatically(aged.slug) is not None
    number = await flash_number(aged)
    assert await aged.service.flash_automatically(aged.slug) is None
    assert await aged.told("/undo") == 'Undone: remembered #4 "the new task"'
    assert await aged.told(f"/context undo {number}") == ("Undone: flash save, 2 memory items archived")
    assert (await tiers(aged))["an old section"] == "COLD"


async def test_an_automatic_one_without_cold_items_changes_no_score(memory: Remembering) -> None:
    await memory.add("the new task", ItemType.TASK)
    await memory.service.renew_if_due(memory.slug)
    memory.world.clock.advance(timedelta(minutes=4))
    before = await memory.sql("SELECT * FROM context_items")
    assert await memory.service.flash_automatically(memory.slug) is None
    assert await memory.sql("SELECT * FROM context_items") == before


async def test_the_checkpoint_holds_every_active_item(aged: Remembering) -> None:
    await aged.flash()
    ((text,),) = await aged.sql("SELECT checkpoint_data FROM context_checkpoints")
    held = json.loads(text)
    assert [len(held["context_state"][f"{tier}_items"]) for tier in ("hot", "warm", "cold")] == [1, 1, 2]
    assert held["metrics"]["total_tokens"] == 13
    assert await aged.told("/memory restore 1") == "Restored 2 memory items from checkpoint 1. /undo reverts this."


async def test_eleven_saves_keep_ten_checkpoints_and_an_undo_outlives_its_own(aged: Remembering) -> None:
    first, number = await aged.flash(), await flash_number(aged)
    for _ in range(10):
        await aged.flash()
    kept = [row.checkpoint_id for row in await aged.service.checkpoints(aged.slug)]
    assert kept == [*range(11, 1, -1)]
    with pytest.raises(MemoryItemError, match="There is no checkpoint 1 here"):
        await aged.service.restore(aged.slug, first.checkpoint_id)
    await aged.told(f"/context undo {number}")
    assert await tiers(aged) == COLD


async def test_an_undo_passes_over_an_item_that_is_in_use_again(aged: Remembering) -> None:
    await aged.flash()
    number = await flash_number(aged)
    await aged.service.pin(aged.slug, 1)
    await aged.told(f"/context undo {number}")
    assert [item.tier for item in await aged.service.listing(aged.slug)] == [Tier.HOT, Tier.HOT, Tier.WARM, Tier.COLD]
    await aged.told(f"/context redo {number}")
    assert await tiers(aged) == ARCHIVED | {"an old section": "HOT"}
