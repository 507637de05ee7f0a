"""Personas in the log, with or without a folder, and changes of settings that the journal records as operations."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

from chorus_cli.core.errors import JsoncError, SettingsError
from chorus_cli.core.json import jsonc
from chorus_cli.core.json.jsonc import JsonValue
from chorus_cli.core.time.timestamps import WindowHours
from chorus_cli.log.rows import operation_rows, thread_rows
from chorus_cli.log.rows.message_rows import counted_moment
from chorus_cli.log.rows.operation_rows import DETAIL
from chorus_cli.log.rules.acts import Reversal, SettingChange, Window
from chorus_cli.log.rules.operations import NewOperation, Operation
from chorus_cli.personas import files as persona_files
from chorus_cli.personas.files import NewPersona
from chorus_cli.settings import files as settings_file
from chorus_cli.settings.files import HeldSettings
from chorus_cli.settings.rules.table import WINDOW_KEY, setting_of
from chorus_cli.storage import meta_rows
from chorus_cli.storage.port import Connection, OpenConnection
from chorus_cli.storage.store import committed

Change: TypeAlias = Window | SettingChange


def hours_in(value: JsonValue) -> WindowHours | None:
    """Return ``value`` if it is a valid window, else ``None``."""
    return value if isinstance(value, int | str) and setting_of(WINDOW_KEY).accepts(value) else None


def change_entry(
    connection: OpenConnection, path: Path, keys: Sequence[str], value: JsonValue, persona: str, now: datetime
) -> JsonValue:
    """Set the window or another entry in the file, or remove it with ``None``; return its old value."""
    with settings_file.held(path) as file:
        before = file.value_of(keys)
        change = Window(before, value) if tuple(keys) == (WINDOW_KEY,) else SettingChange(tuple(keys), before, value)
        text = file.with_value(keys, value)
        if is_operation(before, value):
            _write(connection, file, text, change, NewOperation(persona, change, now))
        else:
            file.replace(text)
        return before


def is_operation(before: JsonValue, after: JsonValue) -> bool:
    """Return whether the journal records a change; it records no objects, which may have a server's API keys."""
    return not (isinstance(before, dict) or isinstance(after, dict))


def put_setting_back(connection: OpenConnection, path: Path, change: Change, operation: NewOperation) -> None:
    """Change a window or an entry from ``change.before`` to ``change.after``, and store the undo or redo."""
    keys = (WINDOW_KEY,) if isinstance(change, Window) else change.keys
    with settings_file.held(path) as file:
        if not jsonc.same(file.value_of(keys), change.before):
            raise SettingsError(f"{'.'.join(keys)} in {path} was changed since, so Chorus leaves the file alone.")
        _write(connection, file, file.with_value(keys, change.after), change, operation)


def replace_settings(
    connection: OpenConnection, path: Path, expected: str, text: str, persona: str, now: datetime
) -> bool:
    """Replace the whole file if its text is still ``expected``, and return whether it was replaced."""
    with settings_file.held(path) as file:
        if file.text != expected:
            return False
        change = Window(values_in(expected).get(WINDOW_KEY), values_in(text).get(WINDOW_KEY))
        _write(connection, file, text, change, NewOperation(persona, change, now))
    return True


def note_edit(connection: Connection, path: Path, persona: str, now: datetime) -> None:
    """Store an operation if the window in the file differs from the window in the journal; skip an unreadable file."""
    with suppress(JsoncError, SettingsError):
        _note(connection, persona, jsonc.parse_object(settings_file.read_text(path)).values.get(WINDOW_KEY), now)


def _write(connection: OpenConnection, file: HeldSettings, text: str, change: Change, new: NewOperation) -> None:
    """Replace the file, and store the operation unless the value stays as it is."""

    def work(connection: Connection) -> None:
        if isinstance(change, Window):
            _note(connection, new.persona, change.before, new.created_at)
        is_reversal = isinstance(new.act, Reversal)
        (operation_rows.introduce_reversal if is_reversal else operation_rows.introduce)(connection, new)
        if isinstance(change, Window):
            _know(connection, new.persona, change.after)
        file.replace(text)

    if jsonc.same(change.before, change.after):
        file.replace(text)
    else:
        committed(connection, work)


