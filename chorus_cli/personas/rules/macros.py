"""Macros of character cards, such as ``{{char}}`` and ``{{user}}``, in capital or small letters.

Chorus replaces them when it sends or shows a text. A random choice depends only on the macro and its position in the
text, so that it is the same in every request. An unknown macro stays as it is.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import NamedTuple

from chorus_cli.personas.rules.persona import Persona
from chorus_cli.settings.rules.table import DEFAULT_SOURCE

OWN_PROMPT = "Be the character described here: write its next message in this conversation, and none of the user's."
"""The value of ``{{original}}`` if the user has not set a system prompt for all personas."""

_MACRO = re.compile(r"\{\{([^{}]{1,10000})\}\}|<(user|bot|char)>", re.IGNORECASE)
_DICE = re.compile(r"(?:([1-9][0-9]?)?d)?([1-9][0-9]{0,8})", re.IGNORECASE)
_COMMA = re.compile(r"(?<!\\),")
_PASSES = 3
"""The most times that macros are replaced in a text, because the value of a macro may contain other macros."""


class Names(NamedTuple):
    """The values of macros: the names of the character and of the user, and the system prompt that a card may quote."""

    char: str
    user: str
    original: str = ""


def names_of(persona: Persona) -> Names:
    """Return the values of macros for a persona."""
    is_set = persona.default_sources.get("system_prompt", DEFAULT_SOURCE) != DEFAULT_SOURCE
    original = persona.defaults.system_prompt if is_set else OWN_PROMPT
    return Names(persona.settings.nickname or persona.name, persona.settings.user_name, original)


def sent(persona: Persona, text: str) -> str:
    """Return a persona's text as Chorus sends it: with its macros replaced if the persona was made from a card."""
    return replaced(text, names_of(persona)) if persona.has_card and ("{{" in text or "<" in text) else text


def replaced(text: str, names: Names) -> str:
    """Return a text with its macros replaced."""
    for _ in range(_PASSES):
        before, text = text, _MACRO.sub(lambda found: _value(found, names), text)
        if text == before:
            break
    return text


def _value(found: re.Match[str], names: Names) -> str:
    inside = (found[1] or found[2]).strip()
    match inside.casefold():
        case "char" | "bot":
            return names.char
        case "user":
            return names.user
        case "original":
            return names.original
    name, colon, argument = inside.partition(":")
    if inside.startswith("//"):
        return ""
    return _of_argument(name.strip().casefold(), argument, found) if colon else found[0]


def _of_argument(name: str, argument: str, found: re.Match[str]) -> str:
    argument = argument.removeprefix(":")
    match name:
        case "comment" | "hidden_key":
            return ""
        case "reverse":
            return argument[::-1]
        case "random" | "pick":
            choices = argument.split("::")
            if len(choices) == 1:
                choices = [choice.replace("\\,", ",") for choice in _COMMA.split(argument)]
            return choices[_number(found) % len(choices)].strip()
        case "roll":
            if dice := _DICE.fullmatch(argument.strip()):
                return str(sum(1 + _number(found, die) % int(dice[2]) for die in range(int(dice[1] or 1))))
    return found[0]


def _number(found: re.Match[str], die: int = 0) -> int:
    """Return a number computed from the macro and its position in the text; each ``die`` of a macro has its own."""
    key = f"{found.start()} {found[0]}{' ' * die}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(key, digest_size=8).digest(), "big")
