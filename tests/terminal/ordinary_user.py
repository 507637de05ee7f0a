"""A user to whom permissions apply, also where the tests are run by root."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.terminal.command import PROGRAM


@contextmanager
def refused(path: Path, mode: int = 0) -> Iterator[None]:
    before = path.stat().st_mode
    path.chmod(mode)
    try:
        yield
    finally:
        path.chmod(before)


def ordinary_program() -> list[str]:
    """Return the program as a command of one to whom permissions apply."""
    tool = shutil.which("setpriv")
    if os.geteuid() == 0 and tool is None:
        pytest.skip("to root every file is open, and without setpriv root cannot be less than that")
    lowered = [tool, "--inh-caps=-all", "--bounding-set=-all"] if tool and os.geteuid() == 0 else []
    return [*lowered, *PROGRAM]
