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


@pytest.fixture
def true_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let rich find the terminal that ``markdown_screens`` stands for."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.delenv("NO_COLOR", raising=False)
