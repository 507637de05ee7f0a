"""The target of a message."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chorus_cli.core.models.choice import ModelChoice
    from chorus_cli.core.personas.persona import Persona


@dataclass(frozen=True, slots=True)
class Target:
    """Persona, thread and model that a message is addressed to; the persona as its files are now.

    ``thread_number`` is the user's name of the thread, counted per persona; rows hold ``thread_id``.
    The next run goes on in this thread unless it ``is_aside``.
    """

    persona: Persona
    thread_id: int
    choice: ModelChoice
    thread_number: int = 0
    is_aside: bool = False
