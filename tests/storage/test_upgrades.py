"""A database of an earlier Chorus: nothing is lost when its tables change, and it is copied before that."""

from __future__ import annotations

import json
import sqlite3
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from chorus_cli.context.rows import snapshot_rows
from chorus_cli.context.rules.view import Summary
from chorus_cli.core.errors import StorageError
from chorus_cli.core.time import timestamps
from chorus_cli.log.rows.operation_rows import introduce
from chorus_cli.log.rules.acts import ACTS, Clear, Edit, Fold, Subject, Undo
from chorus_cli.log.rules.operations import NewOperation
from chorus_cli.storage.migrations import STEPS, applied, migrate
from chorus_cli.storage.store import Store
from tests.fakes import START
from tests.log.rows.views import view_in
from tests.storage.unsynced import confirmed_syncs

if TYPE_CHECKING:
    from pathlib import Path

    from chorus_cli.log.rules.log_acts import Act

TABLES = ("messages", "operations", "operation_members", "summaries", "threads", "sqlite_sequence")


def connected(path: Path) -> sqlite3.Connection:
    opened = sqlite3.connect(path, isolation_level=None)
    opened.execute("PRAGMA foreign_keys = ON")
    return opened


def act(connection: sqlite3.Connection, act: Act, thread: int | None = None) -> int:
    """Store an operation of frodo's after message 4, as the first Chorus did."""
    cursor = connection.execute(
        "INSERT INTO operations(persona, thread_id, kind, after_message_id, detail, created_at) VALUES (?,?,?,?,?,?)",
        ("frodo", thread, act.kind, 4, json.dumps(act.detail()), timestamps.to_text(START)),
    )
    return int(cursor.lastrowid or 0)


def say(connection: sqlite3.Connection, role: str, content: str, turn: int) -> None:
    """Store a message of frodo's, as the first Chorus did."""
    connection.execute(
        "INSERT INTO messages(persona, thread_id, turn_id, role, content, timestamp) VALUES ('frodo', 1, ?, ?, ?, ?)",
        (turn, role, content, timestamps.to_text(START)),
    )


@pytest.fixture
def old(path: Path) -> Path:
    """A database of the first step: two turns, an edit, a fold with its summary, and a clear that was undone."""
    with closing(connected(path)) as connection:
        migrate(connection, STEPS[:1])
        connection.execute("INSERT INTO threads(persona) VALUES ('frodo')")
        for first in (1, 3):
            say(connection, "user", "Who goes there?", first)
            say(connection, "assistant", "A friend.", first)
        act(connection, Edit(), 1)
        connection.executemany("INSERT INTO operation_members VALUES (1, ?, ?)", enumerate((2, 1, 4)))
        fold = act(connection, Fold(((2, 2),)), 1)
        snapshot_rows.store(connection, "frodo", 1, Summary(fold, 1, ((2, 2),), "They met.", 3, None, START))
        act(connection, Undo(Subject(act(connection, Clear()))))
        connection.execute("INSERT INTO operations(id, persona, kind) VALUES (70, 'sam', 'clear')")
        connection.execute("DELETE FROM operations WHERE id = 70")
    return path


