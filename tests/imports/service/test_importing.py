"""What an import leaves in the log, and that the same one twice leaves nothing more."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, NoReturn

import pytest

from chorus_cli.core.time import timestamps
from chorus_cli.imports.rows import import_rows
from chorus_cli.imports.rows.import_rows import Added, Incoming
from chorus_cli.imports.rules.conversation import NO_TIME, ForeignConversation, ForeignMessage
from chorus_cli.log.rows import message_rows, operation_rows
from chorus_cli.log.rules import journal
from chorus_cli.log.rules.messages import Message, Role
from chorus_cli.personas import rows as persona_rows
from tests.imports.service.foreign_talk import (
    ITALY,
    LATIUM,
    OFTEN,
    OSLO,
    ROME,
    WHERE,
    previewed,
    reported,
    taken_in,
    took_in,
    written,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

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


async def test_a_dry_run_changes_nothing(world: World) -> None:
    await taken_in(world, ROME, WHERE)
    report = await previewed(world, written(world.folder, ROME, WHERE, ITALY, LATIUM))
    assert (report.conversations, report.messages, report.known, report.off) == (1, 3, 1, 1)
    assert await contents(world) == ["Where is Rome?"]


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


async def test_a_conversation_that_the_log_cannot_hold_is_left_out_as_a_whole(world: World) -> None:
    ancient = {**LATIUM, "timestamp": "0500-01-01T00:00:00Z"}
    report = await reported(world, ROME, WHERE, ancient, OSLO, OFTEN)
    assert (report.added.conversations, report.added.messages) == (1, 1)
    assert report.skipped == {"conversation that the log cannot hold, or holds otherwise": 1}
    assert await contents(world) == ["Is Oslo cold?"]


async def test_a_file_may_name_the_persona_which_is_made_if_it_is_missing(
    world: World,
) -> None:
    report = await reported(world, {**ROME, "persona": "sam"}, WHERE, OSLO, OFTEN)
    assert report.personas == {"sam": 1, "chorus": 1}
    assert "sam" in world.personas.slugs()
    assert "for sam and chorus" in report.text()
    assert "/context undo with each of these personas takes the import back." in report.text()


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
