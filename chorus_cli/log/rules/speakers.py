"""The names of the speakers in a thread, in a module of their own, so that the prompt need not load `messages`."""

from __future__ import annotations

from typing import NamedTuple


class Speakers(NamedTuple):
    """The names of the persona and the user in a thread."""

    persona: str
    user: str = "Human"
