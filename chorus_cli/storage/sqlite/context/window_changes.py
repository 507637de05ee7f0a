"""Changes of a window in the persona's file and in the journal: both or neither.

The file is written while the database's lock is held, so that a busy database is found before the file is changed; if
the operation cannot be stored or committed, a compensation restores the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.core.errors import JsoncError
from chorus_cli.core.log.acts import Window
from chorus_cli.core.log.operations import NewOperation
from chorus_cli.core.settings import jsonc
from chorus_cli.core.settings.table import setting_of
from chorus_cli.storage.files import settings_file
from chorus_cli.storage.files.settings_file import ABSENT
from chorus_cli.storage.sqlite.log import operation_rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from pathlib import Path

    from chorus_cli.core.settings.jsonc import JsonValue
    from chorus_cli.core.time.timespan import WindowChoice
    from chorus_cli.storage.files.settings_file import Absent
    from chorus_cli.storage.sqlite.store import Connection

KEY = "context_hours"


def change_window(
    connection: Connection, path: Path, hours: int | None, persona: str, now: datetime
) -> JsonValue | Absent:
    """Write the setting, ``None`` to remove it, and the operation unless nothing changes; return the old value."""
    before = settings_file.change_key(path, KEY, _in_file(hours))
    change = Window(None if before is ABSENT else before, hours)
    if not settings_file.same(change.before, change.after):
        connection.unless_committed(lambda: settings_file.change_key(path, KEY, before))
        operation_rows.introduce(connection, NewOperation(persona, change, now))
    return before


def shift_window(
    connection: Connection,
    path: Path,
    default: int,
    choose: Callable[[int], WindowChoice],
    persona: str,
    now: datetime,
) -> tuple[JsonValue | Absent, WindowChoice]:
    """Write the window that ``choose`` makes of the current one, which no other process can change meanwhile.

    Return the old value in the file, and the window that was chosen.
    """
    layer, _ = settings_file.read_layer(path)
    current = layer.values.get(KEY)
    choice = choose(current if isinstance(current, int) and setting_of(KEY).accepts(current) else default)
    return change_window(connection, path, choice.hours, persona, now), choice


def put_window_back(connection: Connection, path: Path, change: Window, operation: NewOperation) -> None:
    """Change the window from ``change.before`` to ``change.after``, and store the undo or redo.

    Raises:
        SettingsError: the file has another value than ``change.before`` by now.
        JournalError: another program has done the same meanwhile.
    """
    before = _in_file(change.before)
    settings_file.change_key(path, KEY, _in_file(change.after), expected=before)
    connection.unless_committed(lambda: settings_file.change_key(path, KEY, before))
    operation_rows.introduce_reversal(connection, operation)


def replace_settings(connection: Connection, path: Path, expected: str, text: str, persona: str, now: datetime) -> bool:
    """Replace the whole file if its text is still ``expected``, and return whether it was.

    The operation is stored if the new text has another window. An invalid text has none, so mending a file may be a
    change of the window too.
    """
    if not settings_file.replace_text(path, expected, text):
        return False
    change = Window(_window_in(expected), _window_in(text))
    if not settings_file.same(change.before, change.after):
        connection.unless_committed(lambda: settings_file.replace_text(path, text, expected))
        operation_rows.introduce(connection, NewOperation(persona, change, now))
    return True


def _window_in(text: str) -> JsonValue:
    try:
        return jsonc.parse_object(text).values.get(KEY)
    except JsoncError:
        return None


def _in_file(value: JsonValue) -> JsonValue | Absent:
    return ABSENT if value is None else value
