"""Checksums of messages, which tell a text that has changed on the disk from the one that was written."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.log.rows.message_rows import checksum
from chorus_cli.storage import untrusted

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

SAMPLE_ROWS = 50_000

_FIELDS = "role, thread_id, persona, timestamp, content"


class Checked(NamedTuple):
    """The number of messages that were read, of those without a checksum, and the ids of changed ones."""

    read: int
    without: int
    changed: tuple[int, ...]


def checked(connection: sqlite3.Connection, part: int = 0, parts: int = 1) -> Checked:
    """Compare messages with their checksums: one part of equally large parts, by default all of them.

    A message that was put in with plain SQL has none.
    """
    before, connection.text_factory = connection.text_factory, lenient_text
    try:
        rows = connection.execute(
            "SELECT id, role, thread_id, persona, timestamp, content, checksum FROM messages WHERE id % ? = ?",
            (parts, part % parts),
        )
        return _compared(rows)
    finally:
        connection.text_factory = before


def sample(connection: sqlite3.Connection, day: int) -> Checked:
    """Compare another part of the messages on each day; a log of usual size is compared whole."""
    (newest,) = connection.execute("SELECT COALESCE(MAX(id), 0) FROM messages").fetchone()
    return checked(connection, day, max(1, -(-newest // SAMPLE_ROWS)))


def bring(connection: sqlite3.Connection, ids: Iterable[int], backup: Path) -> tuple[int, ...]:
    """Bring the messages of these ids from a backup; return those that it does not have as written."""
    remaining = []
    with closing(sqlite3.connect(backup)) as source:
        untrusted.read_tables_only(source)
        source.text_factory = lenient_text
        for id_ in ids:
            row = source.execute(f"SELECT {_FIELDS}, checksum FROM messages WHERE id = ?", (id_,)).fetchone()
            if row is None or checksum(*row[:5]) != row[5]:
                remaining.append(id_)
                continue
            connection.execute(
                "UPDATE messages SET role = ?, thread_id = ?, persona = ?, timestamp = ?, content = ?, checksum = ?, "
                "token_count = NULL WHERE id = ?",
                (*row, id_),
            )
    return tuple(remaining)


def accept(connection: sqlite3.Connection, ids: Iterable[int]) -> None:
    """Take the present texts of the messages of these ids for the true ones."""
    connection.text_factory = lambda stored: stored.decode("utf-8", "replace")
    for id_ in ids:
        row = connection.execute(f"SELECT {_FIELDS} FROM messages WHERE id = ?", (id_,)).fetchone()
        connection.execute(
            "UPDATE messages SET content = ?, checksum = ?, token_count = NULL WHERE id = ?",
            (row[4], checksum(*row), id_),
        )


def lenient_text(stored: bytes) -> str:
    """Decode a text that may be damaged, which never equals the one that was written."""
    return stored.decode("utf-8", "surrogateescape")


def _compared(rows: Iterable[tuple[int, str, int, str, str, str, str | None]]) -> Checked:
    read = without = 0
    changed: list[int] = []
    for id_, role, thread_id, persona, timestamp, content, stored in rows:
        read += 1
        if stored is None:
            without += 1
        elif checksum(role, thread_id, persona, timestamp, content) != stored:
            changed.append(id_)
    return Checked(read, without, tuple(changed))
