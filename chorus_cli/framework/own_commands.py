"""The user's own commands: Markdown files in folders ``commands``, beside the built-in commands."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Generic, NamedTuple

from chorus_cli.core import limits
from chorus_cli.core.text.templates import Template, is_template_name, template_of
from chorus_cli.framework.registry import C, Command, CommandGroup, CommandRegistry
from chorus_cli.storage.files import read_within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_ENDING = ".md"


class TemplateFile(NamedTuple):
    """A file as it is now: its path, time of change in nanoseconds, and size."""

    path: Path
    changed_ns: int
    size_bytes: int

    @property
    def name(self) -> str:
        """The name of the file without its ending, in small letters."""
        return self.path.stem.casefold()


def found(folders: Iterable[Path]) -> tuple[TemplateFile, ...]:
    """Return the templates of some folders, by name in each; a folder that cannot be read has none."""
    return tuple(file for folder in folders for file in _in(folder))


def read(file: TemplateFile) -> str:
    """Return the text of a template.

    Raises:
        ValueError: it cannot be read, is too large, or is not UTF-8; the text completes "is not used: …".
    """
    if file.size_bytes > limits.TEMPLATE.most:
        raise ValueError(f"it has over {limits.TEMPLATE.size}")
    try:
        return read_within(file.path, limits.TEMPLATE).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    except OSError as error:
        raise ValueError(f"it cannot be read ({error.strerror})") from error


def _in(folder: Path) -> list[TemplateFile]:
    files = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(_ENDING) and not entry.name.startswith(".") and entry.is_file():
                    state = entry.stat()
                    files.append(TemplateFile(Path(entry.path), state.st_mtime_ns, state.st_size))
    except OSError:
        return []
    return sorted(files)


class OwnCommands(Generic[C]):
    """The registry with the user's commands, read again when a file has changed.

    ``folders_of`` returns the folders of a persona by its slug, that with precedence first; ``command_of`` makes a
    command of a template.
    """

    def __init__(
        self,
        built_in: Sequence[CommandGroup[C]],
        folders_of: Callable[[str], Sequence[Path]],
        command_of: Callable[[Template], Command[C]],
    ) -> None:
        self._built_in = built_in
        self._plain = CommandRegistry(built_in)
        self._folders_of = folders_of
        self._command_of = command_of
        self._files: tuple[TemplateFile, ...] = ()
        self._registry = self._plain
        self._own: frozenset[str] = frozenset()
        self._flaws: tuple[str, ...] = ()
        self._told: set[str] = set()

    def registry(self, slug: str) -> CommandRegistry[C]:
        """Return all commands in a chat with a persona."""
        files = found(self._folders_of(slug))
        if files != self._files:
            self._files = files
            self._read(files)
        return self._registry

    def is_own(self, command: Command[C]) -> bool:
        """Return whether a command is one of the user's, which asks a model."""
        return command.path in self._own

    def new_flaws(self, slug: str) -> list[str]:
        """Return the sentences about files that are not used, each once in a run."""
        self.registry(slug)
        new = [flaw for flaw in self._flaws if flaw not in self._told]
        self._told.update(new)
        return new

    def _read(self, files: Sequence[TemplateFile]) -> None:
        templates: dict[str, Template] = {}
        flaws: list[str] = []
        for file in files:
            try:
                templates.setdefault(file.name, self._template(file))
            except ValueError as flaw:
                flaws.append(f"{file.path} is not used as a command: {flaw}.")
        own: CommandGroup[C] = CommandGroup("")
        for template in templates.values():
            own.add(self._command_of(template))
        self._registry = CommandRegistry(self._built_in, own) if templates else self._plain
        self._own = frozenset(command.path for command in own.commands)
        self._flaws = tuple(flaws)

    def _template(self, file: TemplateFile) -> Template:
        """Read a template.

        Raises:
            ValueError: it cannot be a command; the text says why.
        """
        if not is_template_name(file.name):
            raise ValueError("its name may have letters from a to z, digits, hyphens and underscores")
        if file.name in self._plain.words:
            raise ValueError(f"/{file.name} is a command of Chorus; rename the file")
        template = template_of(file.name, read(file))
        if not template.body:
            raise ValueError("it is empty")
        return template
