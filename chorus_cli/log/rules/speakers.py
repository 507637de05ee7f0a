"""The names of those who speak in a thread, apart from messages, because the prompt needs the names alone."""

from __future__ import annotations

from typing import NamedTuple


class Speakers(NamedTuple):
    """The names of the two that speak in a thread: the persona and the user."""

    persona: str
    user: str = "Human"
