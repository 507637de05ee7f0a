"""A talk that falls silent, in a time that a test lets pass, and what is done about it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from chorus_cli.core.errors import UnknownPersonaError
from chorus_cli.log.rules.messages import Message, Role
from chorus_cli.personas.rules.persona import Persona
from chorus_cli.sessions.service.idle import IdleActions, IdleTimer
from chorus_cli.settings.rules.table import Settings
from tests.fakes import START, FakeClock

HALF_AN_HOUR = timedelta(minutes=30)
ONE_MINUTE = timedelta(minutes=1)
ALMOST = timedelta(minutes=29, seconds=59)
A_SECOND = timedelta(seconds=1)


class PatientClock(FakeClock):
    """Time in which a sleeper sleeps until a test lets its time pass; ``suspend`` is what a laptop does."""

    def __init__(self) -> None:
        super().__init__()
        self._sleepers: list[tuple[float, asyncio.Event]] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        sleeper = (self.monotonic() + seconds, asyncio.Event())
        self._sleepers.append(sleeper)
        try:
            await sleeper[1].wait()
        finally:
            self._sleepers.remove(sleeper)

    @property
    def next_waking(self) -> float:
        return min((moment for moment, _ in self._sleepers), default=float("inf"))

    async def pass_by(self, elapsed: timedelta) -> None:
        """Let time pass and wake everybody at the due moment, in turn."""
        end = self.monotonic() + elapsed.total_seconds()
        await settled()
        while (due := self.next_waking) <= end:
            self.advance(timedelta(seconds=due - self.monotonic()))
            for moment, wake in self._sleepers:
                if moment <= due:
                    wake.set()
            await settled()
        self.advance(timedelta(seconds=end - self.monotonic()))
        await settled()

    def suspend(self, elapsed: timedelta) -> None:
        """Have the machine sleep: only the wall clock goes on."""
        self._now += elapsed


async def settled() -> None:
    """Let every task go as far as it can without time passing."""
    for _ in range(30):
        await asyncio.sleep(0)


def watches() -> list[str]:
    """Return the tasks of timers that are not done."""
    return [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("idle")]


def message(id_: int, content: str, role: Role = Role.USER, at: datetime = START) -> Message:
    return Message(id_, "chorus", 1, id_, role, content, at)


@dataclass
class Talk:
    """What is said to some personas, the sessions that are saved of it, and the timer that does so."""

    clock: PatientClock
    personas: dict[str, Persona] = field(default_factory=lambda: {"chorus": Persona("chorus", Settings())})
    in_focus: str = "chorus"
    log: dict[str, list[Message]] = field(default_factory=dict)
    saved_through: dict[str, int] = field(default_factory=dict)
    elsewhere: dict[str, datetime] = field(default_factory=dict)
    saved: list[tuple[str, str]] = field(default_factory=list)
    cleared: list[tuple[str, int]] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    bugs: list[Exception] = field(default_factory=list)
    fails: list[Exception] = field(default_factory=list)
    summary: asyncio.Event | None = None
    timer: IdleTimer = field(init=False)

    def __post_init__(self) -> None:
        self.timer = self.restarted()

    def restarted(self) -> IdleTimer:
        """Make a timer as another process would, which knows only what was stored."""
        return IdleTimer(self.clock, SilentTalk(self), lambda: self.in_focus, self.told.append, self._report_bug)

    def set(self, slug: str = "chorus", **chosen: int | str) -> None:
        known = self.personas.get(slug, Persona(slug, Settings()))
        # The names are those of the settings, which the callers of a test write down.
        self.personas[slug] = known._replace(settings=known.settings._replace(**chosen))  # type: ignore[arg-type]

    def say(self, *lines: str) -> None:
        """Say something to the persona in focus, as the chat does: busy while it answers."""
        with self.timer.busy():
            for line in lines:
                self.log.setdefault(self.in_focus, []).append(message(self.newest() + 1, line, at=self.clock.now()))

    def turn_to(self, slug: str) -> None:
        with self.timer.busy():
            self.in_focus = slug

    def newest(self) -> int:
        return max((said.id for talk in self.log.values() for said in talk), default=0)

    def _report_bug(self, error: Exception) -> str:
        self.bugs.append(error)
        return "That is a bug."


class SilentTalk(IdleActions):
    """What a timer does about a talk."""

    def __init__(self, talk: Talk) -> None:
        self.talk = talk

    async def persona(self, slug: str) -> Persona:
        if slug not in self.talk.personas:
            raise UnknownPersonaError(slug, ())
        return self.talk.personas[slug]

    async def last_spoken(self, slug: str) -> datetime | None:
        here = [said.timestamp for said in self.talk.log.get(slug, ())]
        return max([*here, *([self.talk.elsewhere[slug]] if slug in self.talk.elsewhere else [])], default=None)

    async def unsaved(self, slug: str) -> list[Message]:
        return [said for said in self.talk.log.get(slug, ()) if said.id > self.talk.saved_through.get(slug, 0)]

    async def save(self, slug: str, description: str) -> str | None:
        through = self.talk.newest()
        if self.talk.summary is not None:
            await self.talk.summary.wait()
        if self.talk.fails:
            raise self.talk.fails.pop()
        self.talk.saved.append((slug, description))
        self.talk.saved_through[slug] = through
        return f"Saved session {len(self.talk.saved)}: they spoke of {description}."

    async def clear(self, slug: str, message_id: int) -> bool:
        if self.talk.fails:
            raise self.talk.fails.pop()
        if self.talk.newest() > message_id:
            return False
        self.talk.cleared.append((slug, message_id))
        self.talk.log[slug] = []
        return True