def _note(connection: Connection, persona: str, present: JsonValue, now: datetime) -> None:
    """Store an operation if the journal knows another window than ``present``; ignore an invalid window."""
    if present is not None and hours_in(present) is None:
        return
    try:
        known = json.loads(meta_rows.value(connection, meta_rows.WINDOW + persona) or "")
    except ValueError:
        _know(connection, persona, present)
        return
    if not jsonc.same(known, present):
        operation_rows.introduce(connection, NewOperation(persona, Window(known, present), now))
        _know(connection, persona, present)


def _know(connection: Connection, persona: str, window: JsonValue) -> None:
    if window is None or hours_in(window) is not None:
        meta_rows.store(connection, meta_rows.WINDOW + persona, json.dumps(window))


def values_in(text: str) -> Mapping[str, JsonValue]:
    """Return the settings in a text; no settings if the text cannot be read."""
    try:
        return jsonc.parse_object(text).values
    except JsoncError:
        return {}


class PersonaActivity(NamedTuple):
    """Number of messages of a persona, and the time of the newest message, ``None`` if the time cannot be read."""

    messages: int
    last_spoken: datetime | None


def activity(connection: Connection) -> Mapping[str, PersonaActivity]:
    """Return each persona's activity by slug.

    Purged messages, messages of undone imports, and those of an earlier persona of the slug do not count.
    """
    found = connection.execute(
        "WITH begun AS (SELECT persona, MAX(after_message_id) AS after FROM operations "
        f"WHERE kind = 'clear' AND json_extract({DETAIL}, '$.begins') IS NOT NULL GROUP BY persona) "
        "SELECT persona, COUNT(*), MAX(timestamp) FROM messages LEFT JOIN begun USING (persona) "
        "WHERE id > COALESCE(after, 0) AND purged_by IS NULL "
        f"AND {operation_rows.NOT_OFF} GROUP BY persona",
        operation_rows.moves(connection),
    ).fetchall()
    return {persona: PersonaActivity(count, counted_moment(newest)) for persona, count, newest in found}


def last_spoken_at(connection: Connection, persona: str) -> datetime | None:
    """Return the time of a persona's newest message that was not imported; ``None`` without a readable time."""
    row = connection.execute(
        "SELECT timestamp FROM messages WHERE persona = :persona AND (introduced_by IS NULL OR introduced_by NOT IN "
        "(SELECT id FROM operations WHERE persona = :persona AND kind = 'import')) ORDER BY timestamp DESC LIMIT 1",
        {"persona": persona},
    ).fetchone()
    return counted_moment(row[0]) if row else None


LeaveBehind: TypeAlias = "Callable[[Connection, str, Operation], None]"
"""Hides an earlier persona's memory and sessions from a new persona of the same slug; the operation is the boundary."""


_IS_KNOWN = (
    "SELECT EXISTS(SELECT 1 FROM messages WHERE persona = :slug) "
    "OR EXISTS(SELECT 1 FROM operations WHERE persona = :slug) "
    "OR EXISTS(SELECT 1 FROM context_items WHERE persona = :slug)"
)


def create(
    connection: OpenConnection,
    personas: Path,
    new: NewPersona,
    boundary: NewOperation | None,
    leave_behind: LeaveBehind,
    fill: Callable[[Connection], None] | None = None,
) -> bool:
    """Make a persona's folder, hide rows of an earlier persona of the slug, and return whether there were any.

    ``boundary`` hides earlier rows, including rows of a process that was killed before it could make the folder.
    Without a boundary, the new persona sees earlier rows, because another machine may use the same persona. The
    boundary and the rows that ``fill`` stores are committed before the folder gets its name.
    """

    def work(connection: Connection) -> bool:
        has_namesake = bool(connection.execute(_IS_KNOWN, {"slug": new.slug}).fetchone()[0])
        if boundary is not None:
            if has_namesake:
                leave_behind(connection, new.slug, operation_rows.introduce(connection, boundary))
            thread_rows.leave_behind(connection, new.slug, boundary.created_at)
        if fill is not None:
            fill(connection)
        _know(connection, new.slug, values_in(new.settings).get(WINDOW_KEY))
        return has_namesake

    with persona_files.sole_maker(personas):
        return persona_files.create(personas, new, partial(committed, connection, work))
