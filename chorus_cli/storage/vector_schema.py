"""The table of vectors, which the search by meaning compares. It can be emptied at any time and filled again."""

from __future__ import annotations

VECTORS: tuple[str, ...] = (
    "CREATE TABLE message_vectors(message_id INTEGER PRIMARY KEY, model TEXT NOT NULL, vector BLOB NOT NULL) STRICT",
    # Whatever changes or purges the words of a message, no vector of the old words is left.
    """
    CREATE TRIGGER message_vectors_outdated AFTER UPDATE OF content ON messages
    WHEN old.content IS NOT new.content BEGIN
        DELETE FROM message_vectors WHERE message_id = old.id;
    END""",
)
"""Makes ``message_vectors``: the vector of a message as a model makes it, one signed byte for each dimension."""
