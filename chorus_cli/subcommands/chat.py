"""``chorus`` without a command opens the chat."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping

from chorus_cli.core.errors import CommandError
from chorus_cli.subcommands.conventions import options
from chorus_cli.subcommands.exit_codes import DONE
from chorus_cli.terminal.prompt.keyboard import typed_early, typing_ahead
from chorus_cli.terminal.screen.output import refuse_closed_output


async def chat(chosen: argparse.Namespace, environment: Mapping[str, str]) -> int:
    """Talk at a prompt until the user leaves."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise CommandError("The chat needs a terminal to type in. For one question use: chorus ask TEXT")
    refuse_closed_output()
    with typing_ahead():
        early = typed_early()
        from chorus_cli.chat import run_chat

        await run_chat(options(chosen, environment), environment, early)
    return DONE
