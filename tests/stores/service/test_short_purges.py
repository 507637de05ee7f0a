"""A purge of a short, common sentence takes equal texts, and names those that only have its words."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from chorus_cli.editing.rows import outbox_rows
from chorus_cli.editing.rows.outbox_rows import Unsaid
from chorus_cli.log.rows import input_rows
from chorus_cli.stores.rules.purging import AskedPurge
from tests.stores.service.canary_talk import holding
from tests.turns.service.tool_talk import TOOLS, call, calls, events_of
from tests.world import Tools, World, built

if TYPE_CHECKING:
    from pathlib import Path

    from chorus_cli.storage.store import Connection, Store
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


async def shown(world: World) -> list[str]:
    """Return the lines of the places that a dry run names."""
    lines = (await world.told("/purge message 1 --dry-run")).splitlines()
    heading = next((number for number, line in enumerate(lines) if line.startswith("Repeated in")), len(lines))
    return [line.strip() for line in lines[heading + 1 :] if line.startswith("  ")]


async def purged(world: World) -> None:
    await (await world.asked_back("/purge message 1")).confirmed()


async def sql(world: World, statement: str, *values: object) -> list[tuple[object, ...]]:
    def work(connection: Connection) -> list[tuple[object, ...]]:
        return connection.execute(statement, values).fetchall()

    return await world.store.write(work)


async def test_an_unsent_message_stays_and_is_named(world: World) -> None:
    texts = (Unsaid("chorus", HELD), Unsaid("chorus", SHORT))
    await world.store.write(outbox_rows.hold, "dead", texts, world.clock.now())
    assert await shown(world) == [f"message not sent #1 of chorus: {HELD}"]
    await purged(world)
    assert await sql(world, "SELECT content FROM outbox") == [(HELD,)]


async def test_a_memory_item_of_another_persona_stays_and_is_named(world: World) -> None:
    await world.told(f"/remember {HELD}")
    assert await shown(world) == [f"memory item #1 of frodo: {HELD}"]
    question = await world.asked_back("/purge message 1")
    assert "With them" not in question.text
    await question.confirmed()
    assert HELD in await world.told("/memory show 1")
    assert await sql(world, "SELECT content FROM messages WHERE id = 1") == [("",)]


@pytest.mark.parametrize("text", [SHORT, f" {SHORT.upper()}", f"Remember:\n> {SHORT}\nand more"])
async def test_an_equal_memory_item_or_one_that_quotes_it_in_lines_of_their_own_goes(world: World, text: str) -> None:
    world.editor.enqueue(f"TASK\n\n{text}")
    await world.told("/remember something")
    await world.told("/memory edit 1")
    assert await shown(world) == []
    await purged(world)
    assert holding(world.folder, SHORT) == holding(world.folder, SHORT.upper()) == []


@pytest.mark.parametrize(("text", "stays"), [(HELD, True), (SHORT, False), (f"To do\n\n{SHORT}\n", False)])
async def test_a_draft_and_a_line_of_the_input_history_stay_if_they_only_have_the_words(
    world: World, text: str, *, stays: bool
) -> None:
    draft = world.folder / "drafts" / "draft-dead-x-message.md"
    draft.parent.mkdir(exist_ok=True)
    draft.write_text(text, encoding="utf-8")
    await world.store.write(input_rows.add, "frodo", text, world.clock.now())
    named = [f"line of the input history #1 of frodo: {HELD}", f"draft {draft.name}: {HELD}"]
    assert await shown(world) == (named if stays else [])
    await purged(world)
    assert draft.exists() is stays
    assert len(await sql(world, "SELECT id FROM input_history")) == stays


async def test_summaries_titles_calls_and_sessions_of_others_stay_and_are_named(world: World) -> None:
    await world.told(f"/thread rename {HELD}")
    calls(world, call("echo", {"text": f"Well, {HELD}"}))
    await events_of(world, "Say it again.")
    await world.say("And now?")
    world.model.say(f"Somebody says: {HELD}")
    await world.told("/context save some talk")
    await sql(world, "UPDATE messages SET reasoning = ?, preamble = ? WHERE id = 3", HELD, HELD)
    places = [line.partition(": ")[0] for line in await shown(world)]
    assert places == [
        "title of thread #1 of frodo",
        "preamble of message #3 of frodo",
        "tool call in message #5 of frodo",
        "thoughts of message #3 of frodo",
        "session 2026-02-12_some-talk of frodo",
    ]
    before = holding(world.folder, HELD)
    await purged(world)
    assert holding(world.folder, HELD) == before
    assert await sql(world, "SELECT title FROM threads WHERE persona = 'frodo'") == [(HELD,)]


async def test_a_call_of_a_tool_that_has_the_sentence_as_an_argument_goes(world: World) -> None:
    calls(world, call("echo", {"text": SHORT}))
    await events_of(world, "Say something.")
    world.model.say("About something.")
    await world.told("/context save some talk")
    await purged(world)
    assert holding(world.folder, SHORT) == []


async def test_a_preamble_goes_if_it_names_a_thread_of_the_same_persona_by_the_sentence(world: World) -> None:
    await world.say("And now?")
    preamble = f"Active threads:\n  #1 (this thread): {SHORT}, step 1, 5 s, currently: writing"
    await sql(world, "UPDATE messages SET preamble = ? WHERE id IN (2, 3)", preamble)
    assert [line.partition(": ")[0] for line in await shown(world)] == ["preamble of message #3 of frodo"]
    await purged(world)
    assert await sql(world, "SELECT id FROM messages WHERE preamble <> ''") == [(3,)]


async def test_a_session_of_another_persona_keeps_a_name_that_is_a_word_of_the_sentence(world: World) -> None:
    await world.say("What opens there?")
    await world.told("/context save gate")
    await purged(world)
    assert [path.stem for path in (world.folder / "personas" / "frodo").rglob("*.json")] == ["2026-02-12_gate"]


async def test_a_program_reads_the_places(world: World) -> None:
    await world.told(f"/remember {HELD}")
    asked = AskedPurge("message", frozenset({1}))
    found = await world.services.upkeep.purging.find(asked, "frodo", lambda _line: None)
    told = json.loads(json.dumps(found.extent.as_json()))
    assert told["repeated_in"] == [{"place": "memory item", "name": "#1", "persona": "frodo"}]


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
    assert await shown(world) == [f"document {path} of chorus: > {SHORT}"]
