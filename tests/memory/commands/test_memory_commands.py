"""/memory and /remember, as they are typed and answered."""

from __future__ import annotations

import json
import os
import re
from datetime import timedelta
from pathlib import Path

import pytest

from chorus_cli.core import limits
from chorus_cli.framework.command_line import completions
from chorus_cli.framework.replies import plain
from chorus_cli.memory.rules.items import ItemType, Source, Tier
from chorus_cli.memory.service.memory import Author
from tests.memory.remembered import Remembering

KINDS = "hot, warm, cold, archived, note, code, task"


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("/remember call the plumber", 'Remembered #1 "call the plumber". /undo reverts this.'),
        ("/remember code: make test", 'Remembered #1 "make test". /undo reverts this.'),
        ("/remember Test result: all green", 'Remembered #1 "all green". /undo reverts this.'),
        ("/remember note: buy milk", 'Remembered #1 "buy milk". /undo reverts this.'),
        ("/remember task:", "Content cannot be empty or whitespace-only"),
        ("/memory add error  it's broken", 'Remembered #1 "it\'s broken". /undo reverts this.'),
        ("/memory add idea x", "Invalid item type, must be one of: TASK, CODE, ERROR, TEST_RESULT, PRD_SECTION"),
        ("/mem", "Nothing is remembered yet. /remember TEXT adds something."),
        ("/memory list", "Nothing is remembered yet. /remember TEXT adds something."),
        ("/memory list warm", "There are no warm items."),
        ("/memory list lukewarm", f"'lukewarm' is neither a tier nor a type. Choose one of: {KINDS}."),
        ("/memory show 3", "There is no memory item #3 here. /memory list shows the items."),
        ("/memory checkpoints", "There are no checkpoints. /memory flash archives COLD items under one."),
        ("/memory flash --now", "/memory flash takes only --force, not '--now'."),
        ("/memory flash --force", "The memory has no active items, so there is nothing to save."),
        ("/memory restore 3", "There is no checkpoint 3 here. /memory checkpoints lists them."),
    ],
)
async def test_what_is_typed_is_answered(memory: Remembering, line: str, answer: str) -> None:
    assert await memory.told(line) == answer


async def test_what_is_known_already_says_so(memory: Remembering) -> None:
    await memory.told("/remember buy milk")
    assert await memory.told("/remember buy milk") == ("Already remembered as #1; its age now counts from today.")
    assert await memory.told("/remember error: buy milk") == (
        'Remembered #1 "buy milk". The item was in the memory already. /undo reverts this.'
    )


async def test_what_a_model_remembered_is_the_users_own_once_the_user_says_it(memory: Remembering) -> None:
    await memory.service.remember(memory.slug, ItemType.TASK, "buy milk", Author(Source.MODEL, 9))
    assert await memory.told("/remember buy milk") == (
        'Remembered #1 "buy milk". The item was in the memory already. /undo reverts this.'
    )
    assert [(each.source, each.tier) for each in [await memory.item(1)]] == [(Source.YOU, Tier.HOT)]
    await memory.told("/undo")
    assert [(each.source, each.tier) for each in [await memory.item(1)]] == [(Source.MODEL, Tier.WARM)]


async def test_a_list_shows_number_text_and_source_and_the_rest_is_shown_of_one_item(
    memory: Remembering, tmp_path: Path
) -> None:
    document = tmp_path / "plan.md"
    document.write_text("# The plan\n", encoding="utf-8")
    persona = memory.world.current.target().persona
    await memory.told("/remember note: Keys: storm, wind")
    await memory.service.remember(memory.slug, ItemType.PRD_SECTION, "Keys: storm\nIt has lasted nine days.")
    await memory.told(f"/memory import {document}")
    await memory.capture("```\na = 1\nb = 2\nc = 3\n```\n")
    await memory.service.capture_output(persona, "make", "a.c:1:2: error: no ring\n")
    await memory.service.remember(memory.slug, ItemType.TASK, "call the plumber", Author(Source.MODEL, 9))
    rows = {
        "#1": ("Keys: storm, wind", "you"),
        "#2": ("It has lasted nine days.", "you"),
        "#3": ("# The plan", "a file"),
        "#4": ("a = 1 b = 2 c = 3", "you, #7"),
        "#5": ("a.c:1:2: error: no ring", "a tool"),
        "#6": ("call the plumber", "the model, #9"),
    }
    heads, *lines = (await memory.told("/memory list")).splitlines()
    assert heads.split() == ["Item", "Content", "From"]
    assert {line.split()[0]: tuple(re.split(r"  +", line.split(None, 1)[1].strip())) for line in lines} == rows
    for number, (_, origin) in rows.items():
        shown = [line.split(None, 1) for line in (await memory.told(f"/memory show {number}")).splitlines()]
        assert ["From", origin] in shown
    for name, items in (("code", {"#4", "#5"}), ("error", {"#5"}), ("task", {"#6"}), ("note", {"#1", "#2", "#3"})):
        listed = (await memory.told(f"/memory list {name}")).splitlines()[1:]
        assert {line.split()[0] for line in listed} == items, name


