"""The JSON Schema of a persona's settings, by which editors complete and check ``system.jsonc``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from chorus_cli.core.settings.table import SCHEMA_KEY, SETTINGS, Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from chorus_cli.core.settings.jsonc import JsonValue
    from chorus_cli.core.settings.table import Setting

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_TYPES: Mapping[Kind, str] = {
    Kind.TEXT: "string",
    Kind.TEXTS: "array",
    Kind.WHOLE_NUMBER: "integer",
    Kind.NUMBER: "number",
    Kind.FLAG: "boolean",
}


def schema() -> dict[str, JsonValue]:
    """Return the schema, draft 2020-12.

    ``null`` is allowed everywhere, because it means the same as a missing key; so are unknown keys, which are kept.
    """
    pointer: dict[str, JsonValue] = {"description": "Where this schema is, for editors.", "type": "string"}
    return {
        "$schema": DIALECT,
        "title": "Settings of a Chorus persona",
        "description": "Every key may be left out; null is the same as leaving it out.",
        "type": "object",
        "properties": {SCHEMA_KEY: pointer, **{setting.key: _described(setting) for setting in SETTINGS}},
        "additionalProperties": True,
    }


def schema_text() -> str:
    """Return the schema as the text of a file."""
    return json.dumps(schema(), indent=2) + "\n"


def _described(setting: Setting) -> JsonValue:
    described: dict[str, JsonValue] = {
        "title": setting.key.replace("_", " ").capitalize(),
        "description": f"{setting.help} Default: {setting.default_text}.",
        "type": [_TYPES[setting.kind], "null"],
    }
    if setting.kind is Kind.TEXTS:
        described["items"] = {"type": "string"}
    if setting.choices:
        described["enum"] = [*setting.choices, None]
    if setting.minimum is not None:
        described["minimum"] = setting.minimum
    if setting.maximum is not None:
        described["maximum"] = setting.maximum
    described["default"] = setting.default
    return described
