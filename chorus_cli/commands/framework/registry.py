"""Commands, each declared once: the decorator names it, the signature and the docstring say the rest.

A group is a value that a module fills; a registry is built from an explicit list of groups, so that no module is
imported for its side effect and a test can have a registry of its own. Usage lines, ``/help`` and the table in
the documents are computed from the declarations. A declaration with a mistake in it raises ``TypeError`` when made.

``C`` is the context that handlers are given first: the application's class, unknown here.
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Concatenate, Generic, ParamSpec, TypeVar

from chorus_cli.commands.framework.arguments import Argument, declared_arguments, pieces
from chorus_cli.commands.framework.replies import Answer, Report, Table
from chorus_cli.core.errors import CommandError
from chorus_cli.core.models.events import TurnEvent
from chorus_cli.core.text.cutting import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

C = TypeVar("C")
P = ParamSpec("P")
Outcome = Awaitable[Answer] | AsyncGenerator[TurnEvent, None]
R = TypeVar("R", bound=Outcome)

_SECTION = re.compile(r"^(\w+):\n(?= )", re.MULTILINE)
_LINE_BREAK = re.compile(r"(?<=\S)\n(?=\S)")


@dataclass(frozen=True, slots=True)
class Documentation:
    """What a docstring says to the user: the line for menus, the paragraphs below it, the examples."""

    summary: str
    details: str
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Command(Generic[C]):
    """One command: where it stands, what it takes, what is said about it, and the handler that carries it out.

    ``names`` are the words that name it within its group, the proper one first; ``""`` is the group's word alone.
    ``aliases`` are words that name it at the top level. ``default`` says that the group's word followed by an argument
    means this command. One that is ``stoppable`` may take long and leaves nothing half-done when it is cancelled.
    ``guesses`` are words that name nothing, but are typed by those who look for this command.
    """

    group: str
    names: tuple[str, ...]
    handler: Callable[Concatenate[C, ...], Outcome]
    arguments: tuple[Argument, ...]
    documentation: Documentation
    aliases: tuple[str, ...] = ()
    default: bool = False
    stoppable: bool = False
    guesses: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The full name as it is typed: ``/context set``."""
        return "/" + " ".join(word for word in (self.group, self.names[0]) if word)

    @property
    def usage(self) -> str:
        """The full name and its arguments: ``/context add <time>``; in brackets what may be left out."""
        name = f"[{self.names[0]}]" if self.default else self.names[0]
        words = (self.group, name, *(argument.usage for argument in self.arguments))
        return "/" + " ".join(word for word in words if word)

    @property
    def other_names(self) -> tuple[str, ...]:
        """Every other way to type it, as it is typed: ``/new``, ``/context default``."""
        synonyms = tuple("/" + f"{self.group} {name}".strip() for name in self.names[1:])
        return synonyms + tuple(f"/{alias}" for alias in self.aliases)

    @property
    def help_text(self) -> str:
        """Everything there is to say about it, as a paragraph for each thing."""
        documentation = self.documentation
        arguments = [f"{argument.usage}: {argument.parameter.help}" for argument in self.arguments]
        paragraphs = [
            "\n".join([self.usage, *arguments]),
            documentation.summary,
            documentation.details,
            "Also: " + ", ".join(self.other_names) if self.other_names else "",
            "\n".join(["Examples:", *(f"  {example}" for example in documentation.examples)]),
        ]
        return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)

    def values(self, text: str, now: datetime) -> tuple[object, ...]:
        """Read what follows the name as arguments, with defaults for those left out.

        Raises:
            CommandError: nothing takes the text, or a required argument is missing.
            ChorusError: a parameter cannot read its piece; the sentence is the parameter's.
        """
        if text and not self.arguments:
            raise CommandError(f"{self.path} stands alone, but {quoted(text)} follows it. Usage: {self.usage}")
        given = pieces(self.arguments, text)
        left_out = self.arguments[len(given) :]
        for argument in left_out:
            if argument.required:
                example = self.documentation.examples[0]
                raise CommandError(f"{self.path} needs {argument.usage}. Usage: {self.usage}, for example: {example}")
        read = [argument.parameter.parse(piece, now) for argument, piece in zip(self.arguments, given, strict=False)]
        return (*read, *(argument.default for argument in left_out))


