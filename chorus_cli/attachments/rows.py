"""Reads which attachments the rows of messages name."""

from __future__ import annotations

import sqlite3
from contextlib import suppress

from chorus_cli.log.rules import attachments as log_attachments


def named_attachments(connection: sqlite3.Connection) -> frozenset[str]:
    """Return the SHA-256 of all attachments that messages name."""
    stored = connection.execute("SELECT attachments FROM messages WHERE attachments IS NOT NULL")
    return frozenset(each.sha256 for (text,) in stored for each in attachments_in(text))


def attachments_in(text: str) -> tuple[log_attachments.Attachment, ...]:
    """Return the attachments in ``text``, the JSON of a message's row; none if the JSON is damaged."""
    with suppress(ValueError, TypeError):
        return log_attachments.from_text(text)
    return ()
