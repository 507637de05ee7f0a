"""``/memory replace``, ``/memory inbox`` and the chain in ``/memory show``, as the user reads them."""

from __future__ import annotations

import json
import re
from datetime import timedelta

import pytest

from tests.memory.remembered import Remembering

LEEDS, YORK, HULL = (f"the office is in {town}" for town in ("Leeds", "York", "Hull"))


def rows_of(told: str) -> list[list[str]]:
    return [re.split(r"  +", line.strip()) for line in told.splitlines()]


async def test_a_replaced_item_is_closed_and_its_chain_is_shown_from_both_ends(memory: Remembering) -> None:
    await memory.told(f"/remember note: {LEEDS}")
    await memory.told("/memory pin 1")
    memory.world.clock.advance(timedelta(days=7))
    assert await memory.told(f"/memory replace 1 {YORK}") == f'Replaced #1 by #2 "{YORK}". /undo reverts this.'
    memory.world.clock.advance(timedelta(days=1))
    await memory.told(f"/memory replace #2 {HULL}")
    assert await memory.listed() == [HULL]
    newest = await memory.item(3)
    assert (newest.pinned, newest.item_type, newest.created_at) == (True, "PRD_SECTION", memory.world.clock.now())
    days = [f"{day} 2026-02-{number} 14:30" for day, number in (("Thu", 12), ("Thu", 19), ("Fri", 20))]
    chain = [
        ["Then and now"],
        ["Item", "Since", "Until", "From", "Content"],
        ["#1", days[0], days[1], "you", LEEDS],
        ["#2", days[1], days[2], "you", YORK],
        ["#3", days[2], "you", HULL],
    ]
    for number in (1, 2, 3):
        assert rows_of(await memory.told(f"/memory show {number}"))[-5:] == chain
    assert ["Closed", f"{days[1]}, replaced by #2"] in rows_of(await memory.told("/memory show 1"))
    shown = await memory.world.carry_out("/memory show 2")
    data = json.loads(json.dumps(await shown.data(), default=str))  # type: ignore[union-attr, misc]
    assert (data["replaced_by"], [version[0][0] for version in data["versions"]]) == (3, [1, 2, 3])


async def test_an_undo_reopens_the_old_item_and_a_redo_closes_it_at_the_time_of_the_replacement(
    memory: Remembering,
) -> None:
    await memory.told(f"/remember {LEEDS}")
    await memory.told(f"/memory replace 1 {YORK}")
    before = await memory.told("/memory show 1")
    memory.world.clock.advance(timedelta(minutes=3))
    assert await memory.told("/undo") == f'Undone: replaced #1 by #2 "{YORK}"'
    assert await memory.listed() == [LEEDS]
    assert "Then and now" not in await memory.told("/memory show 1")
    assert await memory.told("/redo") == f'Redone: replaced #1 by #2 "{YORK}"'
    assert await memory.listed() == [YORK]
    assert rows_of(await memory.told("/memory show 1"))[-2:] == rows_of(before)[-2:]


@pytest.mark.parametrize("command", ["pin 1", "forget 1", f"replace 1 {HULL}"])
async def test_a_closed_item_takes_no_command_and_names_its_successor(memory: Remembering, command: str) -> None:
    await memory.told(f"/remember {LEEDS}")
    await memory.told(f"/memory replace 1 {YORK}")
    refusal = "#2 has replaced memory item #1; /memory show 1 shows both."
    assert await memory.told(f"/memory {command}") == refusal
    assert await memory.listed() == [YORK]


async def test_no_checkpoint_and_no_flash_save_knows_a_closed_item(memory: Remembering) -> None:
    await memory.told(f"/remember {LEEDS}")
    memory.world.clock.advance(timedelta(days=60))
    await memory.told(f"/remember {YORK}")
    await memory.told("/memory flash --force")
    await memory.sql("UPDATE context_items SET tier = 'ARCHIVED'")
    await memory.told(f"/memory replace 1 {HULL}")
    assert await memory.told("/memory restore 1") == f'Restored #2 "{YORK}". /undo reverts this.'
    assert await memory.listed() == [YORK, HULL]
    await memory.told("/memory flash --force")
    ((data,),) = await memory.sql("SELECT checkpoint_data FROM context_checkpoints ORDER BY id DESC LIMIT 1")
    assert LEEDS not in data
    await memory.told("/undo")
    await memory.told("/undo")
    await memory.told("/undo")
    assert (await memory.item(1)).tier == "ARCHIVED"


