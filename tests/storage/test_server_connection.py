"""A connection to a log on a server: the state of its tables, lines that break, and what is on the machine beside."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path

import psycopg
import pytest

from chorus_cli.core.errors import (
    DatabaseBusyError,
    DatabaseDamagedError,
    DatabaseTooNewError,
    DatabaseUnconfirmedError,
    LogUnreachableError,
    StorageError,
)
from chorus_cli.storage.migrations import STEPS, Step
from chorus_cli.storage.port import Connection
from chorus_cli.storage.postgres import server
from chorus_cli.storage.postgres.connection import PostgresConnection
from chorus_cli.storage.postgres.engine import Postgres
from chorus_cli.storage.postgres.statements import LOCKING
from chorus_cli.storage.store import Store, opened_store
from tests.machines import cut, needs_a_server
from tests.storage.database import in_memory
from tests.storage.server import between

pytestmark = needs_a_server

LATER: Step = (
    "9999_moods",
    (
        "ALTER TABLE messages ADD COLUMN mood TEXT",
        "ALTER TABLE outbox ADD COLUMN mood TEXT",
        "CREATE TABLE moods(id INTEGER PRIMARY KEY AUTOINCREMENT, mood TEXT NOT NULL CHECK (mood <> '100%')) STRICT",
        "INSERT INTO moods(mood) SELECT 'at 100%' FROM messages WHERE superseded AND mood IS NOT 'glad'",
    ),
)


@pytest.fixture
async def store(tmp_path: Path, log: str) -> AsyncIterator[Store]:
    async with opened_store(Postgres(log, tmp_path / "beside.db", busy_timeout_seconds=1)) as opened:
        await opened.read(titles)
        yield opened


def connected(log: str, *steps: Step) -> None:
    server.connected(log, server.Client("", "", 1), (*STEPS, *steps)).close()


def sql(log: str, statement: str) -> list[object]:
    with psycopg.connect(log, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return [row[0] for row in cursor.fetchall()] if cursor.description else []


def add(connection: Connection, title: str) -> None:
    connection.execute("INSERT INTO threads(persona, title) VALUES ('chorus', ?)", (title,))


def keep(connection: Connection, content: str) -> None:
    connection.execute("INSERT INTO input_history(persona, content) VALUES ('chorus', ?)", (content,))


def titles(connection: Connection) -> list[str]:
    return [title for (title,) in connection.execute("SELECT title FROM threads ORDER BY id")]


def kept(connection: Connection) -> list[str]:
    return [content for (content,) in connection.execute("SELECT content FROM input_history ORDER BY id")]


# Tables


def test_an_older_log_gets_the_later_steps(log: str) -> None:
    connected(log)
    sql(
        log,
        "INSERT INTO messages(persona, thread_id, role, content, timestamp, superseded, origin, origin_seq) "
        "VALUES ('p', 1, 'user', 'x', '2026-02-12T14:30:00Z', 1, 'elsewhere', 1)",
    )
    for _ in range(2):
        connected(log, LATER)
    assert sql(log, "SELECT mood FROM moods ") == ["at 100%"]
    assert sql(log, "SELECT name FROM schema_migrations ORDER BY rowid") == [name for name, _ in (*STEPS, LATER)]
    with pytest.raises(DatabaseTooNewError, match=r"newer Chorus\. Update Chorus to open it"):
        connected(log)


def test_machines_that_make_the_tables_of_a_log_at_once_make_them_once(log: str) -> None:
    with ThreadPoolExecutor(4) as machines:
        for _ in machines.map(connected, [log] * 4):
            pass
    assert sql(log, "SELECT name FROM schema_migrations ORDER BY rowid") == [name for name, _ in STEPS]


@pytest.mark.parametrize("steps", [0, next(n for n, (name, _) in enumerate(STEPS) if name.endswith("operations"))])
def test_a_new_log_and_an_older_one_know_the_runs_of_operations_and_tell_of_them(log: str, steps: int) -> None:
    if steps:
        server.connected(log, server.Client("", "", 1), STEPS[:steps]).close()
    connection = server.connected(log, server.Client("", "1-ab@desk", 1))
    with psycopg.connect(log, autocommit=True) as listening:
        listening.execute("LISTEN chorus")
        connection.execute("INSERT INTO operations(persona, kind, after_message_id) VALUES ('p', 'clear', 0)")
        assert [told.payload for told in listening.notifies(timeout=5, stop_after=1)] == ["0"]
    connection.close()
    assert sql(log, "SELECT run FROM operations") == ["1-ab@desk"]


def test_a_step_that_a_server_cannot_take_is_refused_and_changes_nothing(log: str) -> None:
    connected(log)
    with pytest.raises(StorageError, match=r"cannot be made or brought up to date \(.*\)\. Nothing was changed"):
        connected(log, ("9999_moods", ("CREATE TABLE moods(id INTEGER)", "INSERT OR IGNORE INTO moods VALUES (1)")))
    assert sql(log, "SELECT count(*) FROM pg_tables WHERE tablename = 'moods'") == [0]
    connected(log)


def test_a_user_who_may_make_no_tables_is_refused_as_one_without_a_right(log: str) -> None:
    user = f"guest_{log.rpartition('_')[2]}"
    sql(log, f"CREATE USER {user}")
    guest = log.replace("//chorus@", f"//{user}@")
    with pytest.raises(psycopg.Error) as met:
        connected(guest)
    sql(log, f"DROP USER {user}")
    assert "The server refuses the log" in str(server.told(met.value, guest))


@pytest.mark.parametrize("table", ["films", "schema_migrations"])
def test_the_database_of_another_program_is_refused(log: str, table: str) -> None:
    sql(log, f"CREATE TABLE {table}(version TEXT)")
    with pytest.raises(DatabaseDamagedError, match="belongs to another program"):
        connected(log)


async def test_a_thread_is_counted_on_from_one_that_a_message_opened(store: Store) -> None:
    def open_threads(connection: Connection) -> list[int]:
        columns = "INSERT INTO messages(persona, thread_id, role, content, timestamp)"
        connection.execute(f"{columns} VALUES ('chorus', 3, 'user', 'x', '2026-02-12T14:30:00Z')")
        for title in "ab":
            add(connection, title)
        return [id_ for (id_,) in connection.execute("SELECT id FROM threads ORDER BY id")]

    assert await store.write(open_threads) == [3, 4, 5]


# Transactions


async def test_a_write_sees_what_was_stored_while_it_waited_whatever_the_server_prefers(
    log: str, tmp_path: Path
) -> None:
    sql(log, f"ALTER DATABASE {log.rpartition('/')[2]} SET default_transaction_isolation = 'serializable'")
    has_lock = threading.Event()

    def wait_and_add(connection: Connection) -> list[str]:
        found = titles(connection)
        add(connection, "second")
        return found

    def add_late(connection: Connection) -> None:
        add(connection, "first")
        titles(connection)
        has_lock.set()
        connection.execute("SELECT pg_sleep(0.3)").fetchall()

    async with AsyncExitStack() as closing:
        stores = [Store(Postgres(log, tmp_path / name)) for name in ("a.db", "b.db")]
        for each in stores:
            await each.open()
            closing.push_async_callback(each.close)
            await each.read(titles)
        holding = asyncio.ensure_future(stores[0].write(add_late))
        await asyncio.to_thread(has_lock.wait)
        assert await stores[1].write(wait_and_add) == ["first"]
        await holding


async def test_a_write_waits_only_so_long_for_another_writer(store: Store, log: str) -> None:
    with psycopg.connect(log) as other:
        other.execute(LOCKING)
        with pytest.raises(DatabaseBusyError, match=r"did not finish in time\. Try again"):
            await store.write(add, "mine")
    await store.write(add, "next")
    assert await store.read(titles) == ["next"]


def line_lost(log: str) -> Callable[[Connection], None]:
    def work(connection: Connection) -> None:
        keep(connection, "beside")
        add(connection, "first")
        titles(connection)
        cut(log, listening=False)
        add(connection, "second")
        titles(connection)

    return work


def line_lost_among_many(log: str) -> Callable[[Connection], None]:
    def values() -> Iterator[tuple[str]]:
        for number in range(100):
            if number == 50:
                cut(log, listening=False)
            yield (str(number),)

    def work(connection: Connection) -> None:
        keep(connection, "beside")
        titles(connection)
        rows = connection.executemany("INSERT INTO threads(persona, title) VALUES ('chorus', ?)", values())
        rows.fetchall()

    return work


def line_lost_before_the_commit(log: str) -> Callable[[Connection], None]:
    def work(connection: Connection) -> None:
        keep(connection, "beside")
        add(connection, "first")
        titles(connection)
        cut(log, listening=False)

    return work


@pytest.mark.parametrize(
    ("lose", "error"),
    [
        (line_lost, LogUnreachableError),
        (line_lost_among_many, LogUnreachableError),
        (line_lost_before_the_commit, DatabaseUnconfirmedError),
    ],
)
async def test_a_line_that_breaks_in_a_transaction_leaves_nothing_on_either_side(
    store: Store, log: str, lose: Callable[[str], Callable[[Connection], None]], error: type[StorageError]
) -> None:
    with pytest.raises(error):
        await store.write(lose(log))
    assert await store.read(kept) == []
    assert await store.read(titles) == []
    await store.write(add, "next")
    assert await store.read(titles) == ["next"]


async def test_a_line_that_breaks_hides_no_earlier_error(store: Store, log: str) -> None:
    def fail(connection: Connection) -> None:
        add(connection, "first")
        titles(connection)
        cut(log, listening=False)
        raise BufferError

    with pytest.raises(BufferError):
        await store.write(fail)
    await store.write(add, "next")
    assert await store.read(titles) == ["next"]


async def test_a_change_that_only_the_server_confirms_is_not_called_lost(store: Store) -> None:
    def write(connection: Connection) -> None:
        keep(connection, "beside")
        add(connection, "on the server")

    def refuse(connection: Connection) -> None:
        assert isinstance(connection, PostgresConnection)
        connection._beside.execute(
            "CREATE TEMP TABLE refused(thread_id INTEGER REFERENCES refused(id) DEFERRABLE INITIALLY DEFERRED, "
            "id INTEGER PRIMARY KEY)"
        )
        connection._beside.execute(
            "CREATE TEMP TRIGGER refused_history AFTER INSERT ON main.input_history "
            "BEGIN INSERT INTO refused(thread_id) VALUES (404); END"
        )

    await store.write_in_steps(refuse)
    with pytest.raises(DatabaseUnconfirmedError, match=r"The change is in the log .*, but not in .*beside\.db"):
        await store.write(write)
    assert await store.read(titles) == ["on the server"]
    assert await store.read(kept) == []


async def test_an_error_of_a_statement_leaves_nothing_for_the_next_transaction(store: Store) -> None:
    def fail(connection: Connection) -> None:
        add(connection, "first")
        connection.execute("INSERT INTO threads(persona) VALUES (NULL)")
        add(connection, "third")

    with pytest.raises(StorageError, match="reported an error"):
        await store.write(fail)
    assert await store.read(titles) == []


async def test_a_server_that_answers_within_a_second_gets_what_is_written_long_after_the_end_began(
    store: Store, log: str, tmp_path: Path
) -> None:
    def delay(data: bytes) -> bytes:
        time.sleep(0.3)
        return data

    await store.write(add, "first")
    (port,) = re.findall(r":(\d+)/", log)
    with between(int(port), back=delay) as slow:
        far = log.replace(f":{port}/", f":{slow}/")
        async with opened_store(Postgres(far, tmp_path / "far.db")) as ending:
            ending.hurry()
            await asyncio.sleep(1.2)
            assert await ending.read(titles) == ["first"]


def test_values_that_look_like_sql_are_values(log: str) -> None:
    connection = PostgresConnection(lambda: server.connected(log, server.Client("", "", 1)), in_memory())
    texts = ["100% :persona ?", "'; DROP TABLE threads; --", "\\' \\\\", "a\0b"]
    connection.begin(to_write=True)
    for text in texts:
        add(connection, text)
    connection.execute("UPDATE threads SET title = title || ' 5%:x ?' WHERE title = :title", {"title": texts[0]})
    assert titles(connection) == ["100% :persona ? 5%:x ?", *texts[1:3], "a\u2400b"]
    connection.rollback()
    connection.close()
