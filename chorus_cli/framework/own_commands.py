"""The user's own commands: Markdown files that are typed as commands and sent as messages."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Generic, NamedTuple

from chorus_cli.core import limits
from chorus_cli.core.text.phrases import shortened
from chorus_cli.framework.registry import C, Command, CommandGroup, CommandRegistry
from chorus_cli.storage.files import read_within

ARGUMENTS = "$ARGUMENTS"
"""The place in a template for the text typed after its name."""

_ENDING = ".md"
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


def template_of(name: str, text: str) -> Template:
    """Read a template; front matter may hold a ``description:``, which otherwise is the first line of the text."""
    text = text.replace("\r\n", "\n")
    matter = _FRONT_MATTER.match(text)
    body = text[matter.end() if matter else 0 :].strip()
    described = _DESCRIPTION.search(matter["fields"]) if matter else None
    first_line = body.partition("\n")[0].lstrip("# ")
    return Template(name, shortened((described["text"].strip(_AROUND) if described else "") or first_line), body)


class OwnCommands(Generic[C]):
    """The registry with the user's commands, read again when a file has changed; the first of the folders wins."""

    def __init__(
        self,
        built_in: Sequence[CommandGroup[C]],
        folders_of: Callable[[str], Sequence[Path]],
        command_of: Callable[[Template], Command[C]],
    ) -> None:
        self._built_in = built_in
        self._folders_of = folders_of
        self._command_of = command_of
        self._plain = self._registry = CommandRegistry(built_in)
        self._files: dict[Path, tuple[int, int]] = {}
        self._own: CommandGroup[C] = CommandGroup("")
        self._flaws: list[str] = []
        self._told: set[str] = set()

    def registry(self, slug: str) -> CommandRegistry[C]:
        """Return all commands in a chat with a persona."""
        files = _files_in(self._folders_of(slug))
        if files != self._files:
            self._files = files
            self._read()
        return self._registry

    def is_own(self, command: Command[C]) -> bool:
        """Return whether a command is one of the user's, which asks a model."""
        return command.names[0] in self._own.words and not command.group

    def new_flaws(self, slug: str) -> list[str]:
        """Return the sentences about files that are not used, each once in a run."""
        self.registry(slug)
        new = [flaw for flaw in self._flaws if flaw not in self._told]
        self._told.update(new)
        return new

    def _read(self) -> None:
        self._own, self._flaws = CommandGroup(""), []
        for path in self._files:
            try:
                template = self._template(path)
            except ValueError as flaw:
                self._flaws.append(f"{path} is not used as a command: {flaw}.")
                continue
            if template.name not in self._own.words:
                self._own.add(self._command_of(template))
        self._registry = CommandRegistry(self._built_in, self._own) if self._own.commands else self._plain

    def _template(self, path: Path) -> Template:
        """Read a template, or raise a ``ValueError`` that says why the file cannot be a command."""
        name = path.stem.casefold()
        if _NAME.fullmatch(name) is None:
            raise ValueError("its name may have letters from a to z, digits, hyphens and underscores")
        if name in self._plain.words:
            raise ValueError(f"/{name} is a command of Chorus; rename the file")
        try:
            template = template_of(name, read_within(path, limits.TEMPLATE).decode("utf-8-sig"))
        except UnicodeDecodeError:
            raise ValueError("it is not UTF-8") from None
        except OSError as error:
            raise ValueError(error.strerror) from error
        if not template.body:
            raise ValueError("it is empty")
        return template


def _files_in(folders: Iterable[Path]) -> dict[Path, tuple[int, int]]:
    """Return the templates, by name in each folder, with time of change and size; an unreadable folder has none."""
    files: dict[Path, tuple[int, int]] = {}
    for folder in folders:
        with suppress(OSError), os.scandir(folder) as entries:
            named = [each for each in entries if each.name.endswith(_ENDING) and not each.name.startswith(".")]
            for entry in sorted((each for each in named if each.is_file()), key=lambda each: each.name):
                state = entry.stat()
                files[Path(entry.path)] = state.st_mtime_ns, state.st_size
    return files
