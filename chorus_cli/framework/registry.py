"""Commands. A decorator declares each command by its name and by the signature and docstring of its handler.

A module fills a group with commands, and a registry is built from groups, so no module is imported for a side effect.
``C`` is the type of a handler's first argument.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from typing import Concatenate, Generic, Literal, ParamSpec, TypeVar

from chorus_cli.core.errors import CommandError
from chorus_cli.core.text.phrases import enumerated, quoted
from chorus_cli.framework.arguments import (
    Argument,
    Documentation,
    declared_arguments,
    documentation_of,
    grouped,
    without_options,
)
from chorus_cli.framework.replies import Answer

C = TypeVar("C")
P = ParamSpec("P")
Outcome = Awaitable[Answer]
R = TypeVar("R", bound=Outcome)
Listed = Literal["everyday", "topic", "nowhere"]
"""Where the help lists a command: on the first screen and under a topic, only under a topic, or nowhere."""


@dataclass(frozen=True, slots=True)
class Command(Generic[C]):
    """One command: its names, arguments, documentation and handler.

    ``names`` are its names within the group, the primary name first; the name ``""`` means the group's word alone.
    ``aliases`` are its names without the group's word. ``default`` means that the group's word followed by an argument
    runs this command. A ``stoppable`` command may take long, and leaves nothing half-done when it is cancelled.
    ``guesses`` are words for which Chorus suggests the command. A command that is ``only_in_chat`` makes no sense in a
    shell. The help lists a command under its ``topic``, and an everyday command also on the first screen; see `Listed`.
    """

    group: str
    names: tuple[str, ...]
    handler: Callable[Concatenate[C, ...], Outcome]
    arguments: tuple[Argument, ...]
    options: tuple[Argument, ...]
    documentation: Documentation
    aliases: tuple[str, ...] = ()
    default: bool = False
    stoppable: bool = False
    guesses: tuple[str, ...] = ()
    only_in_chat: bool = False
    topic: str = ""
    listed: Listed = "topic"

    @property
    def summary(self) -> str:
        """The line for menus."""
        return self.documentation.summary

    @property
    def path(self) -> str:
        """The full name, as the user types it: ``/context set``."""
        return "/" + " ".join(word for word in (self.group, self.names[0]) if word)

    @property
    def shown(self) -> str:
        """The one name that help and completion show: ``/new``, or ``/context`` for ``/context set``."""
        if self.default:
            return f"/{self.group}"
        return f"/{self.aliases[0]}" if self.aliases and self.group and self.names[0] else self.path

    @property
    def usage(self) -> str:
        """The name that is shown, with the arguments: ``/context <time>``, or ``[time]`` for an optional argument."""
        return " ".join((self.shown, *(argument.usage for argument in (*self.arguments, *self.options))))

    @property
    def brief(self) -> str:
        """The name that is shown, with the required arguments: ``/persona <name>``."""
        return " ".join((self.shown, *(argument.usage for argument in self.arguments if argument.required)))

    @property
    def help_text(self) -> str:
        """The whole help: usage with arguments, summary, details, examples."""
        documentation = self.documentation
        arguments = [f"{argument.usage}: {argument.parameter.help}" for argument in (*self.arguments, *self.options)]
        paragraphs = [
            "\n".join([self.usage, *arguments]),
            documentation.summary,
            documentation.details,
            "\n".join(["Examples:", *(f"  {example}" for example in documentation.examples)]),
        ]
        return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)

    def bound(self, text: str, now: datetime) -> Bound[C]:
        """Parse the text after the name; errors name the command as the help does."""
        rest, given = without_options(self.options, text)
        if rest and not self.arguments:
            only = f"only {enumerated([each.spelling for each in self.options])}, not {quoted(rest)}"
            raise CommandError(f"{self.shown} takes {only if self.options else 'no argument'}.")
        # Each argument takes one word, and the last argument takes the rest.
        words = rest.strip().split(None, len(self.arguments) - 1) if self.arguments else []
        return self._bound(words, given, now, self.shown)

    def bound_to(self, words: Sequence[str], given: Mapping[str, str], now: datetime) -> Bound[C]:
        """Parse words from a shell; ``given`` has the values of options by their keywords."""
        *single, last = self.arguments or (None,)
        given_words = list(words[: len(single)])
        if last is not None and (rest := words[len(single) :]):
            given_words.append(last.parameter.typed(rest))
        return self._bound(given_words, given, now, f"chorus {self.path[1:]}", "chorus ")

    def _bound(
        self, words: Sequence[str], given: Mapping[str, str], now: datetime, called: str, lead: str = "/"
    ) -> Bound[C]:
        left_out = self.arguments[len(words) :]
        for argument in left_out:
            if argument.required:
                example = f"{lead}{self.documentation.examples[0][1:]}"
                raise CommandError(f"{called} needs {argument.usage}, for example: {example}")
        read = [argument.parameter.parse(word, now) for argument, word in zip(self.arguments, words, strict=False)]
        options = {each.option: each.default for each in self.options}
        for option in self.options:
            if option.option in given:
                options[option.option] = _value_of(option, given[option.option], now)
        return Bound(self, (*read, *(argument.default for argument in left_out)), options)


@dataclass(frozen=True, slots=True)
class Bound(Generic[C]):
    """A command with its parsed arguments and options, ready to run."""

    command: Command[C]
    arguments: tuple[object, ...]
    options: Mapping[str, object] = field(default_factory=dict)

    async def run(self, context: C) -> Answer:
        """Run the command."""
        return await self.command.handler(context, *self.arguments, **grouped(self.command.handler, self.options))


def _value_of(option: Argument, text: str, now: datetime) -> object:
    if not text and not option.is_flag:
        raise CommandError(f"{option.spelling} needs {option.parameter.name}: {option.parameter.help}.")
    choices = [*map(str, option.parameter.choices)]
    if choices and text not in choices:
        raise CommandError(f"{option.spelling} takes {enumerated(choices, 'or')}, not {quoted(text)}.")
    try:
        return option.parameter.parse(text, now)
    except CommandError as error:
        raise CommandError(f"{option.spelling}: {error}") from error


class CommandGroup(Generic[C]):
    """Commands that share their first word; the group named ``""`` has commands of one word, such as ``/help``.

    The help lists the commands under ``topic``, by default the group's name.
    """

    def __init__(
        self, name: str, summary: str = "", *, aliases: Sequence[str] = (), only_in_chat: bool = False, topic: str = ""
    ) -> None:
        self.name = name
        self.topic = topic or name
        self.summary = summary
        self.aliases = aliases
        self.only_in_chat = only_in_chat
        self.commands: list[Command[C]] = []
        self.default: Command[C] | None = None
        """The command that takes an argument right after the group's name; ``None`` if there is no such command."""

    @property
    def words(self) -> dict[str, Command[C]]:
        """Commands by the word after the group's name, primary names first; ``""`` if no word follows it."""
        proper = {command.names[0]: command for command in self.commands}
        return proper | {name: command for command in self.commands for name in command.names[1:]}

    @property
    def guesses(self) -> dict[str, Command[C]]:
        """Commands by the unknown words for which Chorus suggests them."""
        return {guess: command for command in self.commands for guess in command.guesses}

    def command(
        self,
        name: str,
        *synonyms: str,
        default: bool = False,
        aliases: tuple[str, ...] = (),
        stoppable: bool = False,
        guesses: tuple[str, ...] = (),
        listed: Listed = "topic",
    ) -> Callable[[Callable[Concatenate[C, P], R]], Callable[Concatenate[C, P], R]]:
        """Declare the decorated handler as a command of this group; the handler itself is returned unchanged."""

        def declare(handler: Callable[Concatenate[C, P], R]) -> Callable[Concatenate[C, P], R]:
            arguments, options = declared_arguments(handler)
            names, documentation = (name, *synonyms), documentation_of(handler)
            command = Command(self.name, names, handler, arguments, options, documentation, aliases, default)
            command = replace(command, stoppable=stoppable, guesses=guesses, only_in_chat=self.only_in_chat)
            self.add(replace(command, topic=self.topic, listed=listed))
            return handler

        return declare

    def add(self, command: Command[C]) -> None:
        """Add a command."""
        self.commands.append(command)
        self.default = command if command.default else self.default


