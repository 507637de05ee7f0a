"""The explicit list of all command groups, in the order of the help."""

from __future__ import annotations

from chorus_cli.commands import (
    background,
    composing,
    export,
    general,
    jobs,
    model,
    persona,
    search,
    sessions,
    settings,
    thread,
    upkeep,
)
from chorus_cli.commands.context import edit, journal, latest_action, summary, window
from chorus_cli.commands.framework.registry import CommandRegistry
from chorus_cli.commands.framework.services import Services
from chorus_cli.commands.memory import flash, items, remember


def registry() -> CommandRegistry[Services]:
    """Build the registry of all commands."""
    groups = (
        *(window, journal, edit, summary, sessions, latest_action, remember, items, flash, persona, thread, background),
        *(jobs, settings, model),
        *(search, composing, export, upkeep, general),
    )
    return CommandRegistry(module.GROUP for module in groups)