async def test_a_long_list_has_pages(memory: Remembering) -> None:
    for number in range(51):
        await memory.add(f"item {number}")
    assert (await memory.told("/memory list")).endswith("Page 1 of 2; a page number after the command shows another.")
    assert len((await memory.told("/memory list task 2")).splitlines()) == 4
    assert await memory.told("/memory list 3") == "There is no page 3; the last is 2."
    assert await memory.told("/memory list 0") == "There is no page 0; the last is 2."


async def test_the_overview_counts_as_sql_does_and_names_archived_items_apart(memory: Remembering) -> None:
    await memory.told("/memory add prd_section an old section")
    memory.world.clock.advance(timedelta(days=60))
    await memory.told("/remember call the plumber")
    await memory.told("/memory flash --force")
    told = (await memory.told("/memory")).splitlines()
    assert [line.split() for line in told[:6]] == [
        ["Memory", "of", "chorus"],
        ["Tier", "Items", "Tokens"],
        ["HOT", "1", "█" * 20, "3", "█" * 20],
        ["WARM", "0", "0"],
        ["COLD", "0", "0"],
        ["total", "1", "3"],
    ]
    assert told[7] == "ARCHIVED: 1 item, 3 tokens; /memory checkpoints lists the flash saves."
    assert await memory.sql(
        "SELECT tier, COUNT(*), SUM(token_count) FROM context_items GROUP BY tier ORDER BY tier DESC"
    ) == [("HOT", 1, 3), ("ARCHIVED", 1, 3)]
    assert told[-1] == "/memory list shows the items; /memory edit N corrects one."


async def test_an_item_is_shown_with_everything_that_is_known_of_it(memory: Remembering) -> None:
    await memory.told("/remember call the plumber")
    memory.world.clock.advance(timedelta(days=1))
    told = await memory.told("/memory show #1")
    assert "0.66 = 0.40+0.24+0.01 (type + age + use)" in told
    assert "once, last on " in told
    rows = [line.split() for line in told.splitlines()]
    assert (["Type", "task"] in rows, ["Tier", "WARM"] in rows) == (True, True)
    assert told.endswith("\n\ncall the plumber")


async def test_an_item_is_corrected_in_the_editor(memory: Remembering) -> None:
    await memory.told("/remember call the plumber")
    memory.world.editor.enqueue("call the electrician\n")
    assert await memory.told("/memory edit 1") == 'Corrected #1 "call the electrician". /undo reverts this.'
    assert memory.world.editor.shown == ["call the plumber\n"]
    assert await memory.told("/undo") == 'Undone: edited #1 "call the electrician"'
    memory.world.editor.enqueue("call the plumber \n")
    assert await memory.told("/memory edit 1") == "Nothing was changed."
    assert await memory.listed() == ["call the plumber"]


async def test_a_correction_of_an_item_that_was_changed_meanwhile_is_kept_in_a_draft(memory: Remembering) -> None:
    await memory.told("/remember call the plumber")
    memory.world.editor.enqueue(lambda path: path.write_text("call the electrician\n"))
    opened = memory.world.editor.open

    async def changed_meanwhile(path: Path, line: int | None = None) -> str:
        await memory.service.edit(await memory.item(1), "call the gardener")
        return await opened(path, line)

    memory.world.editor.open = changed_meanwhile  # type: ignore[method-assign]
    answer = await memory.told("/memory edit 1")
    assert answer.startswith("Memory item #1 was changed again since, so nothing was changed. Your text is kept in ")
    assert await memory.listed() == ["call the gardener"]


