"""All that a home keeps for its user, without the traces of a run: rows that count, and files byte for byte."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

_QUERIES = {
    "messages": "SELECT id, persona, role, content, status, introduced_by FROM messages",
    "operations": "SELECT id, persona, kind, created_at FROM operations",
    "operation_members": "SELECT operation_id, position, message_id FROM operation_members",
    "sessions": "SELECT persona, session_id, file_path FROM sessions",
    "context_items": "SELECT id, persona, content, pinned FROM context_items",
    "threads": "SELECT id, persona, title FROM threads",
    "summaries": "SELECT id, content FROM summaries",
}
_PASSING = (".lock", ".tmp", ".bak")
_FOLDERS = ("personas", "attachments")


class HomeState(NamedTuple):
    """Rows by table, and the bytes of files by their path in the home."""

    rows: dict[str, frozenset[tuple[object, ...]]]
    files: dict[str, bytes]

    def lost_in(self, later: HomeState) -> list[str]:
        """Return what a later state does not have any more."""
        rows = [
            f"{table} {sorted(kept - later.rows[table], key=str)}"
            for table, kept in self.rows.items()
            if kept - later.rows[table]
        ]
        return rows + [path for path in self.files if path not in later.files]


def state_of(home: Path) -> HomeState:
    """Read a home; one that is not made yet has nothing."""
    database = home / "chorus.db"
    rows = dict.fromkeys(_QUERIES, frozenset[tuple[object, ...]]())
    if database.exists():
        with closing(sqlite3.connect(database)) as connection:
            rows = {table: frozenset(connection.execute(query)) for table, query in _QUERIES.items()}
    found = [path for folder in _FOLDERS for path in (home / folder).rglob("*")] + [home / "config.jsonc"]
    kept = [path for path in found if path.is_file() and not path.name.endswith(_PASSING)]
    return HomeState(rows, {str(path.relative_to(home)): path.read_bytes() for path in kept})
