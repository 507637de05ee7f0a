"""Personas: found, created, archived, brought back and deleted."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from chorus_cli.core.errors import DatabaseBusyError, PersonaError, UnknownPersonaError
from chorus_cli.models.rules.events import ReplyEnd, TextDelta
from chorus_cli.personas.rules.persona import DEFAULT_PERSONA
from tests.fakes import FakeClock, ScriptedModel
from tests.imports.service.foreign_talk import ROME, WHERE, taken_in
from tests.storage.database import opened
from tests.world import World, built


@pytest.fixture
def people(world: World) -> World:
    """Frodo, called hobbit, and Fredegar, called Fatty, besides the default persona."""
    for slug, text in {
        "frodo": '{"name": "Frodo", "aliases": ["hobbit", "Mr. Underhill"]}',
        "fredegar": '{"name": "Fredegar", "aliases": ["Fatty"]}',
    }.items():
        (world.personas.folder / slug).mkdir()
        world.configure(text, slug)
    return world


async def delete(people: World, slug: str) -> Path:
    await people.persona_admin.archive(slug)
    return await people.persona_admin.delete(slug)


FOUND: Mapping[str, str] = {
    **dict.fromkeys(("frodo", "FRODO", "fro", "hobbit", "hob", " mr.  underhill "), "frodo"),
    "fat": "fredegar",
    "Chorus": "chorus",
    "c": "chorus",
}


@pytest.mark.parametrize(("name", "slug"), FOUND.items())
async def test_a_persona_is_found_by_name_alias_or_beginning(people: World, name: str, slug: str) -> None:
    assert people.personas.find(name) == slug


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("fr", "'fr' is ambiguous: fredegar or frodo."),
        ("sam", "There is no persona called 'sam'. Known personas: chorus, fredegar, frodo."),
        ("", "There is no persona called ''"),
        ("../chorus", "There is no persona called"),
    ],
)
async def test_who_is_not_found_is_a_sentence(people: World, name: str, sentence: str) -> None:
    with pytest.raises(PersonaError, match=sentence):
        people.personas.find(name)


async def test_the_folder_comes_before_the_alias_of_another(people: World) -> None:
    people.configure('{"aliases": ["frodo"]}', "fredegar")
    assert people.personas.find("frodo") == "frodo"


async def test_a_new_persona_has_settings_to_fill_in_and_a_folder_for_documents(world: World) -> None:
    assert await world.persona_admin.create("Bób the Builder") == ("bob-the-builder", False)
    persona = world.personas.load("bob-the-builder")
    assert (persona.name, persona.warnings) == ("Bób the Builder", ())
    assert persona.settings.system_prompt == "You are Bób the Builder."
    assert persona.sources["system_prompt"] == str(world.personas.folder / "bob-the-builder" / "prompt.md")
    assert (world.personas.folder / "bob-the-builder" / "docs").is_dir()


@pytest.mark.parametrize("name", ["Chorus", "hobbit", "FATTY"])
async def test_the_name_of_another_is_refused(people: World, name: str) -> None:
    with pytest.raises(PersonaError, match="already has it"):
        await people.persona_admin.create(name)


async def test_an_archived_persona_is_hidden_its_name_kept_and_whoever_talks_to_it_is_not_cut_off(
    people: World,
) -> None:
    await people.current.turn_to("frodo")
    await people.persona_admin.archive("frodo")
    assert people.personas.slugs() == ("chorus", "fredegar")
    with pytest.raises(PersonaError, match=r"hobbit is archived\. /persona unarchive frodo brings it back"):
        people.personas.find("hobbit")
    with pytest.raises(PersonaError, match="Frodo is archived"):
        await people.persona_admin.create("Frodo")
    assert (await people.say("Still there?")).error is None


async def test_the_whole_name_of_a_persona_that_is_put_away_means_no_other_that_begins_with_it(world: World) -> None:
    for name in ("Ada May", "Ada May Two"):
        await world.persona_admin.create(name)
    await world.told("/persona Ada May")
    await world.say("A secret")
    await world.told("/persona chorus")
    await world.persona_admin.archive("ada-may")
    with pytest.raises(PersonaError, match=r"Ada May is archived\. /persona unarchive ada-may brings it back\."):
        world.personas.find("Ada May")
    assert world.personas.find_any("Ada May") == "ada-may"
    assert await world.persona_admin.logged("Ada May", "chorus") == "ada-may"
    await world.persona_admin.delete("ada-may")
    for name in ("ada-may", "Ada May"):
        assert await world.persona_admin.logged(name, "chorus") == "ada-may"
    assert world.personas.find("Ada May") == "ada-may-two"


async def test_the_beginning_of_an_archived_name_says_how_to_bring_it_back_before_anybody_is_made(world: World) -> None:
    await world.persona_admin.create("Ada Lovelace")
    await world.persona_admin.archive("ada-lovelace")
    way_back = "Archived: ada-lovelace; /persona unarchive ada-lovelace brings ada-lovelace back."
    for name in ("ada", "Ada L", "ada-"):
        question = await world.asked_back(f"/persona {name}")
        assert question.text == f"There is no persona called '{name}'. {way_back} Create it?"
    assert "Archived" not in await world.told("/persona Eve")


async def test_an_archived_persona_comes_back_whole(people: World) -> None:
    before = people.settings_text("frodo")
    await people.persona_admin.archive("frodo")
    await people.persona_admin.unarchive(people.personas.find_archived("hob"))
    assert people.personas.find("hobbit") == "frodo"
    assert people.settings_text("frodo") == before


@pytest.mark.parametrize("act", ["archive", "delete"])
async def test_the_default_persona_stays(people: World, act: str) -> None:
    with pytest.raises(PersonaError, match="so it cannot be archived or deleted"):
        await getattr(people.persona_admin, act)(DEFAULT_PERSONA)


async def test_only_an_archived_persona_is_deleted(people: World) -> None:
    assert await people.told("/persona delete frodo") == "No archived persona is called 'frodo'. None is archived."
    assert people.personas.find("frodo") == "frodo"


async def test_a_deleted_persona_moves_to_the_backups_and_its_log_stays(people: World) -> None:
    await people.current.turn_to("frodo")
    await people.say("The road goes ever on")
    place = await delete(people, "frodo")
    assert place.parent == people.folder / "backups" / "deleted"
    assert (place / "system.jsonc").read_text().startswith('{"name": "Frodo"')
    with pytest.raises(UnknownPersonaError):
        people.personas.find("frodo")
    kept = await people.store.read(lambda connection: connection.execute("SELECT content FROM messages").fetchall())
    assert ("The road goes ever on",) in kept


async def test_a_new_persona_of_an_old_folder_begins_behind_a_boundary_that_nobody_can_undo(people: World) -> None:
    await people.current.turn_to("frodo")
    await people.say("Old secrets")
    await people.told("/context 100h")
    await delete(people, "frodo")
    await people.told("/persona new Frodo")
    assert await people.told("/context undo") == "There is nothing to undo here."
    assert await people.told("/context undo 2") == "There is no operation 2 here. /context ops lists them."
    assert await people.told("/context ops") == "There are no operations on this context yet."
    assert await people.seen() == []
    assert (await people.persona_admin.member("frodo")).messages == 0
    await people.say("New day")
    assert await people.seen() == ["New day", "ok"]


async def test_a_persona_that_cannot_be_recorded_is_not_made(
    tmp_path: Path, clock: FakeClock, model: ScriptedModel
) -> None:
    async with opened(tmp_path / "busy.db", busy_timeout_seconds=0.05) as store:
        people = await built(tmp_path, store, clock, model, limit_tokens=10_000)
        await people.told("/persona new Ada")
        await people.say("Old secrets")
        await delete(people, "ada")
        with closing(sqlite3.connect(tmp_path / "busy.db", isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM messages").fetchone()
            with pytest.raises(DatabaseBusyError):
                await people.persona_admin.create("Ada")
        assert people.personas.slugs() == ("chorus",)
        assert [path.name for path in people.personas.folder.iterdir()] == ["chorus"]
        await people.persona_admin.create("Ada")
        await people.current.turn_to("ada")
        assert await people.seen() == []


async def test_nothing_that_was_set_for_this_run_of_a_deleted_persona_holds_for_a_new_one(people: World) -> None:
    await people.told("/persona new Ada")
    await people.told("/set temperature 0.9 --once")
    await people.told("/model openai/other --once")
    await people.told("/persona archive")
    await (await people.asked_back("/persona delete ada")).confirmed()
    await people.told("/persona new Ada")
    here = people.current.target()
    assert (here.persona.settings.temperature, here.choice.model) == (None, "openai/test")


def test_if_all_personas_are_archived_nobody_is_told_to_delete_them(people: World) -> None:
    for slug in people.personas.slugs():
        (people.personas.folder / slug / ".archived").touch()
    with pytest.raises(PersonaError, match="Move that folder away"):
        people.personas.first()


async def test_a_new_folder_takes_nobodys_alias(people: World) -> None:
    people.configure('{"name": "Fredegar", "aliases": ["ada"]}', "fredegar")
    assert await people.persona_admin.create("Äda") == ("ada-2", False)
    assert people.personas.find("ada") == "fredegar"


async def test_a_persona_without_a_past_begins_without_an_operation(world: World) -> None:
    await world.persona_admin.create("Ada")
    await world.current.turn_to("ada")
    assert await world.journal.entries(world.current.target()) == []


async def test_the_members_are_counted_and_the_archived_come_last(people: World) -> None:
    await people.say("One")
    await people.persona_admin.archive("fredegar")
    members = await people.persona_admin.members()
    assert [(member.persona.slug, member.messages, member.archived) for member in members] == [
        *(("chorus", 2, False), ("frodo", 0, False), ("fredegar", 0, True))
    ]
    assert members[0].last_spoken == people.clock.now()
    assert str(members[0].as_json(active=True)["last_spoken"]).endswith("Z")


async def test_messages_of_an_undone_import_do_not_count(people: World) -> None:
    await taken_in(people, ROME, WHERE)
    await people.told("/context undo")
    assert [(each.messages, each.last_spoken) for each in await people.persona_admin.members()] == [(0, None)] * 3


async def test_a_talk_goes_on_in_the_thread_last_used(people: World) -> None:
    first = people.current.target().thread_id
    await people.say("Here")
    newer = "INSERT INTO threads(persona, created_at) VALUES ('chorus', '2026-01-01T00:00:00Z')"
    await people.store.write(lambda connection: connection.execute(newer))
    await people.current.turn_to("frodo")
    await people.current.turn_to("chorus")
    assert people.current.target().thread_id == first
    assert await people.seen() == ["Here", "ok"]


async def test_each_persona_has_its_own_window_and_its_own_model(people: World) -> None:
    await people.told("/context 24h")
    await people.current.turn_to("frodo")
    people.current.use_model("frodo", "openai/other")
    here = people.current.target()
    assert (here.persona.settings.context_hours, here.choice.model) == (8, "openai/other")
    await people.current.turn_to("chorus")
    here = people.current.target()
    assert (here.persona.settings.context_hours, here.choice.model) == (24, "openai/test")


async def test_who_left_by_a_window_is_told_what_brings_it_back(world: World) -> None:
    for hours in (0, 3):
        world.clock.advance(timedelta(hours=hours))
        await world.say("Something")
    assert await world.current.notices() == ()
    world.clock.advance(timedelta(hours=6))
    assert await world.current.notices() == (
        "Last talked 6 h ago; the 8h window holds 2 of 4 messages. /context 10h brings all back.",
    )
    world.clock.advance(timedelta(hours=8))
    assert await world.current.notices() == (
        "Last talked 14 h ago; the 8h window holds 0 of 4 messages. /context 24h brings all back.",
    )
    await world.told("/context 24h")
    assert await world.current.notices() == ()
    world.clock.advance(timedelta(days=8))
    (notice,) = await world.current.notices()
    assert notice.startswith("Last talked 8 d ago; the 24h window is empty. /context all brings everything back,")
    assert notice.endswith(" /context edit lets you choose; chorus log prints it all.")
    world.editor.enqueue(lambda path: path.write_text(path.read_text().replace("--- context starts here ---\n", "")))
    await world.told("/context edit")
    assert await world.seen() == ["Something", "ok"] * 2


async def test_pinned_messages_count_as_talk(world: World) -> None:
    for hours in (0, 48):
        world.clock.advance(timedelta(hours=hours))
        await world.say("Something")
    for number in (3, 4):
        await world.told(f"/pin {number}")
    world.clock.advance(timedelta(hours=24))
    (notice,) = await world.current.notices()
    assert notice.startswith("Last talked 1 d ago; the 8h window holds 2 of 4 messages.")


async def test_a_new_conversation_leaves_nothing_to_tell(world: World) -> None:
    await world.say("Something")
    await world.journal.clear(world.current.target())
    world.clock.advance(timedelta(hours=14))
    assert await world.current.notices() == ()


def hold_replies(world: World, number: int) -> None:
    for _ in range(number):
        world.model.enqueue(TextDelta("half"), asyncio.Event(), ReplyEnd("stop"))


async def job_runs(world: World) -> None:
    world.shell.enqueue(asyncio.Event())
    await world.told("/run sleep 100")


async def test_a_persona_with_a_reply_and_a_job_is_archived_after_both_are_stopped(world: World) -> None:
    await world.told("/persona new Ada")
    hold_replies(world, 1)
    await world.told("/bg question")
    await job_runs(world)
    there = "Ada is still busy. Stop that first: /thread kill 2 and /jobs kill 1."
    assert await world.told("/persona archive") == there
    await world.told("/persona chorus")
    refused = there.replace("first: ", "first: /persona ada, then ")
    assert await world.told("/persona archive ada") == refused

    await world.told("/persona ada")
    await world.told("/thread kill 2")
    assert await world.told("/persona archive") == "Ada is still busy. Stop that first: /jobs kill 1."
    await world.told("/jobs kill 1")
    assert (await world.told("/persona archive")).startswith("Archived Ada.")


async def test_messages_that_wait_keep_a_persona(world: World) -> None:
    await world.told("/persona new Ada")
    hold_replies(world, 2)
    await world.told("/bg question")
    here = world.current.target()
    await world.services.replies.send(here, "first")
    await world.services.replies.send(here, "second")
    await world.services.replies.send(here, "third")
    stops = "/thread kill 1 and /thread kill 2"
    assert await world.told("/persona archive") == f"Ada is still busy. Stop that first: {stops}."
    await world.services.replies.close()


async def test_the_work_of_other_personas_does_not_matter(world: World) -> None:
    await world.told("/persona new Ada")
    await world.told("/persona chorus")
    await job_runs(world)
    assert "cannot be archived" in await world.told("/persona archive chorus")
    assert (await world.told("/persona archive ada")).startswith("Archived Ada.")
    await world.services.jobs.close()
