"""Declares tools to a model as JSON schemas, and checks the arguments that the model sends for them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import import_module
from itertools import groupby
from typing import NamedTuple

from chorus_cli.core import limits
from chorus_cli.core.errors import ToolError
from chorus_cli.core.text.code_points import join_surrogates
from chorus_cli.core.text.phrases import shortened
from chorus_cli.log.rules.calls import ToolCall


class Kind(StrEnum):
    """The type of a parameter, as JSON Schema names it."""

    TEXT = "string"
    NUMBER = "integer"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a tool; if it has ``choices``, its value must be one of these texts, in upper or lower case."""

    name: str
    description: str
    kind: Kind = Kind.TEXT
    choices: tuple[str, ...] = ()
    is_required: bool = True

    @property
    def schema(self) -> dict[str, object]:
        """The JSON schema of the parameter's values."""
        choices = {"enum": list(self.choices)} if self.choices else {}
        return {"type": str(self.kind), "description": self.description, **choices}


class Origin(NamedTuple):
    """The server of a tool, its name there, the hash of its declaration, and the JSON schema of its arguments."""

    server: str
    tool: str
    digest: str
    schema: str

    @property
    def label(self) -> str:
        """The tool as the user knows it: ``time.get_current_time``."""
        return f"{self.server}.{self.tool}"


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that a model may call; the description is written for the model.

    A tool with an ``origin`` belongs to a server, which declares the schema and checks the arguments.
    """

    name: str
    description: str
    parameters: tuple[Parameter, ...] = ()
    origin: Origin | None = None

    @property
    def declaration(self) -> dict[str, object]:
        """The declaration of the tool in the format of the OpenAI API."""
        function = {"name": self.name, "description": self.description, "parameters": self.schema}
        return {"type": "function", "function": function}

    @property
    def schema(self) -> dict[str, object]:
        """The JSON schema of the tool's arguments."""
        if self.origin is not None:
            declared: dict[str, object] = json.loads(self.origin.schema)
            return declared
        return {
            "type": "object",
            "properties": {parameter.name: parameter.schema for parameter in self.parameters},
            "required": [parameter.name for parameter in self.parameters if parameter.is_required],
        }


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """The tools that a request offers to the model, and the estimated tokens of each declaration.

    ``left_out`` are servers' tools that did not fit into the request.
    """

    tools: tuple[Tool, ...] = ()
    counts: tuple[int, ...] = ()
    left_out: tuple[Tool, ...] = ()

    @property
    def tokens(self) -> int:
        """The estimated tokens of all declarations."""
        return sum(self.counts)

    @property
    def built_in(self) -> ToolOffer:
        """The same offer without the tools of servers."""
        own = [(tool, tokens) for tool, tokens in zip(self.tools, self.counts, strict=True) if tool.origin is None]
        return ToolOffer(tuple(tool for tool, _ in own), tuple(tokens for _, tokens in own))

    def by_server(self) -> Iterator[tuple[str, tuple[str, ...], int]]:
        """Yield each server, its tools' names and their tokens; the built-in tools come under an empty server name."""
        for server, group in groupby(zip(self.tools, self.counts, strict=True), lambda each: _server(each[0])):
            listed = [*group]
            yield server, tuple(tool.name for tool, _ in listed), sum(tokens for _, tokens in listed)


NO_OFFER = ToolOffer()


def _server(tool: Tool) -> str:
    return tool.origin.server if tool.origin else ""


LONGEST_ARGUMENTS = limits.ARGUMENTS.most
"""The most characters of a call's arguments: over twice a memory item's limit, because JSON may escape characters."""

_LONGEST_REPAIRED = 100_000
_LONGEST_NAME, _LONGEST_SHOWN, _LONGEST_VALUE = 64, 120, 60
_UNUSUAL_IN_NAME = re.compile(r"[^A-Za-z0-9_-]")
_NO_OBJECT = "The arguments could not be read: they must be one JSON object, for example {example}."
_TOO_LONG = "The arguments have {length:,} characters, but {most:,} is the maximum. Send shorter arguments."
_REPAIRED = "(The arguments were not valid JSON; they were understood as {understood}.)"
_NOTE = re.compile(re.escape(_REPAIRED).replace(r"\{understood\}", r"[^\n]*") + r"\n\n")


@dataclass(frozen=True, slots=True)
class Arguments:
    """The checked arguments of a call by parameter name, without the optional ones that the model left out."""

    values: Mapping[str, str | int] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """Return the text of a parameter, ``""`` if it was not given."""
        return str(self.values.get(name, ""))

    def number(self, name: str) -> int:
        """Return the whole number of a parameter, 0 if it was not given."""
        return int(self.values.get(name, 0))


