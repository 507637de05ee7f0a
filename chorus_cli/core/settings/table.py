"""The table of settings: their types, ranges and meanings; and their values, resolved from layered files.

``SETTINGS`` is the single source for validation, the commands, completion, the documents and the JSON Schema. The
fields of ``Settings`` hold the defaults.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from chorus_cli.core.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from chorus_cli.core.settings.jsonc import JsonValue

DEFAULT_CONTEXT_HOURS = 8
MINIMUM_CONTEXT_HOURS = 1
MAXIMUM_CONTEXT_HOURS = 168

SCHEMA_KEY = "$schema"
"""The key that tells editors where the JSON Schema is; it is not a setting."""

DEFAULT_SOURCE = "default"
"""The source of a value that no file sets."""

_LONGEST_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Settings:
    """One persona's settings; ``None`` leaves the choice to the provider, the model or model detection.

    An empty ``name`` means the folder's name, an empty ``summary_model`` the model in use.
    """

    name: str = ""
    aliases: tuple[str, ...] = ()
    description: str = ""
    system_prompt: str = "Be accurate and plain, keep to what was asked, and say so when you do not know."
    model: str | None = None
    summary_model: str = ""
    temperature: float | None = None
    max_output_tokens: int | None = None
    context_hours: int = DEFAULT_CONTEXT_HOURS
    context_token_limit: int | None = None
    context_usage_threshold: float = 0.8
    idle_minutes: int = 30
    on_idle: str = "save"
    editing_mode: str = "emacs"
    notify: str = "bell"
    clock: bool = True
    auto_memory: bool = True
    tools: bool = True


class Kind(StrEnum):
    """Type of a setting's value, worded for a sentence."""

    TEXT = "text"
    TEXTS = "a list of texts"
    WHOLE_NUMBER = "a whole number"
    NUMBER = "a number"
    FLAG = "true or false"


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table: a key, its type and range, and one line of help.

    ``default_words`` describe the default if its bare value says little.
    """

    key: str
    kind: Kind
    help: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    default_words: str = ""

    @property
    def default(self) -> JsonValue:
        """The value if no file sets one."""
        return self.value_in(Settings())

    @property
    def default_text(self) -> str:
        """The default, worded for people."""
        return self.default_words or _shown(self.default)

    @property
    def range_text(self) -> str:
        """The accepted values, worded to follow "it must be"."""
        if self.choices:
            *others, last = map(_shown, self.choices)
            return f"{', '.join(others)} or {last}"
        if self.minimum is None:
            return self.kind.value
        if self.maximum is None:
            return f"{self.kind.value} of at least {self.minimum:g}"
        return f"{self.kind.value} from {self.minimum:g} to {self.maximum:g}"

    def value_in(self, settings: Settings) -> JsonValue:
        """Return its value in ``settings``."""
        value: JsonValue | tuple[str, ...] = getattr(settings, self.key)
        return list(value) if isinstance(value, tuple) else value

    def misfit(self, value: JsonValue) -> str:
        """Describe, without a full stop, the wrong value and the accepted ones."""
        return f"{self.key} is {_shown(value)}; it must be {self.range_text}"

    def accepts(self, value: JsonValue) -> bool:
        """Return whether ``value`` is of the right kind and in range; true and false are no numbers."""
        match self.kind:
            case Kind.TEXT:
                return isinstance(value, str) and (not self.choices or value in self.choices)
            case Kind.TEXTS:
                return isinstance(value, list) and all(isinstance(item, str) for item in value)
            case Kind.FLAG:
                return isinstance(value, bool)
            case Kind.WHOLE_NUMBER:
                return isinstance(value, int) and not isinstance(value, bool) and self._spans(value)
            case Kind.NUMBER:
                return isinstance(value, (int, float)) and not isinstance(value, bool) and self._spans(value)

    def _spans(self, value: float) -> bool:
        return (self.minimum is None or value >= self.minimum) and (self.maximum is None or value <= self.maximum)


SETTINGS: tuple[Setting, ...] = (
    Setting("name", Kind.TEXT, "The name to show.", default_words="the folder's name"),
    Setting("aliases", Kind.TEXTS, "Other names to call the persona by.", default_words="none"),
    Setting("description", Kind.TEXT, "One line about the persona, for lists.", default_words="none"),
    Setting(
        "system_prompt",
        Kind.TEXT,
        "What the model is told before everything else.",
        default_words="a short neutral one",
    ),
    Setting("model", Kind.TEXT, "The model that answers, as litellm names it.", default_words="detection"),
    Setting("summary_model", Kind.TEXT, "The model that writes summaries.", default_words="the model in use"),
    Setting("temperature", Kind.NUMBER, "How freely the model words things.", 0, 2, default_words="the provider's"),
    Setting("max_output_tokens", Kind.WHOLE_NUMBER, "The longest reply, in tokens.", 1, default_words="the provider's"),
    Setting(
        "context_hours",
        Kind.WHOLE_NUMBER,
        "How many hours back the model sees the conversation.",
        MINIMUM_CONTEXT_HOURS,
        MAXIMUM_CONTEXT_HOURS,
    ),
    Setting(
        "context_token_limit",
        Kind.WHOLE_NUMBER,
        "How many tokens the prompt and the reply may have together.",
        1000,
        default_words="the model's own",
    ),
    Setting("context_usage_threshold", Kind.NUMBER, "The share of the limit that the prompt may fill.", 0.1, 0.95),
    Setting("idle_minutes", Kind.WHOLE_NUMBER, "Minutes without a message until `on_idle` happens.", 1, 1440),
    Setting(
        "on_idle",
        Kind.TEXT,
        "What happens when nothing was said for `idle_minutes`.",
        choices=("save", "save+clear", "off"),
    ),
    Setting("editing_mode", Kind.TEXT, "Which editor's keys the prompt has.", choices=("emacs", "vi")),
    Setting(
        "notify",
        Kind.TEXT,
        "How you are told that a reply or a job in the background is done: `bell` rings, `osc` asks the terminal for a "
        "message on the desktop.",
        choices=("off", "bell", "osc"),
    ),
    Setting("clock", Kind.FLAG, "Tell the model of gaps of more than an hour."),
    Setting("auto_memory", Kind.FLAG, "Remember code, errors and test results by themselves."),
    Setting("tools", Kind.FLAG, "Offer the model the built-in tools."),
)

_BY_KEY: Mapping[str, Setting] = {setting.key: setting for setting in SETTINGS}


@dataclass(frozen=True, slots=True)
class Layer:
    """The settings in one file: its name, the values of its keys, and their 1-based lines.

    A file that is not ``readable`` may contain more.
    """

    name: str
    values: Mapping[str, JsonValue] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)
    readable: bool = field(default=True, compare=False)

    def place(self, key: str) -> str:
        """Return the ``file:line`` of ``key``."""
        return f"{self.name}:{self.lines[key]}" if key in self.lines else self.name


class Resolution(NamedTuple):
    """The effective settings, the source of each (``file:line`` or "default"), and warnings."""

    settings: Settings
    sources: Mapping[str, str]
    warnings: tuple[str, ...] = ()


def setting_of(key: str) -> Setting:
    """Return the row of a key.

    Raises:
        SettingsError: there is no such setting.
    """
    if key not in _BY_KEY:
        raise SettingsError(f"There is no setting {_shown(key)}{_suggestion(key)}. /settings lists them.")
    return _BY_KEY[key]


def check(key: str, value: JsonValue) -> JsonValue:
    """Return ``value`` if ``key`` takes it.

    Raises:
        SettingsError: there is no such setting, or it does not take this value.
    """
    setting = setting_of(key)
    if not setting.accepts(value):
        raise SettingsError(f"{setting.misfit(value)}.")
    return value


def misfits(layer: Layer) -> tuple[str, ...]:
    """Return a sentence for each invalid value of ``layer``, with its place, in the file's order."""
    refused = [key for key, value in layer.values.items() if key in _BY_KEY and _is_misfit(_BY_KEY[key], value)]
    return tuple(f"{layer.place(key)}: {_BY_KEY[key].misfit(layer.values[key])}" for key in refused)


def resolve(layers: Sequence[Layer]) -> Resolution:
    """Take each setting from the first layer with a valid value; invalid values and unknown keys give warnings.

    ``null`` counts as a missing key, as does an empty text where the default is none.
    """
    # The table has checked every value, which mypy cannot see.
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    warnings: list[tuple[int, int, str]] = []
    for rank, layer in enumerate(layers):
        unknown = layer.values.keys() - _BY_KEY.keys() - {SCHEMA_KEY}
        warnings += [(rank, layer.lines.get(key, 0), _unknown(layer, key)) for key in unknown]
    for setting in SETTINGS:
        value, sources[setting.key], refusing = _choose(setting, layers)
        values[setting.key] = tuple(value) if isinstance(value, list) else value
        used = setting.default_text if sources[setting.key] == DEFAULT_SOURCE else _shown(value)
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
    return f"{layer.place(key)}: unknown setting {_shown(key)}{_suggestion(key)}"


def _suggestion(key: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only a misspelt key needs it, and the start does not

    near = get_close_matches(key.lower(), _BY_KEY, n=1)
    return f" (did you mean {_shown(near[0])}?)" if near else ""


def _shown(value: JsonValue) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…"
