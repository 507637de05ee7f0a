"""The idle timer: after ``idle_minutes`` without a message, it saves a persona's conversation as a session.

Each persona has its own idle period and one task that waits for its end. The wall clock measures the period, because
that clock goes on while a laptop sleeps.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from chorus_cli.context.service.current import Current
from chorus_cli.context.service.journal import Journal
from chorus_cli.core.errors import ChorusError, UnknownPersonaError
from chorus_cli.core.text.phrases import shortened
from chorus_cli.core.time.timeline import gap
from chorus_cli.machine.ports import Clock
from chorus_cli.personas import rows as persona_rows
from chorus_cli.personas.rules.persona import Persona
from chorus_cli.sessions.service.sessions import Saved, Sessions
from chorus_cli.storage.store import Store

LONGEST_SLEEP_SECONDS = 60.0
EXIT_PATIENCE_SECONDS = 1.5
_LONGEST_SUMMARY = 400
_OFF = "off"
_SAVE_AND_CLEAR = "save+clear"


@dataclass(slots=True)
class IdleActions:
    """The actions of the idle timer, each for the persona ``slug``."""

    store: Store
    current: Current
    sessions: Sessions
    journal: Journal

    async def persona(self, slug: str) -> Persona:
        """Load the persona."""
        return await asyncio.to_thread(self.journal.personas.load, slug)

    async def last_spoken(self, slug: str) -> datetime | None:
        """Return the time of the persona's newest message, whichever process stored it."""
        return await self.store.read(persona_rows.last_spoken_at, slug)

    async def save(self, slug: str) -> Saved | None:
        """Save a session; return ``None`` if there was nothing new to save."""
        return await self.sessions.save_idle(await self.current.target_of(slug))

    async def clear(self, slug: str, message_id: int) -> bool:
        """Clear the context unless the user has sent a message after ``message_id``; return whether it was cleared."""
        return await self.journal.clear_unless_spoken(slug, message_id)


@dataclass(slots=True)
class _IdlePeriod:
    """A period without a message to a persona; ``is_served`` says that the end of the period was handled."""

    slug: str
    began: datetime
    is_served: bool = False


@dataclass(slots=True)
class IdleTimer:
    """Waits for the end of the idle period of each persona that was in focus.

    ``tell`` shows a line to a user who may be typing.
    """

    clock: Clock
    actions: IdleActions
    in_focus: Callable[[], str]
    tell: Callable[[str], None]
    is_private: bool = False
    _periods: dict[str, _IdlePeriod] = field(default_factory=dict, init=False)
    _watches: dict[str, asyncio.Task[None]] = field(default_factory=dict, init=False)
    _saving: set[asyncio.Task[None] | None] = field(default_factory=set, init=False)
    _busy: int = field(default=0, init=False)
    _free: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _is_closed: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        """Let idle periods end until ``busy`` prevents it."""
        self._free.set()

    def arm(self) -> None:
        """Begin a new idle period of the persona in focus, unless the chat is private; a save in progress goes on."""
        if self._is_closed or self.is_private:
            return
        slug = self.in_focus()
        self._periods[slug] = _IdlePeriod(slug, self.clock.now())
        watch = self._watches.get(slug)
        if watch is None or watch.done():
            self._watches[slug] = asyncio.create_task(self._watch(slug), name=f"idle {slug}")

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Let no idle period end while a reply, a command or an editor goes on; then begin a new period."""
        self._busy += 1
        self._free.clear()
        try:
            yield
        finally:
            self._busy -= 1
            if not self._busy:
                self._free.set()
            self.arm()

    async def close(self, patience_seconds: float = EXIT_PATIENCE_SECONDS) -> None:
        """Stop the timer for good; cancel a save that is still in progress after ``patience_seconds``."""
        self._is_closed = True
        running = {watch for watch in self._watches.values() if not watch.done()}
        for watch in running - self._saving:
            watch.cancel()
        if running:
            _, late = await asyncio.wait(running, timeout=patience_seconds)
            for watch in late:
                watch.cancel()
            await asyncio.wait(running)

    async def _watch(self, slug: str) -> None:
        """Wait for the end of the idle period and handle it; then do the same for a newer period, if there is one."""
        while not self._is_closed and not (period := self._periods[slug]).is_served:
            try:
                told = await self._look(period)
            except UnknownPersonaError:
                # The persona was archived or deleted meanwhile; the next message to it tells the user.
                return
            except ChorusError as error:
                period.is_served = True
                told = f"Chorus could not save the conversation with {slug} after its idle time: {error}"
            if told:
                await self._free.wait()
                # If the terminal is gone, the prompt ends the chat.
                with suppress(ChorusError, OSError):
                    self.tell(told)

    async def _look(self, period: _IdlePeriod) -> str | None:
        """Sleep at most a minute if the idle period is not over; else handle its end and return the line to show."""
        await self._free.wait()
        # The settings are read at every look, so that a change takes effect without a new idle period.
        persona = await self.actions.persona(period.slug)
        idle, now = timedelta(minutes=persona.settings.idle_minutes), self.clock.now()
        lasted = now - period.began
        if lasted >= idle and (spoken := await self.actions.last_spoken(period.slug)):
            # A message of another process starts the period again, unless a wrong clock has dated it in the future.
            lasted = min(lasted, now - spoken) if spoken <= now else lasted
        if lasted < idle:
            # Sleeps are short, because the clock of a sleep stops while the machine is suspended.
            await self.clock.sleep(min((idle - lasted).total_seconds(), LONGEST_SLEEP_SECONDS))
            return None
        if not self._lasts(period):
            return None
        period.is_served = True
        return None if persona.settings.on_idle == _OFF else await self._keep(persona, period, lasted)

    async def _keep(self, persona: Persona, period: _IdlePeriod, lasted: timedelta) -> str | None:
        watch = asyncio.current_task()
        self._saving.add(watch)
        try:
            saved = await self.actions.save(persona.slug)
            if saved is None:
                return None
            silence = f"{gap(lasted)} of silence"
            summary = f": {shortened(saved.row.summary, _LONGEST_SUMMARY)}"
            if saved.problem:
                summary = f", but could not summarise it: {saved.problem}"
            whose, way = "", "/context undo"
            if persona.slug != self.in_focus():
                whose, way = f" {persona.slug}", f"/persona {persona.slug}, then /context undo,"
            told = f"Saved a session with {persona.name} after {silence}{summary} /context history{whose} lists it."
            if persona.settings.on_idle == _SAVE_AND_CLEAR and self._lasts(period):
                try:
                    if await self.actions.clear(persona.slug, saved.row.through_message_id or 0):
                        told += f"\nThe context is cleared; {way} brings it back."
                except ChorusError as error:
                    told += f"\nThe context could not be cleared: {error}"
            return told
        finally:
            self._saving.discard(watch)

    def _lasts(self, period: _IdlePeriod) -> bool:
        return self._periods[period.slug] is period and not self._busy and not self._is_closed
