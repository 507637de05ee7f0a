"""The first lines of the chat: which model answers and why, and what there is to know before typing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable

    from chorus_cli.core.context.snapshot import Target
    from chorus_cli.terminal.screen.output import Screen


def greet(screen: Screen, target: Target, notices: Iterable[str]) -> None:
    """Show them."""
    screen.notice(f"Chorus {__version__}: {target.choice.model} answers ({target.choice.reason}).")
    for notice in notices:
        screen.notice(notice)
