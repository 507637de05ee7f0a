"""The explicit list of all command groups, in the order of the help."""

from __future__ import annotations

from chorus_cli import private
from chorus_cli.attachments import commands as attachments
from chorus_cli.cards import commands as cards
from chorus_cli.context import commands as context
from chorus_cli.editing.commands import edit
from chorus_cli.framework import commands as general
from chorus_cli.framework.registry import Bound, Command, CommandGroup, CommandRegistry
from chorus_cli.imports import commands as imports
from chorus_cli.jobs import commands as jobs
from chorus_cli.mcp.commands import servers
from chorus_cli.mcp.commands import tools as servers_tools
from chorus_cli.memory.commands import items, replacing
from chorus_cli.models import commands as cost
from chorus_cli.personas.commands import persona, settings
from chorus_cli.personas.rules.persona import Target
from chorus_cli.recall import commands as search
from chorus_cli.services import Services
from chorus_cli.sessions import commands as sessions
from chorus_cli.stores import commands as stores
from chorus_cli.threads.commands import composing, distilling, latest_action, thread
from chorus_cli.turns import commands as turns
from chorus_cli.turns.service.folding import model_of

_PROMPT, _RETRY = "/mcp prompt", "/retry"
_SUMMARIZING = frozenset({"/context compact", "/memory distil"})
_ASKING = _SUMMARIZING | {_RETRY, "/continue", "/bg", "/editor"}
_GOING_ON = frozenset({"/undo", "/redo", _RETRY, "/continue"})


def groups() -> tuple[CommandGroup[Services], ...]:
    """Return the groups of all built-in commands."""
    return (
        *(context.GROUP, turns.GROUP, turns.TOP, edit.GROUP, turns.SUMMARY, sessions.GROUP),
        *(
            latest_action.GROUP,
            edit.TOP,
            composing.GROUP,
            context.TOP,
            items.TOP,
            items.GROUP,
            replacing.GROUP,
            distilling.GROUP,
            persona.GROUP,
            cards.GROUP,
        ),
        *(thread.GROUP, search.GROUP, imports.GROUP, stores.RESCUE, private.GROUP),
        *(settings.TOP, settings.GROUP, cost.GROUP, servers.GROUP, composing.PROMPTS, servers_tools.GROUP),
        *(jobs.GROUP, attachments.GROUP, general.GROUP, stores.PURGE),
    )


def registry() -> CommandRegistry[Services]:
    """Build the registry of all built-in commands."""
    return CommandRegistry(groups())


def asks_model(services: Services, command: Command[Services]) -> bool:
    """Return whether the purpose of a command is a reply, a summary or facts from the model, which cost money."""
    return command.path in _ASKING or sends_text(services, command)


def asked_model(bound: Bound[Services], target: Target) -> str:
    """Return the model that a command asks: /retry may name one, and summaries may have another than messages."""
    if bound.command.path in _SUMMARIZING:
        return model_of(target)
    named = next(iter(bound.arguments), None) if bound.command.path == _RETRY else None
    return named if isinstance(named, str) else target.choice.model


def sends_text(services: Services, command: Command[Services]) -> bool:
    """Return whether a command sends a message: one of the user's own, or a prompt of a server."""
    return command.path == _PROMPT or services.own_commands.is_own(command)


def goes_on(command: Command[Services]) -> bool:
    """Return whether a command concerns the newest action; from a shell, it is carried out in that action's thread."""
    return command.path in _GOING_ON
