"""``/help``, ``/status`` and ``/quit``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from chorus_cli import __version__
from chorus_cli.core.time.timestamps import in_hours
from chorus_cli.framework.arguments import COMMAND, Candidate
from chorus_cli.framework.command_line import look_up
from chorus_cli.framework.registry import CommandGroup
from chorus_cli.framework.replies import Exit, Report, Table, Text
from chorus_cli.services import Services

GROUP: CommandGroup[Services] = CommandGroup("", "Other commands.")
CHAT: CommandGroup[Services] = CommandGroup("", only_in_chat=True)


def _commands(services: Services, text: str) -> Sequence[Candidate]:
    slash = text[: text.startswith("/")]
    return [Candidate(slash + command.path[1:], command.documentation.summary) for command in services.registry]


HELPED = replace(COMMAND, complete=_commands)


@CHAT.command("help", aliases=("?",))
async def show_help(services: Services, command: Annotated[str | None, HELPED] = None) -> Text | Report:
    """List the commands, or explain one.

    Examples:
        /help
        /help context set
    """
    return services.registry.menu() if command is None else Text(look_up(services.registry, command).help_text)


@GROUP.command("status")
async def status(services: Services) -> Table:
    """Show the persona, thread, model and how full the context is.

    Examples:
        /status
    """
    target = services.current.target()
    plan = await services.context.planned(target, services.clock.now())
    rows = (
        ("Chorus", __version__),
        ("Persona", f"{target.persona.name} ({target.persona.slug})"),
        ("Thread", str(target.thread_number)),
        ("Model", f"{target.choice.model} ({target.choice.reason})"),
        ("Context window", in_hours(target.persona.settings.context_hours)),
        ("In context", f"{len(plan.sent)} messages"),
        ("Tokens", f"{plan.meter.tokens:,} of {plan.meter.limit:,} ({plan.meter.usage:.1%})"),
    )
    return Table("", ("", ""), rows)


@CHAT.command("quit", aliases=("exit", "q"))
async def leave(_services: Services) -> Exit:
    """Quit Chorus; everything is kept.

    Examples:
        /quit
    """
    return Exit()
