"""The full-text index of memory items.

The words of an item are stored in the same transaction as its hash: one that was put in or changed with plain SQL has
none until it is next read.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from chorus_cli.log.rows.index_renewal import ITEMS, IndexDamagedError, damage_told, replace
from chorus_cli.log.rules.search_query import set_apart

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping

_FOUND = (
    "FROM context_item_words CROSS JOIN context_items ON context_items.id = context_item_words.rowid "
    "WHERE context_item_words MATCH :expression AND persona = :persona AND forgotten_by IS NULL"
)


def store(connection: sqlite3.Connection, item_id: int, content: str) -> None:
    """Index an item, in place of its former words.

    Raises:
        IndexDamagedError: the index cannot be written.
    """
    with damage_told():
        connection.execute(
            "INSERT OR REPLACE INTO context_item_words(rowid, content) VALUES (?, ?)", (item_id, set_apart(content))
        )


def matching(connection: sqlite3.Connection, persona: str, expression: str, limit: int) -> list[int]:
    """Return the ids of HOT and WARM items that an FTS5 expression finds, best match first.

    Raises:
        IndexDamagedError: the index cannot be read.
    """
    with damage_told():
        found = connection.execute(
            f"SELECT context_items.id {_FOUND} AND tier IN ('HOT', 'WARM') ORDER BY rank LIMIT :limit",
            {"expression": expression, "persona": persona, "limit": limit},
        ).fetchall()
    return [id_ for (id_,) in found]


def beginning_with(connection: sqlite3.Connection, persona: str, word: str) -> list[int]:
    """Return the ids of the items of any tier whose first word this is, in their order.

    Raises:
        IndexDamagedError: the index cannot be read.
    """
    with damage_told():
        found = connection.execute(
            f"SELECT context_items.id {_FOUND} ORDER BY context_items.id",
            {"expression": f'^ "{word}"', "persona": persona},
        ).fetchall()
    return [id_ for (id_,) in found]


def frequencies(connection: sqlite3.Connection, persona: str, terms: Iterable[str], most: int) -> Mapping[str, int]:
    """Return the number of a persona's items that have each term, counted up to ``most``.

    Raises:
        IndexDamagedError: the index cannot be read.
    """
    with damage_told():
        return {term: _frequency(connection, persona, term, most) for term in terms}


def check(connection: sqlite3.Connection) -> None:
    """Check that the index is sound and has every item; SQLite takes a write lock for that.

    Raises:
        IndexDamagedError: it contradicts itself or lacks an item.
    """
    with damage_told():
        connection.execute("INSERT INTO context_item_words(context_item_words) VALUES ('integrity-check')")
        (lacks,) = connection.execute(
            "SELECT EXISTS(SELECT id FROM context_items WHERE content_hash IS NOT NULL "
            "EXCEPT SELECT rowid FROM context_item_words)"
        ).fetchone()
    if lacks:
        raise IndexDamagedError


def remove(connection: sqlite3.Connection, ids: Iterable[int]) -> None:
    """Remove items from the index, with all that it keeps of deleted ones.

    Raises:
        IndexDamagedError: the index cannot be written.
    """
    with damage_told():
        connection.executemany("DELETE FROM context_item_words WHERE rowid = ?", [(id_,) for id_ in ids])
        connection.execute("INSERT INTO context_item_words(context_item_words) VALUES ('rebuild')")


def make_again(connection: sqlite3.Connection) -> None:
    """Make the index again in new pages, from the items; the old pages stay behind unused."""
    replace(connection, ITEMS)
    with closing(connection.execute("SELECT id, content FROM context_items")) as items:
        connection.executemany(
            "INSERT INTO context_item_words(rowid, content) VALUES (?, ?)",
            ((id_, set_apart(content)) for id_, content in items),
        )


def _frequency(connection: sqlite3.Connection, persona: str, term: str, most: int) -> int:
    quoted = term.replace('"', '""')
    (found,) = connection.execute(
        f"SELECT COUNT(*) FROM (SELECT 1 {_FOUND} LIMIT :most)",
        {"expression": f'"{quoted}"', "persona": persona, "most": most},
    ).fetchone()
    return int(found)
