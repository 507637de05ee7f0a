"""Settings files on disk: ``system.jsonc`` of a persona, and the ``config.jsonc`` of all."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager, suppress
from enum import Enum
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from chorus_cli.core import limits
from chorus_cli.core.errors import JsoncError, SettingsError
from chorus_cli.core.json import jsonc
from chorus_cli.settings.rules.layers import Layer
from chorus_cli.settings.rules.table import SCHEMA_KEY
from chorus_cli.storage.file_lock import locked
from chorus_cli.storage.files import read_within, write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from chorus_cli.core.json.jsonc import Document, JsonValue


class _Marker(Enum):
    ABSENT = "absent"
    ANYTHING = "anything"


ABSENT: Final = _Marker.ABSENT
"""The value of a key that is not in the file: `change_key` removes the key, or returns that there was none."""

ANYTHING: Final = _Marker.ANYTHING
"""Given as the expected value: every value will do."""

Absent: TypeAlias = Literal[_Marker.ABSENT]
Anything: TypeAlias = Literal[_Marker.ANYTHING]

SCHEMA_FILE = "schema.json"

_DEFAULTS = "defaults"
_MODEL = "model"


def read_layer(path: Path) -> tuple[Layer, tuple[str, ...]]:
    """Return the settings in a persona's file; empty, with a warning, if it cannot be read."""
    document, warnings = _read_or_warn(path)
    return Layer(str(path), document.values, document.lines, readable=not warnings), warnings


def read_defaults(path: Path) -> tuple[Layer, tuple[str, ...]]:
    """Return the settings for every persona in ``config.jsonc``, and warnings about keys that have no effect.

    They are the object under ``"defaults"``; a ``"model"`` may also stand outside it, but the inner one wins.
    """
    document, warnings = _read_or_warn(path)
    inner = document.sections.get(_DEFAULTS, jsonc.Document())
    values, lines = dict(inner.values), dict(inner.lines)
    if _MODEL in document.values and values.get(_MODEL) is None:
        values[_MODEL], lines[_MODEL] = document.values[_MODEL], document.lines[_MODEL]
    return Layer(str(path), values, lines, readable=not warnings), (*warnings, *_misplaced(path, document))


def renew_schema(personas: Path, text: str) -> None:
    """Write the schema that the settings point to beside the folder of the personas, unless it stands there already."""
    path = personas.parent / SCHEMA_FILE
    if not path.exists() or path.read_bytes() != text.encode():
        write_atomically(path, text)


def read_text(path: Path) -> str:
    """Return the text of a settings file, with its byte order mark and line ends; empty if the file is missing.

    Raises:
        SettingsError: the file cannot be read.
    """
    try:
        return _text(path)
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {_reason(error)}.") from error


def copied(path: Path, copy: Path) -> None:
    """Copy a settings file, if there is one, into a folder that is made for the copy.

    Raises:
        SettingsError: the file cannot be read, or the copy not written.
    """
    try:
        copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            copy.write_bytes(read_within(path, limits.SETTINGS_FILE))
    except OSError as error:
        raise SettingsError(f"{path} cannot be copied to {copy}: {_reason(error)}.") from error


def change_key(path: Path, key: str, value: JsonValue | Absent) -> JsonValue | Absent:
    """Set one top-level key of a file, or remove it with `ABSENT`, and return its old value; all else stays.

    The previous text is kept in ``<name>.bak``.
    """
    with held(path) as file:
        before, text = file.with_key(key, value)
        file.replace(text)
        return before


def value_before(path: Path, text: str, new_text: str, key: str, value: JsonValue | Absent) -> JsonValue | Absent:
    """Return the value that ``key`` has in ``text``, where ``new_text`` has ``value`` and otherwise the same settings.

    Raises:
        SettingsError: the new text has other settings than that.
    """
    old, new = jsonc.parse_object(text).values, jsonc.parse_object(new_text).values
    added = {} if value is ABSENT else {key: value}
    if new != {other: kept for other, kept in old.items() if other != key} | added:
        raise SettingsError(f"{path} cannot be changed without harm to its other settings. Please edit it by hand.")
    return old.get(key, ABSENT)


