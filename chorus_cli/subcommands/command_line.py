"""The arguments of the outer command line."""

from __future__ import annotations

import argparse
import shlex
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from chorus_cli.core.text.phrases import enumerated
from chorus_cli.settings.rules.table import BY_KEY
from chorus_cli.subcommands.argument_parser import Parser, Version

if TYPE_CHECKING:
    from collections.abc import Sequence

SHELLS = ("bash", "fish", "zsh")
"""The shells that have a completion script."""

# One option of ask is long; the help of the others stands beside them all the same.
_HELP_COLUMN = 15
_LARGEST_ID = 2**63 - 1
_EFFORTS = BY_KEY["effort"].choices


_PURGED = (
    "message N...",
    "thread N",
    "persona NAME",
    "since T [until T]",
    "search WORDS...",
    "backups",
)
"""The subjects of a purge, each with its words."""
_PURGE_USAGE = f"""%(prog)s [-h] [--persona P] [--home DIR] [--dry-run] [--backups]
                    [--json] [--yes]
                    {" | ".join(_PURGED[:4])}
                    | {" | ".join(_PURGED[4:])}"""


class _Told(NamedTuple):
    """The help of a subcommand on the data of one persona or of all, in a line, of its ``--persona``, and at length."""

    line: str
    persona: str
    description: str | None = None


