"""The target of a message."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from chorus_cli.models.rules.choice import ModelChoice
    from chorus_cli.personas.rules.persona import Persona


class Target(NamedTuple):
    """Persona, thread and model that a message is addressed to; the persona as its files are now.

    ``thread_number`` is the user's name of the thread, counted per persona; rows hold ``thread_id``.
    The next run goes on in this thread unless it ``is_aside``.
    """

    persona: Persona
    thread_id: int
    choice: ModelChoice
    thread_number: int = 0
    is_aside: bool = False

    def thread_label(self, slug: str) -> str:
        """Return ``thread #3``, and whose it is if that is not the persona ``slug``: ``thread #3 of Frodo``."""
        return f"thread #{self.thread_number}" + ("" if self.persona.slug == slug else f" of {self.persona.name}")
