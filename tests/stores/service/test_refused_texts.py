"""Texts in files come into the outbox when they are looked for; while the database takes nothing they stay there."""

from __future__ import annotations

import pytest

from chorus_cli.core.errors import StorageError
from chorus_cli.storage.files import rescue
from tests.threads.service.slow_replies import refuse, unsent
from tests.world import World

TEXT = "Precious words"


def files(world: World) -> int:
    return len([*(world.folder / "rescue").iterdir()])


@pytest.fixture
def refused(world: World) -> World:
    record = {"persona": "chorus", "role": "user", "content": TEXT, "error": "full"}
    assert rescue(world.folder / "rescue", world.clock.now(), record) is not None
    return world


async def test_they_are_in_rows_once_they_were_looked_for(refused: World) -> None:
    assert TEXT in await refused.told("/rescue")
    assert (files(refused), await unsent(refused)) == (0, [TEXT])
    assert "In the log now:" in await refused.told("/rescue keep")
    assert await unsent(refused) == []


async def test_where_no_row_takes_them_they_are_shown_and_stay_in_their_file(refused: World) -> None:
    await refuse(refused, "outbox")
    assert TEXT in await refused.told("/rescue")
    for command in ("/rescue keep", "/rescue discard"):
        with pytest.raises(StorageError, match="not today"):
            await refused.carry_out(command)
    assert (files(refused), await refused.log()) == (1, [])
