"""Acts on the memory: their words, their rows, and the acts that take them back."""

from __future__ import annotations

import json

import pytest

from chorus_cli.log.rules.acts import ACTS
from chorus_cli.log.rules.log_acts import Flash, ItemChange, ItemState, MemoryAct, MemoryChange

HIDDEN, VISIBLE = ItemState(visible=False), ItemState(visible=True)
ONE = (ItemChange(12, HIDDEN, VISIBLE),)
TWO = (*ONE, ItemChange(13, HIDDEN, VISIBLE))

WORDS: list[tuple[MemoryAct, str]] = [
    (MemoryChange("add", ONE, "call the plumber"), 'remembered #12 "call the plumber"'),
    (MemoryChange("forget", ONE, "call"), 'forgot #12 "call"'),
    (MemoryChange("edit", ONE, "call"), 'edited #12 "call"'),
    (MemoryChange("pin", ONE, "call"), 'pinned #12 "call"'),
    (MemoryChange("unpin", ONE, "call"), 'unpinned #12 "call"'),
    (MemoryChange("add", ONE), "remembered #12 (a purged text)"),
    (MemoryChange("import", TWO, "prd.md"), "imported 2 memory items from prd.md"),
    (MemoryChange("capture", TWO, "message #7"), "captured 2 memory items from message #7"),
    (MemoryChange("restore", TWO, "checkpoint 3"), "restored 2 memory items from checkpoint 3"),
    (Flash(3, (12, 13)), "flash save, 2 memory items archived"),
    (Flash(3), "flash save"),
]


@pytest.mark.parametrize(("act", "words"), WORDS)
def test_an_act_names_itself_and_is_read_back_from_its_row(act: MemoryAct, words: str) -> None:
    assert act.describe() == words
    row = json.loads(json.dumps(act.detail()))
    assert ACTS[act.kind].from_detail(row, ()) == act
    assert act.inverse.inverse == act
    assert not act.breaks_prefix
    assert not act.changes_messages


def test_the_inverse_changes_every_item_back() -> None:
    change = ItemChange(12, ItemState(content="old"), ItemState(content="new"))
    assert MemoryChange("edit", (change,)).inverse.changes == (
        ItemChange(12, ItemState(content="new"), ItemState(content="old")),
    )
    assert Flash(3, (12,)).inverse.changes == (ItemChange(12, ItemState(archived=True), ItemState(archived=False)),)


@pytest.mark.parametrize(
    ("concerned", "agrees"),
    [
        (ItemState(), True),
        (ItemState(visible=True, content="a"), True),
        (ItemState(visible=False), False),
        (ItemState(content="b"), False),
    ],
)
def test_a_state_agrees_with_the_present_one_as_far_as_it_goes(concerned: ItemState, *, agrees: bool) -> None:
    present = ItemState(visible=True, archived=False, pinned=False, item_type="TASK", content="a")
    assert concerned.agrees_with(present) is agrees
    assert concerned.agrees_with(concerned.over(present))
