"""A user to whom permissions apply, also where the tests are run by root, and disks that only root can mount."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.terminal.command import PROGRAM


@contextmanager
def refused(path: Path, mode: int = 0) -> Iterator[None]:
    """Take permissions of a file or folder away."""
    before = path.stat().st_mode
    path.chmod(mode)
    try:
        yield
    finally:
        path.chmod(before)


def ordinary_program() -> list[str]:
    """Return the program as a command of one to whom permissions apply."""
    return [*ordinary(), *PROGRAM]


def ordinary() -> list[str]:
    """Return the words before a command that make permissions apply to it."""
    tool = shutil.which("setpriv")
    if os.geteuid() == 0 and tool is None:
        pytest.skip("to root every file is open, and without setpriv root cannot be less than that")
    return [tool, "--inh-caps=-all", "--bounding-set=-all"] if tool and os.geteuid() == 0 else []


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    """Mount a disk in memory at a folder, which is made if need be."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a disk")
    folder.mkdir(exist_ok=True)
    mounting = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if subprocess.run(mounting, check=False, capture_output=True).returncode:
        pytest.skip("this system mounts nothing")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
