"""Processes that write to one log, in a file or on a server, and one that reads what is newer than what it has seen."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from chorus_cli.storage.port import Connection
from chorus_cli.storage.postgres.engine import Postgres
from chorus_cli.storage.store import Store
from tests.storage.database import quick

_ROWS = 100
_WRITER = """
import asyncio, sys
from pathlib import Path

from chorus_cli.storage.postgres.engine import Postgres
from chorus_cli.storage.sqlite import Sqlite
from chorus_cli.storage.store import Store

url, file, rows = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
ROW = "INSERT INTO messages(persona, thread_id, role, content, timestamp) VALUES ('p', 1, 'user', 'x', ?) RETURNING id"

async def write():
    store = Store(Postgres(url, file) if url else Sqlite(file))
    await store.open()
    print("ready", flush=True)
    sys.stdin.readline()
    for _ in range(rows):
        (id_,) = await store.write(lambda c: c.execute(ROW, ("2026-02-12T14:30:00.000000Z",)).fetchone())
        print(id_, flush=True)
    await store.close()

asyncio.run(write())
"""


def ids_after(connection: Connection, last: int) -> list[int]:
    return [id_ for (id_,) in connection.execute("SELECT id FROM messages WHERE id > ? ORDER BY id", (last,))]


@pytest.mark.timeout(60)
async def test_a_reader_sees_every_row_of_three_writers_in_order(store: Store, path: Path) -> None:
    engine = quick(path)
    url = engine.url if isinstance(engine, Postgres) else ""
    files = [path.with_name(f"{number}.db") if url else path for number in range(3)]
    seen: list[int] = []
    with ExitStack() as ending:
        writers = [ending.enter_context(started(url, file)) for file in files]
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
        for writer in writers:
            assert writer.stdin is not None
            writer.stdin.write("go\n")
            writer.stdin.flush()
        while any(writer.poll() is None for writer in writers):
            seen += await store.read(ids_after, seen[-1] if seen else 0)
        told = [int(id_) for writer in writers for id_ in writer.communicate()[0].split()]
    seen += await store.read(ids_after, seen[-1] if seen else 0)
    assert seen == sorted(told)
    assert len(seen) == 3 * _ROWS


def started(url: str, file: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _WRITER, url, str(file), str(_ROWS)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
