"""A world in which something was said."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.services.world import World


@pytest.fixture
async def talked(world: World) -> World:
    """Two turns, ten minutes ago."""
    world.model.say("Hi there")
    await world.say("Hello")
    await world.say("How are you?")
    world.clock.advance(timedelta(minutes=10))
    return world
