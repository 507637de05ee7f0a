"""The explicit list of all command groups, in the order of the help."""

from __future__ import annotations

from chorus_cli.commands import (
    attachments,
    background,
    cards,
    composing,
    general,
    jobs,
    persona,
    private,
    sessions,
    thread,
    upkeep,
)
from chorus_cli.commands.context import edit, journal, latest_action, summary, window
from chorus_cli.commands.framework.registry import Command, CommandGroup, CommandRegistry
from chorus_cli.commands.framework.services import Services
from chorus_cli.commands.log import cost, export, imports, purge, search, thoughts
from chorus_cli.commands.memory import flash, items, remember
from chorus_cli.commands.settings import model, run, settings

_ASKING = frozenset({"/retry", "/bg", "/editor", "/context compact"})


def groups() -> tuple[CommandGroup[Services], ...]:
    """Return the groups of all built-in commands."""
    modules = (
        *(window, journal, edit, summary, sessions, latest_action, remember, items, flash),
        *(persona, cards, thread, background, jobs, settings, run, model),
        *(search, thoughts, cost, composing, attachments, export, imports, upkeep, purge, private, general),
    )
    return (*(module.GROUP for module in modules), journal.TOP)


def registry() -> CommandRegistry[Services]:
    """Build the registry of all built-in commands."""
    return CommandRegistry(groups())


def asks_model(services: Services, command: Command[Services]) -> bool:
    """Return whether a command is to ask the model, which costs money: for a reply or a summary."""
    return command.path in _ASKING or services.own_commands.is_own(command)
