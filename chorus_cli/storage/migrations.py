"""The steps that make the tables. Each step has a name, is applied once, and is never edited once it has landed.

One transaction applies a step and records its name. Before the first missing step, an existing database is copied to
the backups. If a recorded name is not known here, a newer Chorus has changed the file.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from hashlib import blake2b, sha256
from pathlib import Path

from chorus_cli.core.errors import DatabaseDamagedError, DatabaseTooNewError, DatabaseUnconfirmedError, StorageError
from chorus_cli.core.text.apart import set_apart
from chorus_cli.core.time import timestamps
from chorus_cli.storage.errors import damaged, file_of, folder_in_the_way, require_confirmed
from chorus_cli.storage.files import give_name, make_folder, sync_folder, temporary
from chorus_cli.storage.item_schema import COMMANDS, HASHED, MEMORY, REPLACEMENTS, SOURCES, VECTORS
from chorus_cli.storage.schema import (
    ACTS_OF_ANY_KIND,
    BRANCHES,
    CHANGED_ROWS,
    IMPORTS,
    INTENTS,
    LOG_AND_JOURNAL,
    NO_INTENTS,
    NUMBERS,
    ORIGIN_OF,
    OTHER_INSTALLATIONS,
    OTHER_REQUESTS,
    OUTBOX,
    PURGES,
    RUNS_OF_OPERATIONS,
    SESSION_CONTENTS,
    SET_APART,
    STEMS,
    THOUGHTS,
)

APPLICATION_ID = 0x43484F52  # "CHOR"
_ORIGIN_DIGITS = 16

Step = tuple[str, tuple[str, ...]]
STEPS: tuple[Step, ...] = (
    ("0001_log_and_journal", LOG_AND_JOURNAL),
    ("0002_acts_of_any_kind", ACTS_OF_ANY_KIND),
    ("0003_memory", MEMORY),
    ("0004_numbers", NUMBERS),
    ("0005_imports", IMPORTS),
    ("0006_branches", BRANCHES),
    ("0007_changed_rows", CHANGED_ROWS),
    ("0008_purges", PURGES),
    ("0009_intents", INTENTS),
    ("0010_other_requests", OTHER_REQUESTS),
    ("0011_thoughts", THOUGHTS),
    ("0012_no_intents", NO_INTENTS),
    ("0013_outbox", OUTBOX),
    ("0014_sources", SOURCES),
    ("0015_stems", STEMS),
    ("0016_replacements", REPLACEMENTS),
    ("0017_vectors", VECTORS),
    ("0018_commands", COMMANDS),
    ("0019_session_contents", SESSION_CONTENTS),
    ("0020_runs_of_operations", RUNS_OF_OPERATIONS),
    ("0021_other_installations", OTHER_INSTALLATIONS),
)


def migrate(connection: sqlite3.Connection, steps: Sequence[Step] = STEPS, backups: Path | None = None) -> None:
    """Apply the missing steps; first copy the database to the folder ``backups``, if one is given."""
    connection.create_function(ORIGIN_OF, 3, _origin_of, deterministic=True)
    connection.create_function(SET_APART, 1, set_apart, deterministic=True)
    connection.create_function(HASHED, 1, _hashed, deterministic=True)
    while True:
        missing = _missing(connection, steps)
        if not missing:
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            is_applied = _apply_first(connection, steps, backups)
            try:
                connection.execute("COMMIT")
            except sqlite3.OperationalError as error:
                require_confirmed(connection, error)
                raise
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        if is_applied:
            # One copy, made before the first step, is enough.
            backups = None


def find_or_create(path: Path, connect: Callable[[Path], sqlite3.Connection]) -> None:
    """Make the database ``path`` with ``connect`` unless it exists; raise an error for a folder or an empty file."""
    if path.is_dir():
        raise folder_in_the_way(path)
    if not path.exists():
        _create(path, connect)
    elif path.stat().st_size == 0:
        raise DatabaseDamagedError(
            f"{path} is empty (0 bytes). Chorus never leaves an empty log. Put a backup in its place "
            "with chorus doctor, or move the file away to start over."
        )


def applied(connection: sqlite3.Connection) -> list[str]:
    """Return the names of the steps that were applied to this file, in order."""
    if not _has_tables(connection):
        return []
    names = [name for (name,) in connection.execute("SELECT name FROM schema_migrations ORDER BY rowid").fetchall()]
    if None in names:
        raise damaged(file_of(connection), "a step in its list of migrations has no name")
    return names


def made_by_newer(thing: object, use: str) -> str:
    """Return the sentence about a log or a backup that only a newer Chorus can use."""
    return f"{thing} was made by a newer Chorus. Update Chorus to {use} it."


def is_newer(connection: sqlite3.Connection, steps: Sequence[Step] = STEPS) -> bool:
    """Return whether a newer Chorus has changed this file."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return not {*applied(connection)} <= {name for name, _ in steps} or version > len(steps)


