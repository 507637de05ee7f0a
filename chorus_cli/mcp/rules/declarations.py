"""The tools that a server declares: their names and schemas for the model, and their hashes."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from chorus_cli.core import limits
from chorus_cli.core.text.code_points import join_surrogates
from chorus_cli.models.rules.declaration import Origin, Tool

BETWEEN = "__"
"""Separates the server from its tool in a name for the model; no name of a built-in tool contains it."""

_LONGEST_NAME = 64
_UNUSUAL = re.compile(r"[^A-Za-z0-9_-]")
_HASH_DIGITS = 16
_NAME_DIGITS = 8

_REFUSED = frozenset({"$schema", "oneOf", "anyOf", "allOf", "not", "enum"})
"""Keys that providers refuse at the top of a schema. The server still checks the arguments against them."""


class Declared(NamedTuple):
    """A tool as its server declares it; ``schema`` is the JSON text of its arguments' schema, with sorted keys."""

    name: str
    description: str = ""
    schema: str = "{}"
    says_it_only_reads: bool = False

    @property
    def digest(self) -> str:
        """A hash of the name, description and schema, which changes when the server changes one of them."""
        told = json.dumps([self.name, self.description, self.schema])
        return hashlib.sha256(told.encode()).hexdigest()[:_HASH_DIGITS]


def declared(name: str, description: str, schema: Mapping[str, object], *, says_it_only_reads: bool) -> Declared | None:
    """Return a tool, without lone surrogates; ``None`` if its name or schema is too long or not JSON."""
    try:
        text = json.dumps(schema, ensure_ascii=False, sort_keys=True, allow_nan=False)
    except ValueError:
        return None
    if len(text) > limits.SCHEMA.most or len(name) > limits.TOOL_NAME.most:
        return None
    told = join_surrogates(description)[: limits.DESCRIPTION.most]
    return Declared(join_surrogates(name), told, join_surrogates(text), says_it_only_reads)


def within_limit(found: Sequence[Declared]) -> tuple[Declared, ...]:
    """Return the first tools of a server, until their descriptions and schemas reach the size limit."""
    sizes = accumulate(len(each.description) + len(each.schema) for each in found)
    return tuple(each for each, size in zip(found, sizes, strict=True) if size <= limits.DECLARATIONS.most)


def tools_of(server: str, found: Sequence[Declared]) -> tuple[Tool, ...]:
    """Return a server's tools under names that every provider accepts; of tools with the same name, only the first."""
    tools: dict[str, Tool] = {}
    for each in found:
        name = _function_name(server, each.name)
        schema = json.dumps(_for_model(each.schema), ensure_ascii=False)
        tools.setdefault(name, Tool(name, each.description, origin=Origin(server, each.name, each.digest, schema)))
    return tuple(tools.values())


def _function_name(server: str, tool: str) -> str:
    """Join both names; if the result had to be changed or is ambiguous, a hash at its end makes it unique."""
    joined = f"{server}{BETWEEN}{tool}"
    name = _UNUSUAL.sub("_", joined)
    # Gemini takes only a name that begins with a letter or an underscore.
    name = name if name[0].isalpha() else f"_{name}"
    if name == joined and name.partition(BETWEEN)[0] == server and len(name) <= _LONGEST_NAME:
        return name
    digest = hashlib.sha256(f"{server}\0{tool}".encode()).hexdigest()[:_NAME_DIGITS]
    return f"{name[: _LONGEST_NAME - _NAME_DIGITS - 1]}_{digest}"


def _for_model(schema: str) -> Mapping[str, object]:
    own: dict[str, object] = json.loads(schema)
    return {"type": "object", "properties": {}, **{key: value for key, value in own.items() if key not in _REFUSED}}
