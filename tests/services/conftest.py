"""A world for every test of the services."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.services.world import World, built

if TYPE_CHECKING:
    from pathlib import Path

    from chorus_cli.storage.database import Store
    from tests.fakes import FakeClock, ScriptedModel


@pytest.fixture
async def world(tmp_path: Path, store: Store, clock: FakeClock, model: ScriptedModel) -> World:
    return await built(tmp_path, store, clock, model, limit_tokens=10_000)
