"""Subcommands that need no open database: ``paths`` and ``schema``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.machine.paths import paths
from chorus_cli.settings.rules.schema import schema_text
from chorus_cli.subcommands.exit_codes import DONE
from chorus_cli.terminal.screen.output import standard_output

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping


async def show_paths(chosen: argparse.Namespace, environment: Mapping[str, str]) -> int:
    """Print the folders and files that Chorus uses."""
    listing = paths(environment, vars(chosen).get("home")).listing()
    width = max(len(name) for name, _ in listing)
    for name, path in listing:
        standard_output().line(f"{name:<{width}} {path}")
    return DONE


async def show_schema(_chosen: argparse.Namespace, _environment: Mapping[str, str]) -> int:
    """Print the JSON Schema of a persona's settings."""
    standard_output().write(schema_text())
    return DONE
