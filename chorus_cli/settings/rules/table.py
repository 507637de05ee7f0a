"""The table of settings with their types, ranges and meanings, and the rules that combine several files.

Checks, completion, schema and documents are made from ``SETTINGS``; the fields of ``Settings`` hold the defaults.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from chorus_cli.core import limits
from chorus_cli.core.errors import SettingsError
from chorus_cli.core.json.jsonc import JsonValue
from chorus_cli.core.time.timeline import MAXIMUM_CONTEXT_HOURS, MINIMUM_CONTEXT_HOURS
from chorus_cli.core.time.timestamps import ALL, WindowHours
from chorus_cli.settings.rules.servers import allowance_fault, laid_over, server_fault, without_keys

DEFAULT_CONTEXT_HOURS = 8
PROJECT_ASK, PROJECT_ON, PROJECT_OFF = "ask", "on", "off"
NO_RECALL, BY_MEMORY, BY_HISTORY = "off", "memory", "history"

SCHEMA_KEY = "$schema"
"""The key that tells editors where the JSON Schema is; it is not a setting."""
WINDOW_KEY = "context_hours"

_LONGEST_SHOWN = 60
_NO_ENTRY: tuple[JsonValue, ...] = (None, {})
"""Entries of an object that count as missing; the undo of ``/tools off`` leaves an empty one behind."""


class Settings(NamedTuple):
    """One persona's settings; `Setting.default_text` says what ``None``, ``()`` and an empty text mean."""

    name: str = ""
    aliases: tuple[str, ...] = ()
    nickname: str = ""
    description: str = ""
    system_prompt: str = "Be accurate and plain, keep to what was asked, and say so when you do not know."
    model: str | None = None
    summary_model: str = ""
    temperature: float | None = None
    max_output_tokens: int | None = None
    effort: str | None = None
    show_thoughts: bool = False
    context_hours: WindowHours = DEFAULT_CONTEXT_HOURS
    context_token_limit: int | None = None
    context_usage_threshold: float = 0.8
    idle_minutes: int = 30
    on_idle: str = "save"
    editing_mode: str = "emacs"
    notify: str = "bell"
    user_name: str = "User"
    note: str = ""
    note_depth: int = 4
    plain: bool = False
    budget: float | None = None
    show_price: bool = False
    clock: bool = True
    auto_memory: bool = True
    recall: str = BY_MEMORY
    job_env: tuple[str, ...] = ()
    project: str = PROJECT_ASK
    tools: bool = True
    mcpServers: Mapping[str, JsonValue] = MappingProxyType({})
    mcp_allow: Mapping[str, JsonValue] = MappingProxyType({})
    mcp_wait: int = 10
    mcp_serve: Mapping[str, JsonValue] = MappingProxyType({})
    log: str = ""


class Kind(StrEnum):
    """The type of a setting's value, in words that fit into a sentence."""

    TEXT = "text"
    TEXTS = "a list of texts"
    WHOLE_NUMBER = "a whole number"
    NUMBER = "a number"
    FLAG = "true or false"
    OBJECT = "an object"


