"""The idle timer: when nothing was said to a persona for its ``idle_minutes``, the talk is kept as a session.

Each persona has its own silence, and one task that waits for it to have lasted. How long it has lasted is the longer of
two measures: the monotonic clock, which nobody can set, and the wall clock, which goes on while a laptop sleeps. So a
machine that wakes after hours finds the silence over, at the latest one look later, and a clock that is set back delays
nothing; one that is set forward costs an early session at most.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from chorus_cli.core.context.preamble import gap
from chorus_cli.core.errors import ChorusError, UnknownPersonaError
from chorus_cli.core.log.messages import Role

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence
    from datetime import datetime

    from chorus_cli.core.log.messages import Message
    from chorus_cli.core.personas.persona import Persona
    from chorus_cli.ports import Clock

LONGEST_SLEEP_SECONDS = 60.0
EXIT_PATIENCE_SECONDS = 1.5
_LONGEST_DESCRIPTION = 80
_OFF = "off"
_SAVE_AND_CLEAR = "save+clear"


@dataclass(frozen=True, slots=True)
class Keeping:
    """How a persona's talk is looked at and kept, each by the persona's slug.

    ``persona`` reads the persona's files afresh. ``last_spoken`` tells when anything was last said to it, by whichever
    process. ``unsaved`` returns what is in context, in any thread, and was said since the last save. ``save`` takes a
    description and returns what the user is told, or nothing if there was nothing to save after all; it may be
    cancelled and then leaves nothing half-written. ``clear`` begins a new conversation, unless the user has said
    something after the message of that id, and returns whether it did.
    """

    persona: Callable[[str], Awaitable[Persona]]
    last_spoken: Callable[[str], Awaitable[datetime | None]]
    unsaved: Callable[[str], Awaitable[Sequence[Message]]]
    save: Callable[[str, str], Awaitable[str | None]]
    clear: Callable[[str, int], Awaitable[bool]]


class _Silence:
    """A stretch in which nothing is said to a persona: when it began, and whether it was seen to already."""

    def __init__(self, slug: str, clock: Clock) -> None:
        self.slug = slug
        self.is_served = False
        self._clock = clock
        self._began = clock.now()
        self._began_monotonic = clock.monotonic()

    def seconds(self, last_spoken: datetime | None = None) -> float:
        """Return how long it has lasted; what was said at ``last_spoken``, in another window perhaps, has broken it."""
        now = self._clock.now()
        lasted = max((now - self._began).total_seconds(), self._clock.monotonic() - self._began_monotonic)
        # A moment in the future was written by a clock that was set back since, and tells nothing.
        if last_spoken is not None and last_spoken <= now:
            lasted = min(lasted, (now - last_spoken).total_seconds())
        return lasted


class IdleTimer:
    """Waits for the silence of every persona that was in focus.

    ``in_focus`` is the slug of the persona in front of the user. ``tell`` shows a line to a user who may be typing.
    ``report_bug`` keeps a traceback and returns the sentence that says where.
    """

    def __init__(
        self,
        clock: Clock,
        keeping: Keeping,
        in_focus: Callable[[], str],
        tell: Callable[[str], None],
        report_bug: Callable[[Exception], str],
    ) -> None:
        self._clock = clock
        self._keeping = keeping
        self._in_focus = in_focus
        self._tell = tell
        self._report_bug = report_bug
        self._silences: dict[str, _Silence] = {}
        self._watches: dict[str, asyncio.Task[None]] = {}
        self._saving: set[asyncio.Task[None] | None] = set()
        self._busy = 0
        self._free = asyncio.Event()
        self._free.set()
        self._is_closed = False

    def arm(self) -> None:
        """Begin a new silence of the persona in focus; a save in progress is not disturbed."""
        if self._is_closed:
            return
        slug = self._in_focus()
        self._silences[slug] = _Silence(slug, self._clock)
        watch = self._watches.get(slug)
        if watch is None or watch.done():
            self._watches[slug] = asyncio.create_task(self._watch(slug), name=f"idle {slug}")

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Let no silence end and nothing be told meanwhile; afterwards that of the persona then in focus begins anew.

        For whatever keeps the user or the screen occupied: a reply, a command, an editor.
        """
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
        """Stop waiting, for good; a save in progress has ``patience_seconds`` to end before it is abandoned."""
        self._is_closed = True
        running = {watch for watch in self._watches.values() if not watch.done()}
        _cancel(running - self._saving)
        if running:
            _, late = await asyncio.wait(running, timeout=patience_seconds)
            _cancel(late)
        if running:
            await asyncio.wait(running)

    async def _watch(self, slug: str) -> None:
        """Wait for the silence in force, see to it once, and go on with the one that has begun meanwhile, if any."""
        while not self._is_closed and not (silence := self._silences[slug]).is_served:
            try:
                told = await self._look(silence)
            except UnknownPersonaError:
                # It was put away meanwhile; who still wants it is told when something is said to it.
                return
            except ChorusError as error:
                silence.is_served = True
                told = f"The talk with {slug} could not be saved after a while of silence: {error}"
            except Exception as error:  # noqa: BLE001 - what goes wrong behind the user's back must not end the talk
                silence.is_served = True
                told = self._report_bug(error)
            if told:
                await self._free.wait()
                # A terminal that is gone is found out by the prompt.
                with suppress(ChorusError, OSError):
                    self._tell(told)

    async def _look(self, silence: _Silence) -> str | None:
        """Sleep for a while if the silence has not lasted yet, else see to it and return what the user is told."""
        await self._free.wait()
        # The settings are read at every look: a change takes effect although nobody armed the timer for it.
        persona = await self._keeping.persona(silence.slug)
        idle_seconds = persona.settings.idle_minutes * 60
        lasted = silence.seconds()
        if lasted >= idle_seconds:
            lasted = silence.seconds(await self._keeping.last_spoken(silence.slug))
        if lasted < idle_seconds:
            # Sleeping is measured by a clock that stands still while the machine sleeps, hence not at a stretch.
            await self._clock.sleep(min(idle_seconds - lasted, LONGEST_SLEEP_SECONDS))
            return None
        if not self._lasts(silence):
            return None
        silence.is_served = True
        return None if persona.settings.on_idle == _OFF else await self._keep(persona, silence, lasted)

    async def _keep(self, persona: Persona, silence: _Silence, seconds: float) -> str | None:
        watch = asyncio.current_task()
        self._saving.add(watch)
        try:
            unsaved = await self._keeping.unsaved(persona.slug)
            saved = await self._keeping.save(persona.slug, described(unsaved)) if unsaved else None
            if not saved:
                return None
            told = f"Nothing was said to {persona.name} for {gap(timedelta(seconds=seconds))}. {saved}"
            if persona.settings.on_idle == _SAVE_AND_CLEAR and self._lasts(silence):
                told += await self._cleared(persona.slug, max(message.id for message in unsaved))
            return told
        finally:
            self._saving.discard(watch)

    async def _cleared(self, slug: str, through_message_id: int) -> str:
        """Clear the context if all that was said is saved, and return the line that says so."""
        try:
            cleared = await self._keeping.clear(slug, through_message_id)
        except ChorusError as error:
            return f"\nThe context could not be cleared: {error}"
        return "\nThe context is cleared; /context undo brings it back." if cleared else ""

    def _lasts(self, silence: _Silence) -> bool:
        return self._silences[silence.slug] is silence and not self._busy and not self._is_closed


def described(messages: Sequence[Message]) -> str:
    """Return the first line that the user says in ``messages``, or anybody if the user says nothing, shortened."""
    said = [message for message in messages if message.role is Role.USER] or messages
    line = next(
        (" ".join(line.split()) for message in said for line in message.content.split("\n") if line.strip()), ""
    )
    return line if len(line) <= _LONGEST_DESCRIPTION else f"{line[: _LONGEST_DESCRIPTION - 1]}…"


def _cancel(tasks: set[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