class CommandGroup(Generic[C]):
    """Commands that share their first word; the group named ``""`` holds commands of one word, such as ``/help``."""

    def __init__(self, name: str, summary: str = "", *, aliases: tuple[str, ...] = ()) -> None:
        self.name = name
        self.summary = summary
        self.aliases = aliases
        self.commands: list[Command[C]] = []

    @property
    def words(self) -> dict[str, Command[C]]:
        """What may follow the group's name: every proper name first, then the synonyms; ``""`` is nothing at all."""
        proper = {command.names[0]: command for command in self.commands}
        return proper | {name: command for command in self.commands for name in command.names[1:]}

    @property
    def default(self) -> Command[C] | None:
        """The command that an argument right after the group's name is for, if there is one."""
        return next((command for command in self.commands if command.default), None)

    @property
    def help_text(self) -> str:
        """What the group is about, and its commands in a line each."""
        return "\n".join([self.summary, "", *(f"{each.usage}: {each.documentation.summary}" for each in self.commands)])

    def command(
        self,
        name: str,
        *synonyms: str,
        default: bool = False,
        aliases: tuple[str, ...] = (),
        stoppable: bool = False,
        guesses: tuple[str, ...] = (),
    ) -> Callable[[Callable[Concatenate[C, P], R]], Callable[Concatenate[C, P], R]]:
        """Declare the decorated handler as a command of this group; the handler itself stays what it is.

        Raises:
            TypeError: the declaration has a mistake; the sentence says which.
        """

        def declare(handler: Callable[Concatenate[C, P], R]) -> Callable[Concatenate[C, P], R]:
            arguments, documentation = declared_arguments(handler), documentation_of(handler)
            names = (name, *synonyms)
            self.add(Command(self.name, names, handler, arguments, documentation, aliases, default, stoppable, guesses))
            return handler

        return declare

    def add(self, command: Command[C]) -> None:
        """Take in a command.

        Raises:
            TypeError: it has no name, or one that cannot be typed or is taken, or is a default that cannot be one.
        """
        if command.path == "/" or not all(map(_typeable, (*command.names, *command.aliases))):
            raise TypeError(f"{command.path}: a name is one word in small letters, and none is empty at the top level")
        _no_word_twice(command.path, (*self.words, *command.names))
        _no_word_twice(command.path, command.aliases)
        if command.default and (self.default or not command.arguments or not self.name):
            raise TypeError(
                f"{command.path}: a default belongs to a group, takes an argument and is the only one there"
            )
        self.commands.append(command)


class CommandRegistry(Generic[C]):
    """All commands: groups of one name merged, and the words that may stand at the beginning of a line.

    ``guesses`` maps the words that others expect there to the commands that do what is meant.
    """

    def __init__(self, groups: Iterable[CommandGroup[C]]) -> None:
        """Merge the groups.

        Raises:
            TypeError: two commands, groups or aliases go by the same word, or a group has two summaries.
        """
        self.groups = _merged(groups)
        self.words = _first_words(self.groups)
        self.guesses = {guess: command for command in self for guess in command.guesses}
        _no_word_twice("/", [*self.words, *(guess for command in self for guess in command.guesses)])

    def __iter__(self) -> Iterator[Command[C]]:
        """Go through every command, group by group in the order of declaration."""
        return (command for group in self.groups for command in group.commands)

    def menu(self) -> Report:
        """Every command in a line, a table for each group."""
        heads = ("Command", "What it does")
        return Report(tuple(Table(group.summary, heads, _menu_rows(group)) for group in self.groups))

    def markdown_table(self) -> str:
        """Every command as a Markdown table, for the documents."""
        rows = [f"| {_code(each.usage)} | {_description(each, _code)} |" for each in self]
        return "\n".join(["| command | what it does |", "|---|---|", *rows])


def documentation_of(handler: Callable[..., object]) -> Documentation:
    """Read a handler's docstring: its first line, the paragraphs up to the first section, the ``Examples:`` section.

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


def _typeable(word: str) -> bool:
    return word == word.casefold() and not any(map(str.isspace, word))


def _no_word_twice(what: str, words: Sequence[str]) -> None:
    repeated = [word for word, count in Counter(words).items() if count > 1]
    if repeated:
        raise TypeError(f"{what}: {repeated[0]!r} is declared twice")


def _merged(groups: Iterable[CommandGroup[C]]) -> tuple[CommandGroup[C], ...]:
    """Make one group of all that have the same name, in the order in which the names first come."""
    same_name: dict[str, list[CommandGroup[C]]] = {}
    for group in groups:
        same_name.setdefault(group.name, []).append(group)
    return tuple(_joined(name, parts) for name, parts in same_name.items())


def _joined(name: str, parts: Sequence[CommandGroup[C]]) -> CommandGroup[C]:
    summaries = {part.summary for part in parts} - {""}
    if len(summaries) != 1:
        raise TypeError(f"/{name}: a group needs one summary, these are {sorted(summaries)}")
    aliases = tuple(alias for part in parts for alias in part.aliases)
    joined: CommandGroup[C] = CommandGroup(name, summaries.pop(), aliases=aliases)
    for part in parts:
        for command in part.commands:
            joined.add(command)
    return joined


def _first_words(groups: Sequence[CommandGroup[C]]) -> dict[str, Command[C] | CommandGroup[C]]:
    """Map what may begin a line to what it names: proper names first, then synonyms and aliases."""
    named: list[tuple[str, Command[C] | CommandGroup[C]]] = []
    for group in groups:
        named += group.words.items() if not group.name else [(group.name, group)]
    for group in groups:
        named += [(alias, group) for alias in group.aliases]
        named += [(alias, command) for command in group.commands for alias in command.aliases]
    _no_word_twice("/", [word for word, _ in named])
    return dict(named)


def _menu_rows(group: CommandGroup[C]) -> tuple[tuple[str, str], ...]:
    return tuple((command.usage, _description(command, str)) for command in group.commands)


def _description(command: Command[C], drawn: Callable[[str], str]) -> str:
    also = ", ".join(map(drawn, command.other_names))
    return command.documentation.summary + (f" Also {also}." if also else "")


def _code(text: str) -> str:
    """Mark as code within a Markdown table, where a bar would end the cell even in code."""
    return "`" + text.replace("|", r"\|") + "`"
