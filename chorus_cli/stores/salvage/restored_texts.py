"""Messages whose text has changed on the disk: their texts from a backup, or the present ones taken for true."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from chorus_cli.log.rows.message_rows import checksum
from chorus_cli.storage import untrusted
from chorus_cli.stores.salvage.checksums import lenient_text

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_FIELDS = "role, thread_id, persona, timestamp, content"


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