@dataclass(frozen=True, slots=True)
class ReadCall:
    """A call whose arguments are a JSON object, as the log and all providers require; ``given`` is this object.

    ``note`` tells the model that its arguments were repaired, and ``problem`` tells why they could not be read, or that
    there is no such tool.
    """

    call: ToolCall
    tool: Tool | None
    given: Mapping[str, object]
    note: str = ""
    problem: str = ""

    @property
    def shown(self) -> str:
        """The call as the user sees it: ``search_history("ring", "7d")``. Built-in tools show no argument names."""
        origin = self.tool.origin if self.tool else None
        is_built_in = self.tool is not None and origin is None
        given = ((name, _shown(value)) for name, value in self.given.items() if value not in ("", None))
        values = (value if is_built_in else f"{name} {value}" for name, value in given)
        name = origin.label if origin else self.call.name
        return f"{shortened(name, _LONGEST_NAME)}({shortened(', '.join(values), _LONGEST_SHOWN)})"

    def arguments(self) -> Arguments:
        """Check and return the arguments; raise a ``ToolError`` whose sentence is sent to the model."""
        if self.problem:
            raise ToolError(self.problem)
        values: dict[str, str | int] = {}
        for parameter in self.tool.parameters if self.tool else ():
            given = self.given.get(parameter.name)
            if given is None or given == "":
                if parameter.is_required:
                    raise ToolError(f"The argument {parameter.name!r} is missing: {parameter.description}")
                continue
            values[parameter.name] = _value(parameter, given)
        return Arguments(values)


def read_call(call: ToolCall, tools: Mapping[str, Tool], *, repairs: bool = True) -> ReadCall:
    """Read the arguments of a call of one of ``tools``; with ``repairs``, try to repair invalid JSON."""
    text, tool = call.arguments, tools.get(call.name)
    given: object = None
    # Later requests repeat the call, and providers refuse names with anything but letters, digits, _ and -.
    name = _UNUSUAL_IN_NAME.sub("_", call.name.strip())[:_LONGEST_NAME] or "unnamed"
    note = problem = ""
    if not text.strip():
        text, given = "{}", {}
    elif len(text) > LONGEST_ARGUMENTS:
        problem = _TOO_LONG.format(length=len(text), most=LONGEST_ARGUMENTS)
    else:
        try:
            given = json.loads(text, parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            given = (_repaired(text) if repairs else None) or None
            text = json.dumps(given, ensure_ascii=False)
            note = _REPAIRED.format(understood=text)
    if tool is None:
        problem = f"There is no tool {name!r}. The tools are: {', '.join(tools) or 'none'}."
    if isinstance(given, dict):
        return ReadCall(ToolCall(call.id, name, text), tool, given, note, problem)
    required = (parameter for parameter in (tool.parameters if tool else ()) if parameter.is_required)
    example = json.dumps({each.name: 1 if each.kind is Kind.NUMBER else "…" for each in required}, ensure_ascii=False)
    return ReadCall(ToolCall(call.id, name, "{}"), tool, {}, "", problem or _NO_OBJECT.format(example=example))


def without_note(result: str) -> str:
    """Return the result of a call without the note about repaired arguments that may precede it."""
    return _NOTE.sub("", result, count=1) if _NOTE.match(result) else result


def _refuse_constant(name: str) -> object:
    """Refuse ``NaN`` and infinities, which Python accepts and providers refuse."""
    raise ValueError(name)


def _repaired(text: str) -> object:
    with suppress(ImportError, ValueError, RecursionError):
        # Imported only now, because hardly any run needs it.
        return import_module("json_repair").loads(text) if len(text) <= _LONGEST_REPAIRED else None
    return None


def _value(parameter: Parameter, given: object) -> str | int:
    if parameter.kind is Kind.NUMBER:
        return _number(parameter, given)
    if isinstance(given, bool) or not isinstance(given, str | int | float):
        raise ToolError(f"The argument {parameter.name!r} must be a text: {parameter.description}")
    text = join_surrogates(str(given))
    if not parameter.choices:
        return text
    chosen = next((choice for choice in parameter.choices if choice.casefold() == text.strip().casefold()), None)
    if chosen is None:
        raise ToolError(f"The argument {parameter.name!r} must be one of: {', '.join(parameter.choices)}.")
    return chosen


def _number(parameter: Parameter, given: object) -> int:
    text = str(given).strip().removeprefix("#").removesuffix(".0")
    is_number = not isinstance(given, bool) and text.isascii() and text.isdigit() and len(text) <= len(str(2**63))
    # SQLite takes no larger number.
    if not is_number or int(text) >= 2**63:
        raise ToolError(f"The argument {parameter.name!r} must be a whole number: {parameter.description}")
    return int(text)


def _shown(value: object) -> str:
    if isinstance(value, str):
        return f'"{shortened(value, _LONGEST_VALUE)}"'
    return shortened(json.dumps(value, ensure_ascii=False), _LONGEST_VALUE)