class Setting(NamedTuple):
    """One row of the table; ``longest`` is the most characters of a text, or of a list of texts together.

    The entries of an object are merged from all files; ``fault`` returns a clause about a wrong entry.
    """

    key: str
    kind: Kind
    help: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    default_words: str = ""
    longest: int = limits.SETTING.most
    fault: Callable[[str, JsonValue], str] = lambda _name, _entry: ""

    @property
    def default(self) -> JsonValue:
        """The value if no file sets one."""
        return self.value_in(Settings())

    @property
    def default_text(self) -> str:
        """The default, worded for people."""
        return self.default_words or ("none" if self.default in (None, "", [], {}) else shown(self.default))

    @property
    def range_text(self) -> str:
        """The accepted values, worded to follow "it must be"."""
        words = [*map(shown, self.choices)]
        if self.kind is Kind.TEXT and words:
            return f"{', '.join(words[:-1])} or {words[-1]}"
        if self.minimum is None:
            return self.kind.value
        if self.maximum is None:
            return f"{self.kind.value} of at least {self.minimum:g}"
        return " or ".join([f"{self.kind.value} from {self.minimum:g} to {self.maximum:g}", *words])

    def value_in(self, settings: Settings) -> JsonValue:
        """Return the value of this setting in ``settings``."""
        value: JsonValue | tuple[str, ...] | Mapping[str, JsonValue] = getattr(settings, self.key)
        if isinstance(value, Mapping):
            return dict(value)
        return list(value) if isinstance(value, tuple) else value

    def misfit(self, value: JsonValue) -> str:
        """Return a clause that names a wrong value, with API keys cut out, and the accepted values."""
        if _length(value) > self.longest:
            return f"{self.key} has {_length(value):,} characters; it may have at most {self.longest:,}"
        if fault := self._fault_in(value):
            return fault
        return f"{self.key} cannot be {without_keys(shown(value))}; it must be {self.range_text}"

    def _fault_in(self, value: JsonValue) -> str:
        entries = value.items() if isinstance(value, dict) else ()
        return next(filter(None, (self.fault(name, entry) for name, entry in entries if entry not in _NO_ENTRY)), "")

    def accepts(self, value: JsonValue) -> bool:
        """Return whether ``value`` is of the right kind, in range and not too long; true and false are no numbers."""
        match self.kind:
            case Kind.TEXT:
                fits = isinstance(value, str) and (not self.choices or value in self.choices)
                return fits and _length(value) <= self.longest
            case Kind.TEXTS:
                fits = isinstance(value, list) and all(isinstance(item, str) for item in value)
                return fits and _length(value) <= self.longest
            case Kind.FLAG:
                return isinstance(value, bool)
            case Kind.OBJECT:
                return isinstance(value, dict) and not self._fault_in(value)
            case Kind.WHOLE_NUMBER | Kind.NUMBER:
                kinds = int if self.kind is Kind.WHOLE_NUMBER else (int, float)
                if value in self.choices:
                    return True
                if not isinstance(value, kinds) or isinstance(value, bool):
                    return False
                return (self.minimum is None or value >= self.minimum) and (
                    self.maximum is None or value <= self.maximum
                )


def _length(value: JsonValue) -> int:
    """Return the number of characters of a text, or of a list of texts together, 0 for other values."""
    texts = value if isinstance(value, list) else [value]
    return sum(len(text) for text in texts if isinstance(text, str))


SERVERS, ALLOWED = "mcpServers", "mcp_allow"
SERVED, SERVED_PERSONAS = "mcp_serve", "personas"
"""The setting for other programs, and its only entry: a list of the personas that they may see."""

LOG = "log"
"""The setting that names the server of the log."""

OF_INSTALLATION = (SERVED, LOG)
"""The settings that only ``config.jsonc`` may have, because they do not belong to one persona."""


def _fault_in_served(name: str, entry: JsonValue) -> str:
    if name != SERVED_PERSONAS:
        return f'{SERVED} has the entry {shown(name)}; it may have "{SERVED_PERSONAS}" alone'
    is_list = isinstance(entry, list) and all(isinstance(each, str) for each in entry)
    return "" if is_list else f'"{SERVED_PERSONAS}" in {SERVED} must be a list of names'


