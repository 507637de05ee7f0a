"""The shape of ``mcpServers`` and ``mcp_allow``: servers whose tools the model may call, and what the user allowed.

The keys of a server are those that other programs write too; other keys are kept in the file and have no effect.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from chorus_cli.core.json.jsonc import JsonValue

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""The names of servers: they are a part of the names of tools, and of commands."""

COMMAND, ADDRESSES = "command", ("url", "httpUrl")
ENVIRONMENT, HEADERS, DISABLED, TRUST, EXCLUDED = "env", "headers", "disabled", "trust", "excludeTools"

_PLACES = (COMMAND, *ADDRESSES)
_SWITCHES = frozenset({DISABLED, TRUST, EXCLUDED})
_TRANSPORTS = ("stdio", "http", "streamable-http")


class _Shape(NamedTuple):
    fits: Callable[[JsonValue], bool]
    words: str


def _is_text(value: JsonValue) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_address(value: JsonValue) -> bool:
    # An address that begins with a variable is known only when a server is connected.
    return isinstance(value, str) and value.startswith(("http://", "https://", "${"))


def _is_texts(value: JsonValue) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_named_texts(value: JsonValue) -> bool:
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


_TEXT = _Shape(_is_text, "a text")
_ADDRESS = _Shape(_is_address, "an address that begins with http:// or https://")
_NAMED_TEXTS = _Shape(_is_named_texts, "an object of texts")
_FLAG = _Shape(lambda value: isinstance(value, bool), "true or false")

_SHAPES: Mapping[str, _Shape] = {
    COMMAND: _TEXT,
    "args": _Shape(_is_texts, "a list of texts"),
    ENVIRONMENT: _NAMED_TEXTS,
    "cwd": _TEXT,
    **dict.fromkeys(ADDRESSES, _ADDRESS),
    "type": _Shape(lambda value: value in _TRANSPORTS, '"stdio" or "http"'),
    HEADERS: _NAMED_TEXTS,
    TRUST: _FLAG,
    DISABLED: _FLAG,
    EXCLUDED: _Shape(_is_texts, "a list of texts"),
}


def server_fault(name: str, entry: JsonValue) -> str:
    """Return a clause about what is wrong in an entry of ``mcpServers``, without its values; empty if nothing is."""
    server = f'the server "{name}"'
    if not NAME.fullmatch(name):
        return f"{server} has a name with other signs than letters, digits, - and _, or with more than 64"
    if not isinstance(entry, dict):
        return f"{server} is no object"
    for key, shape in _SHAPES.items():
        if entry.get(key) is not None and not shape.fits(entry[key]):
            return f'{server}: "{key}" must be {shape.words}'
    given = [key for key in _PLACES if entry.get(key) is not None]
    if len(given) > 1:
        return f'{server} has both "{given[0]}" and "{given[1]}"'
    return "" if given or not _SWITCHES.isdisjoint(entry) else f'{server} needs a "command" or a "url"'


def laid_over(below: JsonValue, entry: JsonValue) -> JsonValue:
    """Return a persona's entry; an entry that only switches a server of all personas keeps the server's other keys.

    Such an entry gives no trust, because the place of the server is in another file, which may change.
    """
    if isinstance(below, dict) and isinstance(entry, dict) and only_switches(entry):
        return {**below, **{key: value for key, value in entry.items() if (key, value) != (TRUST, True)}}
    return entry


def has_place(entry: Mapping[str, JsonValue]) -> bool:
    """Return whether an entry says where its server is."""
    return any(entry.get(key) is not None for key in _PLACES)


def only_switches(entry: JsonValue) -> bool:
    """Return whether an entry switches a server of another file, instead of saying where one is."""
    return isinstance(entry, dict) and not has_place(entry)


def allowance_fault(name: str, entry: JsonValue) -> str:
    """Return a clause about what is wrong in an entry of ``mcp_allow``; empty if nothing is."""
    return "" if _is_text(entry) and "." in name else f'"{name}" must be "server.tool" with the hash of its declaration'
