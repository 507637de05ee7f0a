"""Rows in progress whose process was killed: the doctor tells of them, and of no living ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chorus_cli.storage import file_lock
from chorus_cli.storage.migrations import STEPS
from chorus_cli.storage.schema import INTENTS
from chorus_cli.storage.store import Connection
from chorus_cli.stores.service.log_checks import check_log

if TYPE_CHECKING:
    from chorus_cli.stores.rules.findings import Finding
    from tests.world import World

LIVING_RUN, ODD_RUN = "18-0123abcd", "19-0123abcd"


def interrupted(world: World) -> list[Finding]:
    places = world.services.backups.places
    return [each for each in check_log(places, world.folder / "run") if each.subject == "interrupted"]


async def in_progress(world: World, run: str | None) -> None:
    await world.say("hello")
    statement = "UPDATE messages SET status = 'streaming', run = ? WHERE id = 2"
    await world.store.write(lambda c: c.execute(statement, (run,)))


@pytest.mark.parametrize("run", ["17-0123abcd", None, LIVING_RUN])
async def test_rows_in_progress_are_told_unless_their_process_lives(world: World, run: str | None) -> None:
    await in_progress(world, run)
    with file_lock.hold(world.folder / "run" / LIVING_RUN):
        told = interrupted(world)
    assert [each.repair for each in told] == ([] if run == LIVING_RUN else ["interrupted"])
    assert all(each.sentence.startswith("1 reply or call (#2) was cut off when its process ended.") for each in told)


async def test_a_row_of_a_run_whose_lock_file_cannot_be_opened_is_left_to_it(world: World) -> None:
    await in_progress(world, ODD_RUN)
    (world.folder / "run" / ODD_RUN).symlink_to(ODD_RUN)
    assert interrupted(world) == []


async def test_nothing_is_offered_in_a_log_of_an_older_chorus(world: World) -> None:
    await in_progress(world, None)
    await world.store.write(
        lambda c: c.execute("DELETE FROM schema_migrations WHERE rowid = (SELECT MAX(rowid) FROM schema_migrations)")
    )
    await world.store.write(lambda c: c.execute(f"PRAGMA user_version = {len(STEPS) - 1}"))
    for statement in INTENTS:
        await world.store.write(Connection.execute, statement)
    assert [(each.state, each.repair) for each in interrupted(world)] == [("note", None)]


async def test_one_row_that_refers_to_a_row_that_is_gone_is_told_as_one(world: World) -> None:
    await world.say("hello")
    await world.store.write(lambda c: c.execute("UPDATE messages SET turn_id = 99 WHERE id = 2"))
    found = {each.subject: each for each in check_log(world.services.backups.places, world.folder / "run")}
    assert "The log has 1 message of a turn that is gone." in found["rows"].sentence
