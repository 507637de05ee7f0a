"""Reads servers from the settings and replaces the variables in their texts: values and pure functions."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple, cast

from chorus_cli.core.json.jsonc import JsonValue
from chorus_cli.log.rules.acts import ASKS
from chorus_cli.settings.rules.servers import (
    ADDRESSES,
    COMMAND,
    DISABLED,
    ENVIRONMENT,
    EXCLUDED,
    HEADERS,
    TRUST,
    arguments_with_keys,
    has_place,
    parts_with_keys,
)
from chorus_cli.settings.rules.table import ALLOWED, SERVERS

_VARIABLE = re.compile(r"\$\{(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<default>:-(?:[^}$]|\$(?!\{))*)?\}")
"""A variable as Claude Code writes it; Cursor and VS Code write `${env:NAME}`."""

_BETWEEN_WORDS = re.compile(r"[^\w.+~-]+")
_SHORTEST_SECRET = 8
_NOTHING: Mapping[str, str] = MappingProxyType({})


class Server(NamedTuple):
    """A local server, with a ``command`` and its ``arguments``, or a remote one, with a ``url`` and ``headers``.

    ``place`` is the JSON of the settings that say where the server is. ``allow`` has the tools that always run without
    a question, each with the ``digest`` of its `Grant`. The tools in ``excluded`` are not offered. ``problem`` says in
    a clause why a server that is on cannot be used, and is empty if it can. ``filled`` has the values that replaced
    variables in the other fields; if the server is off, no variable is replaced.
    """

    name: str
    command: str = ""
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = _NOTHING
    folder: str = ""
    url: str = ""
    headers: Mapping[str, str] = _NOTHING
    trust: bool = False
    is_on: bool = True
    allow: Mapping[str, str] = _NOTHING
    excluded: tuple[str, ...] = ()
    place: str = ""
    problem: str = ""
    filled: tuple[str, ...] = ()

    @property
    def secrets(self) -> tuple[str, ...]:
        """The texts that may be API keys, and their words: a server may quote a key without the word ``Bearer``."""
        named = (*self.environment.values(), *self.headers.values())
        texts = (*named, *arguments_with_keys(self.arguments), *parts_with_keys(self.url))
        words = (word for text in texts for word in (text, *text.split(), *_BETWEEN_WORDS.split(text)))
        return tuple({each for each in (*self.filled, *words) if len(each) >= _SHORTEST_SECRET})

    @property
    def has_own_token(self) -> bool:
        """Whether the settings have an ``Authorization`` header, so that the user needs no sign-in."""
        return any(name.casefold() == "authorization" for name in self.headers)


def servers(settings: Mapping[str, object], environment: Mapping[str, str]) -> tuple[Server, ...]:
    """Return the servers in ``settings``, which are checked values by key (``Settings._asdict()``).

    A server that is on has a problem if one of its variables is not set in ``environment`` and has no default.
    """
    entries = cast("Mapping[str, Mapping[str, JsonValue]]", settings.get(SERVERS) or {})
    allowed = cast("Mapping[str, str]", settings.get(ALLOWED) or {})
    return tuple(
        _server(name, entry, _of_server(name, allowed), environment)
        for name, entry in entries.items()
        if has_place(entry)
    )


def _of_server(name: str, allowed: Mapping[str, str]) -> Mapping[str, str]:
    lead = f"{name}."
    granted = ((tool, declared) for tool, declared in allowed.items() if tool.startswith(lead) and declared != ASKS)
    return {tool.removeprefix(lead): declared for tool, declared in granted}


def _server(
    name: str, entry: Mapping[str, JsonValue], allowed: Mapping[str, str], environment: Mapping[str, str]
) -> Server:
    is_on = entry.get(DISABLED) is not True
    problems: list[str] = []
    filled: list[str] = []

    def expanded(key: str, text: JsonValue) -> str:
        def value(found: re.Match[str]) -> str:
            variable, default = found["name"], found["default"]
            if default is None and variable not in environment:
                way_out = f"set it before you start Chorus, or write a default: ${{{variable}:-…}}"
                problems.append(f'its "{key}" names the variable {variable}, which is not set; {way_out}')
            # As in a shell, a default also replaces an empty variable.
            filled.append(environment.get(variable) or (default or "").removeprefix(":-"))
            return filled[-1]

        written = cast("str", text or "")
        return _VARIABLE.sub(value, written) if is_on else written

    def named(key: str) -> Mapping[str, str]:
        texts = cast("Mapping[str, JsonValue]", entry.get(key) or {})
        return {each: expanded(key, text) for each, text in texts.items()}

    return Server(
        name,
        expanded(COMMAND, entry.get(COMMAND)),
        tuple(expanded("args", text) for text in cast("list[JsonValue]", entry.get("args") or [])),
        named(ENVIRONMENT),
        expanded("cwd", entry.get("cwd")),
        next((expanded(key, entry[key]) for key in ADDRESSES if entry.get(key)), ""),
        named(HEADERS),
        trust=entry.get(TRUST) is True,
        is_on=is_on,
        allow=allowed,
        excluded=tuple(cast("list[str]", entry.get(EXCLUDED) or [])),
        place=json.dumps([entry.get(key) for key in (COMMAND, "args", "cwd", *ADDRESSES)]),
        # The arguments above have been evaluated by now, so all texts are filled in.
        problem=next(iter(problems), ""),
        filled=tuple(filled),
    )
