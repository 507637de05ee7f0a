"""The arguments of commands that only a shell needs. `declared`, which loads slowly, adds the chat's commands."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from chorus_cli import __version__
from chorus_cli.core.text.phrases import enumerated
from chorus_cli.settings.rules.table import BY_KEY
from chorus_cli.subcommands.argument_parser import (
    VALUED,
    Parser,
    add_common,
    add_json,
    add_places,
    add_thread,
    answer,
    first_word,
    number,
    path,
    server,
    thread_number,
)

SHELLS = ("bash", "fish", "zsh")
"""The shells that have a completion script."""

# In the help of ask, explanations begin in this column; the explanation of a longer option begins below the option.
_HELP_COLUMN = 15
_EFFORTS = BY_KEY["effort"].choices


class _Top(Parser):
    """Parses a line without a command; its help and its usage list all commands."""

    def format_help(self) -> str:
        return parser().format_help()

    def format_usage(self) -> str:
        return parser().format_usage()


class _Version(argparse.Action):
    """Prints the version and exits."""

    def __call__(self, parser: argparse.ArgumentParser, *_parsed: object) -> None:
        answer(f"chorus {__version__}\n")
        parser.exit()


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse a command line. Options may come before or after the command."""
    position = first_word(arguments, VALUED)
    before, name = arguments[:position], None if position is None else arguments[position]
    after = () if position is None else arguments[position + 1 :]
    if (word := first_word(after, VALUED)) is not None and f"{name} {after[word]}" in SUBCOMMANDS:
        name, after = f"{name} {after[word]}", [*after[:word], *after[word + 1 :]]
    if name == "help":
        return parsed([*before, *after, "--help"])
    if name is None or name in SUBCOMMANDS:
        known = _top() if name is None else filled(Parser(prog=f"chorus {name}"), SUBCOMMANDS[name])
        chosen, unknown = known.parse_known_args([*before, *after])
        chosen.carried_out_by = SUBCOMMANDS[name].carried_out_by if name else "chat.chat"
        # argparse leaves out the words of a message between two options.
        if "text" in chosen and not any(word.startswith("-") for word in unknown):
            chosen.text, unknown = [*chosen.text, *unknown], []
    else:
        from chorus_cli.subcommands import declared

        known, chosen, unknown = declared.parsed(_top(), [*SUBCOMMANDS], name, before, after, _beside)
        chosen.carried_out_by = "declared.carry_out_declared"
    if unknown:
        is_known = {*unknown}.isdisjoint(before) or not {*unknown}.isdisjoint(VALUED)
        refusing = known if is_known else _top()
        refusing.error(f"unrecognized arguments: {shlex.join(unknown)}")
    if "private" in chosen and ("thread" in chosen or "goes_on" in chosen):
        known.error("--private and --thread or -c cannot be combined: threads are in the log")
    if "private" in chosen and "log" in chosen:
        known.error("--private and --log cannot be combined: a private chat has no log")
    return chosen


def parser() -> Parser:
    """Return the parser of the whole command line. Help, completion scripts and manual page are made from it."""
    from chorus_cli.subcommands import declared

    known = _add_top(Parser(prog="chorus", description="A terminal chat in which the memory is yours."))
    commands = known.add_subparsers(dest="command", metavar="COMMAND", title="commands; without one the chat opens")
    _beside("", commands)
    declared.add_to(commands, _beside)
    return known


def _beside(group: str, commands: argparse._SubParsersAction[Parser]) -> None:
    """Add the subcommands in a group of the chat's commands; with an empty name, the subcommands outside any group."""
    for words, subcommand in SUBCOMMANDS.items():
        of, _, name = words.rpartition(" ")
        if of == group:
            filled(commands.add_parser(name, help=subcommand.help), subcommand)


def _top() -> Parser:
    return _add_top(_Top(prog="chorus"))


def _add_top(parser: Parser) -> Parser:
    add_common(parser, _TALKED_TO, _ANSWERING)
    _add_private(parser)
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    return parser


_TALKED_TO = "the persona to talk to; otherwise the last one"
_ANSWERING = "the model that answers, as litellm names it, for this run"


class Subcommand(NamedTuple):
    """A command that only a shell needs, alone or in a group of the chat's commands (``mcp serve``).

    ``persona`` and ``model`` are the help for the options with these names. Without the first, the command has neither.
    """

    carried_out_by: str
    help: str
    add: Callable[[Parser], None] = lambda _parser: None
    description: str = ""
    persona: str = ""
    model: str = argparse.SUPPRESS


def filled(parser: Parser, subcommand: Subcommand) -> Parser:
    """Add the arguments of a subcommand to its parser, and return the parser."""
    parser.description = subcommand.description or None
    if subcommand.persona:
        add_common(parser, subcommand.persona, subcommand.model)
    else:
        add_places(parser)
    subcommand.add(parser)
    return parser