def contents(connection: sqlite3.Connection) -> dict[str, list[tuple[object, ...]]]:
    """Return the rows of every table that a step might touch, as far as the first step knew them."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as first:
        migrate(first, STEPS[:1])
        columns = {table: first.execute(f"PRAGMA table_info({table})").fetchall() for table in TABLES}
    known = {table: ", ".join(name for _, name, *_ in found) for table, found in columns.items()}
    return {table: sorted(connection.execute(f"SELECT {known[table]} FROM {table}"), key=str) for table in TABLES}  # noqa: S608 - names of this file


def test_every_row_and_its_id_is_kept(old: Path) -> None:
    with closing(connected(old)) as connection:
        before = contents(connection)
        migrate(connection)
        assert contents(connection) == before
        seen = view_in(connection, "frodo", 1, START.replace(year=2000))
        assert [row.id for row in seen.messages] == [2, 1, 4]
        assert seen.boundary_id == 1
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def test_the_references_to_operations_hold_as_before(old: Path) -> None:
    with closing(connected(old)) as connection:
        migrate(connection)
        for statement in ("DELETE FROM operations", "INSERT INTO operation_members VALUES (99, 0, 1)"):
            with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
                connection.execute(statement)


def test_the_id_of_an_operation_deleted_before_is_not_given_again(old: Path) -> None:
    with closing(connected(old)) as connection:
        migrate(connection)
        assert introduce(connection, NewOperation("frodo", Clear(), START)).id == 71


@pytest.mark.parametrize("kind", [*ACTS, "an act of the years to come"])
def test_an_operation_may_be_of_any_kind(old: Path, kind: str) -> None:
    with closing(connected(old)) as connection:
        migrate(connection)
        connection.execute("INSERT INTO operations(persona, kind) VALUES ('frodo', ?)", (kind,))
        assert connection.execute("SELECT kind FROM operations ORDER BY id DESC LIMIT 1").fetchone() == (kind,)


def test_a_step_that_another_process_takes_is_waited_for_and_taken_once(old: Path) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def pause() -> int:
        begun.set()
        return int(may_end.wait(10))

    def upgrade() -> None:
        with closing(sqlite3.connect(old, timeout=10, isolation_level=None)) as connection:
            connection.create_function("pause", 0, pause)
            migrate(connection, [STEPS[0], ("0002_slow", ("CREATE TABLE two(id)", "INSERT INTO two VALUES (pause())"))])

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(upgrade)
        assert begun.wait(10)
        second = pool.submit(upgrade)
        time.sleep(0.2)
        may_end.set()
        first.result(20)
        second.result(20)
    with closing(connected(old)) as connection:
        assert connection.execute("SELECT id FROM two").fetchall() == [(1,)]


# Copies


async def test_a_database_is_copied_before_its_tables_change(old: Path, tmp_path: Path) -> None:
    backups = tmp_path / "backups"
    with closing(connected(old)) as connection:
        before, rows = list(connection.iterdump()), contents(connection)
    store = Store(old, backups)
    await store.open()
    assert await store.read(contents) == rows
    await store.close()
    (copy,) = backups.iterdir()
    assert copy.name.startswith("chorus-")
    assert copy.name.endswith("-before-0002_acts_of_any_kind.db")
    assert [stat.S_IMODE(each.stat().st_mode) for each in (backups, copy)] == [0o700, 0o600]
    with closing(connected(copy)) as connection:
        assert list(connection.iterdump()) == before


async def test_the_name_of_the_copy_is_synced(old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    confirmed = confirmed_syncs(monkeypatch)
    store = Store(old, tmp_path / "backups")
    await store.open()
    await store.close()
    (copy,) = (tmp_path / "backups").iterdir()
    assert confirmed.has_name(copy)


async def test_a_database_that_needs_no_change_is_not_copied(path: Path, tmp_path: Path) -> None:
    for _ in range(2):
        store = Store(path, tmp_path / "backups")
        await store.open()
        await store.close()
    assert not (tmp_path / "backups").exists()


async def test_nothing_is_changed_where_no_copy_can_be_made(old: Path, tmp_path: Path) -> None:
    (tmp_path / "backups").touch()
    with pytest.raises(StorageError, match=r"must be copied to .*backups before .*File exists\. Nothing was changed"):
        await Store(old, tmp_path / "backups").open()
    with closing(connected(old)) as connection:
        assert applied(connection) == [STEPS[0][0]]


async def test_a_copy_cut_short_is_begun_anew(old: Path, tmp_path: Path) -> None:
    backups = tmp_path / "backups"
    with pytest.raises(sqlite3.OperationalError), closing(connected(old)) as connection:
        migrate(connection, [STEPS[0], (STEPS[1][0], ("INSERT INTO nowhere VALUES (1)",))], backups)
    store = Store(old, backups)
    await store.open()
    await store.close()
    for copy in backups.iterdir():
        with closing(connected(copy)) as connection:
            assert applied(connection) == [STEPS[0][0]]
