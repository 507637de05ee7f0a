"""A folder of its own for every chat in a pseudo-terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.terminal.driver import own_tmux


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Return a function that runs commands of a tmux of the test's own."""
    with own_tmux(tmp_path) as run:
        yield run


@pytest.fixture
def true_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let rich find the terminal that ``markdown_screens`` stands for."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.fixture
def _usual_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")
