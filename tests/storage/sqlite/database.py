"""A database as the program makes it."""

from __future__ import annotations

import sqlite3

from chorus_cli.storage.sqlite.migrations import migrate


def database(path: str = ":memory:") -> sqlite3.Connection:
    opened = sqlite3.connect(path, isolation_level=None)
    migrate(opened)
    return opened
