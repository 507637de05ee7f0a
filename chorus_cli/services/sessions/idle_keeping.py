"""What the idle timer does to personas, put together from the services that do it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chorus_cli.services.sessions.idle import Keeping
from chorus_cli.storage.sqlite import persona_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from chorus_cli.core.log.messages import Message
    from chorus_cli.core.personas.persona import Persona
    from chorus_cli.services.log.journal import Journal
    from chorus_cli.services.personas.focus import Focus
    from chorus_cli.services.sessions.saving import Saved, SessionSaving
    from chorus_cli.storage.sqlite.store import Store


@dataclass(frozen=True, slots=True)
class IdleKeeping:
    """Looks at personas and keeps their talks; ``worded`` says what was saved."""

    store: Store
    focus: Focus
    saving: SessionSaving
    journal: Journal
    worded: Callable[[Saved], str]

    def keeping(self) -> Keeping:
        """Return it in the shape that the timer wants."""
        return Keeping(self._persona, self._last_spoken, self._unsaved, self._save, self.journal.clear_unless_spoken)

    async def _persona(self, slug: str) -> Persona:
        return await asyncio.to_thread(self.journal.personas.load, slug)

    async def _last_spoken(self, slug: str) -> datetime | None:
        return await self.store.read(persona_rows.last_spoken_at, slug)

    async def _unsaved(self, slug: str) -> Sequence[Message]:
        return await self.saving.unsaved(await self.focus.target_of(slug))

    async def _save(self, slug: str, description: str) -> str | None:
        saved = await self.saving.save_idle(await self.focus.target_of(slug), description)
        return self.worded(saved) if saved else None
