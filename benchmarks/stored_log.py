"""A database with one thread, as large as a row of the table needs it."""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from chorus_cli.context.service.context import Context
from chorus_cli.log.rules.attachments import ALL_SENT
from chorus_cli.models.providers.token_counter import VocabularyCounter
from chorus_cli.models.rules.budget import Limit
from chorus_cli.models.rules.choice import ModelChoice
from chorus_cli.models.rules.declaration import NO_OFFER, ToolOffer
from chorus_cli.models.rules.request import NO_ECHO
from chorus_cli.personas.rules.persona import Persona, Target
from chorus_cli.settings.rules.table import Settings
from chorus_cli.storage import migrations
from chorus_cli.storage.port import Connection

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from chorus_cli.storage.store import Store

PERSONA = "chorus"
TARGET = Target(Persona(PERSONA, Settings()), 1, ModelChoice("openai/test", "the benchmark"))
StoredRow = tuple[str, int, int, str, str, str, int]
"""Persona, thread, turn, role, content, timestamp and number of tokens of a message."""


def context_of(store: Store, limit_tokens: int) -> Context:
    """Return the context of a model without tools that is sent all files and no thoughts."""
    limit = Limit(limit_tokens, "a test")
    return Context(
        store, VocabularyCounter(), lambda _: limit, lambda _: None, _no_tools, lambda _: ALL_SENT, lambda _: NO_ECHO
    )


async def _no_tools(_target: Target, _limit: Limit) -> ToolOffer:
    return NO_OFFER


def fill(connection: Connection, rows: Iterable[StoredRow]) -> None:
    """Store messages as they were said."""
    connection.executemany(
        "INSERT INTO messages(persona, thread_id, turn_id, role, content, timestamp, token_count) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        rows,
    )


@contextmanager
def stored_log(path: Path, rows: Iterable[StoredRow]) -> Iterator[sqlite3.Connection]:
    """Make the database, deleted again in the end: the largest takes some hundred megabytes."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        migrations.migrate(connection)
        connection.execute("BEGIN")
        connection.execute("INSERT INTO threads(persona) VALUES (?)", (PERSONA,))
        fill(connection, rows)
        connection.execute("COMMIT")
        yield connection
    path.unlink()
