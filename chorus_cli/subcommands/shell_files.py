"""Prints the folders of Chorus and the schema of its settings; makes the completion scripts and the manual page.

The build of a wheel makes the scripts and the page, with libraries that an installed Chorus does not need.
"""

from __future__ import annotations

import argparse
import re
from argparse import PARSER
from collections.abc import Mapping
from importlib import import_module
from importlib.resources import files
from typing import Any

from chorus_cli import __version__
from chorus_cli.catalogue import registry
from chorus_cli.core.errors import CommandError
from chorus_cli.framework.help import screen as help_screen
from chorus_cli.machine.paths import paths
from chorus_cli.run_storage import chosen_log
from chorus_cli.settings.rules.schema import schema_text
from chorus_cli.storage.postgres.address import digest, without_password
from chorus_cli.subcommands.command_line import parser
from chorus_cli.subcommands.conventions import print_json
from chorus_cli.subcommands.exit_codes import DONE
from chorus_cli.terminal.screen.output import standard_output

FOLDER = "completion_scripts"
"""The folder of the package that has the completion scripts, each in a file named after its shell."""

PLACES = {
    "bash": ("share/bash-completion/completions/chorus", "share/bash-completion/completions/chorus-chat"),
    "fish": ("share/fish/vendor_completions.d/chorus.fish", "share/fish/vendor_completions.d/chorus-chat.fish"),
    "zsh": ("share/zsh/site-functions/_chorus",),
}
"""Where shells look for completion scripts, below an installation's prefix; bash and fish need a file per command."""

_NAME_COMPLETED = re.compile(r"^(#compdef|complete .* -F \w+|.* -N) chorus$", re.MULTILINE)
_OF_FISH = "\ncomplete -c chorus-chat -w chorus"

_PERSONAS = """chorus personas --json 2>/dev/null | sed -n 's/^ *"persona": "\\(.*\\)",$/\\1/p'"""
_COMPLETED_PERSONAS = {
    "bash": "_chorus_personas",
    "fish": f"({_PERSONAS})",
    "zsh": "_chorus_personas",
    "preamble": {
        "bash": f'_chorus_personas() {{ compgen -W "$({_PERSONAS})" -- "$1"; }}',
        "zsh": f'_chorus_personas() {{ local -a slugs; slugs=(${{(f)"$({_PERSONAS})"}}); compadd -a slugs; }}',
    },
}

MANUAL_PLACE = "share/man/man1/chorus.1"


async def show_paths(chosen: argparse.Namespace, environment: Mapping[str, str]) -> int:
    """Print the folders and files that Chorus uses."""
    home = paths(environment, vars(chosen).get("home"))
    listing = {name: str(path) for name, path in home.listing()}
    if url := chosen_log(home, environment, vars(chosen).get("log")):
        listing |= {"database": without_password(url), "beside": str(home.beside(digest(url)))}
    if chosen.json:
        print_json(listing)
        return DONE
    width = max(map(len, listing))
    for name, path in listing.items():
        standard_output().line(f"{name:<{width}} {path}")
    return DONE


async def show_schema(_chosen: argparse.Namespace, _environment: Mapping[str, str]) -> int:
    """Print the JSON Schema of a persona's settings."""
    standard_output().write(schema_text())
    return DONE


async def show_completion(chosen: argparse.Namespace, _environment: Mapping[str, str]) -> int:
    """Print the completion script of a shell."""
    kept = files("chorus_cli") / FOLDER / chosen.shell
    standard_output().write(kept.read_text(encoding="utf-8") if kept.is_file() else _made_script(chosen.shell))
    return DONE


def completion_script(shell: str) -> str:
    """Return the completion script of a shell. Without the library shtab, raise ``ModuleNotFoundError``."""
    shtab: Any = import_module("shtab")
    arguments = parser()
    _complete_values(arguments, {"FILE": shtab.FILE, "DIR": shtab.DIRECTORY, "P": _COMPLETED_PERSONAS})
    script: str = shtab.complete(arguments, shell)
    both_names = _NAME_COMPLETED.sub(r"\g<0> chorus-chat", script.rstrip("\n"))
    return f"{both_names}{_OF_FISH if shell == 'fish' else ''}\n"


def _complete_values(arguments: argparse.ArgumentParser, ways: Mapping[str, object]) -> None:
    """Tell shtab how to complete arguments; ``ways`` maps the metavar of an argument to its way of completion."""
    action: Any
    for action in arguments._actions:  # noqa: SLF001 -- argparse has no public way to its arguments; shtab reads these
        if action.metavar in ways:
            action.complete = ways[action.metavar]
        if action.nargs == PARSER:
            for subcommand in action.choices.values():
                _complete_values(subcommand, ways)


def manual_page() -> str:
    """Return the manual page in roff. Without the library argparse-manpage, raise ``ModuleNotFoundError``."""
    manpage: Any = import_module("argparse_manpage.manpage")
    arguments = parser()
    told = {
        "description": (arguments.description or "").rstrip("."),
        "project_name": "chorus",
        "version": __version__,
        "manual_title": "Chorus",
        "manual_section": "1",
    }
    page = str(manpage.Manpage(arguments, _data=told, format="single-commands-section"))
    # A \& before a line keeps roff from taking its leading dot or quote as a request.
    lines = ["\\&" + line.replace("-", "\\-") for line in help_screen(registry()).splitlines()]
    return "\n".join([page.rstrip("\n"), '.SH "IN THE CHAT"', ".nf", *lines, ".fi", ""])


def _made_script(shell: str) -> str:
    try:
        return completion_script(shell)
    except ModuleNotFoundError as error:
        raise CommandError(
            "The completion scripts are made when Chorus is built, and this Chorus runs from its sources. "
            "Install Chorus with pip, or install shtab."
        ) from error