def is_current(connection: sqlite3.Connection, steps: Sequence[Step] = STEPS) -> bool:
    """Return whether this file has the tables of this Chorus."""
    return len(applied(connection)) == len(steps) and not is_newer(connection, steps)


def _create(path: Path, connect: Callable[[Path], sqlite3.Connection]) -> None:
    """Make the database under a temporary name first, so that no other process opens a half-made database."""
    try:
        with temporary(path.parent) as draft:
            with closing(connect(draft)) as connection:
                migrate(connection)
            # Another process may be first. Its database has the same tables.
            with suppress(FileExistsError):
                give_name(draft, path)
    except OSError as error:
        raise StorageError(f"The database {path} cannot be made: {error.strerror}.") from error
    except DatabaseUnconfirmedError as error:
        # The error names the temporary file, which is deleted by now.
        raise StorageError(f"The database {path} cannot be made: the disk does not confirm it; check it.") from error


def _missing(connection: sqlite3.Connection, steps: Sequence[Step]) -> list[Step]:
    done = applied(connection)
    if is_newer(connection, steps):
        raise DatabaseTooNewError(made_by_newer(file_of(connection), "open"))
    return [step for step in steps if step[0] not in done]


def _apply_first(connection: sqlite3.Connection, steps: Sequence[Step], backups: Path | None) -> bool:
    """Apply the first missing step; return ``False`` if another process has applied all steps meanwhile."""
    missing = _missing(connection, steps)
    if not missing:
        return False
    name, statements = missing[0]
    if backups is not None:
        _back_up(connection, backups, name)
    connection.execute(
        "CREATE TABLE IF NOT EXISTS schema_migrations(name TEXT PRIMARY KEY, applied_at TEXT NOT NULL) STRICT"
    )
    for statement in statements:
        connection.execute(statement)
    connection.execute("INSERT INTO schema_migrations VALUES (?, ?)", (name, timestamps.to_text(datetime.now(UTC))))
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {len(applied(connection))}")
    return True


def _origin_of(*first_message: object) -> str:
    return sha256(json.dumps(first_message, default=str).encode()).hexdigest()[:_ORIGIN_DIGITS]


def _hashed(text: bytes) -> str:
    return blake2b(text, digest_size=32).hexdigest()


def _back_up(connection: sqlite3.Connection, folder: Path, step: str) -> None:
    """Copy the database to a new file in ``folder``, while the lock of ``connection`` keeps other writers away."""
    path = Path(file_of(connection))
    copy = folder / f"{path.stem}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-before-{step}{path.suffix}"
    try:
        make_folder(folder)
        with temporary(folder) as draft:
            # A second connection reads, because SQLite cannot copy from a connection that holds the write lock.
            with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(draft)) as target:
                source.backup(target)
            draft.replace(copy)
        sync_folder(folder)
    except (OSError, sqlite3.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise StorageError(
            f"{path} must be copied to {folder} before this Chorus can use it, but the copy failed: {reason}. "
            "Nothing was changed. Remove the cause, such as a full disk, and start again."
        ) from error


def _has_tables(connection: sqlite3.Connection) -> bool:
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()}
    if tables and application_id != APPLICATION_ID:
        raise DatabaseDamagedError(
            f"{file_of(connection)} belongs to another program. Move it away, or choose another folder with --home."
        )
    return "schema_migrations" in tables
