"""The user's help in the docstring of a command's handler."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_SECTION = re.compile(r"^(\w+):\n(?= )", re.MULTILINE)
_LINE_BREAK = re.compile(r"(?<=\S)\n(?=\S)")


@dataclass(frozen=True, slots=True)
class Documentation:
    """The user's help in a docstring: a line for menus, the paragraphs below it, the examples."""

    summary: str
    details: str
    examples: tuple[str, ...]


def documentation_of(handler: Callable[..., object]) -> Documentation:
    """Parse a handler's docstring: first line, paragraphs up to the first section, ``Examples:`` section.

    Raises:
        TypeError: there is no docstring or no example, or an example does not begin with a slash.
    """
    text = inspect.getdoc(handler) or ""
    summary, _, rest = text.partition("\n")
    details, *sections = _SECTION.split(rest)
    section_of = dict(zip(sections[::2], sections[1::2], strict=True))
    examples = tuple(line.strip() for line in section_of.get("Examples", "").splitlines() if line.strip())
    if not summary or not examples or not all(example.startswith("/") for example in examples):
        raise TypeError(f"{handler.__qualname__} needs a docstring: one line, and 'Examples:' that begin with a slash")
    return Documentation(summary, _LINE_BREAK.sub(" ", details.strip()), examples)
