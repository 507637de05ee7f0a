"""Homes that were copied: nothing comes in twice, and conversations that went on apart are left out and counted."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from chorus_cli.imports.service import ImportReport, Wanted
from tests.fakes import FakeClock, ScriptedModel
from tests.storage.database import QuickStore
from tests.world import World, built

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

SHARED = ["Before the copy", "Reply to Before the copy"]
LAPTOP = ["On the laptop", "Reply to On the laptop"]
WENT_ON_APART = "conversation that the log cannot hold, or holds otherwise"
DESKTOP = ["On the desktop", "Reply to On the desktop"]


async def say(world: World, text: str) -> None:
    world.model.say(f"Reply to {text}")
    await world.say(text)


async def takes_in(world: World, path: Path) -> ImportReport:
    report = ImportReport(is_dry=False)
    await world.services.imports.take_in(Wanted([path], "chorus"), report, lambda _line: None)
    return report


async def new_of(world: World, path: Path) -> int:
    """Return the number of messages that a dry run announces."""
    report = await world.services.imports.preview(Wanted([path], "chorus"))
    return report.messages - report.known


async def contents(world: World) -> list[str]:
    return [each.content for each in await world.log()]


async def home(folder: Path, clock: FakeClock) -> World:
    store = QuickStore(folder / "chorus.db")
    await store.open()
    return await built(folder, store, clock, ScriptedModel(), 100_000)


@pytest.fixture
async def laptop(world: World, tmp_path: Path, clock: FakeClock) -> AsyncIterator[World]:
    """A copy of the home of ``world``, made after a first turn."""
    await say(world, "Before the copy")
    folder = tmp_path / "laptop"
    folder.mkdir()
    with (
        closing(sqlite3.connect(next(world.folder.glob("*.db")))) as source,
        closing(sqlite3.connect(folder / "chorus.db")) as copy,
    ):
        source.backup(copy)
    copied = await home(folder, clock)
    yield copied
    await copied.store.close()


def database(world: World) -> Path:
    return next(world.folder.glob("*.db"))


async def test_what_the_copy_alone_went_on_with_comes_in_once(world: World, laptop: World) -> None:
    assert await new_of(world, database(laptop)) == 0
    await say(laptop, "On the laptop")
    assert await new_of(world, database(laptop)) == 2
    assert (await takes_in(world, database(laptop))).added.messages == 2
    assert await contents(world) == [*SHARED, *LAPTOP]
    assert (await takes_in(world, database(laptop))).added.messages == 0
    assert (await takes_in(laptop, database(world))).added.messages == 0


@pytest.mark.parametrize("command", ["", "/thread new"])
async def test_what_both_went_on_with_is_left_out_and_counted(world: World, laptop: World, command: str) -> None:
    if command:
        await laptop.carry_out(command)
    await say(laptop, "On the laptop")
    world.clock.advance(timedelta(minutes=1))
    await say(world, "On the desktop")
    report = await takes_in(world, database(laptop))
    assert (report.added.messages, report.skipped[WENT_ON_APART]) == (0, 1)
    assert await contents(world) == [*SHARED, *DESKTOP]
