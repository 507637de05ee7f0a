"""A database and a file of its own for every test."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.storage.files.frodos_settings import DATA
from tests.storage.sqlite.database import database

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(database()) as opened:
        yield opened


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The place of the ``store`` fixture's file."""
    return tmp_path / "chorus.db"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "system.jsonc"
    path.write_bytes(DATA)
    return path
