"""A restore that was killed in the middle: nothing that it needs is told as lost or too much, or is touched."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from chorus_cli.attachments.files import attachments
from chorus_cli.core.errors import BackupError
from chorus_cli.machine.paths import Paths, paths
from chorus_cli.storage import migrations
from chorus_cli.stores.backup import archive, restoring
from chorus_cli.stores.backup.archive import Request
from chorus_cli.stores.rules.findings import Repair
from chorus_cli.stores.service.checks import check_log
from chorus_cli.subcommands.repairs import MENDS
from tests.fakes import START
from tests.stores.service.test_leftovers import killed_at
from tests.stores.service.test_stored_files import DIGEST, NAMED, NOTE

if TYPE_CHECKING:
    from pathlib import Path

NAMING = (
    "INSERT INTO messages(persona, thread_id, role, content, timestamp, attachments) "
    "VALUES ('chorus', 1, 'user', 'Here.', '2026-02-12T11:00:00Z', ?)"
)


@pytest.fixture
def home(tmp_path: Path) -> Paths:
    """A home whose restore was killed: the attachment of the new log has come, but that log has not."""
    home = paths({}, str(tmp_path / "home"))
    home.make()
    places = home
    for folder in (places.personas, places.backups):
        folder.mkdir(exist_ok=True)
    with_log(home)
    with closing(sqlite3.connect(home.database)) as connection, connection:
        connection.execute(NAMING, (NAMED,))
    attachments.store(places.attachments, NOTE)
    archive.write(places, Request(tmp_path / "all.zip", START))
    home.database.unlink()
    (places.attachments / DIGEST[:2] / DIGEST).unlink()
    with_log(home)
    with restoring.staged(places, tmp_path / "all.zip", START) as found:
        # The journal of the old log is deleted right before the new log replaces it.
        (places.database.parent / f"{places.database.name}-journal").touch()
        killed_at("os.remove", lambda: restoring.put_in_place(places, found.folder))
    return home


def with_log(home: Paths) -> None:
    migrations.find_or_create(home.database, lambda path: sqlite3.connect(path, isolation_level=None))
    home.database.chmod(0o600)


def stored(home: Paths) -> bytes:
    return attachments.read(home.attachments, DIGEST)


def test_the_log_is_not_examined_before_the_restore_is_complete(home: Paths) -> None:
    assert stored(home) == NOTE
    assert [*check_log(home, home.run)] == []
    restoring.finish(home)
    subjects = {each.subject: each.state for each in check_log(home, home.run)}
    assert subjects["attachments"] == "fine"
    assert "unnamed" not in subjects


@pytest.mark.parametrize(
    "repair", [Repair.UNNAMED, Repair.ATTACHMENTS, Repair.SESSIONS, Repair.CHECKSUMS, Repair.SALVAGE]
)
async def test_a_repair_of_the_log_or_of_its_files_refuses_beside_it(home: Paths, repair: Repair) -> None:
    log = home.database.read_bytes()
    with pytest.raises(BackupError, match=r"is not complete\. Start chorus once, .* nothing was changed"):
        await MENDS[repair](home)
    assert (home.database.read_bytes(), stored(home)) == (log, NOTE)
    restoring.finish(home)
    assert stored(home) == NOTE


def test_no_other_restore_begins_beside_it(home: Paths, tmp_path: Path) -> None:
    places = home
    with (
        restoring.staged(places, tmp_path / "all.zip", START) as found,
        pytest.raises(BackupError, match=r"A restore in .* is not complete"),
    ):
        restoring.put_in_place(places, found.folder)
