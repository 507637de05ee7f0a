"""A home with its folders and without a log."""

from __future__ import annotations

from pathlib import Path

import pytest

from chorus_cli.machine.paths import Paths


@pytest.fixture
def places(tmp_path: Path) -> Paths:
    home = tmp_path / "home"
    for name in ("personas/chorus/sessions", "attachments/ab", "backups/attachments/ab", "state/run", "config"):
        (home / name).mkdir(parents=True)
    return Paths(home, home, home / "state")
