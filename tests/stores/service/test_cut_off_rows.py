"""Rows in progress and changes of files whose process was killed: the doctor tells of them, and of no living ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chorus_cli.log.rows import intents
from chorus_cli.storage import file_lock
from chorus_cli.storage.migrations import STEPS
from chorus_cli.stores.backup import salvaging
from chorus_cli.stores.salvage import copying, examination
from chorus_cli.stores.service.log_checks import check_log

if TYPE_CHECKING:
    from chorus_cli.stores.rules.findings import Finding
    from tests.world import World

LIVING_RUN, ODD_RUN = "18-0123abcd", "19-0123abcd"
INTENT = (
    "INSERT INTO intents(persona, kind, detail, before, after, created_at) "
    "VALUES ('frodo', 'persona', '{}', '', '', '2026-02-12T11:00:00Z')"
)


def interrupted(world: World, subject: str = "interrupted") -> list[Finding]:
    places = world.services.upkeep.backups.places
    return [each for each in check_log(places, world.folder / "run") if each.subject == subject]


async def in_progress(world: World, run: str | None) -> None:
    await world.say("hello")
    statement = "UPDATE messages SET status = 'streaming', run = ? WHERE id = 2"
    await world.store.write(lambda c: c.execute(statement, (run,)))


@pytest.mark.parametrize("run", ["17-0123abcd", None, LIVING_RUN])
async def test_rows_in_progress_are_told_unless_their_process_lives(world: World, run: str | None) -> None:
    await in_progress(world, run)
    with file_lock.hold(world.folder / "run" / LIVING_RUN):
        told = interrupted(world)
    assert [each.mend for each in told] == ([] if run == LIVING_RUN else ["interrupted"])
    assert all(each.sentence.startswith("1 reply or call (#2) was cut off when its process ended.") for each in told)


async def test_a_row_of_a_run_whose_lock_file_cannot_be_opened_is_left_to_it(world: World) -> None:
    await in_progress(world, ODD_RUN)
    (world.folder / "run" / ODD_RUN).symlink_to(ODD_RUN)
    assert interrupted(world) == []


async def test_a_change_of_a_file_is_told_unless_a_chorus_runs_that_may_end_it(world: World) -> None:
    await world.store.write(lambda c: c.execute(INTENT))
    (found,) = interrupted(world)
    assert (
        found.sentence
        == "1 change of a file was cut off when its process ended. The next start of Chorus settles that."
    )
    with file_lock.hold(world.folder / "run" / LIVING_RUN):
        assert interrupted(world) == []


async def test_nothing_is_offered_in_a_log_of_an_older_chorus(world: World) -> None:
    await in_progress(world, None)
    await world.store.write(
        lambda c: c.execute("DELETE FROM schema_migrations WHERE rowid = (SELECT MAX(rowid) FROM schema_migrations)")
    )
    await world.store.write(lambda c: c.execute(f"PRAGMA user_version = {len(STEPS) - 1}"))
    assert [(each.state, each.mend) for each in interrupted(world)] == [("note", None)]


async def test_one_row_that_refers_to_a_row_that_is_gone_is_told_as_one(world: World) -> None:
    await world.say("hello")
    await world.store.write(lambda c: c.execute("UPDATE messages SET turn_id = 99 WHERE id = 2"))
    found = {each.subject: each for each in check_log(world.services.upkeep.backups.places, world.folder / "run")}
    assert "The log has 1 message of a turn that is gone." in found["rows"].sentence


DAMAGED = {
    "no JSON": "UPDATE intents SET detail = '{'",
    "a list": "UPDATE intents SET detail = '[]'",
    "no UTF-8": "UPDATE intents SET detail = CAST(x'7b80' AS TEXT)",
    "no time": "UPDATE intents SET created_at = 'yesterday'",
    "an unknown kind": "UPDATE intents SET kind = 'perzona'",
    "a window without its change": "UPDATE intents SET kind = 'window'",
    "a window without its thread": (
        """UPDATE intents SET kind = 'window', detail = '{"change": [1, 2], "act": {"before": 1, "after": 2}}'"""
    ),
}


@pytest.mark.parametrize("statement", DAMAGED.values(), ids=DAMAGED)
async def test_a_change_of_a_file_that_cannot_be_read_is_told_and_goes_with_a_salvage(
    world: World, statement: str
) -> None:
    await world.store.write(lambda c: c.execute(INTENT))
    assert len(await world.store.read(intents.unfinished)) == 1
    await world.store.write(lambda c: c.execute(statement))
    assert await world.store.read(intents.unfinished) == []
    assert interrupted(world) == []
    (found,) = interrupted(world, "rows")
    assert found.sentence == "The log has 1 change of a file that cannot be read. A salvage keeps all texts."
    assert found.mend == "salvage"
    places = world.services.upkeep.backups.places
    with salvaging.salvaged(places) as (folder, _counts), copying.opened(folder / "chorus.db") as connection:
        assert examination.changes_cut_off(connection) == (0, ())