SETTINGS: tuple[Setting, ...] = (
    Setting("name", Kind.TEXT, "The name to show.", default_words="the folder's name"),
    Setting("aliases", Kind.TEXTS, "Other names to call the persona by."),
    Setting(
        "nickname", Kind.TEXT, "The name in place of `{{char}}` in character cards.", default_words="the persona's name"
    ),
    Setting("description", Kind.TEXT, "One line about the persona, for lists."),
    Setting(
        "system_prompt",
        Kind.TEXT,
        "What the model is told first.",
        default_words="prompt.md, else a neutral one",
        longest=limits.SYSTEM_PROMPT.most,
    ),
    Setting("model", Kind.TEXT, "The model that answers, as litellm names it.", default_words="detection"),
    Setting("summary_model", Kind.TEXT, "The model that writes summaries.", default_words="the model in use"),
    Setting("temperature", Kind.NUMBER, "How freely the model words things.", 0, 2, default_words="the provider's"),
    Setting("max_output_tokens", Kind.WHOLE_NUMBER, "The longest reply, in tokens.", 1, default_words="the provider's"),
    Setting(
        "effort",
        Kind.TEXT,
        "How much the model thinks before it answers.",
        choices=("none", "low", "medium", "high"),
        default_words="the provider's",
    ),
    Setting("show_thoughts", Kind.FLAG, "Print the model's thoughts above its reply."),
    Setting(
        WINDOW_KEY,
        Kind.WHOLE_NUMBER,
        "How many hours back the model sees the conversation.",
        MINIMUM_CONTEXT_HOURS,
        MAXIMUM_CONTEXT_HOURS,
        (ALL,),
    ),
    Setting(
        "context_token_limit",
        Kind.WHOLE_NUMBER,
        "How many tokens the prompt and the reply together may have.",
        1000,
        default_words="the model's own",
    ),
    Setting("context_usage_threshold", Kind.NUMBER, "How much of the token limit the prompt may fill.", 0.1, 0.95),
    Setting("idle_minutes", Kind.WHOLE_NUMBER, "Minutes without a message until `on_idle` happens.", 1, 1440),
    Setting(
        "on_idle",
        Kind.TEXT,
        "What happens after `idle_minutes` without a message.",
        choices=("save", "save+clear", "off"),
    ),
    Setting("editing_mode", Kind.TEXT, "Which editor's keys the prompt has.", choices=("emacs", "vi")),
    Setting(
        "notify",
        Kind.TEXT,
        "How you hear that background work is done: `bell` rings, `osc` shows a desktop message.",
        choices=("off", "bell", "osc"),
    ),
    Setting(
        "user_name", Kind.TEXT, "Your name, in place of `{{user}}` in character cards; the first card asks for it."
    ),
    Setting("note", Kind.TEXT, "Text near the end of each request, in a message of yours.", longest=limits.NOTE.most),
    Setting(
        "note_depth",
        Kind.WHOLE_NUMBER,
        "How many messages may follow the note, which begins one of yours; at 0 it ends your newest one.",
        0,
    ),
    Setting("plain", Kind.FLAG, "For screen readers, from the next start on: nothing is redrawn, blocks come whole."),
    Setting(
        "budget",
        Kind.NUMBER,
        "Dollars a day for all personas: Chorus warns at 80 %, and asks before each message once they are spent.",
        0.01,
        100_000,
    ),
    Setting("show_price", Kind.FLAG, "Show the price of the last reply in the line below the prompt."),
    Setting("clock", Kind.FLAG, "Tell the model of pauses of more than an hour."),
    Setting("auto_memory", Kind.FLAG, "Remember code, errors and test results automatically."),
    Setting(
        "recall",
        Kind.TEXT,
        "What the words of a message recall: nothing, memory items, or earlier turns too.",
        choices=(NO_RECALL, BY_MEMORY, BY_HISTORY),
    ),
    Setting("job_env", Kind.TEXTS, "Variables that shell commands get even though the names look like secrets."),
    Setting(
        "project",
        Kind.TEXT,
        "Whether Chorus sends your folder's `AGENTS.md`, else its `CLAUDE.md`; `ask` asks once.",
        choices=(PROJECT_ASK, PROJECT_ON, PROJECT_OFF),
    ),
    Setting("tools", Kind.FLAG, "Offer the model tools: the built-in ones and those of servers."),
    Setting(
        SERVERS,
        Kind.OBJECT,
        "Servers whose tools the model may call, by name; `/mcp add` adds one.",
        fault=server_fault,
    ),
    Setting(
        ALLOWED,
        Kind.OBJECT,
        "Tools that may always be called, such as `time.now`, with hashes of their declarations; `ask`: Chorus asks.",
        fault=allowance_fault,
    ),
    Setting("mcp_wait", Kind.WHOLE_NUMBER, "Seconds that a message waits for connecting servers.", 0, 600),
    Setting(
        SERVED,
        Kind.OBJECT,
        'In `config.jsonc`: which personas `chorus mcp serve` shows, such as `{"personas": ["frodo"]}`.',
        default_words="all personas but archived ones",
        fault=_fault_in_served,
    ),
    Setting(
        LOG,
        Kind.TEXT,
        "In `config.jsonc`: the PostgreSQL server that has the log, as `postgresql://host/chorus`.",
        default_words="this machine's own file",
    ),
)

BY_KEY: Mapping[str, Setting] = {setting.key: setting for setting in SETTINGS}


def setting_of(key: str) -> Setting:
    """Return the row of ``key``, in capital or small letters; raise a ``SettingsError`` for an unknown key."""
    for setting in SETTINGS:
        if setting.key.casefold() == key.casefold():
            return setting
    raise SettingsError(f"There is no setting {shown(key)}{suggestion(key)}. /settings lists them.")


def suggestion(key: str) -> str:
    """Return a question about the setting that an unknown key resembles, or an empty text."""
    from difflib import get_close_matches  # noqa: PLC0415 - only a misspelt key needs it, and the start does not

    near = get_close_matches(key.lower(), BY_KEY, n=1)
    return f" (did you mean {shown(near[0])}?)" if near else ""


