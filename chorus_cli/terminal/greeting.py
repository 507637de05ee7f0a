"""The first lines of the chat: which model answers and why, and what there is to know before typing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli import __version__
from chorus_cli.core.model_choice import ELIZA

if TYPE_CHECKING:
    from collections.abc import Iterable

    from chorus_cli.services.place import Place
    from chorus_cli.terminal.screen import Screen

_WAYS_OUT = (
    "For a language model set a provider's key, such as OPENAI_API_KEY, or start Ollama and say /model ollama/NAME."
)


def greet(screen: Screen, place: Place, notices: Iterable[str]) -> None:
    """Show them."""
    screen.notice(f"Chorus {__version__}: {place.choice.model} answers ({place.choice.reason}).")
    if place.choice.model == ELIZA:
        screen.notice(_WAYS_OUT)
    for notice in notices:
        screen.notice(notice)
