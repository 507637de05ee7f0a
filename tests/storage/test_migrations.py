"""The tables: made step by step, each whole or not at all, open to plain SQL, and changed without a loss."""

from __future__ import annotations

import json
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from chorus_cli.core.errors import DatabaseTooNewError, StorageError
from chorus_cli.core.time.timestamps import cutoff
from chorus_cli.log.rows import message_rows
from chorus_cli.log.rows.operation_rows import introduce
from chorus_cli.log.rules.acts import Clear
from chorus_cli.log.rules.messages import Message, Role, Status
from chorus_cli.log.rules.operations import NewOperation
from chorus_cli.storage.migrations import APPLICATION_ID, STEPS, Step, applied, migrate
from chorus_cli.storage.sqlite import Sqlite
from chorus_cli.storage.store import Store
from tests.fakes import START
from tests.log.rows.views import view_in
from tests.storage.database import opened, sql
from tests.storage.unsynced import confirmed_syncs

ONE: Step = ("0001_one", ("CREATE TABLE one(id INTEGER)", "INSERT INTO one VALUES (1)"))
TWO: Step = ("0002_two", ("CREATE TABLE two(id INTEGER)", "INSERT INTO two SELECT id FROM one"))
BROKEN: Step = ("0002_broken", ("CREATE TABLE two(id INTEGER)", "DELETE FROM one", "INSERT INTO nowhere VALUES (1)"))

MINIMAL_ROWS: dict[str, dict[str, object]] = {
    "messages": {"persona": "x", "thread_id": 1, "role": "user", "content": "c", "timestamp": "2026-02-12T14:30:00Z"},
    "threads": {"persona": "x"},
    "operations": {"persona": "x", "kind": "clear"},
    "sessions": {"persona": "x", "session_id": "s", "timestamp": "2026-02-12T14:30:00Z", "file_path": "s.json"},
    "context_items": {"persona": "x", "item_type": "TASK", "content": "c"},
    "context_checkpoints": {"persona": "x", "checkpoint_data": "{}"},
    "input_history": {"persona": "x", "content": "c"},
    "other_requests": {"persona": "x", "thread_id": 1, "timestamp": "2026-02-12T14:30:00Z"},
}


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as opened:
        yield opened


def put_in(connection: sqlite3.Connection, table: str, **values: object) -> None:
    columns, marks = ", ".join(values), ", ".join("?" * len(values))
    connection.execute(f"INSERT INTO {table}({columns}) VALUES ({marks})", tuple(values.values()))  # noqa: S608


def dump(connection: sqlite3.Connection) -> list[str]:
    """Return everything in the database; the full-text index is only named."""
    return [line for line in connection.iterdump() if "message_words_" not in line and "item_words_" not in line]


def pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


# Steps


def test_a_blank_file_becomes_ours(connection: sqlite3.Connection) -> None:
    assert applied(connection) == []
    migrate(connection)
    assert applied(connection) == [name for name, _ in STEPS]
    assert pragma(connection, "application_id") == APPLICATION_ID == int.from_bytes(b"CHOR", "big")
    assert pragma(connection, "user_version") == len(STEPS)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_second_run_does_nothing(connection: sqlite3.Connection) -> None:
    migrate(connection, [ONE, TWO])
    before, changes = dump(connection), connection.total_changes
    migrate(connection, [ONE, TWO])
    assert (dump(connection), connection.total_changes) == (before, changes)


def test_only_what_is_missing_is_applied(connection: sqlite3.Connection) -> None:
    migrate(connection, [ONE])
    connection.execute("INSERT INTO one VALUES (7)")
    migrate(connection, [ONE, TWO])
    assert connection.execute("SELECT id FROM two ORDER BY id").fetchall() == [(1,), (7,)]
    assert applied(connection) == ["0001_one", "0002_two"]
    assert pragma(connection, "user_version") == 2


def test_a_failing_step_leaves_nothing_of_itself_and_all_before_it(connection: sqlite3.Connection) -> None:
    migrate(connection, [ONE])
    before = dump(connection)
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        migrate(connection, [ONE, BROKEN])
    assert dump(connection) == before
    assert pragma(connection, "user_version") == 1
    migrate(connection, [ONE, TWO])
    assert applied(connection) == ["0001_one", "0002_two"]


