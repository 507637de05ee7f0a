"""Checksums of messages, which tell a text that has changed on the disk from the one that was written."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.log.rows.message_rows import checksum

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

SAMPLE_ROWS = 50_000


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
