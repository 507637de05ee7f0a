"""Folders in which backups are unpacked for a purge: a killed process leaves one until the next purge."""

from __future__ import annotations

import os
import resource
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from chorus_cli.stores.backup import archive
from chorus_cli.stores.backup.archive import Request
from chorus_cli.stores.purge.backups import Sought, holding, rewrite
from chorus_cli.stores.purge.files import delete_remains
from chorus_cli.stores.service.checks import check_leftovers, temporary_files
from tests.stores.service.test_leftovers import NOW, killed_at, places, with_log

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from chorus_cli.machine.paths import Paths

__all__ = ["places"]

LOOK = Sought()
KILLED: dict[str, tuple[str, Callable[[Paths], object]]] = {
    "being looked through": ("sqlite3.connect", lambda places: holding(places, *LOOK)),
    "being purged": ("sqlite3.connect", lambda places: rewrite(places, places.backups / "all.zip", Sought(), NOW)),
    "being replaced": ("os.utime", lambda places: rewrite(places, places.backups / "all.zip", Sought(), NOW)),
}


def unpacked(places: Paths) -> list[Path]:
    return [path for path in places.backups.rglob(".chorus-*/**/*") if path.is_file()]


@pytest.fixture
def left(request: pytest.FixtureRequest, places: Paths) -> Paths:
    """The places of a home whose purge was killed just now, while it had a backup unpacked."""
    event, work = KILLED[request.param]
    with_log(places)
    archive.write(places, Request(places.backups / "all.zip", NOW))
    killed_at(event, lambda: work(places))
    assert unpacked(places)
    return places


@pytest.mark.parametrize("left", KILLED, indirect=True)
def test_the_doctor_finds_the_folder_of_a_killed_purge_after_an_hour(left: Paths) -> None:
    assert temporary_files(left, datetime.now(UTC)) == []
    now = datetime.now(UTC) + timedelta(hours=2)
    (found,) = temporary_files(left, now)
    assert found.parent == left.backups
    told = [each for each in check_leftovers(left, now) if each.subject == "leftovers"]
    assert [each.repair for each in told] == ["leftovers"]
    assert str(found) in told[0].sentence


@pytest.mark.parametrize("left", KILLED, indirect=True)
def test_the_next_purge_deletes_the_folder_of_a_killed_one(left: Paths) -> None:
    delete_remains(left)
    assert [path.name for path in left.backups.glob(".chorus-*")] == []


def test_a_look_into_the_backups_leaves_no_folder(places: Paths) -> None:
    with_log(places)
    archive.write(places, Request(places.backups / "all.zip", NOW))
    assert holding(places, *LOOK).unreadable == ()
    assert [*places.backups.glob(".chorus-*")] == []


def test_a_working_folder_that_cannot_be_deleted_is_told(tmp_path: Path) -> None:
    """It has texts that are to go; the system may have too many open files to delete it."""
    most, hardest = resource.getrlimit(resource.RLIMIT_NOFILE)
    work = ExitStack()
    (work.enter_context(archive.working_folder(tmp_path)) / "part").write_text("a word")
    with ExitStack() as opened:
        opened.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (most, hardest))
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 512), hardest))
        with suppress(OSError):
            while True:
                opened.callback(os.close, os.dup(0))
        with pytest.raises(OSError, match="Too many open files"):
            work.close()
