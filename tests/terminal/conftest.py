"""A folder of its own for every chat in a pseudo-terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.terminal.driver import Home

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")
