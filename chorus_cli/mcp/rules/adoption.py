"""Reads the servers in the settings of other programs: pure functions.

The key of the servers is ``mcpServers`` (Claude Desktop, Claude Code, Cursor, Gemini CLI and others), ``servers``
(VS Code), ``mcp`` (opencode, gptme) or ``mcp_servers`` (Codex). Chorus keeps how to reach a server and whether it is
off, writes variables as ``${NAME}``, and drops all permissions.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import partial

from chorus_cli.core.errors import CommandError, JsoncError
from chorus_cli.core.json import jsonc
from chorus_cli.core.json.jsonc import JsonValue
from chorus_cli.settings.rules.servers import ADDRESSES, COMMAND, DISABLED, ENVIRONMENT, HEADERS

_OTHER_SIGNS = re.compile(r"[^A-Za-z0-9_-]+")
_DOLLAR = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_ASKED = re.compile(r"\$\{input:([^}$]*)\}")
_OPENCODE = re.compile(r"(?<!\$)\{env:([A-Za-z_][A-Za-z0-9_]*)\}")


def read(text: str, name: str) -> Sequence[tuple[str, JsonValue]]:
    """Return the servers in the ``text`` of the file ``name``: names, which may repeat, and ``mcpServers`` entries."""
    root = _root(text, name)
    inner = root.get("mcp")
    nested = inner.get("servers", inner) if isinstance(inner, dict) else None
    for found in (root.get("mcpServers"), root.get("servers"), root.get("mcp_servers"), nested):
        listed = found if isinstance(found, list) else []
        named = tuple((str(each.get("name")), each) for each in listed if isinstance(each, dict))
        if entries := tuple(found.items()) if isinstance(found, dict) else named:
            return [(_OTHER_SIGNS.sub("-", name)[:64].strip("-"), _entry(entry)) for name, entry in entries]
    raise CommandError(
        f'{name} names no server. Chorus looks for "mcpServers", "servers", "mcp", and in TOML for "mcp_servers".'
    )


def _root(text: str, name: str) -> Mapping[str, JsonValue]:
    if name.casefold().endswith(".toml"):
        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise CommandError(f"{name} is not valid TOML: {error}.") from error
    try:
        root = json.loads(text)
    except (ValueError, RecursionError):
        try:
            root = jsonc.parse(text)
        except JsoncError as error:
            raise error.named(name) from error
    return root if isinstance(root, dict) else {}


def _entry(entry: JsonValue) -> JsonValue:
    """Return an entry with the keys that Chorus knows; invalid values stay, so that ``server_fault`` refuses them."""
    if not isinstance(entry, dict):
        return entry
    command, arguments = entry.get(COMMAND), entry.get("args")
    if isinstance(command, list):
        arguments = command[1:]
        command = command[0] if command else None
    headers = _headers(entry)
    made: dict[str, JsonValue] = {
        COMMAND: command,
        "args": arguments,
        ENVIRONMENT: _with_passed(entry),
        "cwd": entry.get("cwd"),
        **{key: entry.get(key) for key in ADDRESSES},
        "type": "sse" if entry.get("type") == "sse" else None,
        HEADERS: headers,
        DISABLED: True if entry.get(DISABLED) is True or entry.get("enabled") is False else None,
    }
    return {key: _written(value) for key, value in made.items() if value not in (None, {}, [])}


def _with_passed(entry: Mapping[str, JsonValue]) -> JsonValue:
    """Return the variables of a server, including those that Codex passes on by name (``env_vars``)."""
    given, passed = entry.get(ENVIRONMENT) or entry.get("environment"), entry.get("env_vars")
    if isinstance(passed, list) and isinstance(given, dict | None):
        return {**{str(name): f"${{{name}}}" for name in passed}, **(given or {})}
    return given


def _headers(entry: Mapping[str, JsonValue]) -> JsonValue:
    """Return the headers of a server; Codex has three keys for them."""
    found = entry.get(HEADERS) or entry.get("http_headers")
    by_variable, bearer = entry.get("env_http_headers"), entry.get("bearer_token_env_var")
    made: dict[str, JsonValue] = {}
    if isinstance(by_variable, dict):
        made |= {name: f"${{{variable}}}" for name, variable in by_variable.items()}
    if isinstance(bearer, str):
        made["Authorization"] = f"Bearer ${{{bearer}}}"
    return {**made, **found} if made and isinstance(found, dict) else found or made


def _written(value: JsonValue) -> JsonValue:
    """Return a value with its variables in the form that Chorus reads, ``${NAME}``."""
    if isinstance(value, dict):
        return {name: _written(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_written(each) for each in value]
    if not isinstance(value, str):
        return value
    if whole := _DOLLAR.fullmatch(value):
        return f"${{{whole[1]}}}"
    asked = partial(re.sub, r"\W+", "_")
    return _OPENCODE.sub(r"${\1}", _ASKED.sub(lambda found: f"${{{asked(found[1]).upper()}}}", value))
