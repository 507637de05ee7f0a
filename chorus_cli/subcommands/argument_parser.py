"""The parser of a command line, and the arguments that several commands have."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from typing import NoReturn

from chorus_cli.core.errors import CommandError, SettingsError
from chorus_cli.storage.postgres import address
from chorus_cli.subcommands.exit_codes import WRONG_ARGUMENTS
from chorus_cli.terminal.screen.output import refuse_closed_output, standard_error, standard_output

VALUED = ("--persona", "--model", "--home", "--log", "--thread", "--effort", "--attach")
"""The options that may come before a command and take a value."""

_LARGEST_ID = 2**63 - 1
_MISSING = "the following arguments are required: "  # as argparse words it
_KEPT = "keep everything in this folder"
_LOG = "the log of this run, such as postgresql://host/chorus, or local"


class Parser(argparse.ArgumentParser):
    """Prints its help with `answer`, because argparse ignores a failure to print."""

    def print_help(self, file: object = None) -> None:
        """Print the help to standard output, whatever ``file`` is."""
        # The option -h never names a file.
        del file
        answer(self.format_help())

    def error(self, message: str) -> NoReturn:
        """Print a mistake in the arguments as safe text, and exit with 2. A missing argument is a `CommandError`."""
        _, is_missing, names = message.partition(_MISSING)
        if is_missing:
            raise CommandError(f"{self.prog} needs {names}; {self.prog} --help explains it.")
        standard_error().error(f"{self.format_usage()}{self.prog}: error: {message}")
        self.exit(WRONG_ARGUMENTS)


def first_word(arguments: Sequence[str], valued: Sequence[str]) -> int | None:
    """Return the place of the first word that is neither an option nor a ``valued`` option's value, or ``None``."""
    is_value = False
    for position, word in enumerate(arguments):
        if not is_value and not word.startswith("-"):
            return position
        # An option may be shortened.
        is_long = word.startswith("--") and word != "--" and any(each.startswith(word) for each in valued)
        is_value = not is_value and (is_long or word == "-a")
    return None


def add_common(parser: argparse.ArgumentParser, persona: str, model: str) -> None:
    """Add --persona, --model, --home and --log. ``persona`` and ``model`` are help texts, or ``argparse.SUPPRESS``."""
    for name, metavar, told in (("persona", "P", persona), ("model", "M", model)):
        parser.add_argument(f"--{name}", metavar=metavar, default=argparse.SUPPRESS, help=told)
    add_places(parser)


def add_places(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose the folder and the log."""
    parser.add_argument("--home", metavar="DIR", default=argparse.SUPPRESS, help=_KEPT)
    parser.add_argument("--log", metavar="URL", type=_log, default=argparse.SUPPRESS, help=_LOG)


def add_json(parser: argparse.ArgumentParser, told: str = "as one JSON value") -> None:
    """Add the option that prints an answer as JSON."""
    parser.add_argument("--json", action="store_true", help=told)


def add_thread(parser: argparse.ArgumentParser, acting: str, *, has_own: bool = False) -> None:
    """Add options that choose a thread; for a command with a thread of its own (``has_own``), --new has no effect."""
    add = partial(parser.add_mutually_exclusive_group().add_argument, default=argparse.SUPPRESS)
    add("-c", "--continue", dest="goes_on", action="store_true", help=f"{acting} the thread of your newest message")
    add("--thread", metavar="N", type=thread_number, help=f"{acting} this thread")
    if has_own:
        add("--new", action="store_true", help=argparse.SUPPRESS)


def _log(text: str) -> str:
    try:
        address.checked(text, "the log")
    except SettingsError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text


def server(text: str) -> str:
    """Return the address of a log on a server."""
    if _log(text) == address.LOCAL:
        raise argparse.ArgumentTypeError("name a PostgreSQL server, such as postgresql://host/chorus")
    return text


def path(text: str) -> str:
    """Return a path. Refuse an empty path: a script may have passed a variable that was never set."""
    if not text:
        raise argparse.ArgumentTypeError("the path is empty; name a file or folder")
    return text


def thread_number(text: str) -> int:
    """Return the number of a thread."""
    return number(text, "a thread number")


def number(text: str, expected: str = "a whole number above 0") -> int:
    """Return a number that the database can store. The error for other texts says that they are not ``expected``."""
    if not text.isdecimal() or not 1 <= int(text) <= _LARGEST_ID:
        raise argparse.ArgumentTypeError(f"{text!r} is not {expected}")
    return int(text)


def answer(text: str) -> None:
    """Print an answer; a closed output is an error."""
    standard_output().write(text)
    refuse_closed_output()
