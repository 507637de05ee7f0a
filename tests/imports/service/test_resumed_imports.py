"""An import that was interrupted and is begun again is one operation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chorus_cli.imports.service.imports import ImportReport, Wanted
from tests.imports.service.foreign_talk import OFTEN, OSLO, ROME, WHERE, imports, taken_in, written

if TYPE_CHECKING:
    from chorus_cli.imports.rows.import_rows import Added
    from tests.world import World


class InterruptedImportError(Exception):
    """Stands for a kill between two batches."""


class Interrupting(ImportReport):
    """Ends the import as soon as the first conversations are stored."""

    def add(self, added: Added) -> None:
        raise InterruptedImportError(added)


async def interrupted(world: World, *lines: object) -> None:
    with pytest.raises(InterruptedImportError):
        await imports(world).take_in(
            Wanted([written(world.folder, *lines)], "chorus"), Interrupting(is_dry=False), lambda _line: None
        )


async def operations(world: World) -> list[str]:
    return [each.description for each in await world.journal.entries(world.current.target())]


async def titles(world: World) -> list[str]:
    return [each.title for each in await world.threads.all()]


async def test_one_undo_takes_back_both_parts(world: World) -> None:
    await interrupted(world, ROME, WHERE)
    assert await taken_in(world, ROME, WHERE, OSLO, OFTEN) == (1, 1)
    assert await operations(world) == ["import of 2 messages in 2 conversations from demo"]
    await world.carry_out("/context undo")
    assert await titles(world) == [""]


async def test_an_import_that_came_to_its_end_is_not_gone_on_with(world: World) -> None:
    await interrupted(world, ROME, WHERE)
    await taken_in(world, ROME, WHERE)
    await taken_in(world, ROME, WHERE, OSLO, OFTEN)
    assert len(await operations(world)) == 2


async def test_a_first_part_that_was_undone_is_redone_with_the_rest(world: World) -> None:
    await interrupted(world, ROME, WHERE)
    await world.carry_out("/context undo")
    await taken_in(world, ROME, WHERE, OSLO, OFTEN)
    assert await titles(world) == ["", "Rome", "Oslo"]
    await world.carry_out("/context undo")
    assert await titles(world) == [""]


async def test_after_a_new_conversation_the_rest_is_an_operation_of_its_own(world: World) -> None:
    await interrupted(world, ROME, WHERE)
    await world.carry_out("/context clear")
    await taken_in(world, ROME, WHERE, OSLO, OFTEN)
    assert [each for each in await operations(world) if each.startswith("import")] == [
        "import of 1 message in 1 conversation from demo"
    ] * 2
