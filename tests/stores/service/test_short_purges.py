"""A purge of a short sentence takes all texts that contain it; one of two or three words only equal texts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from chorus_cli.log.rows import input_rows
from chorus_cli.stores.rules.purging import WantedPurge
from tests.stores.service.canary_talk import holding, purged, sql
from tests.turns.service.tool_talk import TOOLS, call, calls, events_of
from tests.world import Tools, World, built

if TYPE_CHECKING:
    from pathlib import Path

    from chorus_cli.storage.store import Store
    from tests.fakes import FakeClock, ScriptedModel

SHORT = "The gate is red"
HELD = f"I say {SHORT.lower()} and green"


@pytest.fixture
async def world(tmp_path: Path, store: Store, clock: FakeClock, model: ScriptedModel) -> World:
    """A world in which the first message is the sentence."""
    world = await built(tmp_path, store, clock, model, 10_000, Tools(TOOLS))
    await world.say(SHORT)
    await world.carry_out("/persona new Frodo")
    return world


@pytest.mark.parametrize("text", [SHORT, f" {SHORT.upper()}", HELD, f"Remember:\n> {SHORT}\nand more"])
async def test_a_memory_item_that_contains_it_goes(world: World, text: str) -> None:
    world.editor.enqueue(f"TASK\n\n{text}")
    await world.told("/remember something")
    await world.told("/memory edit 1")
    assert "memory item #1" in (await world.asked_back("/purge message 1")).text
    await purged(world, "/purge message 1")
    assert holding(world.folder, SHORT) == holding(world.folder, SHORT.upper()) == []


@pytest.mark.parametrize(("text", "stays"), [(HELD, False), (SHORT, False), ("The gate", True)])
async def test_a_draft_and_a_line_of_the_input_history_go_if_they_contain_it(
    world: World, text: str, *, stays: bool
) -> None:
    draft = world.folder / "drafts" / "draft-dead-x-message.md"
    draft.parent.mkdir(exist_ok=True)
    draft.write_text(text, encoding="utf-8")
    await world.store.write(input_rows.add, "frodo", text, world.clock.now())
    await purged(world, "/purge message 1")
    assert draft.exists() is stays
    assert len(await sql(world, "SELECT id FROM input_history")) == stays


async def test_titles_preambles_calls_and_sessions_that_contain_it_go_and_thoughts_stay(world: World) -> None:
    await world.told(f"/thread rename {HELD}")
    calls(world, call("echo", {"text": f"Well, {HELD}"}))
    await events_of(world, "Say it again.")
    await world.say("And now?")
    world.model.say(f"Somebody says: {HELD}")
    await world.told("/context save some talk")
    await sql(world, "UPDATE messages SET preamble = ? WHERE id = 3", HELD)
    await sql(world, "UPDATE messages SET reasoning = 'the gate is red indeed' WHERE id = 3")
    assert "#3 has the same words and would stay" in (await world.asked_back("/purge message 1")).text
    await purged(world, "/purge message 1")
    assert holding(world.folder, HELD) == holding(world.folder, SHORT) == []
    assert holding(world.folder, "red indeed") == ["chorus.db"]


async def test_a_text_of_two_words_stays_where_it_is_contained(world: World) -> None:
    await world.say("Red gate")
    for text in ("A red gate", "red Gate"):
        await world.told(f"/remember {text}")
    await (await world.asked_back("/purge message 3")).confirmed()
    assert await sql(world, "SELECT content FROM context_items") == [("A red gate",), ("",)]


async def test_a_call_of_a_tool_that_has_the_sentence_as_an_argument_goes(world: World) -> None:
    calls(world, call("echo", {"text": SHORT}))
    await events_of(world, "Say something.")
    world.model.say("About something.")
    await world.told("/context save some talk")
    await purged(world, "/purge message 1")
    assert holding(world.folder, SHORT) == []


async def test_a_preamble_goes_if_it_names_a_thread_of_the_same_persona_by_the_message(world: World) -> None:
    for text in ("Red gate", "And now?"):
        await world.say(text)
    preamble = "Active threads:\n  #1 (this thread): Red gate, step 1, 5 s, currently: writing"
    await sql(world, "UPDATE messages SET preamble = ? WHERE id IN (2, 5)", preamble)
    await (await world.asked_back("/purge message 3")).confirmed()
    assert await sql(world, "SELECT id FROM messages WHERE preamble <> ''") == [(2,)]


async def test_a_session_of_another_persona_keeps_a_name_that_is_a_word_of_the_sentence(world: World) -> None:
    await world.say("What opens there?")
    await world.told("/context save gate")
    await purged(world, "/purge message 1")
    assert [path.stem for path in (world.folder / "personas" / "frodo").rglob("*.json")] == ["2026-02-12_gate"]


async def test_a_program_reads_the_documents(world: World) -> None:
    path = document(world, "frodo", HELD)
    asked = WantedPurge(frozenset({1}))
    found = await world.services.purging.find(asked, "frodo", lambda _line: None)
    told = json.loads(json.dumps(found.extent.as_json()))
    assert told["repeated_in"] == [{"place": "document", "name": str(path), "persona": "frodo"}]


def document(world: World, name: str, text: str) -> Path:
    """Write a document of a persona."""
    path = world.personas.folder / name / "docs" / "notes.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


async def test_a_document_that_has_the_words_of_a_search_stays_and_is_named(world: World) -> None:
    path, text = document(world, "frodo", f"Remember: {HELD}"), f"Remember: {HELD}"
    told = [
        "Repeated in documents of personas, which no purge changes (edit or delete them yourself):",
        f"  document {path} of frodo: {text}",
    ]
    question = await world.asked_back("/purge search gate")
    assert question.text.splitlines()[-3:-1] == told
    await question.confirmed()
    assert path.read_text() == text
    assert (await world.told("/purge search gate")).splitlines() == [
        "There is nothing of that; nothing was purged.",
        *told,
    ]
    assert "document" not in await world.told("/purge search gate --persona chorus")


async def test_files_that_are_no_documents_are_not_looked_into(world: World) -> None:
    path = document(world, "frodo", "nothing of it")
    path.with_name("notes.txt").write_text(f"Remember: {HELD}")
    path.with_name("loop.md").symlink_to("loop.md")
    assert "document" not in (await world.asked_back("/purge search gate")).text


async def test_a_document_that_has_the_words_of_a_purged_message_is_named(world: World) -> None:
    path = document(world, "chorus", f"> {SHORT}")
    assert f"  document {path} of chorus: > {SHORT}" in (await world.asked_back("/purge message 1")).text
