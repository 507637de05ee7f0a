"""A purge that was decided is carried on to its end, wherever it stopped."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from chorus_cli.core.errors import PurgeError
from chorus_cli.core.upkeep.purging import asked_purge
from chorus_cli.services.upkeep.purging import LOCK
from chorus_cli.storage.files import file_lock
from chorus_cli.storage.purges import carrying_out
from chorus_cli.storage.sqlite.log import operation_rows
from tests.services.attached_talk import say
from tests.services.upkeep.canary_talk import CANARY, holding

if TYPE_CHECKING:
    from chorus_cli.services.upkeep.purging import Found, Purging
    from tests.services.world import World

SAID = [f"The word for the gate is {CANARY}.", "Is the weather fine?"]


async def found(world: World) -> Found:
    """Say something, and return the purge of the first message."""
    for text in SAID:
        await world.say(text)
    await world.told("/context save")
    return await purging(world).find(asked_purge("search", CANARY, world.clock.now()), "chorus")


def purging(world: World) -> Purging:
    return world.services.upkeep.purging


async def operations(world: World) -> list[str]:
    return [each.act.kind for each in await world.store.read(operation_rows.all_of, "chorus", 1)]


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
async def test_each_step_is_done_once_whichever_was_the_last(world: World, steps: int) -> None:
    wanted = (await found(world)).wanted
    for number in range(steps):
        match number:
            case 0:
                await world.store.write(carrying_out.decide, wanted)
            case 1:
                await world.store.write(carrying_out.overwrite, purging(world).home, world.clock.now())
            case _:
                await world.store.compact()
    assert await purging(world).finish() is (steps > 0)
    assert await purging(world).finish() is False
    assert holding(world.folder) == ([] if steps else holding(world.folder))
    assert await operations(world) == (["purge"] if steps else [])
    assert [row.content for row in await world.log()][-2:] == [SAID[1], "ok"]


async def test_a_file_that_cannot_be_deleted_leaves_the_log_as_it_was_until_it_is_carried_on(world: World) -> None:
    note = world.folder / "note.txt"
    note.write_text("a note", encoding="utf-8")
    await say(world, f"Here is {CANARY}: @{note}")
    purge = await found(world)
    stored = next((world.folder / "attachments").glob("*/*"))
    stored.unlink()
    stored.mkdir()
    before = await world.log()
    with pytest.raises(
        PurgeError, match=r"not complete\. .* cannot be deleted: .* The next start of Chorus carries it on"
    ):
        await purging(world).carry_out(purge)
    assert await world.log() == before
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
