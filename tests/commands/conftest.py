"""Fixtures: a desk for typing and editing settings, and a conversation of three turns."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.commands.settings_desk import TEXT, Desk
from tests.services.world import World


@pytest.fixture
async def desk(world: World) -> Desk:
    desk = Desk(world)
    desk.drafts.mkdir(exist_ok=True)
    world.configure(TEXT)
    return desk


@pytest.fixture
async def talk(world: World) -> World:
    """Three turns, a minute apart: A1 B1 A2 B2 A3 B3."""
    for number in (1, 2, 3):
        world.model.say(f"B{number}")
        await world.say(f"A{number}")
        world.clock.advance(timedelta(minutes=1))
    return world
