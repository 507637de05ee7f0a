"""Copies of logs, and what is in them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chorus_cli.storage.port import Connection, Engine
from chorus_cli.stores.copying.log_copy import PART_MESSAGES, TableCopied
from chorus_cli.stores.copying.log_copy import copied as rows_copied
from chorus_cli.stores.copying.matching import TABLES, columns
from tests.fakes import FakeClock
from tests.world import World, world_on

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


class BrokenOffError(Exception):
    pass


@dataclass
class Logs:
    """The log of this machine, and one on a server."""

    here: Engine
    server: Engine
    folder: Path
    clock: FakeClock

    def copied(
        self, tell: Callable[[int, int], None] = lambda *_: None, part_messages: int = PART_MESSAGES
    ) -> list[TableCopied]:
        return rows_copied(self.here, self.server, tell, part_messages=part_messages)

    def elsewhere(self) -> AbstractAsyncContextManager[World]:
        """Another machine, whose log is on the server."""
        return world_on(self.server, self.folder / "elsewhere", self.clock)
