"""The idle timer: after ``idle_minutes`` without a message, it saves a persona's conversation as a session.

Each persona has its own idle period and one task that waits for its end. The length of a period is the longer of two
measures: the monotonic clock, which nobody can set, and the wall clock, which goes on while a laptop sleeps.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from chorus_cli.core.errors import ChorusError, UnknownPersonaError
from chorus_cli.core.text.phrases import shortened
from chorus_cli.core.time.timeline import gap
from chorus_cli.log.rules.messages import Message, Role
from chorus_cli.personas import rows as persona_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from chorus_cli.context.service.current import Current
    from chorus_cli.context.service.journal import Journal
    from chorus_cli.machine.ports import Clock
    from chorus_cli.personas.rules.persona import Persona
    from chorus_cli.sessions.service.sessions import Sessions
    from chorus_cli.storage.store import Store

LONGEST_SLEEP_SECONDS = 60.0
EXIT_PATIENCE_SECONDS = 1.5
_LONGEST_DESCRIPTION = 80
_LONGEST_SUMMARY = 400
_OFF = "off"
_SAVE_AND_CLEAR = "save+clear"


@dataclass(slots=True)
class IdleActions:
    """The actions of the idle timer on a persona by its slug."""

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

    async def unsaved(self, slug: str) -> Sequence[Message]:
        """Return the messages in the context of all threads that are newer than the last save."""
        return await self.sessions.unsaved(await self.current.target_of(slug))

    async def save(self, slug: str, description: str) -> str | None:
        """Save a session and return the end of the sentence about it; ``None`` if there was nothing new to save."""
        saved = await self.sessions.save_idle(await self.current.target_of(slug), description)
        if saved is None:
            return None
        if saved.problem:
            return f", but could not summarise it: {saved.problem}"
        return f": {shortened(saved.row.summary, _LONGEST_SUMMARY)}"

    async def clear(self, slug: str, message_id: int) -> bool:
        """Clear the context unless the user has sent a message after ``message_id``; return whether it was cleared."""
        return await self.journal.clear_unless_spoken(slug, message_id)


class _IdlePeriod:
    """A period without a message to a persona; ``is_served`` says that the end of the period was handled."""

    def __init__(self, slug: str, clock: Clock) -> None:
        self.slug = slug
        self.is_served = False
        self._clock = clock
        self._began = clock.now()
        self._began_monotonic = clock.monotonic()

    def seconds(self, last_spoken: datetime | None = None) -> float:
        """Return the length of the period; a message at ``last_spoken``, from any process, begins it anew."""
        now = self._clock.now()
        lasted = max((now - self._began).total_seconds(), self._clock.monotonic() - self._began_monotonic)
        # A time in the future is of no use: it was stored before the clock was set back.
        if last_spoken is not None and last_spoken <= now:
            lasted = min(lasted, (now - last_spoken).total_seconds())
        return lasted


@dataclass(slots=True)
class IdleTimer:
    """Waits for the end of the idle period of each persona that was in focus.

    ``tell`` shows a line to a user who may be typing. ``report_bug`` stores a traceback and returns where it is.
    """

    clock: Clock
    actions: IdleActions
    in_focus: Callable[[], str]
    tell: Callable[[str], None]
    report_bug: Callable[[Exception], str]
    is_private: bool = False
    _periods: dict[str, _IdlePeriod] = field(default_factory=dict, init=False)
    _watches: dict[str, asyncio.Task[None]] = field(default_factory=dict, init=False)
    _saving: set[asyncio.Task[None] | None] = field(default_factory=set, init=False)
    _busy: int = field(default=0, init=False)
    _free: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _is_closed: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        """Let idle periods end until ``busy`` holds them up."""
        self._free.set()

    def arm(self) -> None:
        """Begin a new idle period of the persona in focus, unless the chat is private; a save in progress goes on."""
        if self._is_closed or self.is_private:
            return
        slug = self.in_focus()
        self._periods[slug] = _IdlePeriod(slug, self.clock)
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
        """Wait for the current idle period to end and handle its end, then do so for a newer period if there is one."""
        while not self._is_closed and not (period := self._periods[slug]).is_served:
            try:
                told = await self._look(period)
            except UnknownPersonaError:
                # The persona was archived or deleted meanwhile; the next message to it tells the user.
                return
            except ChorusError as error:
                if (early := LONGEST_SLEEP_SECONDS - period.seconds()) > 0:
                    # The settings cannot be read, but the user may be typing: report that after a minute of silence.
                    await self.clock.sleep(early)
                    continue
                period.is_served = True
                told = f"Chorus could not save the conversation with {slug} after its idle time: {error}"
            except Exception as error:  # noqa: BLE001 - a bug in the background must not end the chat
                period.is_served = True
                told = self.report_bug(error)
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
        idle_seconds = persona.settings.idle_minutes * 60
        lasted = period.seconds()
        if lasted >= idle_seconds:
            lasted = period.seconds(await self.actions.last_spoken(period.slug))
        if lasted < idle_seconds:
            # A sleep is short, because its clock stops while the machine is suspended.
            await self.clock.sleep(min(idle_seconds - lasted, LONGEST_SLEEP_SECONDS))
            return None
        if not self._lasts(period):
            return None
        period.is_served = True
        return None if persona.settings.on_idle == _OFF else await self._keep(persona, period, lasted)

    async def _keep(self, persona: Persona, period: _IdlePeriod, seconds: float) -> str | None:
        watch = asyncio.current_task()
        self._saving.add(watch)
        try:
            unsaved = await self.actions.unsaved(persona.slug)
            saved = await self.actions.save(persona.slug, described(unsaved)) if unsaved else None
            if not saved:
                return None
            silence = f"{gap(timedelta(seconds=seconds))} of silence"
            told = f"Saved a session with {persona.name} after {silence}{saved} /context history lists it."
            if persona.settings.on_idle == _SAVE_AND_CLEAR and self._lasts(period):
                try:
                    if await self.actions.clear(persona.slug, max(message.id for message in unsaved)):
                        told += "\nThe context is cleared; /context undo brings it back."
                except ChorusError as error:
                    told += f"\nThe context could not be cleared: {error}"
            return told
        finally:
            self._saving.discard(watch)

    def _lasts(self, period: _IdlePeriod) -> bool:
        return self._periods[period.slug] is period and not self._busy and not self._is_closed


def described(messages: Sequence[Message]) -> str:
    """Return the first line of the user's messages, or of all messages if the user wrote none, shortened."""
    said = [message for message in messages if message.role is Role.USER] or messages
    lines = (line for message in said for line in message.content.split("\n") if line.strip())
    return shortened(next(lines, ""), _LONGEST_DESCRIPTION)
