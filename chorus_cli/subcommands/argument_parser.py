"""The parser of a command line, whose help, version and refusals are written as all other output is."""

from __future__ import annotations

import argparse
from types import MappingProxyType
from typing import TYPE_CHECKING, NoReturn

from chorus_cli import __version__
from chorus_cli.subcommands.exit_codes import WRONG_ARGUMENTS
from chorus_cli.terminal.screen.output import refuse_closed_output, standard_error, standard_output

if TYPE_CHECKING:
    from collections.abc import Mapping


class Parser(argparse.ArgumentParser):
    """Prints its help like an answer, because argparse ignores an output that fails.

    ``subcommands`` are the parsers of the subcommands by their names.
    """

    subcommands: Mapping[str, Parser] = MappingProxyType({})

    def print_help(self, file: object = None) -> None:
        """Print the help; the output cannot be chosen."""
        # The option -h never names a file.
        del file
        _answer(self.format_help())

    def error(self, message: str) -> NoReturn:
        """Print the mistake in the arguments, which are untrusted text, and exit with 2."""
        standard_error().error(f"{self.format_usage()}{self.prog}: error: {message}")
        self.exit(WRONG_ARGUMENTS)


class Version(argparse.Action):
    """Prints the version and exits."""

    def __call__(self, parser: argparse.ArgumentParser, *_parsed: object) -> None:
        """Print the version and exit."""
        _answer(f"chorus {__version__}\n")
        parser.exit()


def _answer(text: str) -> None:
    standard_output().write(text)
    refuse_closed_output()
