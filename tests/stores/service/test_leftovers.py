"""Files that killed processes leave, and rows that are gone, cannot be read or were cut off."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from chorus_cli.attachments.files import attachments
from chorus_cli.machine.paths import Paths
from chorus_cli.personas import files as persona_files
from chorus_cli.personas.files import NewPersona
from chorus_cli.sessions import files as session_files
from chorus_cli.sessions.rules.format import Session
from chorus_cli.storage import drafts, file_lock, migrations
from chorus_cli.storage.files import write_atomically
from chorus_cli.stores.backup import archive, restoring, salvaging
from chorus_cli.stores.backup.archive import Request
from chorus_cli.stores.purge.backups import Sought, rewrite
from chorus_cli.stores.rules.findings import Finding
from chorus_cli.stores.salvage import examination
from chorus_cli.stores.service.checks import check_log, delete, temporary_files
from tests.killed_program import killed_at
from tests.storage.damaged_files import cut_off
from tests.storage.database import of_sqlite, sql
from tests.stores.service.test_stored_files import NOW, backup_of, changed, places_of
from tests.world import World

pytestmark = of_sqlite("temporary files, and rows that the doctor examines and salvages")

DAY_OLD = timedelta(days=1)
RUN = "17-0123abcd"


def left(places: Paths) -> list[str]:
    """Return the temporary files that are found, by their paths in the home."""
    found = temporary_files(places, NOW)
    return [str(path.relative_to(places.database.parent)) for path in found]


def put(path: Path, age: timedelta = DAY_OLD) -> Path:
    """Write a file, or a folder with a file if its name has no ending, that is so old."""
    is_folder = path.name.startswith((".restoring-", ".persona", ".chorus-")) and "." not in path.name[1:]
    path.parent.mkdir(parents=True, exist_ok=True)
    if is_folder:
        path.mkdir()
    (path / "part" if is_folder else path).write_bytes(b"12345")
    set_age(path, age)
    return path


def set_age(path: Path, age: timedelta) -> None:
    moment = (NOW - age).timestamp()
    for each in (*path.rglob("*"), path):
        os.utime(each, (moment, moment))


LEFT = (
    ".chorus-ab12_z9k.tmp-journal",
    ".chorus-ab12_z9k.tmp",
    ".personas-ab12_z9k",
    ".restoring-ab12_z9k",
    "state/.chorus-ab12_z9k.tmp",
    "state/rescue/.chorus-ab12_z9k.tmp",
    "personas/.persona-ab12_z9k",
    "personas/.persona-frodo",
    "personas/chorus/.chorus-ab12_z9k.tmp",
    "personas/chorus/sessions/.chorus-01234567.tmp",
    "attachments/ab/.chorus-ab12_z9k.tmp",
    "backups/.chorus-ab12_z9k.tmp-journal",
    "backups/.chorus-ab12_z9k",
    "backups/attachments/ab/.chorus-ab12_z9k.tmp",
)
KEPT = (
    "chorus.db-journal",
    "notes.tmp",
    ".chorus-notes.tmp",
    ".chorus-ab12_z9k.tmp.bak",
    "documents/.chorus-ab12_z9k.tmp",
    "state/drafts/draft-17-0123abcd-ab12_z9k-unsent-chorus.md",
    "state/drafts/.draft-ab12_z9k.md.swp",
    "state/rescue/rescue-20261122T110000Z.jsonl",
    "personas/chorus/docs/.persona-frodo",
    "personas/chorus/docs/ring.md.tmp",
    "personas/chorus/.settings.jsonc.lock",
    "attachments/ab/.restoring-ab12_z9k",
    f"attachments/ab/{'ab' * 32}",
    "backups/.lock",
    "backups/damaged-2026-11-21_110000.db",
)


@pytest.mark.parametrize("name", LEFT)
def test_a_temporary_file_is_found_after_an_hour_and_if_it_is_from_the_future(places: Paths, name: str) -> None:
    # A backup is unpacked only while no other Chorus runs, and an answer to its question is waited for.
    is_unpacked = name.startswith(".restoring-")
    path = put(places.database.parent / name)
    # A clock may be some minutes off.
    for age in (timedelta(minutes=50), timedelta(minutes=-50)):
        set_age(path, age)
        assert left(places) == ([name] if is_unpacked else [])
    for age in (-DAY_OLD, DAY_OLD):
        set_age(path, age)
        assert left(places) == [name]
    with file_lock.hold(places.run / RUN):
        assert left(places) == ([] if is_unpacked else [name])
    delete(temporary_files(places, NOW))
    assert not path.exists()


@pytest.mark.parametrize("name", KEPT)
def test_a_file_of_another_name_or_place_is_none(places: Paths, name: str) -> None:
    put(places.database.parent / name)
    assert left(places) == []


@pytest.mark.parametrize(("copy", "draft"), [("0copyofd", "1draftof"), ("1copyofd", "0draftof")])
def test_an_old_file_of_a_backup_that_is_still_packed_is_none(places: Paths, copy: str, draft: str) -> None:
    put(places.backups / f".chorus-{copy}.tmp", timedelta(hours=3))
    put(places.backups / f".chorus-{draft}.tmp", timedelta(seconds=1))
    assert left(places) == []


def test_a_link_with_such_a_name_is_none(places: Paths) -> None:
    target = put(places.database.parent / "notes.txt")
    link = places.database.parent / ".chorus-ab12_z9k.tmp"
    link.symlink_to(target)
    os.utime(link, (0, 0), follow_symlinks=False)
    assert left(places) == []


def test_a_temporary_file_in_a_temporary_folder_is_counted_with_it(places: Paths) -> None:
    folder = put(places.personas / ".persona-ab12_z9k")
    put(folder / ".chorus-ab12_z9k.tmp")
    os.utime(folder, (0, 0))
    assert left(places) == ["personas/.persona-ab12_z9k"]


def test_a_lock_file_that_cannot_be_opened_counts_as_one_of_a_running_chorus(places: Paths) -> None:
    put(places.database.parent / ".restoring-ab12_z9k")
    (places.run / RUN).symlink_to(RUN)
    assert left(places) == []


def with_log(places: Paths) -> None:
    migrations.find_or_create(places.database, lambda path: sqlite3.connect(path, isolation_level=None))


def with_older_log(places: Paths) -> None:
    """Make a log without its latest step."""
    with_log(places)
    sql(places.database, "DELETE FROM schema_migrations WHERE rowid = (SELECT MAX(rowid) FROM schema_migrations)")


def with_attachment(places: Paths) -> None:
    with_log(places)
    attachments.AttachmentFolder(places.attachments).store(b"a picture")
    (places.backups / archive.LOCK).touch()


def with_backup(places: Paths) -> None:
    with_log(places)
    examination.copy_database(places.database, places.backups / "older.db")


def migrated(places: Paths) -> None:
    connection = sqlite3.connect(places.database, isolation_level=None)
    migrations.migrate(connection, backups=places.backups)


def backed_up_without_links(places: Paths) -> None:
    """Make a daily backup on a disk that knows no hard links."""
    sys.addaudithook(lambda name, _values: refuse() if name == "os.link" else None)
    archive.make_daily(places, Request(places.backups / "daily-2026-11-22.zip", NOW, holds_attachments=False))


def refuse() -> None:
    raise PermissionError


SESSION = Session("2026-11-22_x", "chorus", NOW, "", "", 0, NOW, NOW, 1, (), ())
MAKERS: dict[str, tuple[str, Callable[[Paths], object]]] = {
    "settings": ("os.rename", lambda places: write_atomically(places.config_file, "{}")),
    "session": ("os.rename", lambda places: session_files.create(places.personas, SESSION)),
    "attachment": ("os.rename", lambda places: attachments.AttachmentFolder(places.attachments).store(b"a picture")),
    "draft": ("os.rename", lambda places: drafts.create(places.drafts, "context.md", "a draft")),
    "new log": ("os.link", with_log),
    "new persona": ("os.rename", lambda places: persona_files.create(places.personas, NewPersona("frodo", "{}"))),
    "shipped personas": ("os.rename", lambda places: persona_files.install(places.personas, places.backups / "new")),
    "backup": ("os.link", lambda places: archive.write(places, Request(places.backups / "all.zip", NOW))),
    "copy before a step": ("os.rename", migrated),
    "attachments of a daily backup": ("os.rename", backed_up_without_links),
    "purged backup": ("sqlite3.connect", lambda places: rewrite(places, places.backups / "older.db", Sought(), NOW)),
    "restore": ("open", lambda places: restoring.staged(places, "none.zip", NOW).__enter__()),
}
PREPARED: dict[str, Callable[[Paths], object]] = {
    "backup": with_log,
    "copy before a step": with_older_log,
    "attachments of a daily backup": with_attachment,
    "purged backup": with_backup,
}


@pytest.mark.parametrize("maker", MAKERS)
def test_the_temporary_files_of_a_killed_maker_are_found(places: Paths, maker: str) -> None:
    home = places.database.parent
    PREPARED.get(maker, bool)(places)
    before = {*home.rglob("*")}
    killed_at(MAKERS[maker][0], lambda: MAKERS[maker][1](places))
    assert {*home.rglob("*")} - before
    delete(temporary_files(places, datetime.now(UTC) + DAY_OLD))
    made = {path for path in {*home.rglob("*")} - before if path.is_file()}
    assert made == set()


QUESTION = ["DELETE FROM messages WHERE id = 1"]
OPERATION = ["UPDATE messages SET introduced_by = 99 WHERE id = 2", "DELETE FROM operations WHERE id = 99"]
THREAD = ["DELETE FROM threads"]
NUMBER = ["DELETE FROM messages WHERE id > 2"]
UNREADABLE = ["UPDATE messages SET usage = 'x' WHERE id = 2"]
TURN = ["UPDATE messages SET turn_id = 99 WHERE id = 2"]
REFERS = "message that refers to rows that are gone"


def of_subject(world: World, subject: str) -> list[Finding]:
    return [each for each in check_log(places_of(world)) if each.subject == subject]


@pytest.mark.parametrize(
    ("statements", "told", "state"),
    [
        (QUESTION, f"The log has 1 {REFERS}. 1 message is gone: #1.", "wrong"),
        (OPERATION, f"The log has 1 {REFERS}.", "wrong"),
        (THREAD, "The log has 2 messages that refer to rows that are gone.", "wrong"),
        (UNREADABLE, "Message 2 of chorus (", "wrong"),
        (TURN, f"The log has 1 {REFERS}.", "wrong"),
        (NUMBER, "6 messages are gone: #3, #4, #5, #6, #7 and 1 more.", "note"),
    ],
)
async def test_rows_that_are_gone_or_cannot_be_read_are_told_and_a_salvage_offered(
    world: World, statements: Sequence[str], told: str, state: str
) -> None:
    for text in ("hello", "and", "then", "more")[: 4 if statements is NUMBER else 1]:
        await world.say(text)
    changed(world, statements)
    (found,) = of_subject(world, "rows")
    assert found.sentence.startswith(told)
    assert found.sentence.endswith(
        ". A salvage keeps all texts, and restores lost rows if the newest sound backup has them."
    )
    assert (found.state, found.repair) == (state, "salvage")


@pytest.mark.parametrize("column", ["context_items.content", "operations.detail", "threads.title", "sessions.summary"])
async def test_a_text_that_is_not_utf_8_is_told_and_a_salvage_offered(world: World, column: str) -> None:
    await world.say("hello")
    await world.told("/remember it rains")
    await world.told("/context save rain")
    table, name = column.split(".")
    changed(world, [f"UPDATE {table} SET {name} = CAST(x'fffe41' AS TEXT)"])  # noqa: S608 - the names above
    (found,) = of_subject(world, "rows")
    assert "a name or a text in it is not UTF-8" in found.sentence
    assert (found.state, found.repair) == ("wrong", "salvage")


@pytest.mark.parametrize("statements", [THREAD, UNREADABLE])
async def test_a_salvage_without_a_backup_mends_threads_and_values(world: World, statements: Sequence[str]) -> None:
    await world.say("hello")
    changed(world, statements)
    with salvaging.salvaged(places_of(world)) as (folder, counts), examination.opened(folder / "chorus.db") as log:
        assert counts.backup is None
        assert (examination.dangling_references(log), examination.unreadable(log)) == ("", [])


@pytest.mark.parametrize("has_backup", [True, False])
async def test_a_salvage_brings_messages_that_no_other_row_names_from_a_backup(
    world: World, *, has_backup: bool
) -> None:
    places_of(world).backups.mkdir()
    for text in ("hello", "and", "then", "more"):
        await world.say(text)
    if has_backup:
        backup_of(world, "all.zip", 0)
    changed(world, NUMBER)
    with salvaging.salvaged(places_of(world)) as (_, counts):
        assert counts.from_backup == (6 if has_backup else 0)


async def test_a_salvage_rolls_the_transaction_of_a_killed_process_back(world: World) -> None:
    await world.say("hello")
    database = places_of(world).database
    cut_off(database)
    broken = database.read_bytes()
    assert b"cut off" in broken
    with (
        salvaging.salvaged(places_of(world)) as (folder, _counts),
        examination.opened(folder / "chorus.db") as connection,
    ):
        assert connection.execute("SELECT content FROM messages").fetchall() == [("hello",), ("ok",)]
    assert database.read_bytes() == broken
