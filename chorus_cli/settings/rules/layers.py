"""The values of settings, resolved from layered files, with the source of each and a warning for each invalid one."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from chorus_cli.settings.rules.table import BY_KEY, SCHEMA_KEY, SETTINGS, Settings, shown, suggestion

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from chorus_cli.core.json.jsonc import JsonValue
    from chorus_cli.settings.rules.table import Setting

DEFAULT_SOURCE = "default"
"""The source of a value that no file sets."""


class Layer(NamedTuple):
    """The settings in one file: its name, the values of its keys, and their 1-based lines.

    A file that is not ``readable`` may contain more.
    """

    name: str
    values: Mapping[str, JsonValue] = MappingProxyType({})
    lines: Mapping[str, int] = MappingProxyType({})
    readable: bool = True

    def place(self, key: str) -> str:
        """Return the ``file:line`` of ``key``."""
        return f"{self.name}:{self.lines[key]}" if key in self.lines else self.name


class Resolution(NamedTuple):
    """The effective settings, the source of each (``file:line`` or "default"), and warnings."""

    settings: Settings
    sources: Mapping[str, str]
    warnings: tuple[str, ...] = ()


def misfits(layer: Layer) -> tuple[str, ...]:
    """Return a sentence for each invalid value of ``layer``, with its place, in the file's order."""
    refused = [key for key, value in layer.values.items() if key in BY_KEY and _is_misfit(BY_KEY[key], value)]
    return tuple(f"{layer.place(key)}: {BY_KEY[key].misfit(layer.values[key])}" for key in refused)


def resolve(layers: Sequence[Layer]) -> Resolution:
    """Take each setting from the first layer with a valid value; invalid values and unknown keys give warnings.

    ``null`` counts as a missing key, as does an empty text where the default is none.
    """
    # The table has checked every value, which mypy cannot see.
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    warnings: list[tuple[int, int, str]] = []
    for rank, layer in enumerate(layers):
        unknown = layer.values.keys() - BY_KEY.keys() - {SCHEMA_KEY}
        warnings += [(rank, layer.lines.get(key, 0), _unknown(layer, key)) for key in unknown]
    for setting in SETTINGS:
        value, sources[setting.key], refusing = _choose(setting, layers)
        values[setting.key] = tuple(value) if isinstance(value, list) else value
        used = setting.default_text if sources[setting.key] == DEFAULT_SOURCE else shown(value)
        for rank in refusing:
            layer = layers[rank]
            misfit = setting.misfit(layer.values[setting.key])
            sentence = f"{layer.place(setting.key)}: {misfit}; using {used}"
            warnings.append((rank, layer.lines.get(setting.key, 0), sentence))
    return Resolution(Settings(**values), sources, tuple(sentence for *_, sentence in sorted(warnings)))


def _choose(setting: Setting, layers: Sequence[Layer]) -> tuple[JsonValue, str, list[int]]:
    """Return the effective value, its source, and the indexes of the layers with invalid values."""
    refusing: list[int] = []
    for rank, layer in enumerate(layers):
        value = layer.values.get(setting.key)
        if _says_nothing(setting, value):
            continue
        if setting.accepts(value):
            return value, layer.place(setting.key), refusing
        refusing.append(rank)
    return setting.default, DEFAULT_SOURCE, refusing


def _says_nothing(setting: Setting, value: JsonValue) -> bool:
    return value is None or (value == "" and setting.default is None)


def _is_misfit(setting: Setting, value: JsonValue) -> bool:
    return not _says_nothing(setting, value) and not setting.accepts(value)


def _unknown(layer: Layer, key: str) -> str:
    return f"{layer.place(key)}: unknown setting {shown(key)}{suggestion(key)}"