async def test_forgetting_asks_and_names_the_source(memory: Remembering) -> None:
    await memory.capture("```\na = 1\nb = 2\nc = 3\n```\n")
    question = await memory.world.asked_back("/memory forget 1")
    assert question.text == 'Forget #1 "a = 1 b = 2 c = 3"? The log keeps its source, message #7.'
    assert question.declined.text == "Kept memory item #1."
    assert await memory.listed() != []
    assert plain(await question.confirmed()) == (
        'Forgot #1 "a = 1 b = 2 c = 3". The log keeps its source, message #7. /undo brings it back.'
    )
    assert await memory.listed() == []


async def test_pins_are_set_and_removed(memory: Remembering) -> None:
    await memory.told("/memory add prd_section # Scope")
    assert (
        await memory.told("/memory pin 1") == 'Pinned #1 "# Scope". It is sent with each message until /memory unpin 1.'
    )
    assert await memory.told("/memory pin 1") == "Memory item #1 is pinned already."
    assert await memory.told("/memory unpin 1") == 'Unpinned #1 "# Scope". By its score it is WARM.'


async def test_a_document_is_imported(memory: Remembering, tmp_path: Path) -> None:
    path = tmp_path / "prd.md"
    path.write_text("# One\n\ntext\n\n# Two\n")
    assert await memory.told(f"/memory import {path}") == "Imported 2 sections of prd.md. /undo reverts this."
    assert await memory.told(f"/memory import {path}") == "Imported 0 sections of prd.md. Already known: 2 sections."
    assert await memory.told("/undo") == "Undone: imported 2 memory items from prd.md"
    assert await memory.listed() == []
    path.write_text(" \n")
    assert "holds no text" in await memory.told(f"/memory import {path}")
    path.write_bytes(b"\xff")
    assert "is not UTF-8" in await memory.told(f"/memory import {path}")
    os.truncate(path, limits.MEMORY_DOCUMENT.most + 1)
    assert "is larger than 10 MB" in await memory.told(f"/memory import {path}")
    assert "No such file" in await memory.told(f"/memory import {path}x")
    assert "Is a directory" in await memory.told(f"/memory import {tmp_path}")


async def test_flash_saves_are_reported_listed_and_restored(memory: Remembering) -> None:
    await memory.told("/memory add prd_section an old section")
    memory.world.clock.advance(timedelta(days=60))
    assert (await memory.told("/memory flash")).endswith("/memory flash --force archives COLD items anyway.")
    assert await memory.told("/memory flash --force") == (
        "Checkpoint 1: 1 item, 1 archived, 0 HOT kept.\n"
        "Tokens of active items: 3 before, 0 after (100% less).\n"
        "/memory restore 1 brings the archived items back, and so does /undo."
    )
    assert (await memory.told("/memory checkpoints")).splitlines()[1].split()[-4:] == ["1", "1", "0", "3"]
    assert await memory.told("/memory restore 1") == 'Restored #1 "an old section". /undo reverts this.'
    assert await memory.told("/memory restore 1") == (
        "No item of checkpoint 1 is archived now, so nothing was changed."
    )


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("/memory show ", {"2": "buy milk", "1": "call the plumber"}),
        ("/memory forget #1", {"#1": "call the plumber"}),
        ("/memory list w", {"warm": "in a request that refers to it"}),
        ("/memory add n", {"note": "a fact, or a part of a document or a lorebook"}),
        ("/remember co", {"code: ": "a piece of code, an error or a test result"}),
        ("/memory flash ", {"--force": "even if the next request has room"}),
    ],
)
async def test_numbers_tiers_and_types_are_completed(memory: Remembering, line: str, offered: dict[str, str]) -> None:
    await memory.told("/remember call the plumber")
    await memory.told("/remember buy milk")
    services = memory.world.services
    services.memory.offers(memory.slug)
    await memory.service.listing(memory.slug)
    found = completions(services.registry, services, line)
    assert {candidate.text: candidate.description for candidate in found.candidates} == offered


