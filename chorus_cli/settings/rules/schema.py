"""Documents generated from the table of settings: the JSON Schema for editors, and the file of a new persona."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from textwrap import wrap

from chorus_cli.core.json.jsonc import JsonValue
from chorus_cli.settings.rules.table import OF_INSTALLATION, SCHEMA_KEY, SERVERS, SETTINGS, Kind, Setting

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_TYPES: Mapping[Kind, str] = {
    Kind.TEXT: "string",
    Kind.TEXTS: "array",
    Kind.WHOLE_NUMBER: "integer",
    Kind.NUMBER: "number",
    Kind.FLAG: "boolean",
    Kind.OBJECT: "object",
}

_WRITTEN = ("name",)
_EXAMPLES = {
    "system_prompt": "Be brief.",
    "temperature": 0.7,
    "max_output_tokens": 4096,
    "context_token_limit": 32000,
    "effort": "low",
    "budget": 5,
    SERVERS: {"time": {"command": "mcp-server-time"}},
}
"""Example values in the file of a new persona, which shows the defaults of all other settings."""

_COMMENT_COLUMNS = 76
_SCHEMA_FILE = "../../schema.json"
_value = partial(json.dumps, ensure_ascii=False)


def schema() -> dict[str, JsonValue]:
    """Return the schema, draft 2020-12; it allows ``null`` and unknown keys, because the files may contain them."""
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
    if setting.kind is Kind.TEXT and setting.choices:
        described["enum"] = [*setting.choices, None]
    elif setting.choices:
        described |= {"type": [_TYPES[setting.kind], "string", "null"], "pattern": f"^({'|'.join(setting.choices)})$"}
    bounds = {"minimum": setting.minimum, "maximum": setting.maximum}
    described |= {name: bound for name, bound in bounds.items() if bound is not None}
    described["default"] = setting.default
    return described


def _offered(setting: Setting) -> str:
    value = _EXAMPLES.get(setting.key, "" if setting.default is None else setting.default)
    told = wrap(f"{setting.help} Default: {setting.default_text}.", _COMMENT_COLUMNS - len("  // "))
    return "\n".join(["", *(f"  // {line}" for line in told), f'  // "{setting.key}": {_value(value)},'])


_OPTIONAL = tuple(_offered(setting) for setting in SETTINGS if setting.key not in {*_WRITTEN, *OF_INSTALLATION})


def template(name: str) -> str:
    """Return a new persona's settings file: its name, and the rest as comments."""
    lines = [
        f"// The settings of the persona {_value(name)}.",
        "// When Chorus changes a setting, it keeps comments like this one.",
        "// prompt.md beside this file has what the model is told first; the",
        "// documents in docs/*.md follow.",
        "{",
        f'  "{SCHEMA_KEY}": "{_SCHEMA_FILE}",',
        "",
        f'  "name": {_value(name)},',
        "",
        "  // Optional settings: remove the two slashes before a key to set it.",
        *_OPTIONAL,
        "}",
    ]
    return "\n".join(lines) + "\n"