async def test_a_fact_may_become_true_again(memory: Remembering) -> None:
    await memory.told(f"/remember {LEEDS}")
    await memory.told(f"/memory replace 1 {YORK}")
    await memory.told(f"/memory replace 2 {LEEDS}")
    assert [version.item.content for version in await memory.service.versions(memory.slug, 3)] == [LEEDS, YORK, LEEDS]
    await memory.told("/undo")
    assert await memory.told(f"/remember {LEEDS}") == f'Remembered #3 "{LEEDS}". /undo reverts this.'
    assert await memory.told("/context undo 2") == "Memory item #3 has this content already."


async def test_a_replacement_by_the_text_of_another_item_closes_the_one_and_keeps_the_other(
    memory: Remembering,
) -> None:
    for content in (LEEDS, "we moved to York", "feed the cat"):
        await memory.add(content)
    assert await memory.told(f"/memory replace 1 {LEEDS}") == "Memory item #1 has this content already."
    await memory.told("/memory replace 1 we moved to York")
    assert await memory.listed() == ["we moved to York", "feed the cat"]
    await memory.forget(3)
    await memory.told("/memory replace 2 feed the cat")
    assert await memory.listed() == ["feed the cat"]
    await memory.told("/undo")
    await memory.told("/undo")
    await memory.told("/undo")
    assert await memory.listed() == [LEEDS, "we moved to York", "feed the cat"]


async def test_an_item_with_nearly_the_same_words_is_proposed_and_accepted_or_dropped(memory: Remembering) -> None:
    await memory.told(f"/remember {LEEDS}")
    near = " It has nearly the words of #1: /memory inbox."
    assert (await memory.told(f"/remember {YORK}")).endswith(near)
    assert (await memory.told("/remember feed the cat")).endswith("reverts this.")
    inbox = await memory.told("/memory inbox")
    assert rows_of(inbox)[:2] == [["Item", "Content", "Replaces", "Older content"], ["#2", YORK, "#1", LEEDS]]
    assert inbox.endswith("/memory inbox accept 2, drop 2, accept all or drop all.")
    assert await memory.told("/memory inbox accept 2") == f'Replaced #1 by #2 "{YORK}". /undo reverts this.'
    empty = "The inbox is empty: no item has nearly the words of an older one."
    assert await memory.told("/memory inbox") == empty
    assert await memory.listed() == [YORK, "feed the cat"]
    await memory.told("/undo")
    assert await memory.told("/memory inbox") == inbox
    assert await memory.told("/memory inbox drop all") == f'Kept apart #2 "{YORK}". /undo reverts this.'
    assert await memory.told("/memory inbox") == empty
    assert await memory.listed() == [LEEDS, YORK, "feed the cat"]
    await memory.told("/undo")
    assert await memory.told("/memory inbox") == inbox


async def test_all_proposals_are_accepted_in_one_step_and_of_several_for_one_item_the_newest_stays(
    memory: Remembering,
) -> None:
    await memory.told(f"/remember {LEEDS}")
    await memory.told("/memory pin 1")
    await memory.told(f"/remember {YORK}")
    await memory.sql("UPDATE context_items SET may_replace = 0")
    await memory.told(f"/remember {HULL}")
    await memory.sql("UPDATE context_items SET may_replace = 1 WHERE id > 1")
    assert await memory.told("/memory inbox accept all") == "Replaced 2 memory items. /undo reverts this."
    assert await memory.listed() == [HULL]
    assert (await memory.item(3)).pinned
    assert [version.item.id for version in await memory.service.versions(memory.slug, 1)] == [1, 2, 3]
    await memory.told("/undo")
    assert [(item.id, item.pinned, item.may_replace) for item in await memory.service.listing(memory.slug)] == [
        *((1, True, 0), (3, False, 1), (2, False, 1)),
    ]
    await memory.told("/redo")
    assert await memory.listed() == [HULL]


@pytest.mark.parametrize("answer", ["accept", "accept 0", "yes 2", "accept 2 3"])
async def test_an_answer_to_the_inbox_is_a_verb_and_a_number_or_all(memory: Remembering, answer: str) -> None:
    told = await memory.told(f"/memory inbox {answer}")
    assert told == f"'{answer}' is not an answer. Type accept or drop, and the number of an item or all."
    assert "no such proposal" in await memory.told("/memory inbox accept 7")
    assert "no such proposal" in await memory.told("/memory inbox drop all")
