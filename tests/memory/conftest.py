"""A world whose persona remembers."""

from __future__ import annotations

import pytest

from tests.memory.remembered import Remembering
from tests.world import World


@pytest.fixture
def memory(world: World) -> Remembering:
    return Remembering(world)
