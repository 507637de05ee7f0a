"""A purge that was decided is carried on to its end, wherever it stopped."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from chorus_cli.core.errors import PurgeError, StorageError
from chorus_cli.log.rows import operation_rows
from chorus_cli.storage import file_lock
from chorus_cli.stores.backup.archive import LOCK
from chorus_cli.stores.purge import carrying_out
from chorus_cli.stores.rules.purging import WantedPurge
from chorus_cli.stores.service.checks import check_log
from chorus_cli.stores.service.purging import Found, Purging
from tests.attachments.attached_talk import say
from tests.fakes import FakeClock, ScriptedModel
from tests.storage.database import opened
from tests.stores.service.canary_talk import CANARY, holding
from tests.world import World, built

SAID = [f"The word for the gate is {CANARY}.", "Is the weather fine?"]


async def found(world: World) -> Found:
    """Say something, and return the purge of the first message."""
    for text in SAID:
        await world.say(text)
    await world.told("/context save")
    return await purging(world).find(WantedPurge(words=CANARY), "chorus", lambda _line: None)


def purging(world: World) -> Purging:
    return world.services.purging


async def operations(world: World) -> list[str]:
    return [each.act.kind for each in await world.store.read(operation_rows.all_of, "chorus", 1)]


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
async def test_each_step_is_done_once_whichever_was_the_last(world: World, steps: int) -> None:
    wanted = (await found(world)).wanted
    for number in range(steps):
        match number:
            case 0:
                await world.store.write(carrying_out.decide, purging(world).home, wanted, world.clock.now())
            case 1:
                await world.store.write(carrying_out.change_files, purging(world).home)
            case _:
                await world.store.compact()
    told = [each.sentence for each in check_log(purging(world).home.paths, world.folder) if each.subject == "purge"]
    assert told == (["A purge is not complete. The next start of Chorus carries it on."] if steps else [])
    assert await purging(world).finish() is (steps > 0)
    assert await purging(world).finish() is False
    assert holding(world.folder) == ([] if steps else holding(world.folder))
    assert await operations(world) == (["purge"] if steps else [])
    assert [row.content for row in await world.log()][-2:] == [SAID[1], "ok"]


async def decided(world: World, steps: int, *, with_backups: bool) -> str:
    """Make a backup, do some steps of a purge as if it was killed then, and return the name of the backup."""
    purge = await found(world)
    await world.told("/backup")
    home, now = purging(world).home, world.clock.now()
    await world.store.write(carrying_out.decide, home, purge.wanted, now, with_backups=with_backups)
    if steps > 1:
        await world.store.write(carrying_out.change_files, home)
    if steps > 2:
        await world.store.compact()
        await world.store.write(carrying_out.complete_log)
    (backup,) = (world.folder / "backups").glob("*.zip")
    return backup.name


@pytest.mark.parametrize("steps", [1, 2, 3])
async def test_a_purge_that_is_carried_on_rewrites_the_backups_if_it_was_to(world: World, steps: int) -> None:
    await decided(world, steps, with_backups=True)
    told: list[str] = []
    assert await purging(world).finish(told.append) is True
    assert told == ["Rewrote 1 backup."]
    assert holding(world.folder) == []
    assert await purging(world).finish(told.append) is False


@pytest.mark.parametrize("steps", [1, 2])
async def test_a_purge_that_is_carried_on_names_the_backups_that_still_have_it(world: World, steps: int) -> None:
    backup = await decided(world, steps, with_backups=False)
    told: list[str] = []
    assert await purging(world).finish(told.append) is True
    assert told == [f"The backup {backup} still has it. chorus purge backups --backups rewrites it."]
    assert holding(world.folder) == [f"backups/{backup}"]


async def test_a_home_that_is_moved_meanwhile_is_purged_where_it_is(
    world: World, clock: FakeClock, model: ScriptedModel
) -> None:
    await decided(world, 1, with_backups=True)
    before = holding(world.folder)
    copy = Path(shutil.copytree(world.folder, world.folder.parent / f"{world.folder.name}-moved"))
    async with opened(copy / "chorus.db") as store:
        assert await purging(await built(copy, store, clock, model, 10_000)).finish() is True
    assert holding(copy) == []
    assert holding(world.folder) == before


async def test_a_purge_with_backups_that_hold_nothing_is_complete(world: World) -> None:
    purge = await found(world)
    assert (await purging(world).carry_out(purge, with_backups=True)).backups == ()
    assert await purging(world).finish() is False
    assert holding(world.folder) == []


async def test_a_file_that_cannot_be_deleted_goes_once_the_purge_is_carried_on(world: World) -> None:
    note = world.folder / "note.txt"
    note.write_text("a note", encoding="utf-8")
    await say(world, f"Here is {CANARY}: @{note}")
    purge = await found(world)
    stored = next((world.folder / "attachments").glob("*/*"))
    stored.unlink()
    stored.mkdir()
    with pytest.raises(
        PurgeError, match=r"not complete\. .* cannot be deleted: .* The next start of Chorus carries it on"
    ):
        await purging(world).carry_out(purge)
    assert stored.exists()
    stored.rmdir()
    assert await purging(world).finish() is True
    assert holding(world.folder) == []


async def test_another_program_that_purges_is_waited_for_and_then_told(world: World) -> None:
    purge = await found(world)
    hurried = replace(purging(world), patience_seconds=0)
    (world.folder / "backups").mkdir()
    with (
        file_lock.hold(world.folder / "backups" / LOCK),
        pytest.raises(PurgeError, match=r"Another Chorus is purging or making a backup\. Try again"),
    ):
        await hurried.carry_out(purge)
    assert len(await world.log()) == 4


async def test_a_program_that_has_the_log_open_for_reading_only_delays_it(
    tmp_path: Path, clock: FakeClock, model: ScriptedModel
) -> None:
    async with opened(tmp_path / "chorus.db", busy_timeout_seconds=0.05) as store:
        world = await built(tmp_path, store, clock, model, 10_000)
        purge = await found(world)
        with closing(sqlite3.connect(tmp_path / "chorus.db", isolation_level=None)) as other:
            other.execute("BEGIN")
            other.execute("SELECT COUNT(*) FROM messages").fetchone()
            with pytest.raises(StorageError, match="did not finish in time"):
                await purging(world).carry_out(purge)
        assert len(await world.log()) == 4
        assert (await purging(world).carry_out(purge)).sentence == "1 message is purged, for good."
        assert holding(tmp_path) == []


@pytest.mark.parametrize(("steps", "with_backups"), [(0, False), (3, True)])
async def test_another_purge_carries_on_the_one_that_was_interrupted(
    world: World, steps: int, *, with_backups: bool
) -> None:
    await decided(world, steps, with_backups=with_backups)
    other = WantedPurge(words="weather fine")
    await purging(world).carry_out(await purging(world).find(other, "chorus", lambda _line: None))
    assert await world.store.read(carrying_out.is_pending) is False
    assert [name for name in holding(world.folder) if with_backups or not name.startswith("backups/")] == []


async def test_a_purge_deletes_the_copies_that_killed_processes_left(world: World) -> None:
    purge = await found(world)
    backups = world.folder / "backups"
    backups.mkdir()
    (world.folder / ".restoring-abcd_123").mkdir()
    left = (
        world.folder / ".restoring-abcd_123" / "chorus.db",
        backups / ".chorus-abcd_123.tmp",
        backups / ".chorus-abcd_124.tmp-journal",
    )
    for path in left:
        path.write_text(CANARY)
    await purging(world).carry_out(purge)
    assert holding(world.folder) == []
