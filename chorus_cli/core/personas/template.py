"""The commented settings that a new persona begins with, computed from the table of settings."""

from __future__ import annotations

import json

from chorus_cli.core.settings.table import SCHEMA_KEY, SETTINGS, Setting

_WRITTEN = ("name", "system_prompt")
_EXAMPLES = {"temperature": 0.7, "max_output_tokens": 4096, "context_token_limit": 32000}
"""What is shown where the default is nothing that could be written down."""

_SCHEMA = "../../schema.json"


def template(name: str) -> str:
    """Return the text of a new persona's settings: its name, a prompt to write over, and the rest as comments."""
    prompt = f"You are {name}."
    optional = [_offered(setting) for setting in SETTINGS if setting.key not in _WRITTEN]
    lines = [
        f"// The settings of the persona {_value(name)}: edit them here; comments like this one survive what Chorus",
        "// changes. Documents (docs/*.md beside this file) are sent along with the prompt.",
        "{",
        f'  "{SCHEMA_KEY}": "{_SCHEMA}",',
        "",
        f'  "name": {_value(name)},',
        "",
        "  // What the model is told before anything else.",
        f'  "system_prompt": {_value(prompt)},',
        "",
        "  // Optional settings: take away the two slashes to set one.",
        "",
        *optional,
        "}",
    ]
    return "\n".join(lines) + "\n"


def _offered(setting: Setting) -> str:
    value = _EXAMPLES.get(setting.key, "" if setting.default is None else setting.default)
    example = f'"{setting.key}": {_value(value)},'
    return f"  // {example:<38} // {setting.help} Default: {setting.default_text}."


def _value(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
