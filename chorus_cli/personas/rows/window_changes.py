"""The window of a persona in its file and in the journal, which follows the file.

The file is replaced within the transaction that stores the operation. An edit by hand, and a change that a kill has
left in the file alone, are noted when Chorus next turns to the persona, or before the next change of the window.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

from chorus_cli.core.errors import JsoncError, SettingsError
from chorus_cli.core.json import jsonc
from chorus_cli.log.rows import operation_rows
from chorus_cli.log.rules.acts import Reversal, Window
from chorus_cli.log.rules.operations import NewOperation
from chorus_cli.settings import files as settings_file
from chorus_cli.settings.files import ABSENT
from chorus_cli.settings.rules.table import setting_of
from chorus_cli.storage import meta_rows
from chorus_cli.storage.store import Connection, committed

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from pathlib import Path

    from chorus_cli.core.json.jsonc import JsonValue
    from chorus_cli.core.time.timespan import WindowChoice
    from chorus_cli.settings.files import Absent, HeldSettings

KEY = "context_hours"


def change_window(
    connection: Connection, path: Path, hours: int | None, persona: str, now: datetime
) -> JsonValue | Absent:
    """Write the setting, ``None`` to remove it, and the operation unless nothing changes; return the old value.

    Raises:
        JsoncError: the file is not valid JSONC.
        SettingsError: it cannot be changed.
    """
    with settings_file.held(path) as file:
        return _change_window(connection, file, hours, persona, now)


def shift_window(
    connection: Connection,
    path: Path,
    default: int,
    choose: Callable[[int], WindowChoice],
    persona: str,
    now: datetime,
) -> tuple[JsonValue | Absent, WindowChoice]:
    """Write the window that ``choose`` makes of the current one, which no other process can change meanwhile.

    Return the old value in the file, and the window that was chosen. The errors are those of `change_window`.
    """
    with settings_file.held(path) as file:
        layer, _ = settings_file.read_layer(path)
        current = layer.values.get(KEY)
        choice = choose(current if isinstance(current, int) and setting_of(KEY).accepts(current) else default)
        return _change_window(connection, file, choice.hours, persona, now), choice


def put_window_back(connection: Connection, path: Path, change: Window, operation: NewOperation) -> None:
    """Change the window from ``change.before`` to ``change.after``, and store the undo or redo.

    Raises:
        SettingsError: the file has another value than ``change.before`` by now, or as for `change_window`.
        JournalError: another program has done the same meanwhile.
    """
    with settings_file.held(path) as file:
        _, text = file.with_key(KEY, _in_file(change.after), expected=_in_file(change.before))
        _write(connection, file, text, change, operation)


def replace_settings(connection: Connection, path: Path, expected: str, text: str, persona: str, now: datetime) -> bool:
    """Replace the whole file if its text is still ``expected``, and return whether it was.

    The operation is stored if the new text has another window. An invalid text has none, so mending a file may be a
    change of the window too. The errors are those of `change_window`.
    """
    with settings_file.held(path) as file:
        if file.text != expected:
            return False
        change = Window(_window_in(expected), _window_in(text))
        _write(connection, file, text, change, NewOperation(persona, change, now))
    return True


def note_edit(connection: Connection, path: Path, persona: str, now: datetime) -> None:
    """Store an operation if the file has another window than the one that the journal knows.

    A window that it has not seen before is where it begins. A file that cannot be read waits until it is mended.
    """
    with suppress(JsoncError, SettingsError):
        _note(connection, persona, jsonc.parse_object(settings_file.read_text(path)).values.get(KEY), now)


def begin(connection: Connection, persona: str, text: str) -> None:
    """Let the journal of a new persona begin with the window in the text of its settings."""
    _know(connection, persona, _window_in(text))


def _change_window(
    connection: Connection, file: HeldSettings, hours: int | None, persona: str, now: datetime
) -> JsonValue | Absent:
    before, text = file.with_key(KEY, ABSENT if hours is None else hours)
    change = Window(None if before is ABSENT else before, hours)
    _write(connection, file, text, change, NewOperation(persona, change, now))
    return before


def _write(connection: Connection, file: HeldSettings, text: str, change: Window, new: NewOperation) -> None:
    """Replace the file, and store the operation unless the window stays as it is."""

    def work(connection: Connection) -> None:
        _note(connection, new.persona, change.before, new.created_at)
        _record(connection, new)
        _know(connection, new.persona, change.after)
        connection.unless_committed(lambda: file.put_back(text))
        file.replace(text)

    if jsonc.same(change.before, change.after):
        file.replace(text)
    else:
        committed(connection, work)


def _note(connection: Connection, persona: str, present: JsonValue, now: datetime) -> None:
    """Store an operation if the journal knows another window than the ``present`` one; if it knows none, it begins.

    What is no window waits until it is mended: it may be anything, even a key.
    """
    if not _is_window(present):
        return
    try:
        known = json.loads(meta_rows.value(connection, meta_rows.window_key(persona)) or "")
    except ValueError:
        _know(connection, persona, present)
        return
    if not jsonc.same(known, present):
        operation_rows.introduce(connection, NewOperation(persona, Window(known, present), now))
        _know(connection, persona, present)


def _know(connection: Connection, persona: str, window: JsonValue) -> None:
    if _is_window(window):
        meta_rows.store(connection, meta_rows.window_key(persona), json.dumps(window))


def _is_window(value: JsonValue) -> bool:
    return value is None or setting_of(KEY).accepts(value)


def _record(connection: Connection, new: NewOperation) -> None:
    if isinstance(new.act, Reversal):
        operation_rows.introduce_reversal(connection, new)
    else:
        operation_rows.introduce(connection, new)


def _window_in(text: str) -> JsonValue:
    try:
        return jsonc.parse_object(text).values.get(KEY)
    except JsoncError:
        return None


def _in_file(value: JsonValue) -> JsonValue | Absent:
    return ABSENT if value is None else value