def shown(value: JsonValue) -> str:
    """Return a value as JSON, shortened, for a sentence."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…"


DEFAULT_SOURCE = "default"
"""The source of a value that no file sets."""


class Layer(NamedTuple):
    """The settings in one file: their values and 1-based lines. If the file is not ``readable``, both are empty."""

    name: str
    values: Mapping[str, JsonValue] = MappingProxyType({})
    lines: Mapping[str, int] = MappingProxyType({})
    readable: bool = True

    def place(self, key: str) -> str:
        """Return the ``file:line`` of ``key``, or the name alone if the layer knows no line."""
        return f"{self.name}:{self.lines[key]}" if key in self.lines else self.name


class Resolution(NamedTuple):
    """The effective settings, the source of each (``file:line``, "this run" or "default"), and warnings."""

    settings: Settings
    sources: Mapping[str, str]
    warnings: tuple[str, ...] = ()


def misfits(layer: Layer) -> tuple[str, ...]:
    """Return a sentence for each invalid value of ``layer``, with its place, in the file's order."""
    known = [(BY_KEY[key], value) for key, value in layer.values.items() if key in BY_KEY]
    return tuple(
        f"{layer.place(setting.key)}: {setting.misfit(value)}"
        for setting, value in known
        if not _says_nothing(setting, value) and not setting.accepts(value)
    )


def resolve(layers: Sequence[Layer]) -> Resolution:
    """Take each setting from the first layer that has a valid value; warn of wrong values and unknown keys."""
    # The table has checked every value, which mypy cannot see.
    values: dict[str, Any] = {}
    sources = dict.fromkeys(BY_KEY, DEFAULT_SOURCE)
    warnings: list[tuple[int, int, str]] = []
    for rank, layer in enumerate(layers):
        unknown = layer.values.keys() - BY_KEY.keys() - {SCHEMA_KEY}
        told = {key: f"{layer.place(key)}: unknown setting {shown(key)}{suggestion(key)}" for key in unknown}
        warnings += [(rank, layer.lines.get(key, 0), sentence) for key, sentence in told.items()]
    for setting in SETTINGS:
        key, refusing = setting.key, []
        if setting.kind is Kind.OBJECT:
            values[key], told_of_entries = _merged(setting, layers)
            sources[key] = next((each.place(key) for each in layers if each.values.get(key)), DEFAULT_SOURCE)
            warnings += told_of_entries
            continue
        for rank, layer in enumerate(layers):
            value = layer.values.get(key)
            if _says_nothing(setting, value):
                continue
            if setting.accepts(value):
                values[key], sources[key] = tuple(value) if isinstance(value, list) else value, layer.place(key)
                break
            refusing.append((rank, layer, setting.misfit(value)))
        for rank, layer, misfit in refusing:
            used = f"using {shown(values[key]) if key in values else setting.default_text}"
            warnings.append((rank, layer.lines.get(key, 0), f"{layer.place(key)}: {misfit}; {used}"))
    return Resolution(Settings(**values), sources, tuple(sentence for *_, sentence in sorted(warnings)))


def _merged(setting: Setting, layers: Sequence[Layer]) -> tuple[Mapping[str, JsonValue], list[tuple[int, int, str]]]:
    """Merge the entries of an object: an earlier layer's entry lies over a later layer's. Warn of wrong entries."""
    merged: dict[str, JsonValue] = {}
    warnings: list[tuple[int, int, str]] = []
    # A user who hides personas must not show them by a mistake.
    left_out = "other programs see nothing" if setting.key == SERVED else "it is left out"
    for rank, layer in reversed([*enumerate(layers)]):
        value = layer.values.get(setting.key)
        place, line = layer.place(setting.key), layer.lines.get(setting.key, 0)
        if value is not None and not isinstance(value, dict):
            warnings.append((rank, line, f"{place}: {setting.misfit(value)}; {left_out}"))
            continue
        for name, entry in (value or {}).items():
            if entry in _NO_ENTRY:
                continue
            if fault := setting.fault(name, entry):
                warnings.append((rank, line, f"{place}: {fault}; {left_out}"))
            else:
                merged[name] = laid_over(merged.get(name), entry)
    return merged, warnings


def _says_nothing(setting: Setting, value: JsonValue) -> bool:
    return value is None or (value == "" and setting.default is None)
