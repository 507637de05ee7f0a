"""A new database from a damaged one: row by row, with the rows of a backup in place of those that are lost."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.errors import StorageError
from chorus_cli.storage import migrations, untrusted
from chorus_cli.storage.errors import UNREADABLE
from chorus_cli.stores.salvage import examination, soundness
from chorus_cli.stores.salvage.new_log import MESSAGES, Lost, NewLog
from chorus_cli.stores.salvage.row_reading import RowReader

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from chorus_cli.stores.salvage.examination import Purged

_MAGIC = b"SQLite format 3\0"
_HEAD_BYTES, _LARGEST_PAGE = 100, 65_536
_PAGE_SIZES = frozenset(2**power for power in range(9, 16))
_PAGE_COUNT = slice(28, 32)
_CHANGE_COUNTER, _VALID_FOR = slice(24, 28), slice(92, 96)


class Counts(NamedTuple):
    """Messages of a salvaged log: read from the damaged file, brought from the backup, changed, and lost.

    Changed ones differ from the text that was written, and no backup has that. ``others`` are the rows of other tables.
    """

    read: int
    from_backup: int
    changed: int
    lost: Lost
    others: int
    others_from_backup: int


def salvage(
    damaged: Path, target: Path, backup: Path | None, source: Callable[[Purged], Path | None] = lambda _purged: None
) -> Counts:
    """Write the new database ``target``; ``damaged`` is a copy that may be changed, ``backup`` a sound database.

    If the backup holds messages that the damaged database has purged since, rows come from ``source`` instead, which
    finds a backup that does not.

    Raises:
        StorageError: nothing could be read at all.
    """
    with closing(sqlite3.connect(target, isolation_level=None)) as connection:
        migrations.migrate(connection, migrations.STEPS[: _steps(damaged, backup)])
        _mend_first_page(damaged, backup or target)
        with closing(sqlite3.connect(damaged)) as readable:
            # A table whose statement cannot be read then does not hide the others.
            readable.execute("PRAGMA writable_schema = ON")
            counts = _filled(connection, RowReader(readable, damaged.stat().st_size), backup, source)
        fault = soundness.quick_fault(connection)
    if fault or not (counts.read or counts.from_backup or counts.others):
        raise StorageError(f"Nothing could be read from {damaged.name}{f' ({fault})' if fault else ''}.")
    return counts


def _mend_first_page(damaged: Path, like: Path) -> None:
    """Make a file readable at all that was cut short or whose first page is damaged.

    The first page then is that of ``like``: tables begin at the same pages in a database, its backups and, usually, a
    new one.
    """
    page_bytes = _page_bytes(damaged)
    if page_bytes:
        _state_size(damaged, page_bytes)
    if page_bytes and _has_tables(damaged):
        return
    damaged.with_name(f"{damaged.name}-journal").unlink(missing_ok=True)
    page_bytes = _page_bytes(like)
    with like.open("rb") as file, damaged.open("r+b") as target:
        target.write(file.read(page_bytes))
    _state_size(damaged, page_bytes)


def _state_size(path: Path, page_bytes: int) -> None:
    """Write the number of pages into the head of a file; SQLite reads nothing of one that should have more."""
    pages = -(-path.stat().st_size // page_bytes)
    with path.open("r+b") as file:
        head = bytearray(file.read(_HEAD_BYTES))
        # The number counts only if these two are equal.
        head[_PAGE_COUNT], head[_VALID_FOR] = pages.to_bytes(4, "big"), head[_CHANGE_COUNTER]
        file.seek(0)
        file.write(head)
        file.truncate(pages * page_bytes)


def _has_tables(path: Path) -> bool:
    """Return whether the list of tables can be read."""
    with suppress(*UNREADABLE), closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        return bool(connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0])
    return False


def _page_bytes(path: Path) -> int:
    """Return the size of a page, 0 if the head of the file has none."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    size = int.from_bytes(head[16:18], "big")
    if len(head) < _HEAD_BYTES or not head.startswith(_MAGIC):
        return 0
    return _LARGEST_PAGE if size == 1 else size if size in _PAGE_SIZES else 0


def _steps(damaged: Path, backup: Path | None) -> int:
    """Return the number of steps that were applied to the damaged file, or else to its backup."""
    for path in filter(None, (damaged, backup)):
        with suppress(*UNREADABLE, StorageError), closing(sqlite3.connect(path)) as connection:
            number = len(migrations.applied(connection))
            if 0 < number <= len(migrations.STEPS):
                return number
    return len(migrations.STEPS)


def _filled(
    connection: sqlite3.Connection,
    reader: RowReader,
    backup: Path | None,
    source: Callable[[Purged], Path | None],
) -> Counts:
    connection.execute("BEGIN IMMEDIATE")
    log = NewLog(connection)
    read, brought = log.copy(reader), {}
    found = examination.purged(connection)
    if backup is not None and _holds(backup, found):
        backup = source(found)
    if backup is not None:
        with closing(sqlite3.connect(backup)) as other:
            untrusted.read_tables_only(other)
            brought = log.bring(RowReader(other, backup.stat().st_size))
    lost = log.complete(reader)
    connection.execute("COMMIT")
    messages, from_backup = read.pop(MESSAGES, 0), brought.pop(MESSAGES, 0)
    return Counts(messages, from_backup, len(log.changed), lost, sum(read.values()), sum(brought.values()))


def _holds(backup: Path, found: Purged) -> bool:
    with closing(sqlite3.connect(backup)) as connection:
        untrusted.read_tables_only(connection)
        return examination.holds(connection, found)
