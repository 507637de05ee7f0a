"""Databases that are damaged in every way a disk knows, each by a number."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from chorus_cli.log.rows.message_rows import checksum
from tests.killed_program import killed_at
from tests.storage.database import sql

PAGE_BYTES = 4096


def damaged(data: bytes, number: int) -> bytes:
    """Return a copy of a database with the damage of a number: flipped bits, zeroed or foreign pages, or cut short."""
    chance, copy = random.Random(number), bytearray(data)  # noqa: S311 - the damage is to be the same each time
    pages = len(data) // PAGE_BYTES
    match number % 5:
        case 0:
            for _ in range(chance.randint(1, 40)):
                copy[chance.randrange(len(copy))] ^= 1 << chance.randrange(8)
        case 1:
            del copy[chance.randrange(len(copy)) :]
        case 2:
            for page in chance.choices(range(pages), k=chance.randint(1, 6)):
                copy[page * PAGE_BYTES : (page + 1) * PAGE_BYTES] = bytes(PAGE_BYTES)
        case 3:
            copy[:PAGE_BYTES] = chance.randbytes(PAGE_BYTES)
        case _:
            for page in chance.choices(range(1, pages), k=chance.randint(1, 6)):
                other = chance.randrange(pages) * PAGE_BYTES
                copy[page * PAGE_BYTES : (page + 1) * PAGE_BYTES] = data[other : other + PAGE_BYTES]
    return bytes(copy)


def overwritten(data: bytes, number: int) -> bytes:
    """Return a copy of a database in which a run of pages or of bytes is overwritten, or pages change places."""
    chance, copy = random.Random(number), bytearray(data)  # noqa: S311 - the damage is to be the same each time
    pages = len(data) // PAGE_BYTES
    first = chance.randrange(pages)
    begin, end = first * PAGE_BYTES, min(pages, first + chance.randint(1, pages // 2)) * PAGE_BYTES
    match number % 4:
        case 0:
            copy[begin:end] = bytes(end - begin)
        case 1:
            copy[begin:end] = chance.randbytes(end - begin)
        case 2:
            begin = chance.randrange(len(data))
            end = min(len(data), begin + chance.randint(1, 20_000))
            copy[begin:end] = chance.randbytes(end - begin)
        case _:
            order = [*range(pages)]
            moved = chance.sample(order, chance.randint(2, pages))
            for place, page in zip(sorted(moved), moved, strict=True):
                order[place] = page
            copy = bytearray().join(data[page * PAGE_BYTES : (page + 1) * PAGE_BYTES] for page in order)
    return bytes(copy)


ODD_VALUES = (
    "UPDATE messages SET timestamp = 'yesterday' WHERE id % 3 = 1",
    "UPDATE messages SET run = 'a' || char(0), status = 'streaming' WHERE id % 3 = 1",
    "UPDATE messages SET content = CAST(x'f0ff' AS TEXT) WHERE id % 3 = 1",
    "UPDATE messages SET usage = '{', attachments = '[' WHERE id % 3 = 1",
    "UPDATE messages SET turn_id = 10000 WHERE id % 3 = 1",
    "UPDATE messages SET thread_id = 10000 WHERE id % 3 = 1",
    "UPDATE operations SET detail = '{'",
    "INSERT INTO operations(persona, kind, detail) VALUES ('chorus', 'dance', '{}')",
    "INSERT INTO meta VALUES ('last_persona', '../../etc') ON CONFLICT(key) DO UPDATE SET value = excluded.value",
    "UPDATE threads SET title = CAST(x'ff' AS TEXT), created_at = 'never'",
)


def spoil(path: Path, number: int) -> None:
    """Damage a database by a number: its bytes, its owner, its version, an index, or values in its rows."""
    kind, data = number % 9, path.read_bytes()
    if kind < 5:
        path.write_bytes(damaged(data, number // 9 * 5 + kind))
        return
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("PRAGMA ignore_check_constraints = ON")
        match kind:
            case 5:
                connection.execute(f"PRAGMA application_id = {number}")
            case 6:
                connection.execute(f"PRAGMA user_version = {1000 + number}")
            case 7:
                connection.execute("UPDATE message_words_data SET block = randomblob(length(block))")
            case _:
                connection.execute(ODD_VALUES[number // 9 % len(ODD_VALUES)])


def cut_off(database: Path) -> None:
    """Kill a process in the middle of a transaction that has begun to write the database, which leaves a journal."""

    def begin() -> None:
        with closing(sqlite3.connect(database)) as connection:
            connection.execute("PRAGMA cache_size = 1")
            connection.execute("UPDATE messages SET content = 'cut off' || content")
            connection.execute("CREATE TABLE large AS SELECT zeroblob(999999)")
            database.chmod(0o600)

    killed_at("os.chmod", begin)
    assert database.with_name("chorus.db-journal").stat().st_size > 0


def overwrite_messages(path: Path, byte: bytes) -> None:
    """Overwrite the first page of the tree of messages."""
    (root,) = sql(path, "SELECT rootpage FROM sqlite_master WHERE name = 'messages'")
    with path.open("r+b") as file:
        file.seek((root - 1) * PAGE_BYTES)
        file.write(byte * PAGE_BYTES)


def readable(path: Path, most: int) -> dict[int, str]:
    """Return the messages that SQLite reads one by one, by their ids, as far as they are as written."""
    found: dict[int, str] = {}
    with closing(sqlite3.connect(path)) as connection:
        for number in range(1, most + 1):
            # A text that is no UTF-8 is not as written.
            with suppress(sqlite3.Error, UnicodeDecodeError):
                row = connection.execute(
                    "SELECT id, role, thread_id, persona, timestamp, content, checksum FROM messages WHERE id = ?",
                    (number,),
                ).fetchone()
                if row is not None and row[0] == number and checksum(*row[1:6]) == row[6]:
                    found[number] = row[5]
    return found


def texts(path: Path) -> dict[int, str]:
    """Return the messages of a sound database."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        return dict(connection.execute("SELECT id, content FROM messages").fetchall())
