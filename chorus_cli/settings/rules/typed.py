"""Reads values of settings as the user types them, and writes values in the same form."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from chorus_cli.core.errors import JsoncError, SettingsError
from chorus_cli.core.json import jsonc
from chorus_cli.core.json.jsonc import JsonValue
from chorus_cli.settings.rules.table import OF_INSTALLATION, WINDOW_KEY, Kind, Setting

FLAGS: Mapping[str, bool] = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
"""The words for true and false."""

# With more digits, a whole number could be too large for JSON, see core/json/jsonc.
_WHOLE_NUMBER = r"-?[0-9]{1,308}"
_NUMBER = r"-?(?:[0-9]+(?:[.,][0-9]+)?|[.,][0-9]+)(?:[eE][-+]?[0-9]+)?"
_THOUSANDS = r"-?[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]+)?"
_TIME_WITH_UNIT = r"[0-9][0-9., ]* ?[a-df-z][a-z]*"


def read_value(setting: Setting, text: str) -> JsonValue:
    """Return the value of a setting from ``text``, typed after its key.

    Free text is taken as it is. A list has commas between its items or is written as JSON. Words such as ``on`` may be
    in capital letters. A number may have a decimal comma, unless that comma may separate thousands.
    """
    words = text.strip()
    if setting.key in OF_INSTALLATION:
        raise SettingsError(
            f"{setting.key} is for all personas together. Write it into config.jsonc; chorus paths shows where it is."
        )
    # If the text is no value of the kind, it stays a text, and only text settings accept it.
    value: JsonValue = next((choice for choice in setting.choices if choice == words.casefold()), text)
    match setting.kind:
        case Kind.TEXTS:
            value = _texts(words)
        case Kind.FLAG:
            value = FLAGS.get(words.casefold(), text)
        case Kind.WHOLE_NUMBER:
            value = int(words) if re.fullmatch(_WHOLE_NUMBER, words) else value
        case Kind.NUMBER:
            value = _number(words)
    if not setting.accepts(value):
        raise SettingsError(f"{setting.misfit(value)}.{_hint(setting, words)}")
    return value


def as_typed(value: JsonValue) -> str:
    """Write a value as the user would type it, so that ``read_value`` can read it; for an object, write only names."""
    if isinstance(value, dict):
        return ", ".join(value)
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        joined = ", ".join(item for item in value if isinstance(item, str))
        if value and _texts(joined) == value:
            return joined
    return json.dumps(value, ensure_ascii=False)


def _texts(words: str) -> JsonValue:
    if not words.startswith("["):
        return [item.strip() for item in words.split(",") if item.strip()]
    try:
        return jsonc.parse(words)
    except JsoncError:
        return words


def _number(words: str) -> JsonValue:
    if re.fullmatch(_WHOLE_NUMBER, words):
        return int(words)
    if re.fullmatch(_NUMBER, words) and not re.fullmatch(_THOUSANDS, words):
        return float(words.replace(",", "."))
    return words


def _hint(setting: Setting, words: str) -> str:
    if setting.key == WINDOW_KEY and re.fullmatch(_TIME_WITH_UNIT, words, re.IGNORECASE):
        return f" For a time with a unit, use /context {words}."
    if setting.kind is Kind.OBJECT:
        return " /settings edit opens the file."
    if setting.kind is Kind.TEXTS:
        return ' Separate them with commas, or write a JSON list such as ["one", "two"].'
    if re.fullmatch(_THOUSANDS, words):
        return " Write the number without a comma, which may separate thousands or decimals."
    return ""
