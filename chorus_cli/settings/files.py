"""Settings files on disk: ``system.jsonc`` of each persona, and ``config.jsonc`` for all personas."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from chorus_cli.core import limits
from chorus_cli.core.errors import JsoncError, SettingsError
from chorus_cli.core.json import jsonc
from chorus_cli.core.json.jsonc import Document, JsonValue
from chorus_cli.settings.rules.table import BY_KEY, OF_INSTALLATION, SCHEMA_KEY, SERVERS, Layer
from chorus_cli.storage.file_lock import locked
from chorus_cli.storage.files import read_within, write_atomically

SCHEMA_FILE = "schema.json"

_DEFAULTS = "defaults"
_OUTSIDE = ("model", SERVERS, *OF_INSTALLATION)
"""The settings for all personas that ``config.jsonc`` may have outside ``"defaults"``, too."""


def read_layer(path: Path) -> tuple[Layer, tuple[str, ...]]:
    """Return the settings in a persona's file; no settings and a warning if the file cannot be read."""
    document, warnings = _read_or_warn(path)
    values = {key: value for key, value in document.values.items() if key not in OF_INSTALLATION}
    layer = Layer(str(path), values, document.lines, readable=not warnings)
    misplaced = (
        f'{layer.place(key)}: "{key}" is for all personas together; it belongs in config.jsonc'
        for key in OF_INSTALLATION
        if key in document.values
    )
    return layer, (*warnings, *misplaced)


def read_defaults(path: Path) -> tuple[Layer, tuple[str, ...]]:
    """Return the settings in ``"defaults"`` of ``config.jsonc``, those of ``_OUTSIDE`` also beside it, and warnings."""
    document, warnings = _read_or_warn(path)
    inner = document.sections.get(_DEFAULTS, jsonc.Document())
    values, lines = dict(inner.values), dict(inner.lines)
    for key in _OUTSIDE:
        if key in document.values and values.get(key) is None:
            values[key], lines[key] = document.values[key], document.lines[key]
    without_effect = [
        f'{path}:{line}: "{key}" does not belong here; settings for all personas go inside "{_DEFAULTS}"'
        if key in BY_KEY
        else f"{path}:{line}: unknown key {json.dumps(key)}"
        for key, line in document.lines.items()
        if key not in {SCHEMA_KEY, _DEFAULTS, *_OUTSIDE}
    ]
    without_effect += [
        f'{path}:{document.lines[key]}: "{key}" has no effect here, because "{_DEFAULTS}" has it too'
        for key in _OUTSIDE
        if document.values.get(key) is not None and inner.values.get(key) is not None
    ]
    if document.values.get(_DEFAULTS) is not None and _DEFAULTS not in document.sections:
        without_effect.append(f'{path}:{document.lines[_DEFAULTS]}: "{_DEFAULTS}" must be an object of settings')
    return Layer(str(path), values, lines, readable=not warnings), (*warnings, *without_effect)


def renew_schema(personas: Path, text: str) -> None:
    """Write the schema, which settings files refer to, beside the folder of personas, unless it is there already."""
    path = personas.parent / SCHEMA_FILE
    if not path.exists() or path.read_bytes() != text.encode():
        write_atomically(path, text)


def read_text(path: Path) -> str:
    """Return the text of a settings file, with its byte order mark and line ends; empty if the file is missing."""
    try:
        return _text(path)
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {_reason(error)}.") from error


def copied(path: Path, copy: Path) -> None:
    """Copy a settings file if it exists; the folder of the copy is made if it does not exist."""
    try:
        copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            copy.write_bytes(read_within(path, limits.SETTINGS_FILE))
    except OSError as error:
        raise SettingsError(f"{path} cannot be copied to {copy}: {_reason(error)}.") from error


def change_key(path: Path, key: str, value: JsonValue) -> JsonValue:
    """Set a key, or remove it with ``None``; return its old value and keep the old text in ``.bak``."""
    with held(path) as file:
        before = file.value_of([key])
        file.replace(file.with_value([key], value))
        return before


def change_for_all(path: Path, keys: Sequence[str], value: JsonValue) -> None:
    """Set one key or entry in ``config.jsonc``, or remove it with ``None``."""
    with held(path) as file:
        inside = [_DEFAULTS, *keys]
        # An object in "defaults" hides one of the same key outside.
        is_inside = keys[0] not in _OUTSIDE or file.value_of(inside[:2]) is not None
        file.replace(file.with_value(inside if is_inside else keys, value))


def asks_for(path: Path, key: str) -> bool:
    """Return whether ``config.jsonc`` has no faults and does not set ``key`` for all personas."""
    layer, warnings = read_defaults(path)
    return not warnings and layer.values.get(key) is None


class HeldSettings:
    """A locked settings file, which no other Chorus can change. ``text`` is its text when it was locked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = _text(path)

    def values(self) -> Mapping[str, JsonValue]:
        """Return the settings in the text."""
        try:
            return jsonc.parse_object(self.text).values
        except JsoncError as error:
            raise error.named(str(self.path)) from error

    def value_of(self, keys: Sequence[str]) -> JsonValue:
        """Return the value at the end of the path ``keys``, ``None`` if there is none."""
        found: JsonValue = {**self.values()}
        for key in keys:
            found = found.get(key) if isinstance(found, dict) else None
        return found

    def with_value(self, keys: Sequence[str], value: JsonValue) -> str:
        """Return the text with ``value`` at the path ``keys``, or without that key for ``None``; write nothing."""
        *sections, key = keys
        if jsonc.same(self.value_of(keys), value):
            return self.text
        if value is None:
            return jsonc.remove_key(self.text, key, *sections)
        try:
            return jsonc.set_key(self.text, key, value, *sections)
        except JsoncError as error:
            raise error.named(str(self.path)) from error

    def replace(self, text: str) -> None:
        """Write ``text``, unless the file has it already; the previous text is kept in ``<name>.bak``."""
        if _text(self.path) != self.text:
            raise SettingsError(f"Another program is editing {self.path}, so Chorus did not change it. Try again.")
        if text == self.text:
            return
        if len(text.encode()) > limits.SETTINGS_FILE.most:
            raise SettingsError(
                f"{self.path} would be larger than {limits.SETTINGS_FILE.size}, so Chorus did not change it."
            )
        if self.path.exists():
            # A rename would ignore that the user made the file read-only.
            if not os.access(self.path, os.W_OK):
                raise SettingsError(f"{self.path} is read-only. Allow writing with chmod u+w, or edit it by hand.")
            write_atomically(self.path.with_name(f"{self.path.name}.bak"), self.text)
        write_atomically(self.path, text)


@contextmanager
def held(path: Path) -> Iterator[HeldSettings]:
    """Lock the file, and turn an ``OSError`` into a ``SettingsError``."""
    try:
        with locked(path):
            yield HeldSettings(path)
    except OSError as error:
        raise SettingsError(f"{path} cannot be changed: {_reason(error)}.") from error


def _read_or_warn(path: Path) -> tuple[Document, tuple[str, ...]]:
    try:
        return jsonc.parse_object(_text(path)), ()
    except JsoncError as error:
        return jsonc.Document(), (f"{error.named(str(path))}; Chorus ignores this file until you correct it",)
    except OSError as error:
        return jsonc.Document(), (f"{path} cannot be read: {_reason(error)}; Chorus ignores this file",)


def _text(path: Path) -> str:
    """Return the file's text, with its byte order mark and line ends; empty if the file is missing."""
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


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
