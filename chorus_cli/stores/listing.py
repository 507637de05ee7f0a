"""The list of stores: every place of a home where words of the user can stand.

Purge, backup, restore, doctor and salvage walk it. A table or a folder that is not on it fails a test.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Sequence

AMONG = "IN (SELECT value FROM json_each(:ids))"
"""The condition for an id among ``ids``, which are a list of JSON."""


class RowStore(NamedTuple):
    """Texts in the rows of a table; ``name`` is that of their ids in ``PurgedIds``.

    In the ``columns`` of a row that ``is_there`` may be a text. ``identity`` tells a row from one of the same id in
    another log; without it, backups are not asked for the ids. ``erasing`` overwrites the texts of a row; the row of a
    message, a memory item or a summary stays, so that order, references and journal hold. ``time`` is the column by
    which a purge of a span finds it.
    """

    name: str
    table: str
    columns: tuple[str, ...]
    erasing: str
    identity: str = ""
    is_there: str = "TRUE"
    time: str = "NULL"

    def texts(self, connection: sqlite3.Connection) -> Sequence[tuple[int, str, str, str | None]]:
        """Return id, persona, text and time of the rows that have a text."""
        return connection.execute(
            f"SELECT id, persona, {self.columns[0]}, {self.time} FROM {self.table} "
            f"WHERE {self.is_there} AND {self.columns[0]} <> ''"
        ).fetchall()

    def erase(self, connection: sqlite3.Connection, ids: Collection[int], operation_id: int) -> None:
        """Overwrite the texts of rows, for the purge that an operation is."""
        connection.execute(
            f"{self.erasing} WHERE {self.is_there} AND id {AMONG}",
            {"ids": json.dumps([*ids]), "operation": operation_id},
        )


MESSAGES = RowStore(
    "messages",
    "messages",
    ("content", "tool_calls", "reasoning", "thought_parts"),
    "UPDATE messages SET content = '', preamble = '', tool_calls = NULL, tool_call_id = NULL, reasoning = NULL, "
    "thought_parts = NULL, thought_seconds = NULL, thought_tokens = NULL, attachments = NULL, token_count = 0, "
    "status = 'complete', run = NULL, checksum = NULL, purged_by = :operation",
    "id, persona, role, timestamp",
    "purged_by IS NULL",
)
ITEMS = RowStore(
    "items",
    "context_items",
    ("content",),
    "UPDATE context_items SET content = '', content_hash = NULL, token_count = 0, purged_by = :operation, "
    "forgotten_by = COALESCE(forgotten_by, :operation)",
    "id, persona, item_type, created_at",
    "purged_by IS NULL",
    "created_at",
)
SUMMARIES = RowStore(
    "summaries",
    "summaries",
    ("content",),
    "UPDATE summaries SET content = '', token_count = 0, model = NULL",
    "id, persona, thread_id, created_at",
)
INPUTS = RowStore("inputs", "input_history", ("content",), "DELETE FROM input_history", time="created_at")
UNSAID = RowStore("unsaid", "outbox", ("content",), "DELETE FROM outbox", time="created_at")
TITLES = RowStore("titles", "threads", ("title",), "UPDATE threads SET title = ''")
PREAMBLES = RowStore(
    "preambles",
    "messages",
    ("preamble",),
    "UPDATE messages SET preamble = '', token_count = NULL",
    is_there="purged_by IS NULL",
)
ROWS = (MESSAGES, ITEMS, SUMMARIES, INPUTS, UNSAID, TITLES, PREAMBLES)

FOLLOWING = {
    "context_checkpoints": "items, which a purge cuts out of them",
    "operations": "items, of which a purge cuts the words out of the acts on the memory",
    "message_words": "messages, whose index a purge begins anew",
    "context_item_words": "items, whose index a purge makes again",
    "sessions": "files of sessions, of which the rows are a list",
    "meta": "the purge that is not complete, until it is",
}
"""Tables whose words are those of another store, and that store."""

WORDLESS = frozenset(
    {
        "changed_rows",
        "imported_conversations",
        "imported_messages",
        "installation",
        "intents",
        "numbers",
        "operation_members",
        "other_requests",
        "schema_migrations",
        "sqlite_sequence",
    }
)
"""Tables of ids, numbers, names of other programs and hashes."""

FOLDERS = {
    "database": "ROWS",
    "personas": "sessions, and documents, which a purge names and leaves to the user",
    "attachments": "files that messages name, and texts that were never sent",
    "backups": "each opened as a home; deleted personas with their sessions among them",
    "drafts": "texts that an editor has open",
    "rescue": "texts that could not be stored",
}
"""The places of a home that a purge looks into, by their names in ``chorus paths``, and what is in them."""

WORDLESS_FOLDERS = frozenset({"config", "commands", "run", "log"})
"""Places with nothing of a talk: settings, commands that the user wrote, locks, and reports without words."""
