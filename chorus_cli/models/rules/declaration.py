"""The declaration of a tool: its name, its description and its typed parameters, as a JSON schema for the model."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """The type of a parameter, as JSON Schema names it."""

    TEXT = "string"
    NUMBER = "integer"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a tool; with ``choices`` it takes only one of these texts."""

    name: str
    description: str
    kind: Kind = Kind.TEXT
    choices: tuple[str, ...] = ()
    is_required: bool = True

    @property
    def schema(self) -> dict[str, object]:
        """The JSON schema of its values."""
        schema: dict[str, object] = {"type": str(self.kind), "description": self.description}
        return schema | ({"enum": list(self.choices)} if self.choices else {})


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that a model may call; the description is written for the model."""

    name: str
    description: str
    parameters: tuple[Parameter, ...] = ()

    @property
    def declaration(self) -> dict[str, object]:
        """The tool in the shape of the OpenAI API."""
        function = {"name": self.name, "description": self.description, "parameters": self.schema}
        return {"type": "function", "function": function}

    @property
    def schema(self) -> dict[str, object]:
        """The JSON schema of its arguments."""
        return {
            "type": "object",
            "properties": {parameter.name: parameter.schema for parameter in self.parameters},
            "required": [parameter.name for parameter in self.parameters if parameter.is_required],
        }


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """The tools that a request offers to the model, and the estimated tokens of their declarations."""

    tools: tuple[Tool, ...] = ()
    tokens: int = 0


NO_OFFER = ToolOffer()
