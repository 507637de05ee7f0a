"""A backup as it is written: of a committed and sound log only, and safe from a power cut."""

from __future__ import annotations

import shutil
import sqlite3
import zipfile
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from chorus_cli.core.errors import BackupError, DatabaseDamagedError
from chorus_cli.storage import file_lock
from chorus_cli.stores.backup import archive
from chorus_cli.stores.backup.archive import PURGE_LOCK, Request
from chorus_cli.stores.service.backups import Backups
from tests.fakes import FakeClock
from tests.storage.damaged_files import PAGE_BYTES
from tests.storage.unsynced import confirmed_syncs
from tests.stores.service.test_leftovers import NOW, killed_at, places, with_log

if TYPE_CHECKING:
    from pathlib import Path

    from chorus_cli.machine.paths import Paths

__all__ = ["places"]


def write_notes(connection: sqlite3.Connection, text: str) -> None:
    for number in range(100):
        connection.execute("REPLACE INTO meta VALUES (?, ?)", (f"note {number}", text * PAGE_BYTES))


def write_and_wait(path: Path) -> None:
    """Begin a transaction that is so large that most of it is in the file before it ends."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN IMMEDIATE")
        write_notes(connection, "b")
        path.chmod(0o600)


def notes(path: Path) -> set[str]:
    """Return the first letters of the notes in a database."""
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("SELECT substr(value, 1, 1) FROM meta WHERE key LIKE 'note %'").fetchall()
    return {letter for (letter,) in found}


def test_a_backup_has_nothing_of_a_transaction_that_was_cut_off(places: Paths, tmp_path: Path) -> None:
    with_log(places)
    with closing(sqlite3.connect(places.database)) as connection, connection:
        write_notes(connection, "a")
    killed_at("os.chmod", lambda: write_and_wait(places.database))
    shutil.copyfile(places.database, tmp_path / "without its journal.db")
    assert "b" in notes(tmp_path / "without its journal.db")
    archive.write(places, Request(tmp_path / "all.zip", NOW))
    archive.unpack_log(tmp_path / "all.zip", tmp_path / "copy.db")
    assert notes(tmp_path / "copy.db") == {"a"}


def test_no_backup_is_made_of_a_damaged_log(places: Paths, tmp_path: Path) -> None:
    with_log(places)
    with closing(sqlite3.connect(places.database)) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'messages'").fetchone()
    with places.database.open("r+b") as file:
        file.seek((root - 1) * PAGE_BYTES)
        file.write(b"\xff" * PAGE_BYTES)
    with pytest.raises(DatabaseDamagedError, match="so no backup was made of it"):
        archive.write(places, Request(tmp_path / "all.zip", NOW))
    assert not (tmp_path / "all.zip").exists()


async def test_a_backup_on_request_waits_for_a_purge(places: Paths, tmp_path: Path) -> None:
    with_log(places)
    backups = Backups(places, FakeClock(), patience_seconds=0)
    places.backups.mkdir(exist_ok=True)
    with (
        file_lock.hold(places.backups / PURGE_LOCK),
        pytest.raises(BackupError, match=r"A purge or another backup is under way, so nothing was written\. Try again"),
    ):
        await backups.make(str(tmp_path / "all.zip"))
    assert not (tmp_path / "all.zip").exists()
    await backups.make(str(tmp_path / "all.zip"))
    assert not (places.backups / PURGE_LOCK).exists()


def test_a_file_in_place_of_the_folder_is_not_taken_for_the_backup(places: Paths, tmp_path: Path) -> None:
    with_log(places)
    shutil.rmtree(places.backups)
    places.backups.write_text("no folder", encoding="utf-8")
    with pytest.raises(BackupError, match=r"all\.zip cannot be written: File exists\. Nothing was kept of it\."):
        archive.write(places, Request(tmp_path / "all.zip", NOW))


def test_a_backup_has_all_files_of_the_user_and_none_that_is_being_written(places: Paths, tmp_path: Path) -> None:
    with_log(places)
    kept = ("personas/chorus/docs/notes.tmp", "personas/chorus/docs/poetry.lock", "config.jsonc")
    passing = (".persona-ab12_z9k/card.json", "chorus/.chorus-ab12_z9k.tmp", "chorus/system.jsonc.lock")
    for name in (*kept, *(f"personas/{name}" for name in passing)):
        path = places.data / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("a word")
    manifest = archive.write(places, Request(tmp_path / "all.zip", NOW))
    assert manifest.personas == ("chorus",)
    with zipfile.ZipFile(tmp_path / "all.zip") as packed:
        assert {*packed.namelist()} == {*kept, "chorus.db", "manifest.json"}


def test_a_backup_is_synced_with_its_name(places: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_log(places)
    confirmed = confirmed_syncs(monkeypatch)
    archive.write(places, Request(tmp_path / "all.zip", NOW))
    assert confirmed.has_all(tmp_path / "all.zip")
