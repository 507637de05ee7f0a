"""The list of all commands: explicit, in the order of help."""

from __future__ import annotations

from chorus_cli.commands import (
    composing,
    context,
    context_edit,
    context_past,
    export,
    general,
    model,
    persona,
    search,
    second_thoughts,
    sessions,
    settings,
    summary,
    thread,
)
from chorus_cli.commands.command_context import CommandContext
from chorus_cli.commands.registry import CommandRegistry


def registry() -> CommandRegistry[CommandContext]:
    """Build the registry of all commands."""
    groups = (
        *(context, context_edit, context_past, summary, sessions, second_thoughts, persona, thread, settings, model),
        *(search, composing, export, general),
    )
    return CommandRegistry(module.GROUP for module in groups)
