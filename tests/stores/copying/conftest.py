"""A world whose log is a file of this machine, also where other tests have theirs on a server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from chorus_cli.storage.store import Store, opened_store
from tests.fakes import FakeClock
from tests.storage.database import Quick, quick
from tests.stores.copying.copies import Logs


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with opened_store(Quick(tmp_path / "chorus.db")) as opened:
        yield opened


@pytest.fixture
def logs(tmp_path: Path, clock: FakeClock) -> Logs:
    return Logs(Quick(tmp_path / "chorus.db"), quick(tmp_path / "server.db"), tmp_path, clock)
