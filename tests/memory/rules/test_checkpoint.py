"""Checkpoints in the original's shape, reports of flash saves, and statistics by tier."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from chorus_cli.core.errors import MemoryItemError
from chorus_cli.memory.rules.items import FlashReport, Item, ItemType, Tier, checkpoint_json, ids_in, statistics
from tests.fakes import START
from tests.memory.rules.memory_items import item

NOW = datetime(2025, 11, 14, 12, 30, 0, 999, tzinfo=timezone(timedelta(hours=1)))
ITEMS = [
    item(125, "boom", ItemType.ERROR, score=0.25, tier=Tier.COLD, tokens=5),
    item(123, "call the plumber", ItemType.TASK, score=0.95, tier=Tier.HOT, tokens=10),
    item(124, "x = 1", ItemType.CODE, score=0.65, tier=Tier.WARM, tokens=20),
    item(120, "long ago", ItemType.TASK, score=0.1, tier=Tier.ARCHIVED, tokens=400),
    item(126, "ok", ItemType.TEST_RESULT, score=0.2799999999, tier=Tier.COLD, tokens=None),
]
DOCUMENT = {
    "agent_id": "frodo",
    "context_state": {
        "hot_items": [{"id": 123, "type": "TASK", "content": "call the plumber", "score": 0.95}],
        "warm_items": [{"id": 124, "type": "CODE", "content": "x = 1", "score": 0.65}],
        "cold_items": [
            {"id": 125, "type": "ERROR", "content": "boom", "score": 0.25},
            {"id": 126, "type": "TEST_RESULT", "content": "ok", "score": 0.28},
        ],
    },
    "metrics": {"total_items": 4, "hot_count": 1, "warm_count": 1, "cold_count": 2, "total_tokens": 35},
    "timestamp": "2025-11-14T11:30:00Z",
}
items_of_any_content = st.lists(
    st.builds(item, st.integers(1, 99), st.text(), st.sampled_from(ItemType), tier=st.sampled_from(Tier)),
    unique_by=lambda each: each.id,
)


def test_a_checkpoint_has_the_shape_of_the_original() -> None:
    text = checkpoint_json("frodo", ITEMS, NOW)
    assert json.loads(text) == DOCUMENT
    assert list(json.loads(text)) == list(DOCUMENT)


def test_the_items_of_a_checkpoint_are_read_back() -> None:
    assert ids_in(json.dumps(DOCUMENT)) == {123, 124, 125, 126}


def test_a_purge_may_have_cut_all_items_out() -> None:
    empty: dict[str, list[object]] = {f"{tier}_items": [] for tier in ("hot", "warm", "cold")}
    assert ids_in(json.dumps(DOCUMENT | {"context_state": empty})) == set()


@given(items_of_any_content)
def test_no_item_is_lost_in_a_checkpoint(items: list[Item]) -> None:
    active = {each.id for each in items if each.tier is not Tier.ARCHIVED}
    assume(active)
    text = checkpoint_json("frodo", items, START)
    assert ids_in(text) == active
    cold = json.loads(text)["context_state"]["cold_items"]
    assert {each["id"]: each["content"] for each in cold} == {
        each.id: each.content for each in items if each.tier is Tier.COLD
    }


@pytest.mark.parametrize(
    "text", ["", "{", "[" * 100_000, "[]", "{}", '{"context_state": {"cold_items": null}}', '{"context_state": 5}']
)
def test_another_text_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(MemoryItemError, match=r"^The checkpoint cannot be read: it is not valid\."):
        ids_in(text)


@pytest.mark.parametrize(
    ("before", "after", "percentage"), [(1000, 250, 75.0), (3, 2, 33.33), (10, 10, 0.0), (10, 0, 100.0), (0, 0, 0.0)]
)
def test_the_reduction_is_in_percent_of_the_tokens_before(before: int, after: int, percentage: float) -> None:
    report = FlashReport(1, START, 4, 2, 1, before, after)
    assert report.reduction_percentage == percentage


def test_totals_are_those_of_active_items() -> None:
    assert statistics("frodo", ITEMS, START).as_json() == {
        "persona": "frodo",
        "total_items": 4,
        "hot_count": 1,
        "warm_count": 1,
        "cold_count": 2,
        "archived_count": 1,
        "total_tokens": 35,
        "hot_tokens": 10,
        "warm_tokens": 20,
        "cold_tokens": 5,
        "archived_tokens": 400,
        "last_updated": "2026-02-12T14:30:00.000000Z",
    }
