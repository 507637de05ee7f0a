"""Backups are purged by the criteria of the log, and neither a salvage nor a backup brings purged texts back."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zipfile import ZipFile

import pytest

from chorus_cli.framework.replies import Question
from chorus_cli.log.rows import input_rows
from chorus_cli.machine.paths import Paths, paths
from chorus_cli.stores.backup import archive, salvaging
from chorus_cli.stores.backup.archive import Request
from chorus_cli.stores.listing import KEPT_ATTACHMENTS
from chorus_cli.stores.purge import backups
from chorus_cli.stores.purge.backups import Sought, rewrite, rows_purged
from chorus_cli.stores.purge.files import delete_remains
from chorus_cli.stores.rules.findings import Repair
from chorus_cli.stores.service.checks import check_leftovers, temporary_files
from chorus_cli.subcommands.repairs import MENDS
from tests.attachments.attached_talk import say
from tests.killed_program import killed_at
from tests.storage.database import of_sqlite, sql
from tests.stores.service.canary_talk import CANARY, canary_talk, holding, purged
from tests.stores.service.test_leftovers import with_log
from tests.stores.service.test_stored_files import NOW, backup_of, changed, places_of
from tests.turns.service.tool_talk import call, calls, events_of
from tests.world import World

of_daily_backups = of_sqlite("daily backups")
of_salvage = of_sqlite("a salvage from backups")


async def backed_up_talk(world: World) -> None:
    """Have the word everywhere, in lines and names too that no message is a source of, and make a backup."""
    await canary_talk(world)
    for line in (f"/context save about {CANARY}", f"/search {CANARY}"):
        await world.store.write(input_rows.add, "chorus", line, world.clock.now())
    await world.told(f"/context save about {CANARY}")
    await world.told("/backup")
    assert any(name.startswith("backups/") for name in holding(world.folder))


async def test_a_search_leaves_its_words_nowhere_in_a_backup(world: World) -> None:
    await backed_up_talk(world)
    assert (await purged(world, f"/purge search {CANARY} --backups")).endswith("Rewrote 1 backup.")
    assert holding(world.folder) == []


@pytest.mark.parametrize("line", ["/purge since 1h", "/purge thread 1"])
async def test_a_thread_in_which_a_tool_was_called_leaves_no_title_in_a_backup(tooled: World, line: str) -> None:
    calls(tooled, call("echo", {"text": "red"}))
    await events_of(tooled, "Say red.")
    await tooled.told(f"/thread rename The {CANARY} affair")
    await tooled.told("/backup")
    tooled.clock.advance(timedelta(minutes=3))
    assert (await purged(tooled, f"{line} --backups")).endswith("Rewrote 1 backup.")
    assert holding(tooled.folder) == []


@of_daily_backups
async def test_a_rewritten_daily_backup_is_as_old_as_it_was_and_keeps_its_place(world: World) -> None:
    upkeep = world.services
    await world.say(f"The word is {CANARY}.")
    for number in range(3):
        assert await upkeep.backups.make_daily() == ""
        newest = archive.listed(upkeep.backups.places)[-1]
        os.utime(newest, (100.0 * number, 100.0 * number))
        world.clock.advance(timedelta(days=1))
    *held, other = archive.listed(upkeep.backups.places)
    other.unlink()
    times = [path.stat().st_mtime for path in held]
    assert (await purged(world, f"/purge search {CANARY} --backups")).endswith("Rewrote 2 backups.")
    assert archive.listed(upkeep.backups.places) == held
    assert [path.stat().st_mtime for path in held] == times
    assert holding(world.folder) == []


@pytest.mark.parametrize("is_daily", [False, pytest.param(True, marks=of_daily_backups)])
async def test_a_search_finds_words_that_only_an_attached_text_of_backups_has(world: World, *, is_daily: bool) -> None:
    note = world.folder.with_name("note.txt")
    note.write_text(f"{CANARY} in a file", encoding="utf-8")
    await say(world, f"Look at this: @{note}")
    await world.say("And what else?")
    if is_daily:
        for _ in range(2):
            await world.services.backups.make_daily()
            world.clock.advance(timedelta(days=1))
    else:
        await world.told("/backup")
    await (await world.asked_back("/purge message 1")).confirmed()
    assert all(name.startswith("backups/") for name in holding(world.folder))
    assert " the texts." in await world.told(f"/purge search {CANARY} --dry-run")
    assert (await purged(world, f"/purge search {CANARY}")).startswith("Rewrote ")
    assert holding(world.folder) == []


@of_daily_backups
@pytest.mark.parametrize("named_by", ["nothing", "another backup", "the log"])
async def test_an_attachment_beside_the_daily_backups_goes_unless_it_is_still_named(
    world: World, named_by: str
) -> None:
    upkeep = world.services
    places = upkeep.backups.places
    note = world.folder.with_name("note.txt")
    note.write_text("a red note", encoding="utf-8")
    await say(world, f"Look at this: @{note}")
    await upkeep.backups.make_daily()
    rewritten = archive.listed(places)[0]
    world.clock.advance(timedelta(days=1))
    if named_by == "the log":
        await say(world, f"Look at it again: @{note}")
    if named_by == "another backup":
        await upkeep.backups.make_daily()
    await (await world.asked_back("/purge message 1")).confirmed()
    sought = Sought(await world.store.read(rows_purged))
    rewrite(places, rewritten, sought, world.clock.now())
    assert len([*KEPT_ATTACHMENTS.files(places)]) == (named_by != "nothing")


async def test_a_search_finds_words_that_only_backups_have(world: World) -> None:
    await backed_up_talk(world)
    assert "still has the texts" in await purged(world, f"/purge search {CANARY}")
    assert all(name.startswith("backups/") for name in holding(world.folder))
    await purged(world, "/purge backups")
    assert "Nothing was purged" in await world.told(f"/purge search {CANARY} --dry-run")
    assert await purged(world, f"/purge search {CANARY}") == "Rewrote 1 backup."
    assert holding(world.folder) == []
    assert await world.told(f"/purge search {CANARY}") == "Nothing matches, so nothing was purged."


@of_sqlite("backups with the input history")
@pytest.mark.parametrize("line", ["/purge persona chorus", "/purge since 1h"])
async def test_lines_that_a_persona_or_a_span_selects_leave_a_backup_by_the_same_purge(world: World, line: str) -> None:
    await world.say("hello")
    await world.store.write(input_rows.add, "chorus", CANARY, world.clock.now())
    await world.told("/backup")
    world.clock.advance(timedelta(minutes=3))
    offered = await (await world.asked_back(line)).confirmed()
    assert isinstance(offered, Question)
    assert offered.declined.text.endswith(" The same purge with --backups rewrites them.")
    assert await purged(world, "/purge backups") == "Rewrote 1 backup."
    assert await purged(world, line) == "Rewrote 1 backup."
    assert holding(world.folder) == []


async def test_an_archive_that_chorus_did_not_make_stays_as_it_is_and_is_named(world: World) -> None:
    await world.say(f"The word is {CANARY}.")
    await world.told("/backup")
    (made,) = (world.folder / "backups").glob("*.zip")
    path = made.with_name("mine.zip")
    with ZipFile(path, "w") as mine, ZipFile(made) as backup:
        mine.writestr("chorus.db", backup.read("chorus.db"))
    made.unlink()
    before, told = path.read_bytes(), list[str]()
    with world.services.notifier.heard_by(told.append, told.append):
        await purged(world, f"/purge search {CANARY} --backups")
    assert path.read_bytes() == before
    assert [each for each in told if each.startswith(f"{path} may still have the texts. ")]


async def test_a_kept_log_that_cannot_be_read_is_named_with_its_journal(world: World) -> None:
    folder = places_of(world).backups
    folder.mkdir(exist_ok=True)
    for ending in ("", "-journal"):
        (folder / f"damaged-2026-02-12_110000.db{ending}").write_text(CANARY)
    await world.say(f"The word is {CANARY}.")
    told = await purged(world, f"/purge search {CANARY}")
    assert "damaged-2026-02-12_110000.db and damaged-2026-02-12_110000.db-journal still have the texts." in told


async def test_a_purge_names_rescued_texts_and_the_log_on_a_server(world: World) -> None:
    await canary_talk(world)
    (world.folder / "beside-0123456789abcdef.db").touch()
    told = list[str]()
    question = await world.asked_back(f"/purge search {CANARY}")
    assert "1 draft and 1 file of rescued texts." in question.text
    with world.services.notifier.heard_by(told.append, told.append):
        await question.confirmed()
    server = "Dumps and archives of the server" if world.store.server else "The log on a server may have the texts too:"
    assert [each for each in told if each.startswith(server)]


LOOK = Sought()
KILLED: dict[str, tuple[str, Callable[[Paths], object]]] = {
    "being looked through": ("sqlite3.connect", lambda places: backups.holding(places, LOOK)),
    "being purged": ("sqlite3.connect", lambda places: rewrite(places, places.backups / "all.zip", Sought(), NOW)),
    "being replaced": ("os.utime", lambda places: rewrite(places, places.backups / "all.zip", Sought(), NOW)),
}


@pytest.mark.parametrize(("event", "work"), KILLED.values(), ids=KILLED)
def test_the_doctor_finds_the_folder_of_a_killed_purge_after_an_hour_and_the_next_purge_deletes_it(
    places: Paths, event: str, work: Callable[[Paths], object]
) -> None:
    with_log(places)
    archive.write(places, Request(places.backups / "all.zip", NOW))
    killed_at(event, lambda: work(places))
    assert [path for path in places.backups.rglob(".chorus-*/**/*") if path.is_file()]
    assert temporary_files(places, datetime.now(UTC)) == []
    now = datetime.now(UTC) + timedelta(hours=2)
    (found,) = temporary_files(places, now)
    assert found.parent == places.backups
    told = [each for each in check_leftovers(places, now) if each.subject == "leftovers"]
    assert [each.repair for each in told] == ["leftovers"]
    assert str(found) in told[0].sentence
    delete_remains(places)
    assert [path.name for path in places.backups.glob(".chorus-*")] == []


def test_a_look_into_the_backups_leaves_no_folder(places: Paths) -> None:
    with_log(places)
    archive.write(places, Request(places.backups / "all.zip", NOW))
    assert backups.holding(places, LOOK) == []
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


def test_a_working_folder_is_deleted_once_an_error_has_passed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failures, unlink = iter([OSError(errno.EMFILE, os.strerror(errno.EMFILE))]), os.unlink

    def remove(path: str, *, dir_fd: int | None = None) -> None:
        for error in failures:
            raise error
        unlink(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", remove)
    with archive.working_folder(tmp_path) as folder:
        (folder / "part").write_text("a word")
    assert [*tmp_path.iterdir()] == []


DELETED_FROM = "SELECT COUNT(*) FROM input_history UNION ALL SELECT COUNT(*) FROM sessions"
NO_PURGE = "DELETE FROM operations WHERE kind = 'purge'"
NO_PURGED_MESSAGES = "DELETE FROM messages WHERE purged_by IS NOT NULL"
NO_ITEMS = "DELETE FROM context_items"
DAMAGE = {
    "a usage": ["UPDATE messages SET usage = 'x' WHERE id = (SELECT MAX(id) FROM messages)"],
    "purged messages": [NO_PURGED_MESSAGES],
    "a purged text": ["UPDATE messages SET content = 'x' WHERE id = 1"],
    "the purge": [NO_PURGE],
    "the purge and its name": [NO_PURGE, "DELETE FROM meta WHERE key = 'newest_purge'"],
    "all that the purge marked": [NO_PURGED_MESSAGES, NO_ITEMS],
    "the purge and all that it marked": [NO_PURGE, NO_PURGED_MESSAGES, NO_ITEMS],
    "a purge that cannot be read": ["UPDATE operations SET detail = '[1]' WHERE kind = 'purge'", NO_PURGED_MESSAGES],
    "the memory": [NO_ITEMS, "DELETE FROM context_checkpoints"],
    "the journal": ["DELETE FROM operations WHERE kind <> 'purge'", "DELETE FROM summaries"],
}


async def purged_and_lost(world: World) -> None:
    await (await world.asked_back(f"/purge search {CANARY}")).confirmed()
    assert all(name.startswith("backups/") for name in holding(world.folder))


@of_salvage
@pytest.mark.parametrize("statements", DAMAGE.values(), ids=DAMAGE)
async def test_a_salvage_brings_nothing_purged_back(world: World, statements: Sequence[str]) -> None:
    places_of(world).backups.mkdir()
    await canary_talk(world)
    backup_of(world, "all.zip", 0)
    await purged_and_lost(world)
    changed(world, statements)
    with salvaging.salvaged(places_of(world)) as (folder, counts):
        assert counts.backup is None
        assert holding(folder) == []


@of_salvage
@pytest.mark.parametrize("gone", [[], [NO_PURGED_MESSAGES, "DELETE FROM summaries"]])
async def test_pages_from_before_a_purge_bring_nothing_back(world: World, gone: Sequence[str]) -> None:
    database = places_of(world).database
    places_of(world).backups.mkdir()
    await world.say(f"The word is {CANARY}.")
    await world.told(f"/remember {CANARY}")
    before = database.read_bytes()
    await purged_and_lost(world)
    changed(world, gone)
    pages = [before[at : at + 4096] for at in range(0, len(before), 4096)]
    database.write_bytes(database.read_bytes() + b"".join(page for page in pages if CANARY.encode() in page))
    assert CANARY.encode() in database.read_bytes()
    with salvaging.salvaged(places_of(world)) as (folder, _counts):
        assert holding(folder) == []


@of_salvage
async def test_rows_that_are_gone_come_from_a_backup_without_purged_ones(world: World) -> None:
    places_of(world).backups.mkdir()
    for text in (f"The word is {CANARY}.", "Is the weather fine?"):
        await world.say(text)
    backup_of(world, "newest.zip", 0)
    await purged_and_lost(world)
    older = backup_of(world, "older.zip", 1)
    changed(world, ["DELETE FROM messages WHERE id = 3"])
    with salvaging.salvaged(places_of(world)) as (folder, counts):
        assert (counts.backup, counts.from_backup) == (older, 1)
        assert sql(folder / "chorus.db", "SELECT content FROM messages") == ["", "ok", "Is the weather fine?", "ok"]


@of_salvage
async def test_deleted_rows_of_a_backup_stay_deleted(world: World) -> None:
    places_of(world).backups.mkdir()
    await world.say("hello")
    await world.told("/context save about hello")
    await world.store.write(input_rows.add, "chorus", "hello", world.clock.now())
    assert sql(places_of(world).database, DELETED_FROM) == [1, 1]
    backup = backup_of(world, "all.zip", 0)
    changed(world, ["DELETE FROM input_history", "DELETE FROM sessions"])
    changed(world, ["DELETE FROM messages WHERE id = 1"])
    with salvaging.salvaged(places_of(world)) as (folder, counts):
        assert (counts.backup, counts.from_backup) == (backup, 1)
        assert sql(folder / "chorus.db", DELETED_FROM) == [0, 0]


UNKNOWN = "It is unknown how many more {} are lost."


@of_salvage
@pytest.mark.parametrize(
    ("gone", "told", "earlier"),
    [
        ("DELETE FROM context_items", [UNKNOWN.format("memory items")], 0),
        ("DELETE FROM context_items WHERE id = 1", ["1 memory item is gone: #1."], 1),
        ("DELETE FROM sqlite_sequence", [UNKNOWN.format("messages"), UNKNOWN.format("memory items")], 0),
    ],
)
async def test_lost_items_are_named_and_a_purge_finds_their_words(
    world: World, gone: str, told: list[str], earlier: int
) -> None:
    for number in (1, 2):
        await world.told(f"/remember {CANARY} {number}")
    changed(world, [gone])
    with salvaging.salvaged(places_of(world)) as (_folder, counts):
        assert [*counts.gone] == told
    question = await world.asked_back(f"/purge search {CANARY}")
    assert (f"{earlier} earlier text" in question.text) is (earlier > 0)
    await question.confirmed()
    assert holding(world.folder) == []


@of_salvage
async def test_of_the_single_values_only_the_ends_of_earlier_personas_come_back(world: World) -> None:
    places_of(world).backups.mkdir()
    await world.say("hello")
    changed(world, ["INSERT INTO meta VALUES ('threads_before:frodo', '7'), ('purge', '{}')"])
    backup_of(world, "all.zip", 0)
    changed(world, ["DELETE FROM meta"])
    with salvaging.salvaged(places_of(world)) as (folder, _counts):
        assert sql(folder / "chorus.db", "SELECT key FROM meta") == ["threads_before:frodo"]


async def test_a_purge_finds_words_in_an_operation_that_cannot_be_read(world: World) -> None:
    await world.told(f"/remember {CANARY}")
    changed(world, ["UPDATE operations SET detail = substr(detail, 2)", "DELETE FROM context_items"])
    await purged_and_lost(world)
    assert "cannot be read" in await world.told("/context ops")


@of_salvage
async def test_a_changed_text_of_a_purged_message_is_not_brought(world: World) -> None:
    places_of(world).backups.mkdir()
    await world.say(f"The word is {CANARY}.")
    backup_of(world, "all.zip", 0)
    await purged_and_lost(world)
    changed(world, ["UPDATE messages SET content = 'x' WHERE id = 1"])
    home = paths({}, str(world.folder))
    home.make()
    assert await MENDS[Repair.CHECKSUMS](home) is False
    assert sql(places_of(world).database, "SELECT content FROM messages WHERE id = 1") == ["x"]
