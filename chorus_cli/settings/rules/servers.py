"""The shape of ``mcpServers`` and ``mcp_allow``: servers whose tools the model may call, and what the user allowed.

A server has the same keys as in other programs' settings. Unknown keys stay in the file and have no effect.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

from chorus_cli.core.json.jsonc import JsonValue

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""The names of servers, which are part of the names of tools and commands."""

COMMAND, ADDRESSES = "command", ("url", "httpUrl")
ENVIRONMENT, HEADERS, DISABLED, TRUST, EXCLUDED = "env", "headers", "disabled", "trust", "excludeTools"

_PLACES = (COMMAND, *ADDRESSES)
_SWITCHES = frozenset({DISABLED, TRUST, EXCLUDED})
_ADDRESS_PARTS = re.compile(r"\w+://(?:(?P<user>[^/?#]*)@)?[^/?#]*(?P<rest>.*)", re.DOTALL)


def _are_texts(values: Iterable[JsonValue]) -> bool:
    return all(isinstance(each, str) for each in values)


_ADDRESS, _TEXT, _TEXTS, _NAMED_TEXTS = (
    "an address that begins with http:// or https://", "a text", "a list of texts", "an object of texts",
)  # fmt: skip
_FLAG, _TRANSPORT = "true or false", '"stdio" or "http"'
_FITS: Mapping[str, Callable[[JsonValue], bool]] = {
    # The value of a variable is known only when Chorus connects to the server.
    _ADDRESS: lambda value: isinstance(value, str) and value.startswith(("http://", "https://", "${")),
    _TEXT: lambda value: isinstance(value, str) and bool(value.strip()),
    _TEXTS: lambda value: isinstance(value, list) and _are_texts(value),
    _NAMED_TEXTS: lambda value: isinstance(value, dict) and _are_texts(value.values()),
    _FLAG: lambda value: isinstance(value, bool),
    _TRANSPORT: lambda value: value in ("stdio", "http", "streamable-http"),
}
_SHAPES: Mapping[str, str] = {
    COMMAND: _TEXT,
    "args": _TEXTS,
    ENVIRONMENT: _NAMED_TEXTS,
    "cwd": _TEXT,
    **dict.fromkeys(ADDRESSES, _ADDRESS),
    "type": _TRANSPORT,
    HEADERS: _NAMED_TEXTS,
    TRUST: _FLAG,
    DISABLED: _FLAG,
    EXCLUDED: _TEXTS,
}


def server_fault(name: str, entry: JsonValue) -> str:
    """Return a clause about the first fault in an entry of ``mcpServers``, without its values, or an empty text."""
    server = f'the server "{name}"'
    if not NAME.fullmatch(name):
        return f"{server} has a name of more than 64 characters, or with characters other than letters, digits, - and _"
    if not isinstance(entry, dict):
        return f"{server} is no object"
    for key, shape in _SHAPES.items():
        if entry.get(key) is not None and not _FITS[shape](entry[key]):
            return f'{server}: "{key}" must be {shape}'
    given = [key for key in _PLACES if entry.get(key) is not None]
    if len(given) > 1:
        return f'{server} has both "{given[0]}" and "{given[1]}"'
    return "" if given or not _SWITCHES.isdisjoint(entry) else f'{server} needs a "command" or a "url"'


def laid_over(below: JsonValue, entry: JsonValue) -> JsonValue:
    """Return a persona's entry of a server, laid over the entry ``below`` of the same server for all personas.

    An entry that only switches a server takes the other keys from below. It cannot give trust, because another file
    says where the server is, and that file may change. An entry with a place replaces the entry below.
    """
    if isinstance(below, dict) and isinstance(entry, dict) and only_switches(entry):
        return {**below, **{key: value for key, value in entry.items() if (key, value) != (TRUST, True)}}
    return entry


def has_place(entry: Mapping[str, JsonValue]) -> bool:
    """Return whether an entry says where its server is."""
    return any(entry.get(key) is not None for key in _PLACES)


def only_switches(entry: JsonValue) -> bool:
    """Return whether an entry switches a server of another file, and does not say where a server is."""
    return isinstance(entry, dict) and not has_place(entry)


def allowance_fault(name: str, entry: JsonValue) -> str:
    """Return a clause about the fault in an entry of ``mcp_allow``, or an empty text."""
    fits = _FITS[_TEXT](entry) and "." in name
    return "" if fits else f'"{name}" must be "server.tool" with the hash of its declaration'


def arguments_with_keys(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of a command that look like API keys, alone or after the name of an option."""
    named = [f"{'' if '=' in option else option}={text}" for option, text in pairwise(("", *arguments))]
    return [text for text, told in zip(arguments, named, strict=True) if without_keys(told) != told]


def parts_with_keys(address: str) -> tuple[str, str]:
    """Return the parts of an address that may contain API keys: the user, and everything after the host."""
    found = _ADDRESS_PARTS.fullmatch(address)
    return (found["user"] or "", found["rest"]) if found else ("", address)


def without_keys(text: str) -> str:
    """Return a text of the settings without API keys."""
    from chorus_cli.core.text.redaction import redact  # noqa: PLC0415 - a start without errors is faster

    return redact(text, ())
