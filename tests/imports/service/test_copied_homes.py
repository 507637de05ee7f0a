"""Homes that were copied and went on apart: neither loses a message to the other, and nothing comes in twice."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from chorus_cli.imports.service.exports import Exports
from chorus_cli.imports.service.imports import ImportReport, Wanted
from tests.fakes import FakeClock, ScriptedModel
from tests.storage.database import QuickStore
from tests.world import World, built

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

SHARED = ["Before the copy", "Reply to Before the copy"]
LAPTOP = ["On the laptop", "Reply to On the laptop"]
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


@pytest.fixture
async def empty(tmp_path: Path, clock: FakeClock) -> AsyncIterator[World]:
    folder = tmp_path / "empty"
    folder.mkdir()
    world = await home(folder, clock)
    yield world
    await world.store.close()


def database(world: World) -> Path:
    return next(world.folder.glob("*.db"))


async def test_both_have_the_messages_of_both_once(world: World, laptop: World) -> None:
    await say(laptop, "On the laptop")
    await say(world, "On the desktop")
    assert await new_of(world, database(laptop)) == 2
    assert (await takes_in(world, database(laptop))).added_messages == 2
    assert await contents(world) == [*SHARED, *DESKTOP, *LAPTOP]
    assert await new_of(world, database(laptop)) == 0
    assert (await takes_in(world, database(laptop))).added_messages == 0
    assert (await takes_in(laptop, database(world))).added_messages == 2
    assert await contents(laptop) == [*SHARED, *LAPTOP, *DESKTOP]
    assert (await takes_in(world, database(laptop))).added_messages == 0


async def test_a_thread_begun_on_one_is_no_part_of_a_thread_of_the_other(world: World, laptop: World) -> None:
    await laptop.carry_out("/thread new")
    await say(laptop, "On the laptop")
    await say(world, "On the desktop")
    report = await takes_in(world, database(laptop))
    assert (report.added_conversations, report.added_messages) == (1, 2)
    assert (await takes_in(world, database(laptop))).added_messages == 0


async def test_messages_that_only_the_copy_has_do_not_hide_those_said_here_later(world: World, laptop: World) -> None:
    await say(laptop, "On the laptop")
    await takes_in(world, database(laptop))
    await say(world, "On the desktop")
    assert (await takes_in(world, database(laptop))).added_messages == 0
    assert (await takes_in(laptop, database(world))).added_messages == 2


@pytest.mark.parametrize("ending", ["md", "jsonl"])
async def test_a_third_home_gets_both_and_returns_both(
    world: World, laptop: World, empty: World, tmp_path: Path, ending: str
) -> None:
    await say(laptop, "On the laptop")
    await say(world, "On the desktop")
    await takes_in(empty, database(laptop))
    assert (await takes_in(empty, database(world))).added_messages == 2
    assert sorted(await contents(empty)) == sorted([*SHARED, *LAPTOP, *DESKTOP])
    await Exports(empty.store, empty.clock, tmp_path).export_all(tmp_path / "out", ending, None, lambda _line: None)
    assert (await takes_in(world, tmp_path / "out")).added_messages == 2
    assert (await takes_in(laptop, tmp_path / "out")).added_messages == 2
    assert (await takes_in(empty, database(world))).added_messages == 0