class CommandRegistry(Generic[C]):
    """All commands. ``groups`` has one group for each name. ``words`` maps a line's first word to a command or a group.

    In ``words``, the everyday commands come first. ``guesses`` maps unknown words to commands to suggest. ``topics``
    has the listed commands of each topic in the order of declaration, and ``summaries`` has a sentence for each topic.
    A line whose first word has a colon runs the command ``with_colon``, whose first argument is such a word.
    """

    def __init__(self, groups: Iterable[CommandGroup[C]], own: CommandGroup[C] | None = None) -> None:
        """Merge the groups and the user's ``own`` group; ``guesses`` does not have the names of own commands."""
        declared = (*groups, *([own] if own else []))
        self.summaries = {group.topic: group.summary for group in reversed(declared) if group.summary}
        listed = [command for group in declared for command in group.commands if command.listed != "nowhere"]
        self.topics = {
            topic: [each for each in listed if each.topic == topic]
            for topic in dict.fromkeys(each.topic for each in listed)
        }
        self.everyday = [each for each in listed if each.listed == "everyday"]
        self.groups = _merged(declared)
        places = {each.shown[1:].split()[0]: place for place, each in enumerate(self.everyday)}
        words = _first_words(self.groups).items()
        self.words = dict(sorted(words, key=lambda entry: places.get(entry[0], len(self.everyday))))
        self.with_colon = next((each for each in self if each.arguments and ":" in each.arguments[0].usage), None)
        names = own.words if own else {}
        self.guesses = {guess: command for command in self for guess in command.guesses if guess not in names}

    def __iter__(self) -> Iterator[Command[C]]:
        """Iterate over all commands, group by group in the order of declaration."""
        return (command for group in self.groups for command in group.commands)


def _merged(groups: Iterable[CommandGroup[C]]) -> tuple[CommandGroup[C], ...]:
    """Merge the groups of the same name, in the order of first appearance; only one of them has a summary."""
    same_name: dict[str, list[CommandGroup[C]]] = {}
    for group in groups:
        same_name.setdefault(group.name, []).append(group)
    merged: list[CommandGroup[C]] = []
    for name, parts in same_name.items():
        summary = "".join(part.summary for part in parts) if name else ""
        aliases = tuple(alias for part in parts for alias in part.aliases)
        merged.append(CommandGroup(name, summary, aliases=aliases, topic=parts[0].topic))
        for command in chain.from_iterable(part.commands for part in parts):
            merged[-1].add(command)
    return tuple(merged)


def _first_words(groups: Sequence[CommandGroup[C]]) -> dict[str, Command[C] | CommandGroup[C]]:
    """Return commands and groups by the first word of a line: primary names first, then synonyms and aliases."""
    named: list[tuple[str, Command[C] | CommandGroup[C]]] = []
    for group in groups:
        named += group.words.items() if not group.name else [(group.name, group)]
    for group in groups:
        named += [(alias, group) for alias in group.aliases]
        named += [(alias, command) for command in group.commands for alias in command.aliases]
    return dict(named)
