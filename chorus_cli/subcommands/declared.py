"""Commands of the chat, run from a shell: ``chorus memory list`` and ``/memory list`` have one declaration."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import get_args

from chorus_cli.app import opened
from chorus_cli.catalogue import goes_on, registry
from chorus_cli.core.errors import CommandError
from chorus_cli.framework.arguments import Argument
from chorus_cli.framework.registry import Command, CommandGroup
from chorus_cli.framework.replies import Question
from chorus_cli.services import Services
from chorus_cli.subcommands.argument_parser import (
    VALUED,
    Parser,
    add_common,
    add_json,
    add_places,
    add_thread,
    first_word,
    path,
)
from chorus_cli.subcommands.conventions import go_where_told, joined_text, options, screens
from chorus_cli.terminal.one_command import Manner, carry_out

_PATHS = frozenset({"FILE", "DIR"})
_WORD, _OPTION = "word ", "option "
"""Prefixes of the names of arguments in a parsed command line."""


def parsed(
    top: Parser,
    others: Sequence[str],
    name: str,
    before: Sequence[str],
    after: Sequence[str],
    add_beside: Callable[[str, argparse._SubParsersAction[Parser]], None],
) -> tuple[Parser, argparse.Namespace, list[str]]:
    """Parse the arguments of the command or group ``name``. ``top`` refuses unknown names, maybe with a suggestion."""
    entry = registry().words.get(name.casefold())
    commands = _offered(entry) if entry else ()
    if entry is not None and not commands:
        top.error(f"{name!r} is a command of the chat: run chorus, then /{name}.")
    if entry is None:
        names = (name for name, entry in registry().words.items() if _offered(entry))
        near = get_close_matches(name, (*names, *others), 1)
        meant = f"; did you mean {near[0]}?" if near else ""
        top.error(f"argument COMMAND: there is no command {name!r}{meant}")
    if isinstance(entry, Command):
        return _parsed(entry, name, [*before, *after])
    group = _add_group(Parser(prog=f"chorus {entry.name}", description=entry.summary), entry, add_beside)
    after = [part for word in after for part in _parts(word, entry)]
    own = [each.spelling for command in commands for each in command.options if not each.is_flag]
    position = first_word(after, (*VALUED, *own))
    word = None if position is None else after[position].casefold()
    if position is not None and word in entry.words and entry.words[word] in commands:
        return _parsed(entry.words[word], f"{name} {word}", [*before, *after[:position], *after[position + 1 :]])
    if {"-h", "--help"} & {*after}:
        group.print_help()
        group.exit()
    chosen = entry.default if word is not None else entry.words.get("")
    if chosen is None:
        told = [each.names[0] for each in commands if each.names[0] and each.listed != "nowhere"]
        beside = [other.removeprefix(f"{entry.name} ") for other in others if other.startswith(f"{entry.name} ")]
        listed = ", ".join([*told, *beside])
        if word is None:
            raise CommandError(f"{group.prog} needs one of: {listed}.")
        group.error(f"invalid choice: {word!r} (choose from {listed})")
    return _parsed(chosen, name, [*before, *after])


def _parts(word: str, group: CommandGroup[Services]) -> list[str]:
    """Split a word such as ``-4h`` into the name of the command for its sign, and the rest; keep any other word."""
    command = group.words.get(word[:1]) if word[1:2].isdigit() else None
    return [word] if command is None else [command.names[0], word[1:]]


def add_to(
    commands: argparse._SubParsersAction[Parser],
    add_beside: Callable[[str, argparse._SubParsersAction[Parser]], None],
) -> None:
    """Add a parser for each command and each group; ``add_beside`` adds other subcommands to a group, by its name."""
    for group in registry().groups:
        if group.name and _offered(group):
            told = f"{group.summary[0].lower()}{group.summary[1:].removesuffix('.')}"
            _add_group(commands.add_parser(group.name, help=told, description=group.summary), group, add_beside)
        for command in _offered(group):
            name = command.aliases[:1] if group.name else command.names[:1]
            if name and command.listed != "nowhere" and name[0] not in commands.choices:
                _add_command(commands, name[0], command)


async def carry_out_declared(chosen: argparse.Namespace, environment: Mapping[str, str]) -> int:
    """Carry out a command of the chat, and return the exit code."""
    command: Command[Services] = chosen.declared
    given, values = options(chosen, environment), vars(chosen)
    words = [word for each in command.arguments for word in _as_list(values[_key(each)])] + chosen.more
    of_options = {each.option: _text(values[key]) for each in command.options if (key := _key(each)) in values}
    if command.arguments and _metavar(command.arguments[-1]) not in _PATHS:
        joined_text(words)
    if "persona" in {each.option for each in command.options}:
        given = given._replace(persona=None)
    async with opened(given, environment) as app:
        bound = command.bound_to(words, of_options, app.clock.now())
        await app.current.settle()
        answers, asides = screens(app)
        await go_where_told(app, chosen, asides, goes_on=goes_on(command))
        manner = Manner(as_json=chosen.json, yes="yes" in chosen, may_ask=True)
        with app.notifier.heard_by(asides.notice, lambda _sentence: None):
            code = await carry_out(bound, app.services(), answers, asides, manner)
        for stopped in await app.break_off():
            asides.notice(stopped)
    return code


def _offered(entry: Command[Services] | CommandGroup[Services]) -> tuple[Command[Services], ...]:
    """Return the commands that make sense from a shell."""
    commands = (entry,) if isinstance(entry, Command) else entry.commands
    return tuple(command for command in commands if not command.only_in_chat)


def _parsed(
    command: Command[Services], name: str, arguments: Sequence[str]
) -> tuple[Parser, argparse.Namespace, list[str]]:
    known = Parser(prog=f"chorus {name}")
    _fill(known, command)
    end = arguments.index("--") if "--" in arguments else len(arguments)
    chosen, unknown = known.parse_known_args(arguments[:end])
    chosen.declared = command
    # Words between two options, and all words after "--", are arguments too, though argparse does not take them.
    takes_more = bool(command.arguments) and not any(word.startswith("-") for word in unknown)
    more = [*unknown, *arguments[end + 1 :]]
    chosen.more = more if takes_more else []
    return known, chosen, [] if takes_more else more


def _add_group(
    parser: Parser,
    group: CommandGroup[Services],
    add_beside: Callable[[str, argparse._SubParsersAction[Parser]], None],
) -> Parser:
    alone = group.words.get("") or group.default
    if alone is not None:
        _fill(parser, alone, words=())
        parser.description = f"{group.summary} {alone.documentation.summary}"
    commands = parser.add_subparsers(metavar="COMMAND", title="commands", required=alone is None)
    for command in _offered(group):
        if command.names[0] and command.listed != "nowhere":
            _add_command(commands, command.names[0], command)
    add_beside(group.name, commands)
    return parser


def _add_command(commands: argparse._SubParsersAction[Parser], name: str, command: Command[Services]) -> None:
    summary = command.documentation.summary.replace("%", "%%")
    _fill(commands.add_parser(name, help=f"{summary[0].lower()}{summary[1:].removesuffix('.')}"), command)


def _fill(parser: Parser, command: Command[Services], words: Sequence[Argument] | None = None) -> None:
    """Add a command's options to its parser, and the arguments ``words``, by default all arguments of the command."""
    words = command.arguments if words is None else words
    documentation = command.documentation
    parser.description = "\n\n".join(filter(None, (documentation.summary, documentation.details)))
    own = {each.option for each in command.options}
    if "persona" in own:
        add_places(parser)
        parser.add_argument("--model", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    else:
        add_common(parser, "the persona to act for; otherwise the last one", "the model to use in this run")
        add_thread(parser, "act on")
    for argument in (*words, *command.options):
        _add_argument(parser, argument, is_last=argument in command.arguments[-1:])
    add_json(parser)
    if _may_ask(command):
        parser.add_argument("--yes", action="store_true", default=argparse.SUPPRESS, help="do not ask")


def _add_argument(parser: Parser, argument: Argument, *, is_last: bool) -> None:
    parameter, told = argument.parameter, argument.parameter.help.replace("%", "%%")
    kind = path if _metavar(argument) in _PATHS else None
    if not argument.option:
        several = "*" if is_last else "?"
        parser.add_argument(_key(argument), metavar=_metavar(argument), nargs=several, type=kind or str, help=told)
    elif argument.is_flag:
        parser.add_argument(
            argument.spelling, dest=_key(argument), action="store_const", const="", default=argparse.SUPPRESS, help=told
        )
    else:
        parser.add_argument(
            argument.spelling,
            dest=_key(argument),
            action="append" if parameter.repeats else "store",
            metavar=parameter.name,
            choices=[*map(str, parameter.choices)] or None,
            type=kind or str,
            default=argparse.SUPPRESS,
            help=told,
        )


def _key(argument: Argument) -> str:
    """Return the name of an argument in a parsed command line."""
    return f"{_OPTION}{argument.option}" if argument.option else f"{_WORD}{argument.parameter.name}"


def _metavar(argument: Argument) -> str:
    """Return the first word of a parameter's name in capitals, as a shell's usage lines show it: ``FILE``."""
    return argument.parameter.name.partition(" ")[0].strip("…:]").upper()


def _text(value: str | list[str]) -> str:
    return "\n".join(value) if isinstance(value, list) else value


def _as_list(value: str | list[str] | None) -> list[str]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _may_ask(command: Command[Services]) -> bool:
    answer = inspect.signature(command.handler, eval_str=True).return_annotation
    return answer is Question or Question in get_args(answer)