async def test_a_forgotten_item_breaks_the_prefix_and_other_changes_do_not(memory: Remembering) -> None:
    async def newest() -> int:
        snapshot = await memory.world.context.snapshot(memory.world.current.target(), memory.world.clock.now())
        return snapshot.newest_operation_id

    for line in ("/remember call the plumber", "/memory pin 1", "/memory flash --force", "/memory unpin 1", "/undo"):
        await memory.told(line)
        assert await newest() == 0, line
    await memory.forget(1)
    assert await newest() > 0
    await memory.told("/undo")
    assert await newest() == 0


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
        ["Item", "Since", "From", "Content"],
        ["#1", days[0], "you", LEEDS],
        ["#2", days[1], "you", YORK],
        ["#3", days[2], "you", HULL],
    ]
    for number in (1, 2, 3):
        assert rows_of(await memory.told(f"/memory show {number}"))[-4:] == chain
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


async def test_a_replacement_by_the_text_of_an_item_is_refused(memory: Remembering) -> None:
    for content in (LEEDS, "feed the cat"):
        await memory.add(content)
    for number, content in ((1, LEEDS), (2, "feed the cat")):
        told = await memory.told(f"/memory replace 1 {content}")
        assert told == f"Memory item #{number} has this content already."
    assert await memory.listed() == [LEEDS, "feed the cat"]


async def test_an_item_with_nearly_the_same_words_is_proposed_and_accepted_or_dropped(memory: Remembering) -> None:
    await memory.told(f"/remember {LEEDS}")
    near = " It nearly repeats #1; see /memory inbox."
    assert (await memory.told(f"/remember {YORK}")).endswith(near)
    assert (await memory.told("/remember feed the cat")).endswith("reverts this.")
    inbox = await memory.told("/memory inbox")
    assert rows_of(inbox)[:2] == [["Item", "Content", "Replaces", "Older content"], ["#2", YORK, "#1", LEEDS]]
    assert inbox.endswith("/memory inbox accept 2, drop 2, accept all or drop all.")
    assert await memory.told("/memory inbox accept 2") == f'Replaced #1 by #2 "{YORK}". /undo reverts this.'
    empty = "The inbox is empty. /memory distil has the model propose facts."
    assert await memory.told("/memory inbox") == empty
    assert await memory.listed() == [YORK, "feed the cat"]
    await memory.told("/undo")
    assert await memory.told("/memory inbox") == inbox
    assert await memory.told("/memory inbox drop all") == f'Kept apart #2 "{YORK}". /undo reverts this.'
    assert await memory.told("/memory inbox") == empty
    assert await memory.listed() == [LEEDS, YORK, "feed the cat"]
    await memory.told("/undo")
    assert await memory.told("/memory inbox") == inbox


@pytest.mark.parametrize("is_chain", [0, 1])
async def test_all_proposals_are_accepted_in_one_step_and_of_several_for_one_item_the_newest_stays(
    memory: Remembering, is_chain: int
) -> None:
    await memory.told(f"/remember {LEEDS}")
    await memory.told("/memory pin 1")
    await memory.told(f"/remember {YORK}")
    await memory.sql("UPDATE context_items SET may_replace = 0")
    await memory.told(f"/remember {HULL}")
    await memory.sql("UPDATE context_items SET may_replace = 1 + ? * (id - 2) WHERE id > 1", is_chain)
    assert await memory.told("/memory inbox accept all") == "Replaced 2 memory items. /undo reverts this."
    assert await memory.listed() == [HULL]
    assert (await memory.item(3)).pinned
    assert [version.item.id for version in await memory.service.versions(memory.slug, 1)] == [1, 2, 3]
    await memory.told("/undo")
    assert [(item.id, item.pinned, item.may_replace) for item in await memory.service.listing(memory.slug)] == [
        *((1, True, 0), (3, False, 1 + is_chain), (2, False, 1)),
    ]
    await memory.told("/redo")
    assert await memory.listed() == [HULL]


@pytest.mark.parametrize("answer", ["accept", "accept 0", "yes 2", "accept 2 3"])
async def test_an_answer_to_the_inbox_is_a_verb_and_a_number_or_all(memory: Remembering, answer: str) -> None:
    told = await memory.told(f"/memory inbox {answer}")
    assert told == f"'{answer}' is not an answer. Type accept or drop, then the number of a proposal, or all."
    assert "no such proposal" in await memory.told("/memory inbox accept 7")
    assert "no such proposal" in await memory.told("/memory inbox drop all")
