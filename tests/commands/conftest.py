"""A desk at which settings are typed and edited."""

from __future__ import annotations

import pytest

from tests.commands.settings_desk import TEXT, Desk
from tests.services.world import World


@pytest.fixture
async def desk(world: World) -> Desk:
    desk = Desk(world)
    desk.drafts.mkdir(exist_ok=True)
    world.configure(TEXT)
    return desk
