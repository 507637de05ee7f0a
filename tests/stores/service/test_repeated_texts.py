"""Texts that repeat a purged one go with it: equal ones, and those that contain it, unless it is common speech."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.text.phrases import shortened
from chorus_cli.log.rows import input_rows, sqlite_words
from chorus_cli.log.rules.log_acts import PurgedIds
from chorus_cli.log.rules.search_query import Wanted, required_query
from chorus_cli.storage.migrations import STEPS, Step, migrate
from chorus_cli.storage.schema import UNSTEMMED
from chorus_cli.stores.purge.concerned import matching
from chorus_cli.stores.rules.purging import Fingerprints, WantedPurge, is_part, words_in_line
from chorus_cli.stores.salvage import examination
from tests.amount import examples
from tests.log.service.thinking_talk import parts_of, think
from tests.stores.service.canary_talk import holding, purged, sql
from tests.turns.service.tool_talk import call, calls, events_of
from tests.world import World

SHORT = "The gate is red"
MANY_WORDS = " ".join(f"word{number}" for number in range(20))


@pytest.mark.parametrize(
    ("said", "other", "is_repeated"),
    [
        (SHORT, SHORT, True),
        (SHORT, "  the GATE\n is red ", True),
        (SHORT, f"I wonder:\n  >  the gate\n > is red\nIs that so? {'word ' * 200}", True),
        (SHORT, f"I say “{SHORT}!”, and the wall is green", True),
        (SHORT, "The gate is", False),
        (SHORT, "The gate, but not that, is red", False),
        (MANY_WORDS, f"before {MANY_WORDS} after", True),
        (MANY_WORDS, MANY_WORDS.removesuffix("9"), False),
        ("ok", "OK", True),
        ("ok", "first\nok\nlast", False),
        ("!?", " !?", True),
        ("", "", False),
    ],
)
def test_a_text_repeats_another(said: str, other: str, *, is_repeated: bool) -> None:
    assert Fingerprints([said]).are_in(other) is is_repeated
    assert Fingerprints(["something else here", said, "another text of some words"]).are_in(other) is is_repeated
    assert Fingerprints([said, *(f"one of many, {number}" for number in range(100))]).are_in(other) is is_repeated


@pytest.mark.parametrize(
    ("text", "is_within"),
    [
        *(("Gate is", True), ("the gate", True), ("ate is", False), ("", False), ("!", False)),
        *(
            ("the ga", False),
            ("the ga…", False),
            ("the gate is r…", True),
            ("the gate …", True),
            ("ate i…", False),
            ("…", False),
        ),
    ],
)
def test_a_part_is_some_words_in_a_row(text: str, *, is_within: bool) -> None:
    assert is_part(text, words_in_line(["Nothing", f"{SHORT}!"])) is is_within


@examples(200)
@given(
    st.text(st.sampled_from("aAäÄkK\u212a\u0301_-. 1東"), max_size=8),
    st.sampled_from(["a", "ak", "a_k", '"a k"', "ä", "k1*"]),
)
def test_a_text_has_the_words_that_the_index_finds_in_it(text: str, words: str) -> None:
    found = sqlite_words.matching([(1, text)], Wanted(required_query(words).required), UNSTEMMED)
    assert matching({1: text}, words) == found


HELD = f"I say {SHORT.lower()} and green"


@pytest.fixture
async def world(tooled: World) -> World:
    """A world in which the first message is the sentence."""
    await tooled.say(SHORT)
    await tooled.carry_out("/persona new Frodo")
    return tooled


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
    assert "#3 has the same words and would not be purged" in (await world.asked_back("/purge message 1")).text
    await purged(world, "/purge message 1")
    assert holding(world.folder, HELD) == holding(world.folder, SHORT) == []
    assert holding(world.folder, "red indeed") == ["chorus.db"]


async def test_a_text_of_two_words_stays_where_it_is_contained(world: World) -> None:
    await world.say("Red gate")
    for text in ("A red gate", "red Gate"):
        await world.told(f"/remember {text}")
    await (await world.asked_back("/purge message 3")).confirmed()
    assert await sql(world, "SELECT content FROM context_items") == [("A red gate",), ("",)]


@pytest.mark.parametrize("title", ["Red gate", "Red gate (fork)"])
async def test_a_preamble_goes_if_it_names_a_thread_of_the_same_persona_by_the_message(
    world: World, title: str
) -> None:
    for text in ("Red gate", "And now?"):
        await world.say(text)
    preamble = f"Active threads:\n  #1 (this thread): {title}, step 1, 5 s, currently: writing"
    await sql(world, "UPDATE messages SET preamble = ? WHERE id IN (2, 5)", preamble)
    await (await world.asked_back("/purge message 3")).confirmed()
    assert await sql(world, "SELECT id FROM messages WHERE preamble <> ''") == [(2,)]


async def test_a_session_of_another_persona_keeps_a_name_that_is_a_word_of_the_sentence(world: World) -> None:
    await world.say("What opens there?")
    await world.told("/context save gate")
    await purged(world, "/purge message 1")
    assert [path.stem for path in (world.folder / "personas" / "frodo").rglob("*.json")] == ["2026-02-12_gate"]


PASSWORD = "hunter2 is my password for the savings account at the bank, and never tell it to Samwise Gamgee."


async def saved_talk(world: World) -> Path:
    """Have the password in message 1, and in a session whose description and name are cut within words."""
    for text in (PASSWORD, "What is the weather like?"):
        await world.say(text)
    world.model.say("They speak of the weather.")
    await world.told(f"/context save {shortened(PASSWORD, 80)}")
    [path] = (world.folder / "personas" / "chorus" / "sessions").glob("*hunter2*")
    return path


async def test_a_description_and_a_name_that_are_cut_within_a_word_go(tooled: World) -> None:
    await saved_talk(tooled)
    await purged(tooled, "/purge message 1")
    assert holding(tooled.folder, "hunter2") == []


@pytest.mark.parametrize(
    ("change", "left"),
    [
        ("UPDATE sessions SET description = ''", ("2026-02-12_purged", "")),
        ("UPDATE sessions SET session_id = '2026-02-12_notes'", ("2026-02-12_purged", "")),
        ("UPDATE sessions SET session_id = '2026-02-12_bank', description = 'The bank'", ("2026-02-12_purged", "")),
        ("UPDATE sessions SET session_id = '2026-02-12_notes', description = 'Notes'", ("2026-02-12_notes", "Notes")),
    ],
)
async def test_a_session_without_a_file_loses_a_description_or_name_that_is_a_part_of_the_message(
    tooled: World, change: str, left: tuple[str, str]
) -> None:
    (await saved_talk(tooled)).unlink()
    await sql(tooled, change)
    await purged(tooled, "/purge message 1")
    assert await sql(tooled, "SELECT session_id, description FROM sessions") == [left]


@pytest.mark.parametrize("line", ["/purge message 1", "/purge search hunter2 --persona chorus"])
async def test_a_session_of_a_deleted_persona_is_one_of_the_persona(tooled: World, line: str) -> None:
    path = await saved_talk(tooled)
    deleted = tooled.folder / "backups" / "deleted" / "chorus-20260212-143000-000001"
    shutil.copytree(path.parents[1], deleted)
    await purged(tooled, line)
    assert holding(tooled.folder, "hunter2") == []
    assert [each.name for each in (deleted / "sessions").iterdir()] == ["2026-02-12_purged.json"]


@pytest.mark.parametrize("renamed", ["", "my password for the savings account"])
async def test_a_title_goes_with_the_forks_of_its_thread(tooled: World, renamed: str) -> None:
    await tooled.say(PASSWORD)
    await tooled.say("What is the weather like?")
    if renamed:
        await tooled.told(f"/thread rename {renamed}")
    for _ in range(2):
        await tooled.told("/thread fork")
    tooled.model.say("They speak of the weather.")
    await tooled.told("/context save the weather")
    await purged(tooled, "/purge message 1")
    assert holding(tooled.folder, "password") == []


def document(world: World, name: str, text: str) -> Path:
    """Write a document of a persona."""
    path = world.personas.folder / name / "docs" / "notes.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


async def test_a_document_that_has_the_words_of_a_search_stays_and_is_named(world: World) -> None:
    text = f"# Notes\n\nRemember: {HELD}"
    path = document(world, "frodo", text)
    told = f"Documents of personas have the words too: {path}. No purge changes them; edit them yourself."
    question = await world.asked_back("/purge search gate")
    assert question.text.splitlines()[-2] == told
    await question.confirmed()
    assert path.read_text() == text
    assert (await world.told("/purge search gate")).splitlines() == [
        "Nothing matches, so nothing was purged.",
        told,
    ]
    assert "Documents" not in await world.told("/purge search gate --persona chorus")


async def test_a_prompt_that_has_the_words_of_a_search_is_named(world: World) -> None:
    path = world.personas.folder / "frodo" / "prompt.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"Remember: {HELD}")
    assert f"Documents of personas have the words too: {path}." in (await world.asked_back("/purge search gate")).text


async def test_files_that_are_no_documents_are_not_looked_into(world: World) -> None:
    path = document(world, "frodo", "nothing of it")
    path.with_name("notes.txt").write_text(f"Remember: {HELD}")
    path.with_name("loop.md").symlink_to("loop.md")
    assert "Documents" not in (await world.asked_back("/purge search gate")).text


@pytest.mark.parametrize(("persona", "text"), [("frodo", HELD), ("chorus", f"> {SHORT}")])
async def test_a_document_that_has_the_words_of_a_purged_message_is_named_to_users_and_programs(
    world: World, persona: str, text: str
) -> None:
    path = document(world, persona, text)
    assert f"Documents of personas have the words too: {path}." in (await world.asked_back("/purge message 1")).text
    asked = WantedPurge(frozenset({1}))
    found = await world.services.purging.find(asked, persona)
    told = json.loads(json.dumps(found.extent.as_json()))
    assert told["repeated_in"] == [{"place": "document", "name": str(path), "persona": persona}]


LONG = "The gate of the old mill by the river opens if you pull the iron ring twice."
THINKING = "thinking of gates"


async def thought(tooled: World, text: str, parts: str) -> None:
    """Have message 2 be the reply after a thought; text and parts may differ."""
    think(tooled, text, "I cannot tell.", parts=parts_of(parts))
    await tooled.say("How does it open?")


@pytest.mark.parametrize(("text", "parts"), [(LONG, ""), ("", LONG), (LONG, LONG)])
async def test_what_repeats_a_purged_thought_goes_with_it(tooled: World, text: str, parts: str) -> None:
    await thought(tooled, text, parts)
    await tooled.told(f"/remember I say: {LONG}")
    await purged(tooled, "/purge message 2")
    assert holding(tooled.folder, "iron ring") == []


@pytest.mark.parametrize(("text", "parts"), [(LONG, ""), ("", LONG), (LONG, LONG)])
async def test_a_thought_that_repeats_a_purged_message_stays_and_is_named_once(
    tooled: World, text: str, parts: str
) -> None:
    await thought(tooled, text, parts)
    await tooled.say(LONG)
    told = await tooled.told("/purge message 3 --dry-run")
    assert told.count("#2 has the same words and would not be purged") == 1


async def test_names_and_signatures_among_the_parts_are_no_texts_that_others_repeat(tooled: World) -> None:
    await thought(tooled, "", THINKING)
    await tooled.told("/remember thinking")
    await tooled.told("/remember c2ln")
    await purged(tooled, "/purge message 2")
    assert "thinking" in await tooled.told("/memory show 1")
    assert "c2ln" in await tooled.told("/memory show 2")


async def test_a_search_finds_a_word_that_is_an_id_or_stands_in_parts_that_are_no_json(tooled: World) -> None:
    await thought(tooled, "", "xyzzy")
    await tooled.store.write(
        lambda connection: connection.execute("UPDATE messages SET thought_parts = '{plugh' WHERE id = 1")
    )
    await purged(tooled, "/purge search xyzzy")
    await purged(tooled, "/purge search plugh")
    assert await tooled.log() == []


async def test_a_backup_still_has_a_purged_reply_if_it_has_its_thought_alone(tooled: World) -> None:
    think(tooled, "", "", call("echo", {"text": "gold"}), parts=parts_of(LONG))
    await tooled.say("How does it open?")
    await tooled.told("/backup")
    (backup,) = (tooled.folder / "backups").glob("*.zip")
    question = await tooled.asked_back("/purge message 2")
    assert f"{backup.name} has the texts too." in question.text
    await question.confirmed()
    assert holding(tooled.folder, "iron ring") == [f"backups/{backup.name}"]
    assert await tooled.told("/purge backups --dry-run") != "No backup holds anything that was purged."
    await purged(tooled, "/purge backups")
    assert holding(tooled.folder, "iron ring") == []


OLDER = next(number for number, (name, _) in enumerate(STEPS) if name.endswith("thoughts"))


@pytest.mark.parametrize(
    ("steps", "statement"),
    [
        (STEPS, "UPDATE messages SET content = 'words'"),
        (STEPS, "UPDATE messages SET reasoning = 'words'"),
        (STEPS, "UPDATE messages SET thought_parts = '[]'"),
        (STEPS[:OLDER], "UPDATE messages SET content = 'words'"),
        (STEPS[:OLDER], "UPDATE messages SET reasoning = 'words'"),
    ],
)
def test_a_row_with_any_text_is_held_also_by_a_log_of_an_older_chorus(steps: tuple[Step, ...], statement: str) -> None:
    purged_rows = examination.Purged(PurgedIds(messages=frozenset({1})))
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection, steps)
        connection.execute(
            "INSERT INTO messages(persona, thread_id, role, content, timestamp) "
            "VALUES ('frodo', 1, 'assistant', '', '2026-02-12T14:30:00Z')"
        )
        assert not examination.holds(connection, purged_rows)
        connection.execute(statement)
        assert examination.holds(connection, purged_rows)


async def test_a_replacement_keeps_no_word_of_its_purged_successor(tooled: World) -> None:
    found = "The ferryman of the old mill by the river keeps the turnstile key in the lowest drawer of his desk."
    await tooled.told("/remember the key is lost")
    calls(tooled, call("remember", {"type": "task", "content": found, "replaces": 1}))
    await events_of(tooled, "Where is it now?")
    await purged(tooled, "/purge message 1")
    assert holding(tooled.folder, "ferryman") == []
    shown = await tooled.told("/memory show 1")
    assert "replaced by #2" in shown
    assert "the key is lost" in shown
    assert await tooled.told("/context undo 2") == "Memory item #2 is no longer there, so nothing was changed."
    assert await tooled.told("/memory list") == "Nothing is remembered yet. /remember TEXT adds something."