def test_a_disk_that_fills_up_meanwhile_is_told_as_that(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA max_page_count = 12")
    with pytest.raises(sqlite3.OperationalError) as caught:
        migrate(connection)
    assert caught.value.sqlite_errorcode == sqlite3.SQLITE_FULL
    assert not connection.in_transaction


def test_an_unknown_step_means_a_newer_chorus(connection: sqlite3.Connection) -> None:
    migrate(connection, [ONE, TWO])
    before = dump(connection)
    with pytest.raises(DatabaseTooNewError, match=r"newer Chorus\. Update Chorus to open it\."):
        migrate(connection, [ONE])
    assert dump(connection) == before


def test_steps_have_names_of_their_own_in_their_order() -> None:
    names = [name for name, _ in STEPS]
    assert names == sorted(set(names))


# Tables


@pytest.fixture
def log(connection: sqlite3.Connection) -> sqlite3.Connection:
    migrate(connection)
    return connection


def test_every_table_is_strict(log: sqlite3.Connection) -> None:
    listed = log.execute("PRAGMA table_list").fetchall()
    loose = {name for _, name, kind, *_, strict in listed if kind == "table" and not strict}
    assert loose == {"sqlite_schema", "sqlite_temp_schema", "sqlite_sequence"}


@pytest.mark.parametrize("columns", [["thread_id", "timestamp"], ["persona", "timestamp"]])
def test_messages_are_found_by_an_index(log: sqlite3.Connection, columns: list[str]) -> None:
    indexes = [name for _, name, *_ in log.execute("PRAGMA index_list(messages)").fetchall()]
    assert columns in [
        [column for *_, column in log.execute(f"PRAGMA index_info({name})").fetchall()] for name in indexes
    ]


@pytest.mark.parametrize("table", MINIMAL_ROWS)
def test_a_row_can_be_put_in_with_the_identifying_columns_only(log: sqlite3.Connection, table: str) -> None:
    put_in(log, table, **MINIMAL_ROWS[table])
    assert log.execute(f"SELECT COUNT(*) FROM {table}").fetchone() == (1,)  # noqa: S608 - a name of this file


@pytest.mark.parametrize(
    "times", ["created_at FROM threads", "created_at FROM operations", "last_accessed FROM context_items"]
)
def test_a_time_left_out_is_now(log: sqlite3.Connection, times: str) -> None:
    table = times.rpartition(" ")[2]
    put_in(log, table, **MINIMAL_ROWS[table])
    (text,) = log.execute(f"SELECT {times}").fetchone()
    assert abs((datetime.now(UTC) - datetime.fromisoformat(text)).total_seconds()) < 60


def test_the_id_of_a_deleted_row_is_never_given_again(log: sqlite3.Connection) -> None:
    for table in ("threads", "messages", "operations", "context_items"):
        put_in(log, table, **MINIMAL_ROWS[table])
        log.execute(f"DELETE FROM {table}")  # noqa: S608
        put_in(log, table, **MINIMAL_ROWS[table])
        assert log.execute(f"SELECT id FROM {table}").fetchall() == [(2,)]  # noqa: S608


@pytest.mark.parametrize(
    ("table", "wrong"),
    [
        ("messages", {"role": "system"}),
        ("messages", {"role": None}),
        ("messages", {"status": "done"}),
        ("messages", {"timestamp": "12.02.2026 14:30"}),
        ("messages", {"timestamp": "2026-02-12 14:30:00"}),
        ("messages", {"timestamp": "2026-02-12T14:30:00+01:00"}),
        ("messages", {"thread_id": "one"}),
        ("operations", {"created_at": "yesterday"}),
        ("sessions", {"timestamp": "yesterday"}),
        ("other_requests", {"timestamp": "yesterday"}),
        ("context_items", {"item_type": "NOTE"}),
        ("context_items", {"tier": "LUKEWARM"}),
        ("context_items", {"importance_score": 1.01}),
        ("context_items", {"pinned": 2}),
    ],
)
def test_what_could_not_be_read_back_is_kept_out(log: sqlite3.Connection, table: str, wrong: dict[str, object]) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        put_in(log, table, **{**MINIMAL_ROWS[table], **wrong})


def test_a_message_put_in_by_plain_sql_reads_as_a_complete_turn_of_its_own(log: sqlite3.Connection) -> None:
    said = [("user", "Hello", "2026-02-12T14:30:00Z"), ("assistant", "Hi", "2026-02-12T14:30:01.250000Z")]
    for role, content, timestamp in said:
        put_in(log, "messages", persona="frodo", thread_id=4, role=role, content=content, timestamp=timestamp)
    first, second = (datetime.fromisoformat(timestamp) for *_, timestamp in said)
    assert message_rows.rows(log, [1, 2]) == [
        Message(1, "frodo", 4, 1, Role.USER, "Hello", first, status=Status.COMPLETE),
        Message(2, "frodo", 4, 2, Role.ASSISTANT, "Hi", second, status=Status.COMPLETE),
    ]


def test_messages_put_in_by_plain_sql_are_in_view(log: sqlite3.Connection) -> None:
    for content, timestamp in [("old", "2026-02-12T06:29:59Z"), ("new", "2026-02-12T06:30:01Z")]:
        put_in(log, "messages", persona="frodo", thread_id=4, role="user", content=content, timestamp=timestamp)
    since = cutoff(datetime(2026, 2, 12, 14, 30, tzinfo=UTC), 8)
    assert [row.content for row in view_in(log, "frodo", 4, since).messages] == ["new"]


def connected(path: Path) -> sqlite3.Connection:
    opened = sqlite3.connect(path, isolation_level=None)
    opened.execute("PRAGMA foreign_keys = ON")
    return opened


@pytest.fixture
def old(path: Path) -> Path:
    """A database of the first step, with a thread and without its only operation."""
    with closing(connected(path)) as connection:
        migrate(connection, STEPS[:1])
        connection.execute("INSERT INTO threads(persona) VALUES ('frodo')")
        connection.execute("INSERT INTO operations(id, persona, kind) VALUES (70, 'sam', 'clear')")
        connection.execute("DELETE FROM operations")
    return path


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
    assert sql(old, "SELECT id FROM two") == [1]


# Copies

APPLIED = "SELECT name FROM schema_migrations"


async def test_a_database_is_copied_before_its_tables_change(
    old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backups, confirmed = tmp_path / "backups", confirmed_syncs(monkeypatch)
    with closing(connected(old)) as connection:
        before = list(connection.iterdump())
    async with opened(old, backups) as store:
        assert await store.read(lambda c: c.execute("SELECT persona FROM threads").fetchall()) == [("frodo",)]
        # The id of an operation that was deleted before is not given again.
        assert (await store.write(introduce, NewOperation("frodo", Clear(), START))).id == 71
    (copy,) = backups.iterdir()
    assert confirmed.has_name(copy)
    assert copy.name.startswith("chorus-")
    assert copy.name.endswith("-before-0002_acts_of_any_kind.db")
    assert [stat.S_IMODE(each.stat().st_mode) for each in (backups, copy)] == [0o700, 0o600]
    with closing(connected(copy)) as connection:
        assert list(connection.iterdump()) == before


async def test_a_database_that_needs_no_change_is_not_copied(path: Path, tmp_path: Path) -> None:
    for _ in range(2):
        async with opened(path, tmp_path / "backups"):
            pass
    assert not (tmp_path / "backups").exists()


async def test_nothing_is_changed_where_no_copy_can_be_made(old: Path, tmp_path: Path) -> None:
    (tmp_path / "backups").touch()
    with pytest.raises(StorageError, match=r"must be copied to .*backups before .*File exists\. Nothing was changed"):
        await Store(Sqlite(old, tmp_path / "backups")).open()
    assert sql(old, APPLIED) == [STEPS[0][0]]


async def test_a_copy_cut_short_is_begun_anew(old: Path, tmp_path: Path) -> None:
    backups = tmp_path / "backups"
    with pytest.raises(sqlite3.OperationalError), closing(connected(old)) as connection:
        migrate(connection, [STEPS[0], (STEPS[1][0], ("INSERT INTO nowhere VALUES (1)",))], backups)
    async with opened(old, backups):
        pass
    for copy in backups.iterdir():
        assert sql(copy, APPLIED) == [STEPS[0][0]]


LEFT = {
    ("window", '{"act": {}, "thread": null, "change": [12, 24]}'): [("window:frodo", "12")],
    ("undo", '{"act": {}, "thread": null, "change": [null, 24]}'): [("window:frodo", "null")],
    ("window", '{"change": 1}'): [],
    ("window", "{"): [],
}
CUT_OFF = (
    "INSERT INTO intents(persona, kind, detail, before, after, created_at) "
    "VALUES ('frodo', ?, ?, '', '', '2026-02-12T14:30:00Z')"
)


@pytest.mark.parametrize(("left", "known"), LEFT.items())
def test_a_change_of_a_window_that_a_killed_chorus_has_left_is_noted_by_the_next_opening(
    connection: sqlite3.Connection, left: tuple[str, str], known: list[tuple[str, str]]
) -> None:
    migrate(connection, STEPS[:11])
    connection.execute(CUT_OFF, left)
    migrate(connection)
    assert connection.execute("SELECT * FROM meta").fetchall() == known
    assert connection.execute("SELECT * FROM operations").fetchall() == []


def test_a_persona_that_a_killed_chorus_was_making_has_nothing_of_an_earlier_one(
    connection: sqlite3.Connection,
) -> None:
    migrate(connection, STEPS[:11])
    for slug in ("frodo", "sam"):
        for table in ("threads", "messages", "sessions"):
            put_in(connection, table, **MINIMAL_ROWS[table] | {"persona": slug})
        put_in(connection, "context_items", **MINIMAL_ROWS["context_items"] | {"persona": slug, "content_hash": "h"})
        put_in(connection, "meta", key=f"idle_session:{slug}", value="1")
    connection.executemany(CUT_OFF, [("persona", "{}")] * 2)
    migrate(connection)
    found = {
        "operations": "SELECT persona, kind, after_message_id, detail FROM operations",
        "items": "SELECT persona, content_hash, forgotten_by FROM context_items",
        "meta": "SELECT key, value FROM meta ORDER BY key",
        "sessions": "SELECT persona FROM sessions",
        "open threads": "SELECT persona FROM threads WHERE closed_at IS NULL",
    }
    assert {name: connection.execute(query).fetchall() for name, query in found.items()} == {
        "operations": [("frodo", "clear", 2, '{"begins": true}')],
        "items": [("frodo", None, 1), ("sam", "h", None)],
        "meta": [("idle_session:sam", "1"), ("threads_before:frodo", "1")],
        "sessions": [("sam",)],
        "open threads": [("sam",)],
    }


def test_each_item_is_given_the_source_that_the_journal_knows(connection: sqlite3.Connection) -> None:
    migrate(connection, STEPS[:13])
    for id_, message in enumerate((None, 7, 7, None, None, None), 1):
        row = {"id": id_, "content": str(id_), "source_message_id": message}
        put_in(connection, "context_items", **MINIMAL_ROWS["context_items"] | row)
    for change, ids in (("add", [1, 2]), ("capture", [3, 4]), ("import", [5]), ("capture", [1]), ("edit", [6])):
        detail = {"change": change, "items": [{"id": each} for each in ids]}
        put_in(connection, "operations", persona="x", kind="memory", detail=json.dumps(detail))
    put_in(connection, "operations", persona="x", kind="memory", detail="torn")
    migrate(connection, STEPS[:14])
    sources = [source for (source,) in connection.execute("SELECT source FROM context_items ORDER BY id")]
    assert sources == ["you", "model", "message", "output", "file", "you"]


def test_each_item_then_has_the_class_of_its_source(connection: sqlite3.Connection) -> None:
    migrate(connection, STEPS[:14])
    put_in(connection, "operations", id=5, persona="x", kind="import", detail="{}")
    for id_, role, introduced_by in ((1, "user", None), (2, "assistant", None), (3, "user", 5)):
        row = {"id": id_, "role": role, "introduced_by": introduced_by}
        put_in(connection, "messages", **MINIMAL_ROWS["messages"] | row)
    sources = [("you", None, "you"), ("model", 1, "model"), ("file", None, "file"), ("output", None, "tool")]
    sources += [("message", 1, "you"), ("message", 2, "model"), ("message", 3, "import"), ("message", 99, "you")]
    for number, (source, message_id, _) in enumerate(sources):
        row = MINIMAL_ROWS["context_items"] | {"content": str(number), "content_hash": str(number)}
        put_in(connection, "context_items", **row | {"source": source, "source_message_id": message_id})
    migrate(connection)
    found = connection.execute("SELECT source, replaced_by, may_replace FROM context_items ORDER BY id").fetchall()
    assert found == [(wanted, 0, 0) for _, _, wanted in sources]
