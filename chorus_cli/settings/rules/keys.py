"""Finds what may be a key in the entry of a server: such a text stays out of the journal, the log and errors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from chorus_cli.core.json.jsonc import JsonValue
from chorus_cli.settings.rules.servers import ADDRESSES, ENVIRONMENT, HEADERS
from chorus_cli.settings.rules.table import without_keys

_VARIABLE = re.compile(r"\$\{(?:env:)?\w+\}")
"""A variable without a default: a default is a text that is written out."""

_ADDRESS = re.compile(r"\w+://(?:(?P<user>[^/?#]*)@)?[^/?#]*(?P<rest>.*)", re.DOTALL)
_KEY_IN_REST = re.compile(r"=[^&]|[\w-]{16}")


def keeps_keys(value: JsonValue) -> bool:
    """Return whether a server's entry may have keys that are written out, in place of variables.

    Any value of a variable or a header may be one.
    """
    if not isinstance(value, dict):
        return False
    named = [text for key in (ENVIRONMENT, HEADERS) for text in _texts(value.get(key))]
    addresses = [_VARIABLE.sub("", str(value.get(key) or "")) for key in ADDRESSES]
    return (
        any(not _VARIABLE.search(text) for text in named)
        or bool(arguments_with_keys([_VARIABLE.sub("", text) for text in _texts(value.get("args"))]))
        or any(user or _KEY_IN_REST.search(rest) for user, rest in map(parts_with_keys, addresses))
    )


def arguments_with_keys(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of a command that look like keys, by themselves or after the name of an option."""
    return [text for option, text in pairwise(("", *arguments)) if _is_key(f"{'' if '=' in option else option}={text}")]


def parts_with_keys(address: str) -> tuple[str, str]:
    """Return the parts of an address that may have keys: the user, and all that follows the host."""
    found = _ADDRESS.fullmatch(address)
    return (found["user"] or "", found["rest"]) if found else ("", address)


def _is_key(text: str) -> bool:
    return without_keys(text) != text


def _texts(value: JsonValue) -> list[str]:
    """Return the texts of a list, or of the entries of an object; the shape of a server is checked later."""
    items = [*value.values()] if isinstance(value, dict) else value
    return [each for each in items if isinstance(each, str)] if isinstance(items, list) else []
