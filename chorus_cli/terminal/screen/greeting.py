"""The first lines of the chat: which model answers and why, and what there is to know before typing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable

    from chorus_cli.services.personas.place import Place
    from chorus_cli.terminal.screen.output import Screen


def greet(screen: Screen, place: Place, notices: Iterable[str]) -> None:
    """Show them."""
    screen.notice(f"Chorus {__version__}: {place.choice.model} answers ({place.choice.reason}).")
    for notice in notices:
        screen.notice(notice)
