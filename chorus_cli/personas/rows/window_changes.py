"""Changes of a window in the persona's file and in the journal: both or neither.

The file's lock is held from the intent to the row, so that an intent whose file can be locked was left by a kill.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from chorus_cli.core.errors import JournalError, JsoncError, SettingsError
from chorus_cli.core.json import jsonc
from chorus_cli.log.rows import intents, operation_rows
from chorus_cli.log.rows.intents import Intent
from chorus_cli.log.rules.acts import ACTS, Reversal, Window
from chorus_cli.log.rules.operations import NewOperation
from chorus_cli.personas import files as persona_files
from chorus_cli.settings import files as settings_file
from chorus_cli.settings.files import ABSENT
from chorus_cli.settings.rules.table import setting_of
from chorus_cli.storage import file_lock
from chorus_cli.storage.store import Connection, committed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
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
        SettingsError: it cannot be changed, or a kill had left an earlier change of it to be settled, which is done.
    """
    with _settled(connection, path, persona) as file:
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
    with _settled(connection, path, persona) as file:
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
    with _settled(connection, path, operation.persona) as file:
        _, text = file.with_key(KEY, _in_file(change.after), expected=_in_file(change.before))
        _both(connection, file, text, change, operation)


def replace_settings(connection: Connection, path: Path, expected: str, text: str, persona: str, now: datetime) -> bool:
    """Replace the whole file if its text is still ``expected``, and return whether it was.

    The operation is stored if the new text has another window. An invalid text has none, so mending a file may be a
    change of the window too. The errors are those of `change_window`.
    """
    with _settled(connection, path, persona) as file:
        if file.text != expected:
            return False
        change = Window(_window_in(expected), _window_in(text))
        _both(connection, file, text, change, NewOperation(persona, change, now))
    return True


def settle(connection: Connection, personas: Path) -> Iterator[str]:
    """Settle the changes that were cut off, in the transaction at hand; yield a sentence about each."""
    for intent in intents.unfinished(connection):
        if intent.kind in intents.WINDOW_KINDS:
            path = persona_files.settings_path(personas, intent.persona)
            with file_lock.unless_held(path) as is_left:
                if is_left:
                    yield _settle(connection, intent, path)


def _change_window(
    connection: Connection, file: HeldSettings, hours: int | None, persona: str, now: datetime
) -> JsonValue | Absent:
    before, text = file.with_key(KEY, ABSENT if hours is None else hours)
    change = Window(None if before is ABSENT else before, hours)
    _both(connection, file, text, change, NewOperation(persona, change, now))
    return before


def _both(connection: Connection, file: HeldSettings, text: str, change: Window, new: NewOperation) -> None:
    """Write the file and store the operation, unless the window stays as it is: then the file alone is written."""
    if jsonc.same(change.before, change.after):
        file.replace(text)
        return

    def work(connection: Connection) -> None:
        _record(connection, new)
        connection.unless_committed(lambda: file.put_back(text))
        file.replace(text)

    detail: dict[str, JsonValue] = {
        "act": new.act.detail(),
        "thread": new.thread_id,
        "change": [change.before, change.after],
    }
    before, after = intents.hash_of(file.text), intents.hash_of(text)
    intent = Intent(new.persona, new.act.kind, detail, before, after, new.created_at)
    intents.carry_out(connection, intent, lambda: intents.hash_of(file.present()), work)


def _record(connection: Connection, new: NewOperation) -> None:
    if isinstance(new.act, Reversal):
        operation_rows.introduce_reversal(connection, new)
    else:
        operation_rows.introduce(connection, new)


@contextmanager
def _settled(connection: Connection, path: Path, persona: str) -> Iterator[HeldSettings]:
    """Hold a persona's settings, without a change that a killed process has left.

    Raises:
        SettingsError: there was one. It is settled, but the next change may have been meant otherwise.
    """
    with settings_file.held(path) as file:
        left = [each for each in intents.unfinished(connection, persona) if each.kind in intents.WINDOW_KINDS]
        if left:
            told = committed(connection, lambda c: [_settle(c, intent, path) for intent in left])
            raise SettingsError(" ".join([*told, "Give your command again if you still want it."]))
        yield file


def _settle(connection: Connection, intent: Intent, path: Path) -> str:
    """Store the operation of an intent if the file has its value, delete the intent, and return a sentence."""
    detail: Any = intent.detail
    change = Window(*detail["change"])
    try:
        text = settings_file.read_text(path)
        present, value = intents.hash_of(text), jsonc.parse_object(text).values.get(KEY)
        is_done = present == intent.after or jsonc.same(value, change.after)
    except (JsoncError, SettingsError):
        present, is_done = "", False
    if is_done and present != intent.before:
        act = ACTS[intent.kind].from_detail(detail["act"], ())
        # Another undo of the same has made this one superfluous.
        with suppress(JournalError):
            _record(connection, NewOperation(intent.persona, act, intent.created_at, detail["thread"]))
    intents.end(connection, intent.id)
    told = f"A change of {intent.persona} ({change.describe()}) was cut off"
    if present == intent.before:
        return f"{told}: nothing of it was done."
    if present == intent.after:
        return f"{told}: the file has it, and so has the journal now."
    return f"{told}: {path} was edited since and counts; the journal {'has' if is_done else 'leaves out'} the change."


def _window_in(text: str) -> JsonValue:
    try:
        return jsonc.parse_object(text).values.get(KEY)
    except JsoncError:
        return None


def _in_file(value: JsonValue) -> JsonValue | Absent:
    return ABSENT if value is None else value
