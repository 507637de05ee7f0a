"""Personas in the log, with or without a folder, and the changes of their windows that the journal notes."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from chorus_cli.core.errors import JsoncError, SettingsError
from chorus_cli.core.json import jsonc
from chorus_cli.log.rows import operation_rows, thread_rows
from chorus_cli.log.rows.message_rows import counted_moment
from chorus_cli.log.rows.operation_rows import DETAIL
from chorus_cli.log.rules.acts import Reversal, Window
from chorus_cli.log.rules.operations import NewOperation
from chorus_cli.personas import files as persona_files
from chorus_cli.settings import files as settings_file
from chorus_cli.settings.files import ABSENT
from chorus_cli.settings.rules.table import setting_of
from chorus_cli.storage import meta_rows
from chorus_cli.storage.store import Connection, committed

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Mapping
    from datetime import datetime
    from pathlib import Path

    from chorus_cli.core.json.jsonc import JsonValue
    from chorus_cli.core.time.timespan import WindowChoice
    from chorus_cli.log.rules.operations import Operation
    from chorus_cli.settings.files import Absent, HeldSettings

KEY = "context_hours"


def change_window(
    connection: Connection, path: Path, hours: int | None, persona: str, now: datetime
) -> JsonValue | Absent:
    """Write the setting, ``None`` to remove it, and the operation unless nothing changes; return the old value."""
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
    """Change the window from ``change.before`` to ``change.after``, and store the undo or redo."""
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


@dataclass(frozen=True, slots=True)
class PersonaActivity:
    """Number of messages of a persona, and the time of the newest one, ``None`` if that cannot be read."""

    messages: int
    last_spoken: datetime | None


def activity(connection: sqlite3.Connection) -> Mapping[str, PersonaActivity]:
    """Return number and newest time of messages by persona, without those of an earlier persona of the same folder."""
    found = connection.execute(
        "WITH begun AS (SELECT persona, MAX(after_message_id) AS after FROM operations "
        f"WHERE kind = 'clear' AND json_extract({DETAIL}, '$.begins') GROUP BY persona) "
        "SELECT persona, COUNT(*), MAX(timestamp) FROM messages LEFT JOIN begun USING (persona) "
        "WHERE id > COALESCE(after, 0) AND purged_by IS NULL GROUP BY persona"
    ).fetchall()
    return {persona: PersonaActivity(count, counted_moment(newest)) for persona, count, newest in found}


def last_spoken_at(connection: sqlite3.Connection, persona: str) -> datetime | None:
    """Return the time of a persona's newest message in any thread that was not imported.

    It is ``None`` without such a message, or if the time cannot be read.
    """
    row = connection.execute(
        "SELECT timestamp FROM messages WHERE persona = :persona AND (introduced_by IS NULL OR introduced_by NOT IN "
        "(SELECT id FROM operations WHERE persona = :persona AND kind = 'import')) ORDER BY timestamp DESC LIMIT 1",
        {"persona": persona},
    ).fetchone()
    return counted_moment(row[0]) if row else None


LeaveBehind: TypeAlias = "Callable[[Connection, str, Operation], None]"
"""Parts a new persona from the memory and the sessions of an earlier one of its slug, as the operation says."""


def _nothing_more(_connection: Connection) -> None:
    """Store no more rows."""


class NewPersona(NamedTuple):
    """The files of a persona about to be made: its settings and, by their paths in its folder, others."""

    slug: str
    settings: str
    files: Mapping[str, bytes] = MappingProxyType({})


def create(
    connection: Connection,
    personas: Path,
    new: NewPersona,
    boundary: NewOperation,
    leave_behind: LeaveBehind,
    fill: Callable[[Connection], None] = _nothing_more,
) -> None:
    """Make a persona's folder, and store ``boundary`` if there was an earlier persona of that slug, to hide its memory.

    The rows, with those that ``fill`` stores, are committed before the finished folder has its name: without the
    boundary, the messages of the earlier persona would be in context. Rows that a kill leaves without a folder are
    behind the boundary of the next persona of that slug.
    """

    def work(connection: Connection) -> None:
        _part(connection, boundary, leave_behind)
        fill(connection)
        begin(connection, new.slug, new.settings)

    with persona_files.sole_maker(personas):
        persona_files.create(personas, new.slug, new.settings, new.files, partial(committed, connection, work))


def _part(connection: Connection, boundary: NewOperation, leave_behind: LeaveBehind) -> None:
    """Part a persona from an earlier one of its slug."""
    slug = boundary.persona
    known = connection.execute(
        "SELECT EXISTS(SELECT 1 FROM messages WHERE persona = :slug) OR "
        "EXISTS(SELECT 1 FROM operations WHERE persona = :slug) OR "
        "EXISTS(SELECT 1 FROM context_items WHERE persona = :slug)",
        {"slug": slug},
    ).fetchone()
    if known[0]:
        leave_behind(connection, slug, operation_rows.introduce(connection, boundary))
    thread_rows.leave_behind(connection, slug, boundary.created_at)
