"""A window changes in two places, the persona's file and the journal: both or neither.

The file is written while the database's lock is held, so that a busy database is met before the file is touched; if
storing the row fails all the same, the file is put back.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from chorus_cli.core.operations import WindowChange
from chorus_cli.storage import operation_log, settings_file
from chorus_cli.storage.settings_file import ABSENT

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

    from chorus_cli.core.jsonc import JsonValue
    from chorus_cli.storage.operation_log import NewOperation
    from chorus_cli.storage.settings_file import Absent

KEY = "context_hours"


def change_window(connection: sqlite3.Connection, path: Path, hours: int | None, operation: NewOperation) -> None:
    """Write the setting, ``None`` to remove it, and the operation with what it was before, unless nothing changes."""
    before = settings_file.change_key(path, KEY, _in_file(hours))
    change = WindowChange(None if before is ABSENT else before, hours)
    if change.before != change.after:
        _introduce(connection, path, replace(operation, window=change), before)


def put_window_back(connection: sqlite3.Connection, path: Path, change: WindowChange, operation: NewOperation) -> None:
    """Make of ``change.before`` what is ``change.after``, and store the undo or redo that does it.

    Raises:
        SettingsError: the file says something else than ``change.before`` by now.
    """
    before = _in_file(change.before)
    settings_file.change_key(path, KEY, _in_file(change.after), expected=before)
    _introduce(connection, path, operation, before)


def _introduce(connection: sqlite3.Connection, path: Path, operation: NewOperation, before: JsonValue | Absent) -> None:
    try:
        operation_log.introduce(connection, operation)
    except BaseException:
        settings_file.change_key(path, KEY, before)
        raise


def _in_file(value: JsonValue) -> JsonValue | Absent:
    return ABSENT if value is None else value