def _add_private(parser: argparse.ArgumentParser) -> None:
    told = "keep nothing: log, drafts and history are in memory only"
    parser.add_argument("--private", action="store_true", default=argparse.SUPPRESS, help=told)


def _add_ask(ask: Parser) -> None:
    ask.formatter_class = partial(argparse.HelpFormatter, max_help_position=_HELP_COLUMN)
    _add_private(ask)
    add_json(
        ask,
        "print one JSON value: reply, usage, model, thread, seconds; thoughts, if there are any; status, if the "
        "reply broke off",
    )
    add_thread(ask, "go on in", has_own=True)
    told = f"how much the model thinks: {enumerated(_EFFORTS, 'or')}; otherwise as in the settings"
    ask.add_argument("--effort", metavar="E", choices=_EFFORTS, default=argparse.SUPPRESS, help=told)
    told = "attach a picture, a PDF or a text; may be given several times"
    ask.add_argument("-a", "--attach", metavar="FILE", type=path, action="append", default=[], help=told)
    ask.add_argument("text", metavar="TEXT", nargs="*", help="the message, or a command such as /context")


def _add_log(log: Parser) -> None:
    log.add_argument("--thread", metavar="N", type=thread_number, dest="of_thread", help="only this thread")
    log.add_argument("--since", metavar="T", help="only messages since T, such as 24h or 3 days")
    log.add_argument("-n", dest="newest", metavar="N", type=number, help="only the newest N messages")
    log.add_argument("--thoughts", action="store_true", help="also print the thoughts of the models")
    copying = log.add_mutually_exclusive_group()
    told = "instead copy this machine's log to a PostgreSQL server; a later copy adds what was said since"
    copying.add_argument("--copy-to", metavar="URL", type=server, help=told)
    copying.add_argument("--copy-from", metavar="URL", type=server, help="instead copy a server's log to this machine")
    add_json(log)


def _add_backup(backup: Parser) -> None:
    told = "a new file or a folder; otherwise the folder of the daily backups"
    backup.add_argument("file", metavar="FILE", nargs="?", type=path, help=told)
    add_json(backup)


def _add_restore(restore: Parser) -> None:
    restore.add_argument("file", metavar="FILE", type=path, help="a backup, or a copy of chorus.db")
    restore.add_argument("--yes", action="store_true", help="do not ask")


def _add_shell(completion: Parser) -> None:
    completion.add_argument("shell", metavar="SHELL", choices=SHELLS, help="bash, fish or zsh")


SUBCOMMANDS = {
    "ask": Subcommand(
        "ask.ask",
        "ask once; standard input is appended",
        _add_ask,
        "Ask once, in a thread of its own: the reply goes to standard output, everything else to standard error. The "
        "exit code is 1 if the reply broke off or nothing could be asked.",
        _TALKED_TO,
        _ANSWERING,
    ),
    "log": Subcommand(
        "log.log", "print a persona's messages", _add_log, persona="messages of this persona; otherwise of the last one"
    ),
    "backup": Subcommand(
        "backup.backup",
        "copy everything to a file",
        _add_backup,
        "Copy the log, personas, sessions, settings, commands and attachments to a new file, even while Chorus runs. "
        "The chat makes a backup each day by itself; seven daily and four weekly backups are kept.",
    ),
    "restore": Subcommand(
        "backup.restore",
        "bring a backup back",
        _add_restore,
        "Show the contents of a backup. If you agree, back up the present log, personas, sessions and settings, and "
        "put the backup in their place. No other Chorus may run meanwhile.",
    ),
    "doctor": Subcommand(
        "doctor.doctor",
        "examine everything, and repair it",
        partial(add_json, told="as one JSON value; nothing is repaired"),
        "Examine the log, its index and texts, files, permissions, settings, backups, disk space and the connection to "
        "the model; at a terminal, offer to repair the faults. The exit code is 1 if a fault remains.",
        "the persona whose model is tried; otherwise the last one",
        "the model to try",
    ),
    "mcp serve": Subcommand(
        "mcp.serve",
        "let another program read the log, over MCP",
        description="Let Claude Code, Cursor and the like search and read what was said in Chorus, over "
        "standard input and output. They change nothing. They see all personas that are not archived, or only "
        'those that "mcp_serve": {"personas": ["frodo"]} in config.jsonc names.',
    ),
    "paths": Subcommand("shell_files.show_paths", "print the folders and files that Chorus uses", add_json),
    "schema": Subcommand("shell_files.show_schema", "print the JSON Schema of system.jsonc"),
    "completion": Subcommand("shell_files.show_completion", "print the completion script of a shell", _add_shell),
}
"""The commands that only a shell needs."""
