"""Backups as they are written and kept, and a restore that was killed: nothing that it needs is told as lost."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.attachments.files import attachments
from chorus_cli.core.errors import BackupError, DatabaseDamagedError
from chorus_cli.machine.paths import Paths, paths
from chorus_cli.storage import file_lock
from chorus_cli.stores.backup import archive, restoring
from chorus_cli.stores.backup.archive import DAILY, LOCK, WEEKLY, Request, kept_days
from chorus_cli.stores.rules.findings import Repair
from chorus_cli.stores.service.backups import Backups, keep_present
from chorus_cli.stores.service.checks import check_log
from chorus_cli.subcommands.repairs import MENDS
from tests.fakes import START, FakeClock
from tests.killed_program import killed_at
from tests.storage.damaged_files import cut_off, overwrite_messages
from tests.storage.database import of_sqlite, sql
from tests.storage.unsynced import confirmed_syncs
from tests.stores.service.test_leftovers import with_log
from tests.stores.service.test_stored_files import DIGEST, NAMED, NOTE, NOW, changed
from tests.world import World

pytestmark = of_sqlite("daily backups, and a restore in its place")

NAMING = """
    INSERT INTO messages(persona, thread_id, role, content, timestamp, attachments)
    VALUES ('chorus', 1, 'user', 'Here.', '2026-02-12T11:00:00Z', 'THE NOTE')""".replace("THE NOTE", NAMED)


def test_a_backup_has_nothing_of_a_transaction_that_was_cut_off(places: Paths, tmp_path: Path) -> None:
    with_log(places)
    sql(places.database, NAMING)
    cut_off(places.database)
    assert b"cut off" in places.database.read_bytes()
    archive.write(places, Request(tmp_path / "all.zip", NOW))
    archive.unpack_log(tmp_path / "all.zip", tmp_path / "copy.db")
    assert sql(tmp_path / "copy.db", "SELECT content FROM messages") == ["Here."]


def test_no_backup_is_made_of_a_damaged_log(places: Paths, tmp_path: Path) -> None:
    with_log(places)
    overwrite_messages(places.database, b"\xff")
    with pytest.raises(DatabaseDamagedError, match="so no backup was made of it"):
        archive.write(places, Request(tmp_path / "all.zip", NOW))
    assert not (tmp_path / "all.zip").exists()


async def test_a_backup_on_request_waits_for_a_purge(places: Paths, tmp_path: Path) -> None:
    with_log(places)
    backups = Backups(places, FakeClock(), patience_seconds=0)
    places.backups.mkdir(exist_ok=True)
    with (
        file_lock.hold(places.backups / LOCK),
        pytest.raises(BackupError, match=r"A purge or another backup is under way, so nothing was written\. Try again"),
    ):
        await backups.make(str(tmp_path / "all.zip"))
    assert not (tmp_path / "all.zip").exists()
    await backups.make(str(tmp_path / "all.zip"))
    first, second = await backups.make(), await backups.make()
    assert second.path.name == f"{first.path.stem}-2.zip"


def test_a_backup_has_all_files_of_the_user_and_none_that_is_being_written(places: Paths, tmp_path: Path) -> None:
    with_log(places)
    docs = ("personas/chorus/docs/notes.tmp", "personas/chorus/docs/poetry.lock")
    kept = (*docs, "config.jsonc", "commands/review.md")
    passing = (".persona-ab12_z9k/card.json", "chorus/.chorus-ab12_z9k.tmp", "chorus/system.jsonc.lock")
    for name in (*kept, *(f"personas/{name}" for name in passing)):
        path = places.data / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("a word")
    manifest = archive.write(places, Request(tmp_path / "all.zip", NOW))
    assert manifest.personas == ("chorus",)
    with zipfile.ZipFile(tmp_path / "all.zip") as packed:
        assert {*packed.namelist()} == {*kept, "chorus.db", "manifest.json"}


def test_a_backup_has_what_is_behind_links_and_files_whose_names_are_no_utf_8(places: Paths, tmp_path: Path) -> None:
    with_log(places)
    (tmp_path / "frodo").mkdir()
    (tmp_path / "frodo" / "prompt.md").write_text("I am Frodo")
    (tmp_path / "frodo" / "docs").symlink_to(tmp_path / "frodo")
    (places.personas / "frodo").symlink_to(tmp_path / "frodo")
    (places.personas / "chorus" / os.fsdecode(b"caf\xe9.md")).write_text("A card")
    archive.write(places, Request(tmp_path / "all.zip", NOW))
    with zipfile.ZipFile(tmp_path / "all.zip") as packed:
        assert [name for name in packed.namelist() if name.startswith("personas/")] == [
            "personas/chorus/caf\\xe9.md",
            "personas/frodo/docs/prompt.md",
            "personas/frodo/prompt.md",
        ]


@pytest.mark.parametrize("damage", [lambda log: overwrite_messages(log, b"\xff"), Path.unlink])
def test_what_a_restore_replaces_is_kept_even_if_the_log_cannot_be_backed_up(
    places: Paths, damage: Callable[[Path], object]
) -> None:
    with_log(places)
    (places.personas / "chorus" / "prompt.md").write_text("a week of work")
    damage(places.database)
    *log, rest = keep_present(places, NOW)
    assert [path.read_bytes() for path in log] == [path.read_bytes() for path in [places.database] if path.exists()]
    with zipfile.ZipFile(rest) as packed:
        assert {name: packed.read(name) for name in packed.namelist()} == {
            "personas/chorus/prompt.md": b"a week of work"
        }


def test_before_the_first_start_there_is_nothing_to_keep(tmp_path: Path) -> None:
    assert keep_present(paths({}, str(tmp_path / "home")), NOW) == ()


def test_a_backup_is_synced_with_its_name(places: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_log(places)
    confirmed = confirmed_syncs(monkeypatch)
    archive.write(places, Request(tmp_path / "all.zip", NOW))
    assert confirmed.has_all(tmp_path / "all.zip")


async def test_a_message_that_has_changed_is_named_once_a_day(world: World) -> None:
    await world.say("I am tired")
    assert await world.services.backups.make_daily() == ""
    changed(world, ["UPDATE messages SET content = 'I am wired' WHERE role = 'user'"])
    assert await world.services.backups.make_daily() == "", "today's look is over"
    world.clock.advance(timedelta(days=1))
    assert await world.services.backups.make_daily() == (
        "Message #1 differs from the text that Chorus stored. chorus doctor says more and repairs it."
    )


async def test_a_backup_that_cannot_be_made_is_told_in_a_sentence(world: World) -> None:
    folder = world.services.backups.places.backups
    shutil.rmtree(folder, ignore_errors=True)
    folder.write_text("no folder")
    assert (await world.services.backups.make_daily()).startswith(
        f"Today's backup was not made. No backup can be made in {folder}: "
    )


@pytest.fixture
def home(tmp_path: Path) -> Paths:
    """A home whose restore was killed: the attachment of the new log has come, but that log has not."""
    home = paths({}, str(tmp_path / "home"))
    home.make()
    for folder in (home.personas, home.backups):
        folder.mkdir(exist_ok=True)
    with_log(home)
    sql(home.database, NAMING)
    attachments.AttachmentFolder(home.attachments).store(NOTE)
    archive.write(home, Request(tmp_path / "all.zip", START))
    home.database.unlink()
    (home.attachments / DIGEST[:2] / DIGEST).unlink()
    with_log(home)
    with restoring.staged(home, tmp_path / "all.zip", START) as found:
        # The journal of the old log is deleted right before the new log replaces it.
        (home.data / "chorus.db-journal").touch()
        killed_at("os.remove", lambda: restoring.put_in_place(home, found.folder))
    return home


def backup_naming(places: Paths, folder: Path, attachment: object) -> Path:
    """Make a backup whose manifest names this attachment."""
    with_log(places)
    archive.write(places, Request(folder / "made.zip", NOW))
    with zipfile.ZipFile(folder / "made.zip") as made, zipfile.ZipFile(folder / "all.zip", "w") as changed:
        manifest = {**json.loads(made.read("manifest.json")), "attachments": [attachment]}
        changed.writestr("manifest.json", json.dumps(manifest))
        changed.writestr("chorus.db", made.read("chorus.db"))
    return folder / "all.zip"


def test_an_attachment_that_no_text_names_is_missing(places: Paths, tmp_path: Path) -> None:
    with restoring.staged(places, backup_naming(places, tmp_path, 7), NOW) as found:
        assert found.missing == ("7",)


@pytest.mark.parametrize("name", ["../../evil", "/evil"])
def test_a_manifest_does_not_lead_out_of_the_backup(places: Paths, tmp_path: Path, name: str) -> None:
    with (
        pytest.raises(BackupError, match="names an attachment outside of the backup"),
        restoring.staged(places, backup_naming(places, tmp_path, name), NOW),
    ):
        pass


def stored(home: Paths) -> bytes:
    return attachments.AttachmentFolder(home.attachments).read(DIGEST)


def test_the_log_is_not_examined_before_the_restore_is_complete(home: Paths) -> None:
    assert stored(home) == NOTE
    assert [*check_log(home)] == []
    restoring.finish(home)
    subjects = {each.subject: each.state for each in check_log(home)}
    assert subjects["attachments"] == "fine"
    assert "unnamed" not in subjects


@pytest.mark.parametrize("repair", [Repair.UNNAMED, Repair.ATTACHMENTS, Repair.CHECKSUMS, Repair.SALVAGE])
async def test_a_repair_of_the_log_or_of_its_files_refuses_beside_it(home: Paths, repair: Repair) -> None:
    log = home.database.read_bytes()
    with pytest.raises(BackupError, match=r"Start chorus once to complete it, .* nothing was changed"):
        await MENDS[repair](home)
    assert (home.database.read_bytes(), stored(home)) == (log, NOTE)
    restoring.finish(home)
    assert stored(home) == NOTE


def test_no_other_restore_begins_beside_it(home: Paths, tmp_path: Path) -> None:
    with (
        restoring.staged(home, tmp_path / "all.zip", START) as found,
        pytest.raises(BackupError, match=r"A restore in .* is not complete"),
    ):
        restoring.put_in_place(home, found.folder)


SUNDAY = date(2026, 11, 22)


def days(*ages: int) -> set[date]:
    return {SUNDAY - timedelta(age) for age in ages}


@pytest.mark.parametrize(
    ("there", "remaining"),
    [
        (days(), days()),
        (days(*range(7)), days(*range(7))),
        (days(*range(8)), days(*range(8))),
        (days(*range(60)), days(*range(7), 7, 14, 21, 28)),
        (days(0, 100, 200, 300), days(0, 100, 200, 300)),
        (days(*range(0, 70, 7)), days(0, 7, 14, 21, 28, 35, 42, 49, 56, 63)),
        (days(*range(0, 84, 7)), days(*range(0, 77, 7))),
        (days(*range(2, 60)), days(*range(2, 9), 14, 21, 28, 35)),
    ],
    ids=["none", "a week", "eight days", "two months", "seldom", "weekly", "weekly for long", "from a Friday on"],
)
def test_seven_daily_and_four_weekly_backups_are_kept(there: set[date], remaining: set[date]) -> None:
    assert kept_days(there) == remaining


@given(st.sets(st.dates(date(2024, 1, 1), date(2027, 1, 1)), max_size=60))
def test_no_more_are_kept_and_the_newest_always_are(there: set[date]) -> None:
    remaining = kept_days(there)
    assert remaining <= there
    assert len(remaining) <= DAILY + WEEKLY
    assert {*sorted(there)[-DAILY:]} <= remaining


def test_a_backup_of_every_day_reaches_four_weeks_back() -> None:
    """Each day the new backup comes and those that are not kept go, as it is in use."""
    remaining: frozenset[date] = frozenset()
    for age in range(200, -1, -1):
        remaining = kept_days({*remaining, SUNDAY - timedelta(age)})
    assert len(remaining) == DAILY + WEEKLY
    assert min(remaining) <= SUNDAY - timedelta(weeks=4)
