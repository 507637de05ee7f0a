"""Rows in progress and changes of files whose process was killed: the doctor tells of them, and of no living ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chorus_cli.services.upkeep.log_checks import check_log
from chorus_cli.storage.files import file_lock

if TYPE_CHECKING:
    from chorus_cli.core.upkeep.findings import Finding
    from tests.services.world import World

LIVING_RUN = "18-0123abcd"
INTENT = (
    "INSERT INTO intents(persona, kind, detail, before, after, created_at) "
    "VALUES ('frodo', 'persona', '{}', '', '', '')"
)


def interrupted(world: World) -> list[Finding]:
    places = world.services.upkeep.backups.places
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
    assert [each.mend for each in told] == ([] if run == LIVING_RUN else ["interrupted"])
    assert all(each.sentence.startswith("1 reply or call (#2) was cut off with the process.") for each in told)


async def test_a_change_of_a_file_is_told_unless_a_chorus_runs_that_may_end_it(world: World) -> None:
    await world.store.write(lambda c: c.execute(INTENT))
    (found,) = interrupted(world)
    assert found.sentence == "1 change of a file was cut off with the process. The next start of Chorus settles that."
    with file_lock.hold(world.folder / "run" / LIVING_RUN):
        assert interrupted(world) == []


async def test_nothing_is_offered_in_a_log_of_an_older_chorus(world: World) -> None:
    await in_progress(world, None)
    await world.store.write(
        lambda c: c.execute("DELETE FROM schema_migrations WHERE rowid = (SELECT MAX(rowid) FROM schema_migrations)")
    )
    assert [(each.state, each.mend) for each in interrupted(world)] == [("note", None)]
