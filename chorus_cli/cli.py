"""The outer command line: arguments, exit codes, and the last catcher of errors."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

from chorus_cli import __version__
from chorus_cli.adapters.machine import event_loop
from chorus_cli.adapters.machine.paths import paths
from chorus_cli.core.errors import ChorusError, UsageError
from chorus_cli.subcommands.exit_codes import BUG, DONE, FAILED, WRONG_ARGUMENTS
from chorus_cli.terminal.screen.output import refuse_closed_output, standard_error, standard_output

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    Subcommand = Callable[[argparse.Namespace, Mapping[str, str]], Coroutine[None, None, int]]

_SUBCOMMANDS = {
    None: ("chat", "chat"),
    "ask": ("ask", "ask"),
    "backup": ("backup", "backup"),
    "context": ("reports", "context"),
    "log": ("log", "log"),
    "memory": ("reports", "memory"),
    "paths": ("facts", "show_paths"),
    "personas": ("reports", "personas"),
    "restore": ("backup", "restore"),
    "schema": ("facts", "show_schema"),
    "search": ("log", "search"),
}
"""Module and function of each subcommand; a start loads one module and no other."""
_LARGEST_ID = 2**63 - 1
_ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class _EndedBySignal(Exception):  # noqa: N818 - no error: the process was asked to end
    def __init__(self, number: int) -> None:
        self.number = number


def main(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Carry out a command line and return the exit code."""
    os.umask(0o077)
    chosen = argparse.Namespace()
    try:
        chosen = _parsed(arguments)
        return _seen(event_loop.run(_until_signal(_work(chosen, environment))))
    except ChorusError as error:
        return _say(str(error), WRONG_ARGUMENTS if isinstance(error, UsageError) else FAILED)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except _EndedBySignal as ended:
        return 128 + ended.number
    except BrokenPipeError:
        # The reader has closed the pipe; the rest of the buffer must not fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except Exception as error:  # noqa: BLE001 - the last catcher
        return _say(_bug_sentence(error, chosen, environment), BUG)


def _work(chosen: argparse.Namespace, environment: Mapping[str, str]) -> Coroutine[None, None, int]:
    """Load the subcommand that was chosen and return its work, whose result is the exit code.

    Raises:
        ChorusError: the command line or standard input cannot be used.
    """
    module, name = _SUBCOMMANDS[chosen.command]
    subcommand: Subcommand = getattr(import_module(f"chorus_cli.subcommands.{module}"), name)
    return subcommand(chosen, environment)


class _Parser(argparse.ArgumentParser):
    """Prints its help like an answer, because argparse ignores an output that fails."""

    def print_help(self, file: object = None) -> None:
        # The option -h never names a file.
        del file
        _answer(self.format_help())

    def error(self, message: str) -> NoReturn:
        """Print the mistake in the arguments, which are untrusted text, and exit with 2."""
        _say(f"{self.format_usage()}{self.prog}: error: {message}", WRONG_ARGUMENTS)
        self.exit(WRONG_ARGUMENTS)


class _Version(argparse.Action):
    """Prints the version and exits."""

    def __call__(self, parser: argparse.ArgumentParser, *_parsed: object) -> None:
        _answer(f"chorus {__version__}\n")
        parser.exit()


def _answer(text: str) -> None:
    standard_output().write(text)
    _seen(DONE)


