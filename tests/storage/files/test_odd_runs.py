"""Runs that a row names oddly, or that cannot be looked at: no bug."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chorus_cli.adapters.machine.paths import paths
from chorus_cli.keeping import on_disk
from chorus_cli.storage.files.file_lock import is_locked

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("run", ["12\0 34", "x" * 5_000], ids=["a NUL", "5,000 letters"])
def test_a_run_with_an_impossible_name_is_not_alive(tmp_path: Path, run: str) -> None:
    assert not is_locked(tmp_path / run)


def test_a_run_that_cannot_be_looked_at_may_be_alive(tmp_path: Path) -> None:
    home = paths({}, str(tmp_path))
    home.run.parent.mkdir(parents=True)
    home.run.write_text("no folder")
    assert on_disk(home, "this-run").is_alive("another-run")