class HeldSettings:
    """A settings file that no other Chorus can change meanwhile. ``text`` is its text when it was locked."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.text = _text(path)

    def present(self) -> str:
        """Return the text that the file has now, which another program may have edited."""
        return _text(self._path)

    def with_key(
        self, key: str, value: JsonValue | Absent, *, expected: JsonValue | Absent | Anything = ANYTHING
    ) -> tuple[JsonValue | Absent, str]:
        """Return the old value of a key, and the text with another one; nothing is written.

        Raises:
            JsoncError: the file is not valid JSONC.
            SettingsError: the key does not have the expected value, or ``value`` cannot be written as JSON.
        """
        try:
            return _with_key(self._path, self.text, key, value, expected)
        except JsoncError as error:
            raise error.named(str(self._path)) from error

    def replace(self, text: str) -> None:
        """Write the text, unless the file has it already; the previous one is kept in ``<name>.bak``."""
        self._change(self.text, text)

    def put_back(self, text: str) -> None:
        """Take back that ``text`` was written, if it was; an edit since then stays."""
        if self.present() == text != self.text:
            self._change(text, self.text)

    def _change(self, present: str, text: str) -> None:
        if self.present() != present:
            raise SettingsError(f"{self._path} is being edited by another program. It is left as it is; try again.")
        if text != present:
            _replace(self._path, present, text)


@contextmanager
def held(path: Path) -> Iterator[HeldSettings]:
    """Hold the file's lock, and turn errors of the system into a sentence.

    Raises:
        SettingsError: it cannot be read or written, or another Chorus does not release it.
    """
    file: HeldSettings | None = None
    try:
        with locked(path):
            file = HeldSettings(path)
            yield file
    except OSError as error:
        raise SettingsError(_failed(path, _reason(error), file)) from error


def _failed(path: Path, reason: str, file: HeldSettings | None) -> str:
    """Return the sentence about a change that failed: it could not even be taken back if the file has another text."""
    with suppress(OSError, JsoncError):
        if file and file.present() != file.text:
            return f"{path} has its new text, but the journal has not: {reason}. The next start notes it."
    return f"{path} cannot be changed: {reason}. It is left as it was."


def _with_key(
    path: Path, text: str, key: str, value: JsonValue | Absent, expected: JsonValue | Absent | Anything
) -> tuple[JsonValue | Absent, str]:
    new_text = jsonc.remove_key(text, key) if value is ABSENT else jsonc.set_key(text, key, value)
    before = value_before(path, text, new_text, key, value)
    if expected is not ANYTHING and before != expected:
        raise SettingsError(
            f"{path} says {_shown(before)} for {key} by now, not {_shown(expected)}. "
            "It was changed since and is left as it is."
        )
    return before, text if jsonc.same(before, value) else new_text


def _replace(path: Path, text: str, new_text: str) -> None:
    if len(new_text.encode()) > limits.SETTINGS_FILE.most:
        raise SettingsError(f"{path} would have more than {limits.SETTINGS_FILE.size}. It is left as it was.")
    if path.exists():
        # A rename would ignore that the user made the file read-only.
        if not os.access(path, os.W_OK):
            raise SettingsError(f"{path} is read-only. Allow writing with chmod u+w, or edit it by hand.")
        write_atomically(path.with_name(f"{path.name}.bak"), text)
    write_atomically(path, new_text)


def _read_or_warn(path: Path) -> tuple[Document, tuple[str, ...]]:
    try:
        return jsonc.parse_object(_text(path)), ()
    except JsoncError as error:
        return jsonc.Document(), (f"{error.named(str(path))}; nothing in this file counts until it is mended",)
    except OSError as error:
        return jsonc.Document(), (f"{path} cannot be read: {_reason(error)}; nothing in this file counts",)


def _text(path: Path) -> str:
    """Return the file's text, with its byte order mark and line ends; empty if the file is missing.

    Raises:
        JsoncError: the file is not UTF-8.
    """
    try:
        data = read_within(path, limits.SETTINGS_FILE)
    except FileNotFoundError:
        return ""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        readable = data[: error.start].decode()
        line, column = jsonc.position(readable, len(readable))
        found = f"expected text in UTF-8, found the byte 0x{data[error.start]:02x}"
        raise JsoncError(line, column, found, name=str(path)) from error


def _misplaced(path: Path, document: Document) -> tuple[str, ...]:
    """Return a warning for each key of ``config.jsonc`` that has no effect at its position."""
    warnings = [
        f'{path}:{line}: unknown key {json.dumps(key)}; settings for every persona stand inside "{_DEFAULTS}"'
        for key, line in document.lines.items()
        if key not in {SCHEMA_KEY, _DEFAULTS, _MODEL}
    ]
    if _DEFAULTS in document.values and _DEFAULTS not in document.sections:
        warnings.append(f'{path}:{document.lines[_DEFAULTS]}: "{_DEFAULTS}" must be an object of settings')
    return tuple(warnings)


def _shown(value: JsonValue | Absent | Anything) -> str:
    return "nothing" if value is ABSENT else str(value)


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
