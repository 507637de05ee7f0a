"""Triggers and views in a log that no step of Chorus made: SQLite would run them with every change of the log."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import cache
from typing import TYPE_CHECKING

from chorus_cli.core.text.phrases import shortened
from chorus_cli.storage import migrations

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NAME_CHARACTERS = 60
_CODE = "SELECT type, name, sql FROM sqlite_master WHERE type = '{}' ORDER BY name"


def found(connection: sqlite3.Connection) -> Sequence[str]:
    """Return phrases that name the foreign triggers and views of a log; its views are not read.

    Raises:
        DatabaseDamagedError: it is no log of Chorus.
    """
    foreign, _ = _differences(connection)
    return [] if migrations.is_newer(connection) else _named(*_views(connection), *foreign)


def remove(connection: sqlite3.Connection) -> Sequence[str]:
    """Drop the foreign triggers and views of a log, make its own again that are not there, and name the foreign ones.

    Raises:
        DatabaseDamagedError: it is no log of Chorus.
    """
    views = _views(connection)
    # First of all: a view may have the name of a table that is read next, and no end.
    for kind, name in views:
        _drop(connection, kind, name)
    foreign, lacking = _differences(connection)
    for kind, name in foreign:
        _drop(connection, kind, name)
    for statement in lacking:
        connection.execute(statement)
    return _named(*views, *foreign)


def _named(*code: tuple[str, str]) -> list[str]:
    return [f"the {kind} {shortened(name, _NAME_CHARACTERS)}" for kind, name in code]


def _drop(connection: sqlite3.Connection, kind: str, name: str) -> None:
    quoted = name.replace('"', '""')
    connection.execute(f'DROP {kind} IF EXISTS "{quoted}"')


def _views(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    return [(kind, name) for kind, name, _ in connection.execute(_CODE.format("view"))]


def _differences(connection: sqlite3.Connection) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the foreign triggers, and the statements of those that Chorus made and that are not there as such."""
    if migrations.is_newer(connection):
        return [], []
    own = _own(len(migrations.applied(connection)))
    there = {name: sql for _, name, sql in connection.execute(_CODE.format("trigger"))}
    foreign = [("trigger", name) for name, sql in there.items() if own.get(name) != sql]
    return foreign, [sql for name, sql in own.items() if there.get(name) != sql]


@cache
def _own(number_of_steps: int) -> Mapping[str, str]:
    """Return the triggers of a log after the first steps: their statements by their names."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrations.migrate(connection, migrations.STEPS[:number_of_steps])
        return {name: sql for _, name, sql in connection.execute(_CODE.format("trigger"))}
