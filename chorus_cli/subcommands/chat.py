"""``chorus`` alone: the chat opens."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from chorus_cli.core.errors import CommandError
from chorus_cli.subcommands.conventions import options
from chorus_cli.subcommands.exit_codes import DONE
from chorus_cli.terminal.prompt.keyboard import typed_early, typing_ahead
from chorus_cli.terminal.screen.output import refuse_closed_output, standard_output

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping


async def chat(chosen: argparse.Namespace, environment: Mapping[str, str]) -> int:
    """Talk at a prompt until the user leaves.

    Raises:
        CommandError: standard input is no terminal.
    """
    if sys.stdin is None or not sys.stdin.isatty():
        raise CommandError("The chat needs a terminal to type in. For one question use: chorus ask TEXT")
    refuse_closed_output()
    from chorus_cli.app import opened  # noqa: PLC0415
    from chorus_cli.chat import Chat  # noqa: PLC0415

    with typing_ahead(for_nobody_else=True):
        early = typed_early()
        from chorus_cli.terminal.repl import Repl  # noqa: PLC0415
        from chorus_cli.terminal.screen.progress import Progress  # noqa: PLC0415 - the keyboard is taken before anything slow

        screen = standard_output()
        progress = Progress(screen)
        async with opened(options(chosen, environment), environment, progress.paused) as app:
            repl = Repl(app.focus, Chat(app), screen, progress, app.report_bug, early)
            await repl.run(app.warm_up)
    return DONE