_ABOUT_PERSONAS = {
    "log": _Told("print a persona's messages", "whose messages; otherwise those of the last persona"),
    "search": _Told(
        "search all messages",
        "only the messages of this persona",
        "Search the messages of every persona, or of P alone. All words must occur; an argument with blanks is a "
        "phrase; begin* is how a word begins. The exit code is 1 when nothing is found.",
    ),
    "cost": _Told(
        "show the cost of replies and summaries",
        "only those of this persona",
        "Show the cost of replies and summaries, of all personas or of P alone, as far as prices are known: from the "
        "tokens that providers reported and litellm's prices.",
    ),
    "memory": _Told("show what is remembered", "whose memory; otherwise that of the last persona"),
    "import": _Told(
        "take in conversations of other programs",
        "who gets the conversations; otherwise the last persona, or the one that a file names",
        "Take in conversations of other programs, which are recognised by their content. Each becomes a "
        "closed thread with its own times; what is in the log already is not added again; one /context undo takes all "
        "of it back. A character card makes a persona.",
    ),
    "export": _Told(
        "write every conversation to a file of its own",
        "only the conversations of this persona",
        "Write every conversation to a file of its own, with its times, models, branches and attachments. "
        "chorus import reads them back exactly.",
    ),
    "purge": _Told(
        "overwrite messages for good",
        "only what was said to this persona, or whose thread it is",
        "Show messages, with all that repeats them or was made of them, and overwrite them if you agree: "
        f"no undo brings them back. SUBJECT and WORDS are {', '.join(_PURGED[:-1])}, or {_PURGED[-1]}, which rewrites "
        "those that hold texts purged before.",
    ),
}


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse a command line; the options of ``ask`` stand before or after it, which argparse cannot tell apart."""
    known = parser()
    chosen, unknown = known.parse_known_args(arguments)
    if unknown:
        _refuse_unknown(known, chosen.command, arguments, unknown)
    given = [f"--{name}" for name in ("new", "thread", "effort", "json", "attach") if f"ask_{name}" in chosen]
    if given and chosen.command != "ask":
        known.error(f"{given[0]} belongs to ask")
    if {"--new", "--thread"} <= {*given}:
        known.error("--new and --thread do not go together")
    _check_private(known, chosen, given)
    return chosen


def _refuse_unknown(known: Parser, command: str | None, arguments: Sequence[str], unknown: Sequence[str]) -> NoReturn:
    """Refuse unknown arguments with the usage of the subcommand that they stand behind, if they do."""
    before = arguments[: arguments.index(command)] if command else arguments
    refusing = known if command is None or not {*unknown}.isdisjoint(before) else known.subcommands[command]
    refusing.error(f"unrecognized arguments: {shlex.join(unknown)}")


def parser() -> Parser:
    """Return the parser of the outer command line."""
    common = _options(
        "the persona to talk to; otherwise the last one", "the model that answers, as litellm names it, for this run"
    )
    unused = _options()
    parser = Parser(prog="chorus", parents=[common], description="A chat in the terminal in which the memory is yours.")
    _add_private(parser)
    parser.add_argument("--version", action=Version, nargs=0, help="show program's version number and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands; without one the chat opens")
    parser.subcommands = commands.choices

    _add_ask_options(parser, argparse.SUPPRESS)
    _add_ask(commands, common)
    context = commands.add_parser("context", parents=[common], help="show the request that would be sent now")
    context.add_argument("--json", action="store_true", help="as one JSON value")
    _add_readers(commands)
    _add_import(commands)
    _add_upkeep(commands, unused)
    _add_purge(commands)
    personas = commands.add_parser("personas", parents=[unused], help="list the personas")
    personas.add_argument("--json", action="store_true", help="as one JSON value")
    commands.add_parser("schema", parents=[unused], help="print the JSON Schema of system.jsonc")
    completion = commands.add_parser("completion", parents=[unused], help="print the completion script of a shell")
    completion.add_argument("shell", metavar="SHELL", choices=SHELLS, help="bash, fish or zsh")
    commands.add_parser("paths", parents=[unused], help="print the folders and files of Chorus")
    return parser


def _add_ask(commands: argparse._SubParsersAction[Parser], common: Parser) -> None:
    ask = commands.add_parser(
        "ask",
        parents=[common],
        help="ask once; standard input is appended",
        formatter_class=partial(argparse.HelpFormatter, max_help_position=_HELP_COLUMN),
        description="Ask once: the reply goes to standard output, everything else to standard error. The exit code is "
        "1 if the reply broke off or nothing could be asked.",
    )
    _add_private(ask)
    _add_ask_options(ask)
    ask.add_argument("text", metavar="TEXT", nargs="*", help="the message, or a command such as /context")


def _add_private(parser: argparse.ArgumentParser) -> None:
    told = "keep nothing: log, drafts and history are in memory only"
    parser.add_argument("--private", action="store_true", default=argparse.SUPPRESS, help=told)


def _check_private(known: argparse.ArgumentParser, chosen: argparse.Namespace, given: Sequence[str]) -> None:
    """Refuse ``--private`` where something is to be read from the log or kept in it."""
    if "private" not in chosen:
        return
    if chosen.command not in {None, "ask"}:
        known.error("--private goes with the chat and with ask only")
    if "--thread" in given:
        known.error("--private and --thread do not go together: threads are in the log")


def _add_ask_options(parser: argparse.ArgumentParser, hidden: str = "") -> None:
    """Add the options of ``ask``; each has a name of its own in the result, because other commands have some too."""
    own = {
        "new": "in a thread of its own, closed at the end; the next run goes on where it would have",
        "json": "print one JSON value: reply, usage, model, thread, seconds; thoughts, if there are any; status, if it "
        "broke off",
    }
    for name, told in own.items():
        parser.add_argument(
            f"--{name}", dest=f"ask_{name}", action="store_true", default=argparse.SUPPRESS, help=hidden or told
        )
    parser.add_argument(
        "--thread",
        dest="ask_thread",
        metavar="N",
        type=_thread_number,
        default=argparse.SUPPRESS,
        help=hidden or "in this open thread; otherwise in the one last used",
    )
    parser.add_argument(
        "--effort",
        dest="ask_effort",
        metavar="E",
        choices=_EFFORTS,
        default=argparse.SUPPRESS,
        help=hidden or f"how much the model thinks: {enumerated(_EFFORTS, 'or')}; otherwise as set",
    )
    parser.add_argument(
        "-a",
        "--attach",
        dest="ask_attach",
        metavar="FILE",
        type=_path,
        action="append",
        default=argparse.SUPPRESS,
        help=hidden or "attach a picture, a PDF or a text; may be given several times",
    )


def _add_upkeep(commands: argparse._SubParsersAction[Parser], unused: Parser) -> None:
    backup = commands.add_parser(
        "backup",
        parents=[unused],
        help="copy everything to a file",
        description="Copy the log, personas, sessions, settings and attachments to a new file, also while Chorus runs. "
        "The chat makes one on each day by itself; seven daily and four weekly ones are kept.",
    )
    backup.add_argument(
        "file", metavar="FILE", nargs="?", type=_path, help="a new file or a folder; otherwise beside the daily ones"
    )
    backup.add_argument("--json", action="store_true", help="as one JSON value")
    restore = commands.add_parser(
        "restore",
        parents=[unused],
        help="bring a backup back",
        description="Show the contents of a backup and, if you agree, put it in place of the present log, personas, "
        "sessions and settings, which are backed up before. No other Chorus may run meanwhile.",
    )
    restore.add_argument("file", metavar="FILE", type=_path, help="a backup, or a copy of chorus.db")
    restore.add_argument("--yes", action="store_true", help="do not ask")
    doctor = commands.add_parser(
        "doctor",
        parents=[unused],
        help="examine everything, and repair it",
        description="Examine the log, its index and texts, files, permissions, settings, backups, room and the way to "
        "the model; at a terminal, offer a repair of each fault. The exit code is 1 if a fault remains.",
    )
    doctor.add_argument("--json", action="store_true", help="as one JSON value; nothing is repaired")


def _add_purge(commands: argparse._SubParsersAction[Parser]) -> None:
    purge = _about_personas(commands, "purge")
    purge.usage = _PURGE_USAGE
    subjects = [each.split()[0] for each in _PURGED]
    purge.add_argument("subject", metavar="SUBJECT", choices=subjects, help=enumerated(subjects, "or"))
    purge.add_argument(
        "words", metavar="WORDS", nargs="*", default=[], help="numbers, a name, a time, or words to search for"
    )
    purge.add_argument("--dry-run", action="store_true", help="only show it; nothing is changed")
    purge.add_argument("--backups", action="store_true", help="rewrite the backups that still have it, too")
    purge.add_argument("--json", action="store_true", help="report as one JSON value")
    purge.add_argument("--yes", action="store_true", help="do not ask")


def _add_readers(commands: argparse._SubParsersAction[Parser]) -> None:
    log = _about_personas(commands, "log")
    log.add_argument("--thread", metavar="N", type=_thread_number, help="only this thread")
    log.add_argument("--since", metavar="T", help="only newer messages, such as 24h or 3 days")
    log.add_argument("-n", dest="newest", metavar="N", type=_number, help="only the newest N of them")
    log.add_argument("--thoughts", action="store_true", help="with what models thought before their replies")
    log.add_argument("--json", action="store_true", help="as one JSON value")
    search = _about_personas(commands, "search")
    search.add_argument("words", metavar="WORDS", nargs="+", help="the words to search for")
    search.add_argument("--since", metavar="T", help="only newer messages, such as 24h or 3 days")
    search.add_argument("--thoughts", action="store_true", help="also in what models thought before their replies")
    search.add_argument("--json", action="store_true", help="as one JSON value")
    cost = _about_personas(commands, "cost")
    cost.add_argument("--since", metavar="T", help="only newer ones, such as 7d or monday")
    cost.add_argument("--by", choices=("day", "persona", "model", "thread"), default="model", help="a line for each")
    cost.add_argument("--json", action="store_true", help="as one JSON value")
    memory = _about_personas(commands, "memory")
    memory.add_argument("--json", action="store_true", help="as one JSON value")


def _add_import(commands: argparse._SubParsersAction[Parser]) -> None:
    into = _about_personas(commands, "import")
    into.add_argument("files", metavar="FILE", nargs="+", type=_path, help="a file, an archive or a folder")
    into.add_argument("--dry-run", action="store_true", help="only say what is in it; nothing is changed")
    into.add_argument("--timezone", metavar="Z", help="the zone of times without one, such as Europe/Berlin")
    into.add_argument("--json", action="store_true", help="report as one JSON value")
    out = _about_personas(commands, "export")
    out.add_argument(
        "--all", metavar="DIR", required=True, type=_path, help="the folder that gets a folder for each persona"
    )
    out.add_argument("--format", choices=("md", "jsonl"), default="md", help="Markdown, or JSON line by line")
    out.add_argument("--json", action="store_true", help="report as one JSON value")


def _about_personas(commands: argparse._SubParsersAction[Parser], name: str) -> Parser:
    told = _ABOUT_PERSONAS[name]
    return commands.add_parser(name, parents=[_options(told.persona)], help=told.line, description=told.description)


def _options(persona: str = argparse.SUPPRESS, model: str = argparse.SUPPRESS) -> Parser:
    """Return the options that every subcommand takes; ``--help`` leaves out those without effect on it."""
    common = Parser(add_help=False, argument_default=argparse.SUPPRESS)
    common.add_argument("--persona", metavar="P", help=persona)
    common.add_argument("--model", metavar="M", help=model)
    common.add_argument("--home", metavar="DIR", help="keep everything in this folder")
    return common


def _path(text: str) -> str:
    """Return a path that is not empty, as a variable of a script is that was never set."""
    if not text:
        raise argparse.ArgumentTypeError("the path is empty; name a file or folder")
    return text


def _thread_number(text: str) -> int:
    return _number(text, "a thread number")


def _number(text: str, expected: str = "a number from 1 upwards") -> int:
    if not text.isdecimal() or not 1 <= int(text) <= _LARGEST_ID:
        raise argparse.ArgumentTypeError(f"{text!r} is not {expected}")
    return int(text)
