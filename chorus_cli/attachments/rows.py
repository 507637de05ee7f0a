"""Reads which attachments the rows of messages name, and keeps their bytes on the server of a log."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import suppress

from chorus_cli.log.rules import attachments as log_attachments
from chorus_cli.storage.port import Connection


def named_attachments(connection: Connection) -> frozenset[str]:
    """Return the SHA-256 of all attachments that messages name."""
    stored = connection.execute("SELECT attachments FROM messages WHERE attachments IS NOT NULL")
    return frozenset(each.sha256 for (text,) in stored for each in attachments_in(text))


def attachments_in(text: str) -> tuple[log_attachments.Attachment, ...]:
    """Return the attachments in ``text``, the JSON of a message's row; none if the JSON is damaged."""
    with suppress(ValueError, TypeError):
        return log_attachments.from_text(text)
    return ()


def is_on_server(connection: Connection, digest: str) -> bool:
    """Return whether the server of the log has the bytes with this SHA-256."""
    return connection.execute("SELECT 1 FROM attachment_files WHERE hash = ?", (digest,)).fetchone() is not None


def on_server(connection: Connection, digest: str) -> bytes | None:
    """Return the bytes with this SHA-256 from the server of the log, ``None`` without these bytes or a server."""
    if isinstance(connection, sqlite3.Connection):
        return None
    found = connection.execute("SELECT content FROM attachment_files WHERE hash = ?", (digest,)).fetchone()
    return bytes(found[0]) if found else None


def store_on_server(connection: Connection, digest: str, data: bytes) -> None:
    """Store bytes on the server of the log, as the first statement of a transaction.

    This way all bytes arrive before the server locks the log for other writers.
    """
    insert = "INSERT INTO attachment_files(hash, content) VALUES (?, ?) ON CONFLICT (hash) DO NOTHING"
    connection.execute(insert, (digest, data))


def delete_on_server(connection: Connection, digests: Iterable[str]) -> None:
    """Delete bytes from the server of the log; do nothing if the log is on this machine."""
    if not isinstance(connection, sqlite3.Connection):
        connection.executemany("DELETE FROM attachment_files WHERE hash = ?", [(each,) for each in digests])
