"""``/import`` as it is typed, what it leaves in the log, and its threads: out of the way until they are opened."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import NoReturn

import pytest

from chorus_cli.context.service.report import context_report
from chorus_cli.core.time import timestamps
from chorus_cli.imports.commands import FILES
from chorus_cli.imports.files import reading
from chorus_cli.imports.rows import import_rows, whole_threads
from chorus_cli.imports.rows.import_rows import Added, Incoming
from chorus_cli.imports.rules.conversation import NO_TIME, ForeignConversation, ForeignMessage
from chorus_cli.imports.service import ImportReport, Wanted
from chorus_cli.log.rows import message_rows, operation_rows
from chorus_cli.log.rows.found_messages import Scope
from chorus_cli.log.rules import journal
from chorus_cli.log.rules.messages import Message, Role
from chorus_cli.personas import rows as persona_rows
from chorus_cli.storage.port import Connection
from chorus_cli.storage.postgres.connection import PostgresConnection
from chorus_cli.threads.commands.thread import THREAD
from tests.fakes import FakeClock
from tests.imports.rules.sessions import qwen_line
from tests.imports.service.foreign_talk import (
    ITALY,
    LATIUM,
    OFTEN,
    OSLO,
    ROME,
    WHERE,
    many,
    previewed,
    reported,
    taken_in,
    took_in,
    written,
)
from tests.storage.database import needs_server, of_sqlite
from tests.world import World

DATED = {**LATIUM, "timestamp": "2025-01-01T10:00:30Z"}
_INSTANT = timedelta(microseconds=1)


async def contents(world: World) -> list[str]:
    return [message.content for message in await world.log()]


async def test_an_import_keeps_titles_times_models_and_branches(world: World) -> None:
    assert await taken_in(world, ROME, WHERE, ITALY, LATIUM) == (1, 3)
    question, italy, latium = await world.log()
    assert [question.turn_id, italy.turn_id, latium.turn_id] == [question.id] * 3
    assert [message.superseded for message in (question, italy, latium)] == [False, True, False]
    assert (latium.model, latium.timestamp > question.timestamp) == ("gpt-4", True)
    thread = (await world.threads.all())[-1]
    assert (thread.title, thread.created_at.year, thread.closed_at is not None) == ("Rome", 2025, True)


@pytest.mark.parametrize("time", [None, "soon", "1e300"])
async def test_a_conversation_without_times_is_of_the_moment_of_the_import(world: World, time: str | None) -> None:
    undated = {**ROME, "created_at": time}
    report = await reported(world, undated, {**WHERE, "timestamp": time}, LATIUM)
    assert [row.timestamp - world.clock.now() for row in await world.log()] == [_INSTANT, 2 * _INSTANT]
    assert NO_TIME in report.text()
    assert (await world.threads.all())[-1].created_at == world.clock.now()


async def test_a_message_without_a_time_is_of_the_time_of_the_others(world: World) -> None:
    report = await reported(world, {**ROME, "created_at": None}, {**WHERE, "timestamp": None}, DATED)
    assert [row.timestamp.year for row in await world.log()] == [2025, 2025]
    assert NO_TIME in report.text()


@of_sqlite("a file to import")
async def test_the_database_of_this_very_chorus_has_nothing_to_add(world: World) -> None:
    await taken_in(world, ROME, WHERE)
    world.model.say("Hi")
    await world.say("Hello")
    report = await took_in(world, *world.folder.glob("*.db"))
    assert (report.conversations, report.added.messages, report.known) == (2, 0, 3)


async def test_files_without_a_size_are_not_opened_in_a_folder(world: World) -> None:
    folder = written(world.folder, ROME, WHERE).parent / "system"
    folder.mkdir()
    (folder / "endless").touch(mode=0o000)
    report = await previewed(world, folder)
    assert not report.skipped


async def test_a_conversation_that_comes_twice_in_a_file_is_there_once(world: World) -> None:
    assert await taken_in(world, ROME, WHERE, ROME, WHERE, LATIUM) == (1, 2)
    assert await contents(world) == ["Where is Rome?", "In Latium"]


@needs_server
async def test_more_conversations_take_no_more_round_trips(world: World) -> None:
    def round_trips(connection: Connection) -> int:
        assert isinstance(connection, PostgresConnection)
        return connection.round_trips

    taken: list[int] = []
    for number in (2, 60):
        lines = [({**ROME, "key": f"{number}-{n}"}, WHERE, LATIUM) for n in range(number)]
        before = await world.store.write_in_steps(round_trips)
        assert await taken_in(world, *(line for each in lines for line in each)) == (number, 2 * number)
        taken.append(await world.store.write_in_steps(round_trips) - before)
    assert taken[0] == taken[1] < 15


async def test_a_file_may_name_the_persona_which_is_made_if_it_is_missing(world: World) -> None:
    report = await reported(world, {**ROME, "persona": "sam"}, WHERE, OSLO, OFTEN)
    assert report.personas == {"sam": 1, "chorus": 1}
    assert "sam" in world.personas.slugs()
    assert "for sam and chorus" in report.text()
    assert report.text().endswith("/context undo reverts it for one persona at a time.")


@pytest.mark.parametrize("name", ["Frodo Baggins", "frodo baggins", "Zoë"])
async def test_a_file_may_name_the_persona_by_a_name_that_is_not_its_slug(world: World, name: str) -> None:
    lines = {**ROME, "persona": name}, WHERE
    assert await taken_in(world, *lines) == (1, 1)
    assert await taken_in(world, *lines) == (0, 0)
    found = await previewed(world, written(world.folder, *lines))
    assert (found.known, found.messages) == (1, 1)


async def test_imported_messages_do_not_put_the_idle_timer_off(world: World) -> None:
    await taken_in(world, ROME, {**WHERE, "timestamp": timestamps.to_text(world.clock.now())})
    assert await world.store.read(persona_rows.last_spoken_at, "chorus") is None


async def test_the_history_of_a_small_thread_is_read_page_by_page_too(world: World) -> None:
    number = message_rows.PAGE_ROWS + 20
    said = [{**WHERE, "key": f"m{each}", "content": f"{each}"} for each in range(number)]
    await taken_in(world, ROME, *said, *(line for n in range(60) for line in ({**OSLO, "key": f"c2{n}"}, *said[:100])))
    thread = next(each for each in await world.threads.all() if each.title == "Rome")
    history = await world.threads.history(thread)
    assert [entry.content for entry in history.entries if isinstance(entry, Message)] == [
        line["content"] for line in said
    ]


async def test_the_title_in_a_file_becomes_a_line_without_controls(world: World) -> None:
    await taken_in(world, {**ROME, "title": "Ro\x1b[31m\nme"}, WHERE)
    assert [each.title for each in await world.threads.all()][-1] == "Ro [31m me"


class Hasty(FakeClock):
    """Time of which ten seconds pass whenever somebody looks."""

    def monotonic(self) -> float:
        self.advance(timedelta(seconds=10))
        return super().monotonic()


async def test_the_progress_of_an_import_and_an_export_is_told(world: World, tmp_path: Path) -> None:
    told, wanted = list[str](), Wanted([written(world.folder, ROME, WHERE, OSLO, OFTEN)], "chorus")
    imports = replace(world.services.imports, clock=Hasty())
    await imports.take_in(wanted, ImportReport(is_dry=False), told.append)
    await imports.export_all(tmp_path / "out", "md", None, told.append)
    assert told == [
        "2 conversations, 2 messages so far",
        "1 of 2 conversations are written.",
        "2 of 2 conversations are written.",
    ]


class Incomparable(ForeignMessage):
    """A message that no other may be compared with, as that would be done for each pair."""

    def __eq__(self, other: object) -> NoReturn:
        """Refuse to be compared."""
        raise AssertionError(other)

    __hash__ = ForeignMessage.__hash__


def incomparable(key: str) -> ForeignMessage:
    return Incomparable(key, None, Role.USER, f"say {key}")


async def stored(world: World, messages: Sequence[ForeignMessage], *, live: bool) -> Added:
    conversation = ForeignConversation(
        "tavern", "c", "Talk", tuple(messages), tuple(each.key for each in messages if live)
    )
    incoming = [Incoming("chorus", conversation, {})]
    return await world.store.write(import_rows.store, incoming, Added(), world.clock.now())


async def test_hidden_messages_are_found_by_their_keys_also_if_one_was_purged_elsewhere(world: World) -> None:
    await world.say("A secret")
    secret = (await world.log())[0]
    origin = await world.store.read(
        lambda connection: connection.execute("SELECT origin || '-' || origin_seq FROM messages").fetchone()[0]
    )
    await (await world.asked_back(f"/purge message {secret.id}")).confirmed()
    await stored(world, [incomparable("a")], live=True)
    hidden = [replace(incomparable(key), is_hidden=True) for key in ("a", "b", "c", origin)]
    added = await stored(world, hidden, live=False)
    assert (added.messages, added.purged) == (2, 1)
    operations = await world.store.read(operation_rows.imports_of, "chorus")
    told = {row.content for row in await world.log() if row.id in journal.hidden_by(journal.effective(operations))}
    assert told == {"say a", "say b", "say c"}


async def test_import_says_what_came_in(world: World) -> None:
    path = written(world.folder, ROME, WHERE, ITALY, LATIUM, OSLO, OFTEN)
    assert await world.told(f"/import {path}") == (
        "Found 2 conversations, 4 messages, 2025-01-01 to 2025-01-01 (demo).\n"
        "1 message of unused branches will be kept, but not sent.\n"
        "Imported 4 new messages in 2 new threads, for chorus. /search finds them, /thread TITLE opens one, "
        "/context undo reverts it."
    )
    assert (await world.told(f"/import {path}")).endswith("Nothing was added.")


@pytest.mark.parametrize("line", ["{} --dry-run", "--dry-run {}"])
async def test_a_dry_run_says_what_would_come_in_and_changes_nothing(world: World, line: str) -> None:
    await taken_in(world, ROME, WHERE)
    told = await world.told(f"/import {line.format(written(world.folder, ROME, WHERE, ITALY, LATIUM))}")
    assert told.startswith("Found 1 conversation, 3 messages, ")
    assert "1 message of unused branches will be kept, but not sent" in told
    assert told.endswith("Of the messages, 1 are in the log already and 2 are new. Nothing was changed.")
    assert await contents(world) == ["Where is Rome?"]


async def test_an_import_without_a_file_is_refused(world: World) -> None:
    usage = "/import needs <file…>, for example: /import"
    assert (await world.told("/import --dry-run")).startswith(usage)
    assert await world.told("/import /nowhere/a.zip") == "/nowhere/a.zip cannot be read: No such file or directory."


@pytest.mark.parametrize("line", ["/import {}", "/import {} --dry-run", "/import {} {}"])
async def test_an_import_without_a_message_is_refused(world: World, line: str) -> None:
    path = world.folder / "s1.jsonl"
    path.write_text(f"{json.dumps(qwen_line('n1', None, 'system', subtype='ui_telemetry'))}\n")
    assert await world.told(line.format(path, path)) == (
        f"No message was found that can be imported: conversation without messages ({line.count('{}')}); "
        "docs/moving.md lists the formats."
    )


async def test_a_path_with_blanks_needs_no_quotes_and_is_completed(world: World) -> None:
    folder = world.folder / "my talks"
    folder.mkdir()
    path = written(folder, ROME, WHERE)
    assert "Imported 1 new message" in await world.told(f"/import {path}")
    offered = FILES.candidates(world.services, (), f"{folder}/")
    assert [each.text for each in offered] == [str(path)]


async def test_several_paths_may_be_quoted_each(world: World) -> None:
    (first := world.folder / "a b").mkdir()
    (second := world.folder / "c d").mkdir()
    line = f'"{written(first, ROME, WHERE)}" {written(second, OSLO, OFTEN)}'
    assert "Found 2 conversations" in await world.told(f"/import {line.replace('c d', 'c' + chr(92) + ' d')} --dry-run")


async def test_a_stopped_import_leaves_whole_conversations_and_the_next_one_goes_on(world: World) -> None:
    path, report, told = many(world.folder, 12), ImportReport(is_dry=False), list[str]()
    running = asyncio.ensure_future(world.services.imports.take_in(Wanted([path], "chorus"), report, told.append))
    for _ in range(5_000):
        if report.added.messages >= 3_000:
            break
        await asyncio.sleep(0.001)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    came = [thread.messages for thread in await world.threads.all() if thread.title]
    assert len(came) < 12
    assert set(came) == {1_000}
    assert report.added.messages == 1_000 * len(came)
    again = ImportReport(is_dry=False)
    await world.services.imports.take_in(Wanted([path], "chorus"), again, told.append)
    assert (again.added.conversations, again.known) == (12 - len(came), 1_000 * len(came))


async def test_a_file_is_read_batch_by_batch(world: World) -> None:
    batches = reading.batches([many(world.folder, 5)], None)
    assert [len(batch.read) for batch in batches] == [1, 1, 1, 1, 1, 0]


def at(world: World, line: Mapping[str, object], hours_ago: float) -> dict[str, object]:
    return {**line, "timestamp": timestamps.to_text(world.clock.now() - timedelta(hours=hours_ago))}


@pytest.fixture
async def rome(world: World) -> World:
    """A world in which a conversation of today was imported and is open."""
    await taken_in(world, ROME, at(world, WHERE, 2), at(world, ITALY, 1.9), at(world, LATIUM, 1.8))
    await world.carry_out("/thread rome")
    return world


async def titles(world: World, *, closed: bool = True) -> list[str]:
    return [each.thread.title for each in await world.threads.listed(closed=closed)]


async def found(world: World, words: str) -> list[str]:
    findings = await world.search.find(words, Scope(None, None, 10), lambda _line: None)
    return [match.message.content for match in findings.matches]


async def test_they_are_closed_and_not_the_thread_last_used(world: World) -> None:
    await taken_in(world, ROME, WHERE)
    assert await titles(world, closed=False) == [""]
    assert await world.told("/new") == "--- New conversation ---"


async def test_a_thread_is_opened_by_its_title_with_an_empty_context(world: World) -> None:
    await taken_in(world, ROME, WHERE, LATIUM)
    assert "Rome" in await world.told("/thread rome")
    assert await world.seen() == []


async def test_its_title_is_found_until_the_import_is_undone(world: World) -> None:
    await taken_in(world, {**ROME, "title": "Capitals"}, WHERE)
    assert await world.told("/search capitals") == "Thread #2 of chorus: «Capitals»  [closed]"
    await world.carry_out("/context undo")
    assert await world.told("/search capitals*") == "Nothing was found."


async def test_messages_that_the_window_reaches_are_in_context_but_for_other_branches(rome: World) -> None:
    assert await rome.seen() == ["Where is Rome?", "In Latium"]
    assert [row.content for row in (await rome.view()).taken_back] == ["In Italy"]


async def test_a_saved_session_of_it_is_restored_as_it_was_also_after_the_import_was_undone(rome: World) -> None:
    rome.model.say("It is about Rome.")
    await rome.carry_out("/context save Rome")
    for emptying in ("/new", "/context undo 1"):
        await rome.carry_out(emptying)
        assert await rome.seen() == []
        await rome.carry_out("/context restore Rome")
        assert await rome.seen() == ["Where is Rome?", "In Latium"]
        await rome.carry_out("/undo")


async def test_a_newer_export_may_go_on_from_another_branch(rome: World) -> None:
    why = {"key": "m4", "parent": "m2", "role": "user", "content": "Which region?"}
    italy, latium = {**at(rome, ITALY, 1.9), "superseded": False}, {**at(rome, LATIUM, 1.8), "superseded": True}
    await taken_in(rome, ROME, at(rome, WHERE, 2), italy, latium, at(rome, why, 1))
    assert await rome.seen() == ["Where is Rome?", "In Italy", "Which region?"]
    assert "In Latium [replaced]" in await rome.told("/thread history")
    await rome.carry_out("/context undo")
    assert await rome.seen() == ["Where is Rome?", "In Latium"]


async def test_an_older_export_moves_nothing_back(world: World) -> None:
    question, italy = at(world, WHERE, 2), at(world, ITALY, 1.9)
    await taken_in(world, ROME, question, italy, at(world, LATIUM, 1.8))
    await world.carry_out("/thread rome")
    older = await reported(world, ROME, question, {**italy, "superseded": False})
    assert older.text().endswith("Nothing was added.")
    assert await world.seen() == ["Where is Rome?", "In Latium"]


async def test_messages_of_other_branches_and_undone_imports_are_not_counted(world: World) -> None:
    question, italy, latium = at(world, WHERE, 2), at(world, ITALY, 1.9), at(world, LATIUM, 1.8)
    await taken_in(world, ROME, question, italy, latium)
    why = at(world, {"key": "m4", "parent": "m3", "role": "user", "content": "Which region?"}, 1)
    await taken_in(world, ROME, question, italy, latium, why)
    await world.carry_out("/thread rome")
    for number in (3, 2):
        assert [each.thread.messages for each in await world.threads.listed(closed=True)] == [0, number]
        report = await context_report(world.context, world.current.target(), world.clock.now())
        assert len(report.moments) == number
        assert (report.plan.snapshot.last_spoken == timestamps.from_text(str(why["timestamp"]))) == (number == 3)
        await world.carry_out("/context undo")


async def test_an_undone_import_leaves_lists_search_and_context(world: World) -> None:
    await taken_in(world, ROME, at(world, WHERE, 2), OSLO, at(world, OFTEN, 2))
    await world.carry_out("/thread rome")
    await world.carry_out("/thread 1")
    await world.carry_out("/context undo")
    assert (await titles(world), await found(world, "Rome")) == ([""], [])
    assert "no thread called 'rome'" in await world.told("/thread rome")
    await world.carry_out("/context redo")
    assert (await titles(world), await found(world, "Rome")) == (["", "Rome", "Oslo"], ["Where is Rome?"])


@pytest.mark.parametrize("bringing_in", ["/context edit", "/pin 1", "/thread fork"])
async def test_an_undone_import_is_not_sent_whatever_had_brought_its_messages_in(
    world: World, bringing_in: str
) -> None:
    await taken_in(world, ROME, at(world, WHERE, 2))
    await world.carry_out("/thread rome")
    await world.say("And now?")
    world.editor.enqueue(lambda path: path.write_text(path.read_text().replace("And now?", "And then?")))
    await world.carry_out(bringing_in)
    assert "Where is Rome?" in await world.seen()
    number = next(each.number for each in await world.store.read(operation_rows.imports_of))
    await world.carry_out(f"/context undo {number}")
    assert "Where is Rome?" not in await world.seen()
    await world.say("What did I ask?")
    assert "Where is Rome?" not in [content for _, content in world.asked()]
    assert "undone" in await world.told("/why")
    await world.carry_out(f"/context redo {number}")
    assert "Where is Rome?" in await world.seen()


async def test_a_thread_that_was_talked_in_since_stays_when_its_import_is_undone(world: World) -> None:
    await taken_in(world, ROME, WHERE)
    await world.carry_out("/thread rome")
    world.model.say("Fine")
    await world.say("And now?")
    await world.carry_out("/context undo")
    assert await titles(world) == ["", "Rome"]
    assert await world.seen() == ["And now?", "Fine"]


async def test_an_export_has_no_message_of_an_undone_import(world: World) -> None:
    await taken_in(world, ROME, WHERE)
    await taken_in(world, ROME, WHERE, LATIUM)
    await world.carry_out("/context undo")
    rome = next(each for each in await world.threads.all() if each.title == "Rome")
    thread = whole_threads.ThreadOfPersona("chorus", rome.id)
    exported = await world.store.read(whole_threads.conversation, thread)
    assert ([each.content for each in exported.messages], exported.live) == (["Where is Rome?"], ("m1",))


async def test_an_edit_offers_imported_messages_of_the_live_branch(world: World) -> None:
    await taken_in(world, ROME, WHERE, ITALY, LATIUM)
    await world.carry_out("/thread rome")
    await world.carry_out("/context edit")
    sheet = world.editor.shown[-1]
    assert ("Where is Rome?" in sheet, "In Latium" in sheet, "In Italy" in sheet) == (True, True, False)


async def test_an_earlier_import_that_is_undone_is_redone_by_the_same_file(world: World) -> None:
    await taken_in(world, ROME, WHERE)
    await world.carry_out("/context undo")
    report = await reported(world, ROME, WHERE)
    assert report.text().endswith(
        "\nThe undone import is redone in full (1 operation), including messages that are not in these files."
    )
    assert await titles(world) == ["", "Rome"]


async def test_completion_offers_titles_of_closed_threads_that_begin_so_and_not_all(world: World) -> None:
    lines = [line for n in range(80) for line in ({**ROME, "key": f"c{n}", "title": f"Trip {n}"}, WHERE)]
    await taken_in(world, *lines)
    await world.threads.all()
    candidates = THREAD.candidates(world.services, (), "trip")
    offered = [each.text for each in candidates if each.text.startswith("Trip")]
    assert (len(offered), offered[-1]) == (50, "Trip 79")
