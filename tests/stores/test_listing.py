"""Every table of the log and every place of a home is on the list of stores, or known to have no words."""

from __future__ import annotations

import errno
import os
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from chorus_cli.machine.paths import paths
from chorus_cli.storage.port import Connection
from chorus_cli.storage.store import Store
from chorus_cli.stores import listing
from chorus_cli.tools.service import BUILT_IN
from tests.fakes import FakeClock, ScriptedModel
from tests.storage.database import database
from tests.stores.service.canary_talk import CANARY, canary_talk, holding, purged, sql
from tests.world import Tools, built

FOLLOWING = {
    "message_words": "messages, whose index a purge begins anew",
    "context_item_words": "items, whose index a purge makes again",
    "sessions": "files of sessions, of which the rows are a list",
    "meta": "the purge that is not complete, until it is",
}
"""Tables whose words are those of another store, and that store."""

WORDLESS = frozenset(
    {
        "changed_rows",
        "imported_conversations",
        "imported_messages",
        "installation",
        "message_vectors",
        "numbers",
        "operation_members",
        "other_installations",
        "other_requests",
        "schema_migrations",
        "sqlite_sequence",
    }
)
"""Tables of ids, numbers, names of other programs, hashes, and vectors, which a trigger deletes."""


THOUGHTS = (
    "SELECT reasoning, thought_parts, thought_seconds, thought_tokens FROM messages WHERE id IN (6, 8) "
    "AND purged_by IS NOT NULL"
)


def test_every_table_is_on_the_list_once() -> None:
    with closing(database()) as connection:
        found = connection.execute("SELECT name FROM pragma_table_list WHERE schema = 'main' AND type <> 'shadow'")
        tables = {name for (name,) in found} - {"sqlite_schema"}
    listed = {each.table for each in listing.ROWS}
    assert tables - listed - FOLLOWING.keys() - WORDLESS == set()
    assert not listed & FOLLOWING.keys()
    assert not (listed | FOLLOWING.keys()) & WORDLESS


def test_every_place_of_a_home_is_on_the_list_once() -> None:
    home = paths({}, "/home/of/nobody")
    listed = [each.place(home) for each in listing.FILES]
    roots = {home.data, home.config, home.state}
    assert sorted(listed) == sorted({*vars(home).values(), *(path for _, path in home.listing())} - roots)


def test_a_backup_is_named_as_a_home_in_one_folder() -> None:
    backup, root = listing.home_in(Path("/backup")), Path("/backup")
    assert [str(each.place(backup).relative_to(root)) for each in listing.FILES if each.put] == [
        "personas",
        "config.jsonc",
        "attachments",
        "chorus.db",
        "commands",
    ]


def test_files_come_to_another_disk_and_replace_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("backup/ab/new", "backup/ab/old", "home/ab/old"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    monkeypatch.setattr(os, "rename", another_disk)
    assert listing.ATTACHMENTS.put
    listing.ATTACHMENTS.put(tmp_path / "backup", tmp_path / "home")
    assert [(tmp_path / "home/ab" / name).read_text() for name in ("new", "old")] == ["backup/ab/new", "home/ab/old"]


def another_disk(_source: object, _target: object) -> None:
    raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))


async def test_each_store_that_a_purge_looks_into_has_the_canary_and_loses_it(
    tmp_path: Path, store: Store, clock: FakeClock, model: ScriptedModel
) -> None:
    """A new store fails this test until the canary is said in it, and then until a purge finds it there."""
    world = await built(tmp_path, store, clock, model, 10_000, Tools(BUILT_IN))
    await canary_talk(world)
    home = listing.home_in(world.folder)
    shutil.copytree(home.personas / "chorus", home.deleted_personas / "chorus-20260101-090000-000000")
    places = {each.place(home) for each in listing.FILES}
    for path in (world.folder / name for name in holding(world.folder)):
        assert not places.isdisjoint((path, *path.parents)), path
    assert await world.store.read(named) == {each.name for each in listing.ROWS}
    for place in (each.place(home) for each in listing.FILES if each.is_searched):
        assert holding(place), place
    assert await purged(world, f"/purge search {CANARY}") == "9 messages are purged, for good."
    assert await world.store.read(named) == set()
    assert holding(world.folder) == []
    assert await sql(world, THOUGHTS) == [(None,) * 4] * 2


def named(connection: Connection) -> set[str]:
    """Return the names of the stores that have the canary in their rows."""
    return {each.name for each in listing.ROWS if any(CANARY in text for _, _, text, _ in each.texts(connection))}
