"""``chorus ask``: one message is answered, or one command carried out, without a prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.app import opened
from chorus_cli.core.errors import CommandError
from chorus_cli.core.models.choice import ELIZA
from chorus_cli.subcommands.conventions import joined_text, options
from chorus_cli.terminal import one_shot
from chorus_cli.terminal.prompt.command_sign import is_command, unescaped
from chorus_cli.terminal.screen.output import standard_error, standard_output

if TYPE_CHECKING:
    import argparse
    from collections.abc import Coroutine, Mapping


def ask(chosen: argparse.Namespace, environment: Mapping[str, str]) -> Coroutine[None, None, int]:
    """Return the work of answering one message or carrying out one command; its result is the exit code.

    Standard input is read here, before signals are handled, so that a signal ends the wait for it.

    Raises:
        CommandError: there is no text, or it is not valid text in the locale's encoding.
        MessageRefusedError: standard input is not UTF-8.
    """
    text = joined_text(chosen.text)
    if is_command(text):
        return _ask_command(text, chosen, environment)
    message = "\n\n".join(part for part in (unescaped(text), one_shot.standard_input()) if part.strip())
    if not message:
        raise CommandError("There is nothing to ask. Usage: chorus ask TEXT, or pipe the text in.")
    return _ask_model(message, chosen, environment)


async def _ask_command(line: str, chosen: argparse.Namespace, environment: Mapping[str, str]) -> int:
    async with opened(options(chosen, environment), environment) as app:
        code = await one_shot.carry_out(line, app.services(), standard_output(), asides := standard_error())
        for stopped in await app.stop_jobs():
            asides.notice(stopped)
        return code


async def _ask_model(message: str, chosen: argparse.Namespace, environment: Mapping[str, str]) -> int:
    async with opened(options(chosen, environment), environment) as app:
        await app.focus.settle()
        if app.focus.target().choice.model != ELIZA:
            app.warm_up()
        return await one_shot.ask(message, app.services(), standard_output(), standard_error())
