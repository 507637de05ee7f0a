"""A damaged index of the memory is made again, which is told once; the items are only read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chorus_cli.memory.rules.items import ItemType
from chorus_cli.memory.service.memory import Memory
from chorus_cli.storage.store import Store
from tests.fakes import WordCounter
from tests.memory.service.remembered import Remembering
from tests.recall.test_search import damage, integrity

TOLD = ["The index of the memory was damaged and is made again; no memory item is concerned."]


@pytest.fixture
def told(memory: Remembering) -> Iterator[list[str]]:
    sentences: list[str] = []
    with memory.world.services.notifier.heard_by(sentences.append, sentences.append):
        yield sentences


async def filled(memory: Remembering) -> None:
    for number in range(200):
        await memory.add(f"item {number} of {number * number} about subject{number}")


@pytest.mark.parametrize("table", ["data", "idx", "config"])
async def test_an_index_whose_pages_cannot_be_read_is_made_again(
    memory: Remembering, told: list[str], table: str
) -> None:
    await filled(memory)
    path = memory.world.folder / "chorus.db"
    damage(path, f"context_item_words_{table}", b"\x05\xa7\x13")
    store = Store(path)
    await store.open()
    service = Memory(store, memory.world.clock, WordCounter(), told.append)
    assert [item.id for item in await service.recall(memory.slug, "subject42")] == [43]
    await service.remember(memory.slug, ItemType.TASK, "one more about subject42")
    assert len(await service.recall(memory.slug, "subject42")) == 2
    await store.close()
    assert told == TOLD
    assert integrity(path) == "ok"


async def test_an_index_that_is_gone_is_made_again_when_an_item_is_added(memory: Remembering, told: list[str]) -> None:
    await filled(memory)
    await memory.sql("DROP TABLE context_item_words")
    await memory.add("one more about subject42")
    assert len(await memory.recalled("subject42")) == 2
    assert told == TOLD


async def test_an_index_that_has_lost_its_words_is_made_again_instead_of_recalling_nothing(
    memory: Remembering, told: list[str]
) -> None:
    await filled(memory)
    await memory.sql("DELETE FROM context_item_words")
    assert await memory.recalled("subject42") == ["item 42 of 1764 about subject42"]
    assert await memory.recalled("nothing of that kind") == []
    assert told == TOLD


async def test_the_search_of_messages_does_not_take_a_damaged_memory_index_for_damage_of_the_log(
    memory: Remembering,
) -> None:
    await memory.world.say("about subject42")
    await memory.sql("DROP TABLE message_words")
    await memory.sql("UPDATE context_item_words_config SET v = NULL")
    assert "«subject42»" in await memory.world.told("/search subject42")
