"""Copies of logs, and what is in them."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from chorus_cli.storage.port import Connection, Engine
from chorus_cli.stores.copying.tables import TABLES, columns

Contents = dict[str, list[tuple[Any, ...]]]


def contents(log: Engine) -> Contents:
    """Return all rows that a copy has, in the order of their keys."""
    with closing(log.open()) as connection:
        connection.begin(to_write=False)
        return contents_of(connection)


def contents_of(connection: Connection) -> Contents:
    found: Contents = {}
    for table in TABLES:
        names, key = ", ".join(columns()[table.name]), ", ".join(table.key)
        found[table.name] = connection.execute(f"SELECT {names} FROM {table.name} ORDER BY {key}").fetchall()  # noqa: S608
    numbers = connection.execute("SELECT persona, counted, newest FROM numbers ORDER BY persona, counted")
    return {**found, "numbers": numbers.fetchall()}
