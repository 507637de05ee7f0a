"""What a turn asks of the log before its request leaves: statements of SQLite, and round trips to a server."""

from __future__ import annotations

import asyncio
import importlib
import os
import sqlite3
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib.util import find_spec
from secrets import token_hex
from typing import TYPE_CHECKING

from benchmarks.figures import Figure, Skipped
from benchmarks.model_server import serving
from benchmarks.program import A_PROVIDERS_MODEL
from benchmarks.surroundings import isolated, temporary_folder
from chorus_cli.app import Options, opened
from chorus_cli.storage.postgres.connection import PostgresConnection

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Mapping

    from chorus_cli.models.rules.events import ModelClient, ModelEvent
    from chorus_cli.models.rules.request import ModelRequest
    from chorus_cli.storage.port import Connection

STATEMENTS, ROUND_TRIPS = 30, 8
SERVER = "TEST_POSTGRES"
"""The variable with the address of a PostgreSQL server on which the row may make a schema."""

_TURNS, _QUICK_TURNS = 5, 2


class _Counting:
    """A ``ModelClient`` that notes how much was asked of the log when a request leaves."""

    def __init__(self, client: ModelClient, count: Callable[[], int]) -> None:
        self._client = client
        self._count = count
        self.counted = 0

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.counted = self._count()
        return self._client.stream(request)


def measure(*, quick: bool) -> Iterator[Figure | Skipped]:
    """Count the last turn of a short talk over each engine."""
    turns = _QUICK_TURNS if quick else _TURNS
    yield _figure("statements", "", turns, STATEMENTS)
    if SERVER not in os.environ or find_spec("psycopg") is None:
        yield Skipped("a turn before its request: round trips", f"{SERVER} names no server, or psycopg is missing")
        return
    with _schema(os.environ[SERVER]) as log:
        yield _figure("round trips", log, turns, ROUND_TRIPS)


def _figure(things: str, log: str, turns: int, goal: int) -> Figure:
    with ExitStack() as context:
        environment = isolated(os.environ, context.enter_context(temporary_folder()))
        address = context.enter_context(serving(environment))
        provider = {"OPENAI_BASE_URL": address, "OPENAI_API_KEY": "sk-of-nobody"}
        value = asyncio.run(_counted({**environment, **provider}, log, turns))
    return Figure(f"a turn before its request: {things}", value, "one", 1, "asked", value, goal)


async def _counted(environment: Mapping[str, str], log: str, turns: int) -> int:
    async with opened(Options(model=A_PROVIDERS_MODEL, log=log or None), environment) as app:
        count = await app.store.write_in_steps(_counter)
        services = app.services()
        services.context.counter.load()
        model = _Counting(services.conversation.runner.model, count)
        runner = replace(services.conversation.runner, model=model)
        opener = replace(services.conversation.opener, runner=runner)
        conversation = replace(services.conversation, runner=runner, opener=opener)
        before = 0
        for _ in range(turns):
            before = count()
            [event async for event in conversation.answer(app.current.target(), "What did we decide?")]
        return model.counted - before


def _counter(connection: Connection) -> Callable[[], int]:
    """Return what tells how often the log has been asked so far."""
    if isinstance(connection, PostgresConnection):
        return lambda: connection.round_trips
    statements: list[str] = []
    if isinstance(connection, sqlite3.Connection):
        connection.set_trace_callback(statements.append)
    return lambda: len(statements)


@contextmanager
def _schema(address: str) -> Iterator[str]:
    """Make an empty schema on a server, yield the address of a log in it, and delete it."""
    name = f"chorus_{token_hex(6)}"
    with importlib.import_module("psycopg").connect(address, autocommit=True) as server:
        server.execute(f"CREATE SCHEMA {name}")
        try:
            yield f"{address}?options=-csearch_path%3D{name}"
        finally:
            server.execute(f"DROP SCHEMA {name} CASCADE")
