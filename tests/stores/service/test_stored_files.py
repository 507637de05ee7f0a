"""Files of sessions and attachments that are lost or that nothing needs, and texts that no row took."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest

from chorus_cli.attachments.files import attachments
from chorus_cli.core.errors import StorageError
from chorus_cli.machine.paths import Paths
from chorus_cli.storage.files import rescue
from chorus_cli.stores.backup import archive
from chorus_cli.stores.backup.archive import Request
from chorus_cli.stores.rules.findings import Finding
from chorus_cli.stores.salvage import examination
from chorus_cli.stores.service.checks import check_log
from chorus_cli.stores.service.log_copies import complete_sessions
from chorus_cli.stores.service.stored_files import bring, lost_attachments, unnamed_attachments
from tests.attachments.attached_talk import say
from tests.imports.service.foreign_talk import ROME, WHERE, reported
from tests.storage.database import of_sqlite, sql
from tests.threads.service.slow_replies import refuse
from tests.world import World

of_the_doctor = of_sqlite("files and backups that the doctor examines")

NOTE = b"a note"
DIGEST = sha256(NOTE).hexdigest()
NAMED = json.dumps([{"name": "note.txt", "media_type": "text/plain", "size_bytes": 6, "sha256": DIGEST}])


def places_of(world: World) -> Paths:
    return world.services.backups.places


def findings(world: World) -> dict[str, Finding]:
    """Return the findings about the log by their subjects."""
    return {each.subject: each for each in check_log(places_of(world))}


async def attached(world: World) -> None:
    """Send a message with a note."""
    (world.folder / "note.txt").write_bytes(NOTE)
    await say(world, f"Here: @{world.folder / 'note.txt'}")
    assert attachments.AttachmentFolder(places_of(world).attachments).read(DIGEST) == NOTE


async def stored(world: World) -> None:
    """Store a note that is not sent."""
    attachments.AttachmentFolder(places_of(world).attachments).store(NOTE)


async def imported_and_undone(world: World) -> None:
    await stored(world)
    await reported(world, ROME, {**WHERE, "attachments": json.loads(NAMED)})
    await world.store.write(lambda c: c.execute("UPDATE messages SET attachments = ?", (NAMED,)))
    await world.carry_out("/context undo")


async def saved_and_dropped(world: World) -> None:
    """Leave a session as the only one to name the note."""
    await attached(world)
    await world.told("/context save about notes")
    await world.store.write(lambda c: c.execute("UPDATE messages SET attachments = NULL"))


async def saved_by_a_deleted_persona(world: World) -> None:
    await saved_and_dropped(world)
    places = places_of(world)
    shutil.copytree(places.personas / "chorus", places.backups / "deleted" / "frodo-20261122-110000-000000")
    shutil.rmtree(places.personas / "chorus" / "sessions")


async def named_by_an_operation(world: World) -> None:
    await stored(world)
    await world.say("hello")
    await world.told("/context clear")
    await world.store.write(lambda c: c.execute("UPDATE operations SET detail = ?", (f'{{"file": "{DIGEST}"}}',)))


def backed_up(world: World, name: str, *, holds_attachments: bool) -> None:
    path = places_of(world).backups / name
    archive.write(places_of(world), Request(path, world.clock.now(), holds_attachments=holds_attachments))


def backup_of(world: World, name: str, age_seconds: float) -> Path:
    path = places_of(world).backups / name
    backed_up(world, name, holds_attachments=True)
    os.utime(path, (1e9 - age_seconds, 1e9 - age_seconds))
    return path


def changed(world: World, statements: Iterable[str]) -> None:
    """Change the log as damage does, past its references."""
    sql(places_of(world).database, *statements)


async def kept_before_a_restore(world: World) -> None:
    await stored(world)
    backed_up(world, "before-restore-2026-11-22_110000.zip", holds_attachments=False)


async def kept_before_an_upgrade(world: World) -> None:
    await attached(world)
    examination.copy_database(places_of(world).database, places_of(world).backups / "before-0009.db")
    await world.store.write(lambda c: c.execute("UPDATE messages SET attachments = NULL"))


NEEDED: dict[str, Callable[[World], Awaitable[None]]] = {
    "a message": attached,
    "an import that was undone": imported_and_undone,
    "a session": saved_and_dropped,
    "a session of a deleted persona": saved_by_a_deleted_persona,
    "an operation": named_by_an_operation,
    "the log before a restore": kept_before_a_restore,
    "the log before an upgrade": kept_before_an_upgrade,
}


@of_the_doctor
@pytest.mark.parametrize("by", NEEDED)
async def test_an_attachment_that_something_needs_is_not_unnamed(world: World, by: str) -> None:
    places_of(world).backups.mkdir(exist_ok=True)
    await NEEDED[by](world)
    assert "unnamed" not in findings(world)


def in_a_daily_backup(world: World) -> None:
    day = world.clock.now().date()
    archive.make_daily(
        places_of(world), Request(archive.daily_path(places_of(world), day), world.clock.now(), holds_attachments=False)
    )


def in_a_backup_with_all(world: World) -> None:
    backed_up(world, "all.zip", holds_attachments=True)


@of_the_doctor
@pytest.mark.parametrize("also", [bool, in_a_backup_with_all, in_a_daily_backup])
async def test_an_attachment_that_nothing_needs_is_told_and_offered_to_be_deleted(
    world: World, also: Callable[[World], object]
) -> None:
    await world.say("hello")
    await stored(world)
    also(world)
    found = findings(world)["unnamed"]
    assert (found.state, found.repair) == ("note", "unnamed")
    assert found.sentence == "No message, session or backup names 1 attachment (6 bytes)."


UNREADABLE: dict[str, Callable[[Paths], object]] = {
    "a row": lambda places: sql(places.database, "UPDATE messages SET attachments = '{' WHERE id = 1"),
    "a log": lambda places: (places.backups / "damaged-2026-11-22_110000.db").write_bytes(b""),
    "a backup": lambda places: (places.backups / "all.zip").write_bytes(b"PK"),
    "a session": lambda places: (places.personas / "chorus" / "sessions" / "2026-02-12_x.json").mkdir(parents=True),
}


@of_the_doctor
@pytest.mark.parametrize("break_", UNREADABLE.values(), ids=UNREADABLE)
async def test_nothing_is_offered_if_something_that_cannot_be_read_may_need_it(
    world: World, break_: Callable[[Paths], object]
) -> None:
    await world.say("hello")
    await stored(world)
    places_of(world).backups.mkdir(exist_ok=True)
    break_(places_of(world))
    assert "unnamed" not in findings(world)


@of_the_doctor
async def test_a_purge_that_is_not_complete_deletes_its_attachments_itself(world: World) -> None:
    await world.say("hello")
    await stored(world)
    await world.store.write(lambda c: c.execute("INSERT INTO meta VALUES ('purge', '{}')"))
    assert {"purge", "unnamed"} & findings(world).keys() == {"purge"}


async def lose(world: World, content: bytes | None) -> Path:
    """Back an attachment up, and then delete it or give it another content."""
    await attached(world)
    backed_up(world, "older.zip", holds_attachments=True)
    path = attachments.path_of(places_of(world).attachments, DIGEST)
    path.unlink() if content is None else path.write_bytes(content)
    return path


def brought(world: World) -> Counter[Path]:
    with examination.opened(places_of(world).database) as connection:
        lost = lost_attachments(connection, places_of(world))
    return bring(places_of(world), lost)


@of_the_doctor
@pytest.mark.parametrize("content", [None, b"", b"\xff"])
async def test_a_lost_attachment_comes_from_the_newest_backup_that_has_it(world: World, content: bytes | None) -> None:
    path, backups = await lose(world, content), places_of(world).backups
    # A newer backup has it as it is now, and a damaged one is passed over.
    backed_up(world, "newer.zip", holds_attachments=True)
    (backups / "newest.zip").write_bytes(b"PK")
    shutil.copyfile(backups / "older.zip", backups / "oldest.zip")
    for age, name in enumerate(("newest.zip", "newer.zip", "older.zip", "oldest.zip")):
        os.utime(backups / name, (1e9 - age, 1e9 - age))
    found = findings(world)["attachments"]
    assert (found.state, found.repair) == ("wrong", "attachments")
    assert brought(world) == {backups / "older.zip": 1}
    assert findings(world)["attachments"].state == "fine"
    assert oct(path.stat().st_mode & 0o777) == "0o600"


@of_the_doctor
async def test_an_attachment_that_no_backup_has_is_not_brought(world: World) -> None:
    await lose(world, b"x")
    (places_of(world).backups / "older.zip").unlink()
    assert brought(world) == {}


@of_the_doctor
async def test_a_link_in_place_of_a_file_is_not_written_through(world: World) -> None:
    path, mine = await lose(world, None), world.folder / "mine.txt"
    mine.write_bytes(b"mine")
    path.symlink_to(mine)
    assert brought(world) == {}
    assert mine.read_bytes() == b"mine"


@of_the_doctor
async def test_an_attachment_comes_from_beside_the_daily_backups(world: World) -> None:
    await attached(world)
    in_a_daily_backup(world)
    attachments.path_of(places_of(world).attachments, DIGEST).unlink()
    assert brought(world) == {places_of(world).kept_attachments / DIGEST[:2] / DIGEST: 1}


@of_the_doctor
async def test_a_session_without_a_readable_file_is_lost_if_the_log_does_not_have_it(world: World) -> None:
    await world.say("hello")
    await world.told("/context save about notes")
    [path] = world.folder.glob("personas/chorus/sessions/*.json")
    saved = path.read_bytes()
    path.unlink()
    assert findings(world)["sessions"].state == "fine"
    path.write_bytes(b"{")
    found = findings(world)["sessions"]
    assert (found.state, found.repair) == ("wrong", None)
    assert found.sentence.endswith(" Mend or delete the file: the log has the session.")
    # The log of a Chorus up to 0.2.0 did not know what a session has.
    changed(world, ["UPDATE sessions SET contents = ''"])
    path.unlink()
    assert findings(world)["sessions"].state == "wrong"
    path.write_bytes(saved)
    await complete_sessions(world.store, world.personas.folder)
    path.unlink()
    assert findings(world)["sessions"].state == "fine"


@of_the_doctor
async def test_a_file_that_is_no_sha256_is_never_unnamed(world: World) -> None:
    await world.say("hello")
    places_of(world).attachments.mkdir(exist_ok=True)
    (places_of(world).attachments / "photo.png").write_bytes(b"mine")
    with examination.opened(places_of(world).database) as connection:
        assert unnamed_attachments(connection, places_of(world)) == []


def test_all_bytes_of_a_backup_are_checked(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "one.zip", "w") as packed:
        packed.writestr("a", b"12345")
        packed.writestr("b", b"1")
    assert [*archive.read_entries(tmp_path / "one.zip", ["a", "b", "c"], 4)] == [("b", b"1")]


NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


async def test_texts_that_no_row_takes_are_shown_and_stay_in_their_file(world: World) -> None:
    record = {"persona": "chorus", "role": "user", "content": "Precious words", "error": "full"}
    path = rescue(world.folder / "rescue", world.clock.now(), record)
    await refuse(world, "outbox")
    assert "Precious words" in await world.told("/rescue")
    for command in ("/rescue keep", "/rescue discard"):
        with pytest.raises(StorageError, match="not today"):
            await world.carry_out(command)
    assert ([*(world.folder / "rescue").iterdir()], await world.log()) == ([path], [])
