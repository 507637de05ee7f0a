"""Templates of messages: Markdown files of the user that are typed as commands."""

from __future__ import annotations

import re
from typing import NamedTuple

from chorus_cli.core.text.phrases import shortened

ARGUMENTS = "$ARGUMENTS"
"""The place in a template for the text typed after its name."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(?P<fields>.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_DESCRIPTION = re.compile(r"^description:[ \t]*(?P<text>.*)$", re.MULTILINE)
_AROUND = " \t\"'"


class Template(NamedTuple):
    """A template: the name that is typed after the slash, one line about it, and its text."""

    name: str
    description: str
    body: str

    def filled(self, arguments: str) -> str:
        """Return the message: ``arguments`` in their place, or at the end of a template that has none."""
        if ARGUMENTS in self.body:
            return self.body.replace(ARGUMENTS, arguments)
        return f"{self.body}\n\n{arguments}" if arguments else self.body


def is_template_name(name: str) -> bool:
    """Return whether a command can be called so: small letters, digits, hyphens and underscores."""
    return _NAME.fullmatch(name) is not None


def template_of(name: str, text: str) -> Template:
    """Read a template; front matter may hold a ``description:``, which otherwise is the first line of the text."""
    text = text.replace("\r\n", "\n")
    matter = _FRONT_MATTER.match(text)
    body = text[matter.end() if matter else 0 :].strip()
    described = _DESCRIPTION.search(matter["fields"]) if matter else None
    first_line = body.partition("\n")[0].lstrip("# ")
    return Template(name, shortened((described["text"].strip(_AROUND) if described else "") or first_line), body)
