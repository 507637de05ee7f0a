"""Where a message goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chorus_cli.core.models.choice import ModelChoice
    from chorus_cli.core.personas.persona import Persona


@dataclass(frozen=True, slots=True)
class Place:
    """Where a message goes: the persona as its files are now, the thread, and the model that answers."""

    persona: Persona
    thread_id: int
    choice: ModelChoice
