"""Runs that a row names oddly, that cannot be looked at, or whose lock file cannot be kept: no bug."""

from __future__ import annotations

import errno
import fcntl
import os
from typing import TYPE_CHECKING

import pytest

from chorus_cli.core.errors import HomeError, SettingsError
from chorus_cli.machine.paths import paths
from chorus_cli.run_storage import kept, on_disk
from chorus_cli.settings.files import change_key
from chorus_cli.storage.file_lock import hold, is_locked, may_be_locked

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


def test_a_lock_file_that_cannot_be_opened_counts_as_locked(tmp_path: Path) -> None:
    odd = tmp_path / "17-0123abcd"
    odd.symlink_to(odd)
    assert may_be_locked(odd)


def test_a_lock_file_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(HomeError, match=r"cannot keep the file .*17-0123abcd locked while it runs: No such file"):
        hold(tmp_path / "run" / "17-0123abcd")


def test_a_file_system_that_knows_no_locks_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unlocked(_descriptor: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", unlocked)
    with pytest.raises(HomeError, match=r"cannot keep the file .*17-0123abcd locked while it runs: No locks available"):
        hold(tmp_path / "17-0123abcd")
    with pytest.raises(
        SettingsError, match=r"config\.jsonc cannot be changed: No locks available\. It is left as it was"
    ):
        change_key(tmp_path / "config.jsonc", "model", "m")
    assert not (tmp_path / "config.jsonc").exists()


def test_a_lock_file_that_cannot_be_deleted_is_left_without_a_word(tmp_path: Path) -> None:
    home = paths({}, str(tmp_path))
    home.make()
    with kept(home) as storage:
        (home.run / storage.run).unlink()
        (home.run / storage.run).mkdir()
    assert [path.name for path in home.run.iterdir()] == [storage.run]
