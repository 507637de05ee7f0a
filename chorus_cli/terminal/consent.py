"""A question of a subcommand, asked at the terminal that it was typed in."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chorus_cli.terminal.screen.output import Screen


def can_ask() -> bool:
    """Return whether there is a terminal to ask at."""
    return sys.stdin is not None and sys.stdin.isatty()


async def agreed(question: str, screen: Screen) -> bool:
    """Ask a question and return whether the answer is yes; without a terminal it is no.

    A signal ends the wait.
    """
    if not can_ask():
        return False
    screen.question(f"{question} [y/N]")
    loop, arrived = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), arrived.set)
    try:
        await arrived.wait()
    finally:
        loop.remove_reader(sys.stdin.fileno())
    return sys.stdin.readline().strip().casefold() in {"y", "yes"}
