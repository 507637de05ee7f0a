"""The list of all commands: explicit, in the order of help."""

from __future__ import annotations

from chorus_cli.commands import context, general, model, persona, second_thoughts, settings, thread
from chorus_cli.commands.command_context import CommandContext
from chorus_cli.commands.registry import CommandRegistry


def registry() -> CommandRegistry[CommandContext]:
    """Build the registry of all commands."""
    return CommandRegistry(
        (context.GROUP, second_thoughts.GROUP, persona.GROUP, thread.GROUP, settings.GROUP, model.GROUP, general.GROUP)
    )