def _seen(code: int) -> int:
    """Return an exit code.

    Raises:
        OutputError: the work succeeded, but its output is closed.
    """
    if code == DONE:
        refuse_closed_output()
    return code


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse a command line; the options of ``ask`` stand before or after it, which argparse cannot tell apart."""
    parser = _parser()
    chosen = parser.parse_args(arguments)
    given = [f"--{name}" for name in ("new", "thread", "json") if f"ask_{name}" in chosen]
    if given and chosen.command != "ask":
        parser.error(f"{given[0]} stands before ask only")
    if {"--new", "--thread"} <= {*given}:
        parser.error("--new and --thread do not go together")
    return chosen


def _parser() -> argparse.ArgumentParser:
    common = _options(
        "the persona to talk to; otherwise the last one", "the model that answers, as litellm names it, for this run"
    )
    unused = _options()
    parser = _Parser(
        prog="chorus", parents=[common], description="A chat in the terminal in which the memory is yours."
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show program's version number and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands; without one the chat opens")

    _add_ask_options(parser, argparse.SUPPRESS)
    ask = commands.add_parser(
        "ask",
        parents=[common],
        help="ask once; standard input is appended",
        description="Ask once: the reply goes to standard output, everything else to standard error. The exit code is "
        "1 if the reply broke off or nothing could be asked.",
    )
    _add_ask_options(ask)
    ask.add_argument("text", metavar="TEXT", nargs="*", help="the message, or a command such as /context")
    context = commands.add_parser("context", parents=[common], help="show the request that would be sent now")
    context.add_argument("--json", action="store_true", help="as one JSON value")
    _add_readers(commands)
    personas = commands.add_parser("personas", parents=[unused], help="list the personas")
    personas.add_argument("--json", action="store_true", help="as one JSON value")
    _add_upkeep(commands, unused)
    commands.add_parser("schema", parents=[unused], help="print the JSON Schema of system.jsonc")
    commands.add_parser("paths", parents=[unused], help="print the folders and files of Chorus")
    return parser


def _add_ask_options(parser: argparse.ArgumentParser, hidden: str = "") -> None:
    """Add the options of ``ask``; each has a name of its own in the result, because other commands have some too."""
    own = {
        "new": "in a thread of its own, closed at the end; the next run goes on where it would have",
        "json": "print one JSON value: reply, usage, model, thread, seconds; status, if it broke off",
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


def _add_readers(commands: argparse._SubParsersAction[_Parser]) -> None:
    log = commands.add_parser(
        "log",
        parents=[_options("whose messages; otherwise those of the last persona")],
        help="print a persona's messages",
    )
    log.add_argument("--thread", metavar="N", type=_thread_number, help="only this thread")
    log.add_argument("--since", metavar="T", help="only newer messages, such as 24h or 3 days")
    log.add_argument("--json", action="store_true", help="as one JSON value")
    search = commands.add_parser(
        "search",
        parents=[_options("only the messages of this persona")],
        help="search all messages",
        description="Search the messages of every persona, or of P alone. All words "
        "must occur; an argument with blanks is a phrase; begin* is how a word begins. The exit code is 1 when nothing "
        "is found.",
    )
    search.add_argument("words", metavar="WORDS", nargs="+", help="the words to search for")
    search.add_argument("--since", metavar="T", help="only newer messages, such as 24h or 3 days")
    search.add_argument("--json", action="store_true", help="as one JSON value")
    memory = commands.add_parser(
        "memory", parents=[_options("whose memory; otherwise that of the last persona")], help="show what is remembered"
    )
    memory.add_argument("--json", action="store_true", help="as one JSON value")


def _add_upkeep(commands: argparse._SubParsersAction[_Parser], unused: _Parser) -> None:
    backup = commands.add_parser(
        "backup",
        parents=[unused],
        help="copy everything to a file",
        description="Copy the log, personas, sessions, settings and attachments to a new file, also while Chorus runs. "
        "One is made on each day by itself; seven daily and four weekly ones are kept.",
    )
    backup.add_argument(
        "file", metavar="FILE", nargs="?", help="a new file or a folder; otherwise beside the daily ones"
    )
    backup.add_argument("--json", action="store_true", help="as one JSON value")
    restore = commands.add_parser(
        "restore",
        parents=[unused],
        help="bring a backup back",
        description="Show the contents of a backup and, if you agree, put it in place of the present log, personas, "
        "sessions and settings, which are backed up before. No other Chorus may run meanwhile.",
    )
    restore.add_argument("file", metavar="FILE", help="a backup, or a copy of chorus.db")
    restore.add_argument("--yes", action="store_true", help="do not ask")


def _options(persona: str = argparse.SUPPRESS, model: str = argparse.SUPPRESS) -> _Parser:
    """Return the options that every subcommand takes; ``--help`` leaves out those without effect on it."""
    common = _Parser(add_help=False, argument_default=argparse.SUPPRESS)
    common.add_argument("--persona", metavar="P", help=persona)
    common.add_argument("--model", metavar="M", help=model)
    common.add_argument("--home", metavar="DIR", help="keep everything in this folder")
    return common


def _thread_number(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= _LARGEST_ID:
        raise argparse.ArgumentTypeError(f"{text!r} is not a thread number")
    return int(text)


async def _until_signal(work: Coroutine[None, None, int]) -> int:
    """Do ``work`` until SIGTERM, SIGHUP or SIGQUIT cancels it, so that the part of a reply that has arrived is kept."""
    task = asyncio.ensure_future(work)
    received: list[int] = []

    def end(number: int) -> None:
        received.append(number)
        task.cancel()

    # Ignored signals stay ignored, as under nohup.
    for number in (number for number in _ENDING_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN):
        asyncio.get_running_loop().add_signal_handler(number, end, number)
    try:
        code = await task
    except ChorusError as error:
        if received:
            _say(str(error), FAILED)
            raise _EndedBySignal(received[0]) from None
        raise
    except (asyncio.CancelledError, KeyboardInterrupt):
        if received:
            raise _EndedBySignal(received[0]) from None
        raise
    if received:
        # Work that ends by itself while the signal arrives counts as ended by it.
        raise _EndedBySignal(received[0])
    return code


def _bug_sentence(error: Exception, chosen: argparse.Namespace, environment: Mapping[str, str]) -> str:
    from chorus_cli.adapters.machine.bug_report import report_bug  # noqa: PLC0415 - only a bug needs it

    try:
        log_file = paths(environment, getattr(chosen, "home", None)).log_file
    except ChorusError as problem:
        return f"That is a bug in Chorus ({type(error).__name__}), and its traceback cannot be kept: {problem}"
    return report_bug(log_file, error, environment)


def _say(sentence: str, code: int) -> int:
    standard_error().error(sentence)
    return code
