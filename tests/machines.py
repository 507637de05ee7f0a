"""Machines with folders of their own that share one log on a PostgreSQL server, each machine a world of its own."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from chorus_cli.log.rules.run_names import run_name
from chorus_cli.machine.paths import Paths
from chorus_cli.run_storage import RunStorage, on_disk
from chorus_cli.storage.postgres.statements import key_of
from chorus_cli.threads.service.elsewhere import Elsewhere
from tests.fakes import FakeClock, ScriptedModel
from tests.storage.schemas import SERVER
from tests.world import Tools, World, built

needs_a_server = pytest.mark.skipif(SERVER not in os.environ, reason=f"{SERVER} names no PostgreSQL server")


@dataclass
class Machine:
    world: World
    storage: RunStorage

    @property
    def elsewhere(self) -> Elsewhere:
        assert self.storage.notifications is not None
        return Elsewhere(self.storage.store, self.world.current, self.storage.run, self.storage.notifications)


def stored_at(folder: Path, url: str, host: str, process_id: int = 1) -> RunStorage:
    folder.mkdir(exist_ok=True)
    paths = Paths(folder, folder, folder)
    paths.run.mkdir(exist_ok=True)
    return on_disk(paths, run_name(process_id, "ab", host), url)


@asynccontextmanager
async def machine(
    folder: Path, url: str, host: str, clock: FakeClock | None = None, tools: Tools | None = None
) -> AsyncIterator[Machine]:
    """Start a machine whose model answers what its script says; its run ends with the block."""
    storage = stored_at(folder, url, host)
    await storage.store.open()
    try:
        yield Machine(await built(folder, storage, clock or FakeClock(), ScriptedModel(), 10_000, tools), storage)
    finally:
        await storage.store.close()


def cut(url: str, *, listening: bool) -> None:
    """Cut the lines over which machines listen for notifications, or all others."""
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(
            # The server waits until its processes have ended, and with them the lines.
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid() AND (query LIKE 'LISTEN%%') = %s",
            (listening,),
        )


def await_listening(url: str, number: int) -> None:
    """Wait until a number of chats listen for notifications."""
    with psycopg.connect(url, autocommit=True) as server:
        listening = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"
        while server.execute(listening).fetchone() != (number,):
            time.sleep(0.01)


def await_end(url: str, run: str) -> None:
    """Wait until the server has ended its process for a closed connection, a moment after the connection."""
    with psycopg.connect(url, autocommit=True) as server:
        held = "SELECT count(*) FROM pg_locks WHERE objid = %s"
        while server.execute(held, (key_of(run),)).fetchone() != (0,):
            time.sleep(0.01)
