"""``/help`` and ``/quit``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from chorus_cli.framework.arguments import COMMAND, Candidate
from chorus_cli.framework.help import ALL, page, screen
from chorus_cli.framework.registry import CommandGroup
from chorus_cli.framework.replies import Exit, Report, Text
from chorus_cli.services import Services

GROUP: CommandGroup[Services] = CommandGroup("", topic="chat", only_in_chat=True)


def _explained(services: Services, text: str) -> Sequence[Candidate]:
    slash, registry = text[: text.startswith("/")], services.registry
    commands = {each.path[1:]: each.summary for each in registry if each.listed != "nowhere"}
    return [
        Candidate(slash + each, told)
        for each, told in (registry.summaries | {ALL: "Every command."} | commands).items()
    ]


HELPED = replace(COMMAND, name="topic or command", complete=_explained)


@GROUP.command("help", aliases=("?",), listed="everyday")
async def show_help(services: Services, words: Annotated[str | None, HELPED] = None) -> Text | Report:
    """Explain a topic such as context, or a command.

    /help all has every command, and opens in your PAGER if it is longer than the screen.

    Examples:
        /help
        /help context
        /help context at
        /help all
    """
    if words is None:
        return Text(screen(services.registry))
    told = page(services.registry, words)
    return Report(()) if words == ALL and await services.show_pages(told) else Text(told)


@GROUP.command("quit", aliases=("exit", "q"), listed="everyday")
async def leave(_services: Services) -> Exit:
    """Quit; everything is kept.

    Examples:
        /quit
    """
    return Exit()
