"""A terminal that keeps its scrollback, and reflows it when its window changes."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def own_tmux(folder: Path) -> Iterator[Callable[..., str]]:
    """Yield a function that runs commands of a tmux of the test's own; its window has 60 columns and 15 lines."""
    program = shutil.which("tmux")
    if program is None:
        pytest.skip("tmux is not installed")
    configuration = folder / "tmux.conf"
    configuration.write_text(
        "set -g set-clipboard on\nset -g history-limit 50000\nset -g default-terminal tmux-256color\n"
    )
    base = [program, "-S", str(folder / "socket"), "-f", str(configuration)]

    def run(*arguments: str) -> str:
        return subprocess.run([*base, *arguments], capture_output=True, text=True, check=False, timeout=20).stdout

    run("new-session", "-d", "-x", "60", "-y", "15", "env -u COLUMNS -u LINES sh")
    try:
        yield run
    finally:
        run("kill-server")


def await_pane(tmux: Callable[..., str], text: str) -> str:
    """Look until ``text`` stands in the window or above it, and return all that stands there."""
    deadline = time.monotonic() + 20
    while text not in (pane := tmux("capture-pane", "-p", "-J", "-S", "-")):
        assert time.monotonic() < deadline, pane
        time.sleep(0.05)
    return pane
