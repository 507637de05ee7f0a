"""The backup of the day, and the look at the log that goes with it."""

from __future__ import annotations

import shutil
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

    from chorus_cli.stores.service.backups import Backups
    from tests.world import World


def backups(world: World) -> Backups:
    return world.services.backups


def change(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE messages SET content = 'I am wired' WHERE role = 'user'")


async def test_a_message_that_has_changed_is_named_once_a_day(world: World) -> None:
    await world.say("I am tired")
    assert await backups(world).make_daily() == ""
    await world.store.write(change)
    assert await backups(world).make_daily() == "", "today's look is over"
    world.clock.advance(timedelta(days=1))
    assert await backups(world).make_daily() == (
        "Of the messages in the log, #1 is not as written. chorus doctor tells more and mends it."
    )


async def test_a_backup_that_cannot_be_made_is_told_in_a_sentence(world: World) -> None:
    folder = backups(world).places.backups
    shutil.rmtree(folder, ignore_errors=True)
    folder.write_text("no folder")
    assert (await backups(world).make_daily()).startswith(
        f"Today's backup was not made. No backup can be made in {folder}: "
    )
