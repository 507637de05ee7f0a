"""Who is talked to now, in which thread, with which model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chorus_cli.core.model_choice import ModelChoice, chosen_model
from chorus_cli.core.persona import DEFAULT_PERSONA
from chorus_cli.services.arrival import notices
from chorus_cli.storage import meta_rows, thread_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from chorus_cli.core.persona import Persona
    from chorus_cli.ports import Clock
    from chorus_cli.services.personas import Personas
    from chorus_cli.storage.database import Store


@dataclass(frozen=True, slots=True)
class Place:
    """Where a message goes: the persona as its files are now, the thread, and the model that answers."""

    persona: Persona
    thread_id: int
    choice: ModelChoice


class Focus:
    """The one mutable fact of a run: the persona and the thread in front of the user, and the model of this run."""

    def __init__(
        self, personas: Personas, store: Store, clock: Clock, environment: Mapping[str, str], model: str | None
    ) -> None:
        self._personas = personas
        self._store = store
        self._clock = clock
        self._environment = environment
        self._model = model
        self._set_by_hand: dict[str, ModelChoice] = {}
        self._slug = DEFAULT_PERSONA
        self._thread_id = 0

    async def open(self, name: str | None) -> None:
        """Turn to the persona called ``name``, else to ``CHORUS_PERSONA``, else to the one last talked to.

        Raises:
            UnknownPersonaError: nobody is called that.
        """
        wanted = name or self._environment.get("CHORUS_PERSONA")
        if wanted:
            slug = self._personas.find(wanted)
        else:
            last = await self._store.read(meta_rows.value, meta_rows.LAST_PERSONA)
            slug = last if last in self._personas.slugs() else self._personas.first()
        await self._enter(slug)

    async def turn_to(self, slug: str) -> None:
        """Talk to the persona ``slug`` from now on, in its thread last used, also after a restart."""
        await self._enter(slug)
        await self._store.write(meta_rows.store, meta_rows.LAST_PERSONA, slug)

    def use_model(self, model: str) -> None:
        """Have the persona in focus answer with ``model``, whatever the command line, the environment or files say."""
        self._set_by_hand[self._slug] = ModelChoice(model, "set by /model")

    @property
    def slug(self) -> str:
        """The folder's name of the persona in focus, also when the folder is gone."""
        return self._slug

    async def notices(self) -> tuple[str, ...]:
        """Return what somebody who comes to this place should know before typing."""
        return await notices(self._store, self.place(), self._clock.now())

    def place(self) -> Place:
        """Return the present focus, the persona's files read afresh."""
        persona = self._personas.load(self._slug)
        # The file's name and line say enough; its folder would fill the line.
        source = persona.sources.get("model", "").rpartition("/")[2]
        by_hand = self._set_by_hand.get(self._slug)
        choice = by_hand or chosen_model(self._model, self._environment, persona.settings.model, source)
        return Place(persona, self._thread_id, choice)

    async def _enter(self, slug: str) -> None:
        thread_id = await self._store.read(thread_rows.last_used, slug)
        self._thread_id = thread_id or await self._store.write(thread_rows.last_used_or_new, slug, self._clock.now())
        self._slug = slug
