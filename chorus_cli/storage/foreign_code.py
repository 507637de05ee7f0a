"""Foreign code in a log's schema: triggers, views and indexes that Chorus did not make, and changed tables.

SQLite would run such triggers when the log changes, and the expressions of such indexes and tables for every new row.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import cache

from chorus_cli.core.text.phrases import enumerated, shortened
from chorus_cli.storage import migrations, sqlite

_NAME_CHARACTERS = 60
_TRIGGERS = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY name"
_INDEXES = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL ORDER BY name"
_VIEWS = "SELECT name FROM sqlite_master WHERE type = 'view' ORDER BY name"
# `log/rows/search_index` checks the tables of the full-text indexes, and makes them again.
_TABLES = (
    "SELECT name, sql FROM sqlite_master WHERE type = 'table' "
    "AND name NOT GLOB 'message_words*' AND name NOT GLOB 'context_item_words*' ORDER BY name"
)
_GENERATED = """
    SELECT tables.name, columns.name FROM sqlite_master AS tables JOIN pragma_table_xinfo(tables.name) AS columns
    WHERE tables.type = 'table' AND tables.sql NOT LIKE 'CREATE VIRTUAL%' AND hidden IN (2, 3)
"""

_ADDED_COLUMNS = re.compile(
    r"""(,\s*(\w+|"[^"]+")(\s+(TEXT|INTEGER|REAL|BLOB|ANY))?((\s+NOT\s+NULL)?\s+DEFAULT\s+('[^']*'|[\w.+-]+))?)+""",
    re.IGNORECASE,
)
"""Columns, added with plain SQL, that compute nothing and refuse no row."""

_HARMLESS_INDEX = re.compile(r"""CREATE INDEX [^()]+\([\w\s,"]+\)\s*""")
"""An index that refuses no row and computes nothing: it is never foreign code."""


def found(connection: sqlite3.Connection) -> Sequence[str]:
    """Return phrases that name the foreign triggers, views and indexes of a log; none for a log of a newer Chorus."""
    foreign, _ = _differences(connection)
    return [] if migrations.is_newer(connection) else _named(*_views(connection), *foreign)


def remove(connection: sqlite3.Connection) -> Sequence[str]:
    """Drop the foreign triggers, views and indexes of a log, and return phrases that name them.

    Chorus's own triggers, if missing or changed, are made again, unless a table of Chorus is missing or changed.
    """
    views = _views(connection)
    # Views go first: a view may have the name of a table that is read next, and yield rows without end.
    for kind, name in views:
        _drop(connection, kind, name)
    foreign, lacking = _differences(connection)
    for kind, name in foreign:
        _drop(connection, kind, name)
    if not changed_tables(connection):
        for statement in lacking:
            connection.execute(statement)
    return _named(*views, *foreign)


def changed_tables(connection: sqlite3.Connection) -> str:
    """Return a clause that names Chorus's missing or changed tables, "" for none; harmless added columns may stay."""
    if migrations.is_newer(connection):
        return ""
    steps = _steps(connection)
    there = dict(connection.execute(_TABLES).fetchall())
    changed = {name for name, sql in _own(_TABLES, steps).items() if not _is_as_made(there.get(name, ""), sql)}
    if sorted(migrations.applied(connection)) != [name for name, _ in migrations.STEPS[:steps]]:
        changed.add("schema_migrations")
    named = enumerated(_named(*(("table", name) for name in sorted(changed))))
    return f"{named} {'is' if len(changed) == 1 else 'are'} missing or changed" if changed else ""


def read_tables_only(connection: sqlite3.Connection) -> None:
    """Confine a connection that only reads (see `sqlite.confine`), deny views, and read generated columns as NULL."""
    sqlite.confine(connection)
    views = {name.lower() for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'view'")}
    generated = {(table.lower(), column.lower()) for table, column in connection.execute(_GENERATED)}

    def allowed(action: int, table: str | None, column: str | None, *_: str | None) -> int:
        if action != sqlite3.SQLITE_READ or table is None:
            return sqlite3.SQLITE_OK
        if table.lower() in views:
            return sqlite3.SQLITE_DENY
        is_generated = (table.lower(), (column or "").lower()) in generated
        return sqlite3.SQLITE_IGNORE if is_generated else sqlite3.SQLITE_OK

    if views or generated:
        connection.set_authorizer(allowed)


def _named(*code: tuple[str, str]) -> list[str]:
    return [f"the {kind} {shortened(name, _NAME_CHARACTERS)}" for kind, name in code]


def _drop(connection: sqlite3.Connection, kind: str, name: str) -> None:
    quoted = name.replace('"', '""')
    connection.execute(f'DROP {kind} IF EXISTS "{quoted}"')


def _views(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    return [("view", name) for (name,) in connection.execute(_VIEWS)]


def _differences(connection: sqlite3.Connection) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the foreign triggers and indexes, and the statements of Chorus's triggers that are missing or changed."""
    if migrations.is_newer(connection):
        return [], []
    own = _own(_TRIGGERS, _steps(connection))
    there = dict(connection.execute(_TRIGGERS).fetchall())
    foreign = [("trigger", name) for name, sql in there.items() if own.get(name) != sql]
    indexes = _own(_INDEXES, _steps(connection))
    for name, sql in connection.execute(_INDEXES):
        if indexes.get(name) != sql and not _HARMLESS_INDEX.fullmatch(sql):
            foreign.append(("index", name))
    return foreign, [sql for name, sql in own.items() if there.get(name) != sql]


def _steps(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return max(1, int(version), len(migrations.applied(connection)))


def _is_as_made(found: str, own: str) -> bool:
    """Return whether ``found`` is Chorus's ``own`` statement, maybe with harmless columns added."""
    if found == own:
        return True
    added = len(found) - len(own)
    return added > 0 and any(
        found.endswith(own[place:]) and _ADDED_COLUMNS.fullmatch(found, place, place + added)
        for place in range(len(own))
        if found.startswith(own[:place])
    )


@cache
def _own(query: str, number_of_steps: int) -> Mapping[str, str]:
    """Return the statements, by name, that ``query`` finds in a new log after the first ``number_of_steps`` steps."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrations.migrate(connection, migrations.STEPS[:number_of_steps])
        return dict(connection.execute(query).fetchall())
