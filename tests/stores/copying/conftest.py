"""A world whose log is a file of this machine, also where other tests have theirs on a server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from chorus_cli.storage.store import Store
from tests.storage.database import Quick


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = Store(Quick(tmp_path / "chorus.db"))
    await opened.open()
    yield opened
    await opened.close()
