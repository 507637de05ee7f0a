"""Names of runs that a damaged row may hold: there is no such process, and no bug."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chorus_cli.storage.files.file_lock import is_locked

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("run", ["12\0 34", "x" * 5_000], ids=["a NUL", "5,000 letters"])
def test_a_run_with_an_impossible_name_is_not_alive(tmp_path: Path, run: str) -> None:
    assert not is_locked(tmp_path / run)
