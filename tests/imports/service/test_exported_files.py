"""The files of an export: one for each conversation, also after it was renamed, and of any size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chorus_cli.imports.files.reading import batches
from chorus_cli.imports.service import ENDINGS, Exports
from tests.imports.service.foreign_talk import LATIUM, OFTEN, OSLO, ROME, WHERE, taken_in, written

if TYPE_CHECKING:
    from pathlib import Path

    from tests.world import World

MORE_THAN_64_MEGABYTES = "x" * ((1 << 26) + 1)


async def exported(world: World, folder: Path, ending: str) -> list[str]:
    """Export everything, and return the titles in the names of the files."""
    exports = Exports(world.store, world.clock, world.folder / "attachments")
    await exports.export_all(folder, ending, None, lambda _line: None)
    return titles(folder, ending)


def titles(folder: Path, ending: str) -> list[str]:
    return sorted(path.name.split("_")[1] for path in folder.rglob(f"*.{ending}"))


@pytest.mark.parametrize("ending", ENDINGS)
async def test_a_thread_that_was_renamed_takes_the_place_of_its_older_file(
    world: World, tmp_path: Path, ending: str
) -> None:
    await taken_in(world, ROME, WHERE, LATIUM, OSLO, OFTEN)
    assert await exported(world, tmp_path / "out", ending) == ["oslo", "rome"]
    await world.carry_out("/thread rome")
    await world.carry_out("/thread rename Roma")
    assert await exported(world, tmp_path / "out", ending) == ["oslo", "roma"]


def test_a_line_of_more_than_64_megabytes_is_read_back(tmp_path: Path) -> None:
    path = written(tmp_path, ROME, {**WHERE, "padding": MORE_THAN_64_MEGABYTES})
    read = [each for batch in batches([path], None) for each in batch.read]
    assert [message.content for each in read for message in each.conversation.messages] == ["Where is Rome?"]
