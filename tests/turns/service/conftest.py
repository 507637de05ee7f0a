"""A world whose model is offered tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from chorus_cli.storage.store import Store
from tests.fakes import FakeClock, ScriptedModel
from tests.turns.service.tool_talk import TOOLS
from tests.world import Tools, World, built


@pytest.fixture
def tools() -> Tools:
    return Tools(TOOLS)


@pytest.fixture
async def tooled(tmp_path: Path, store: Store, clock: FakeClock, model: ScriptedModel, tools: Tools) -> World:
    return await built(tmp_path, store, clock, model, 10_000, tools)
