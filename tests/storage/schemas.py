"""Empty logs for tests on the server in ``TEST_POSTGRES``: schemas, which are emptied after a test and used again.

To make the tables of a log takes many times as long as to empty them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

SERVER = "TEST_POSTGRES"
"""The variable with the address of a PostgreSQL server whose schemas replace the files of tests."""

_LOCK_SECONDS = 3
_THINGS = """
    SELECT (SELECT COUNT(*) FROM pg_class WHERE relnamespace = here),
           (SELECT COUNT(*) FROM pg_proc WHERE pronamespace = here)
    FROM CAST(current_schema() AS regnamespace) AS here"""


@contextmanager
def shared_log() -> Iterator[str]:
    """Make an empty database on the server, yield its address, and delete it."""
    address, name = os.environ[SERVER], f"chorus_{os.urandom(6).hex()}"
    with pytest.importorskip("psycopg").connect(address, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
        try:
            yield f"{address.rpartition('/')[0]}/{name}"
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")


class Schemas:
    """The schemas of this process, by the paths of the files that they replace."""

    def __init__(self, server: str) -> None:
        psycopg = pytest.importorskip("psycopg")
        self._server = server
        # A superuser may put triggers and foreign keys out of force.
        options = f"-csession_replication_role=replica -clock_timeout={_LOCK_SECONDS}s"
        self._connection = psycopg.connect(server, autocommit=True, options=options)
        self._made: list[str] = []
        self._free: list[str] = []
        self._taken: dict[Path, str] = {}
        self._emptying: list[str] = []
        self._things: list[Any] = []

    def address(self, path: Path) -> str:
        """Return the address of the log that replaces the file at ``path``; a new one is empty."""
        return self._address(self.name(path))

    def name(self, path: Path) -> str:
        """Return the name of the schema that replaces the file at ``path``."""
        if path not in self._taken:
            self._taken[path] = self._free.pop() if self._free else self._new()
            self._things = self._things or self.sql(path, _THINGS)
        return self._taken[path]

    def has(self, path: Path) -> bool:
        """Return whether the log at ``path`` is on the server."""
        return path in self._taken

    def sql(self, path: Path, *statements: str) -> list[Any]:
        """Change or read a log past the program, and return the rows that were found last."""
        found: list[Any] = []
        with self._connection.transaction():
            self._connection.execute(f"SET LOCAL search_path = {self._taken[path]}")
            for statement in statements:
                cursor = self._connection.execute(statement.encode())
                found = cursor.fetchall() if cursor.description else []
        return found

    @contextmanager
    def given_back(self) -> Iterator[None]:
        """Empty the schemas that are taken within this context, so that others can take them."""
        known = {*self._taken}
        yield
        for path in self._taken.keys() - known:
            self.give_back(path)

    def give_back(self, path: Path) -> None:
        """Empty the schema of a path; one that another connection still holds, or a test changed, is not used again."""
        from psycopg import Error

        try:
            self.sql(path, *self._emptying)
            is_as_made = self.sql(path, _THINGS) == self._things
        except Error:
            is_as_made = False
        schema = self._taken.pop(path)
        if is_as_made:
            self._free.append(schema)

    def drop(self) -> None:
        """Delete all schemas."""
        with self._connection as connection:
            for schema in self._made:
                connection.execute(f"DROP SCHEMA {schema} CASCADE".encode())

    def _new(self) -> str:
        from chorus_cli.storage.postgres import server

        schema = f"test_{uuid4().hex}"
        self._connection.execute(f"CREATE SCHEMA {schema}".encode())
        self._made.append(schema)
        server.connected(self._address(schema), server.Client("", "", _LOCK_SECONDS)).close()
        if not self._emptying:
            self._emptying = self._statements(schema)
        return schema

    def _statements(self, schema: str) -> list[str]:
        """Return the statements that make a log of which all tables are known an empty one."""
        names = "SELECT {0}name FROM pg_{0}s WHERE schemaname = '{1}'"
        tables, sequences = (
            [name for (name,) in self._connection.execute(names.format(kind, schema).encode()).fetchall()]
            for kind in ("table", "sequence")
        )
        kept = {"changed_rows", "schema_migrations"}
        return [
            *(f"DELETE FROM {name}" for name in tables if name not in kept),
            *(f"SELECT setval('{name}', 1, FALSE)" for name in sequences),
            "UPDATE changed_rows SET count = 0",
        ]

    def _address(self, schema: str) -> str:
        return f"{self._server}?options=-csearch_path%3D{schema}"


@cache
def schemas() -> Schemas:
    return Schemas(os.environ[SERVER])


def give_back(path: Path) -> None:
    """Empty what replaces the file at ``path``, if there is a server."""
    if SERVER in os.environ:
        schemas().give_back(path)


@contextmanager
def given_back() -> Iterator[None]:
    """Empty what is taken within this context, if there is a server."""
    if SERVER in os.environ:
        with schemas().given_back():
            yield
    else:
        yield


def drop_all() -> None:
    """Delete what this process made on the server."""
    if schemas.cache_info().currsize:
        schemas().drop()
        schemas.cache_clear()
