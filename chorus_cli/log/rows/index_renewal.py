"""Rebuilding a full-text index when its pages cannot be read.

Such pages are never freed one by one: a damaged one could refer to pages of the log. They stay behind unused, and the
index begins in new pages; ``Store.compact`` frees the old ones.
SQLite writes nothing more in a transaction that has met damage, so each step needs a transaction of its own.
"""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.storage.errors import UNREADABLE, damaged
from chorus_cli.storage.schema import ITEM_WORDS, MESSAGE_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_SIGNS_OF_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_ERROR}


class WordIndex(NamedTuple):
    """A full-text index: its table, and the statement that makes it."""

    table: str
    statement: str

    @property
    def condition(self) -> str:
        """The condition on a row of ``sqlite_master`` to be a part of the index."""
        return f"(name = '{self.table}' OR name GLOB '{self.table}_*' OR tbl_name GLOB '{self.table}_*')"


MESSAGES = WordIndex("message_words", MESSAGE_WORDS)
ITEMS = WordIndex("context_item_words", ITEM_WORDS)


class IndexDamagedError(Exception):
    """An index cannot be read, or contradicts itself or its texts."""


@contextmanager
def damage_told() -> Iterator[None]:
    """Turn errors that may mean damage of an index into one class; a full disk or a lock is none."""
    try:
        yield
    except UNREADABLE as error:
        if is_damage(error):
            raise IndexDamagedError from error
        raise


def is_damage(error: sqlite3.DatabaseError | UnicodeDecodeError | MemoryError) -> bool:
    """Return whether an error may mean damage, unlike a full disk or another program's lock."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return isinstance(error, UnicodeDecodeError | MemoryError) or code in _SIGNS_OF_DAMAGE


def require_sound_pages(connection: sqlite3.Connection, index: WordIndex) -> None:
    """Check the pages of an index, but not their content.

    Raises:
        IndexDamagedError: they cannot be read.
    """
    fault = _fault(connection, f"{index.condition} AND rootpage > 0")
    if fault:
        raise IndexDamagedError(fault)


def require_sound_log(connection: sqlite3.Connection) -> None:
    """Check every table but those of the indexes.

    Raises:
        DatabaseDamagedError: one of them is damaged, so that nothing may be written.
    """
    fault = _fault(connection, f"NOT {MESSAGES.condition} AND NOT {ITEMS.condition}")
    if fault:
        (_, _, path) = connection.execute("PRAGMA database_list").fetchone()
        raise damaged(path, fault)


def replace(connection: sqlite3.Connection, index: WordIndex) -> None:
    """Make an empty index in new pages and drop the old one."""
    connection.execute("PRAGMA writable_schema = ON")
    try:
        connection.execute(f"DELETE FROM sqlite_master WHERE {index.condition}")
    finally:
        # It ends the mode and makes this connection forget the table; the next statement makes the others forget it.
        connection.execute("PRAGMA writable_schema = RESET")
    connection.execute(index.statement)


def _fault(connection: sqlite3.Connection, condition: str) -> str:
    """Return the first fault that SQLite finds in some tables, empty if there is none."""
    tables: Sequence[tuple[str]] = connection.execute(
        f"SELECT name FROM sqlite_master WHERE type = 'table' AND {condition}"
    ).fetchall()
    for (table,) in tables:
        try:
            [(found,), *_] = connection.execute(f"PRAGMA quick_check({table})").fetchall()
        except UNREADABLE as error:
            if not is_damage(error):
                raise
            return str(error)
        if found != "ok":
            return str(found).splitlines()[-1]
    return ""
