"""Values of settings as people type and read them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from chorus_cli.core.errors import JsoncError, SettingsError
from chorus_cli.core.json import jsonc
from chorus_cli.settings.rules.table import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from chorus_cli.core.json.jsonc import JsonValue
    from chorus_cli.settings.rules.table import Setting

FLAGS: Mapping[str, bool] = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
"""The words for true and false."""

# A JSON number has less than 309 digits, see core/settings/jsonc_reader.
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,308}")
_NUMBER = re.compile(r"-?(?:[0-9]+(?:[.,][0-9]+)?|[.,][0-9]+)(?:[eE][-+]?[0-9]+)?")
_THOUSANDS = re.compile(r"-?[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]+)?")
_TIME_WITH_UNIT = re.compile(r"[0-9][0-9., ]* ?[a-df-z][a-z]*", re.IGNORECASE)
_NOTHING = frozenset({"null", "none", "default"})


def read_value(setting: Setting, text: str) -> JsonValue:
    """Return the value of a setting from ``text``, typed after its key.

    Free text is taken as it is. A list is separated by commas or written as JSON; words and choices are accepted in any
    case, and a decimal comma unless it may separate thousands.

    Raises:
        SettingsError: the value is invalid; the sentence names the accepted ones.
    """
    value = _read(setting, text)
    if not setting.accepts(value):
        raise SettingsError(f"{setting.refusal(value)}.{_hint(setting, text.strip())}")
    return value


def as_typed(value: JsonValue) -> str:
    """Write a value as it would be typed; ``read_value`` reads it back."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        joined = ", ".join(item for item in value if isinstance(item, str))
        if value and _texts(joined) == value:
            return joined
    return json.dumps(value, ensure_ascii=False)


def _read(setting: Setting, text: str) -> JsonValue:
    """Return the value that ``text`` spells, or the text itself, which only text settings accept."""
    words = text.strip()
    match setting.kind:
        case Kind.TEXT:
            return next((choice for choice in setting.choices if choice == words.casefold()), text)
        case Kind.TEXTS:
            return _texts(words)
        case Kind.FLAG:
            return FLAGS.get(words.casefold(), text)
        case Kind.WHOLE_NUMBER:
            return int(words) if _WHOLE_NUMBER.fullmatch(words) else text
        case Kind.NUMBER:
            return _number(words)


def _texts(words: str) -> JsonValue:
    if not words.startswith("["):
        return [item.strip() for item in words.split(",") if item.strip()]
    try:
        return jsonc.parse(words)
    except JsoncError:
        return words


def _number(words: str) -> JsonValue:
    if _WHOLE_NUMBER.fullmatch(words):
        return int(words)
    if _NUMBER.fullmatch(words) and not _THOUSANDS.fullmatch(words):
        return float(words.replace(",", "."))
    return words


def _hint(setting: Setting, words: str) -> str:
    """Return a hint for a common mistake, or an empty text."""
    if words.casefold() in _NOTHING:
        return f" /settings unset {setting.key} restores the default."
    if setting.key == "context_hours" and _TIME_WITH_UNIT.fullmatch(words):
        return f" For a time with a unit, use /context {words}."
    if setting.kind is Kind.TEXTS:
        return ' Separate them with commas, or write a JSON list such as ["one", "two"].'
    if _THOUSANDS.fullmatch(words):
        return " Write the number without a comma, which may separate thousands or decimals."
    return ""
