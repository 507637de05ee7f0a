"""How far back a persona's context reaches: set, shifted, reset, and put back by undo."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from chorus_cli.core.context.tokens import tokens_of
from chorus_cli.core.time import timespan
from chorus_cli.storage.sqlite.context import window_rows

if TYPE_CHECKING:
    from datetime import datetime

    from chorus_cli.core.context.snapshot import Target
    from chorus_cli.core.context.view import View
    from chorus_cli.core.log.messages import Message
    from chorus_cli.core.log.operations import Operation
    from chorus_cli.core.time.timespan import Span, WindowChoice
    from chorus_cli.ports import Clock
    from chorus_cli.services.context.context import Context
    from chorus_cli.services.personas.focus import Focus
    from chorus_cli.services.personas.settings import PersonaSettings


_HELD_ALREADY = "The default held already; nothing was changed."


@dataclass(frozen=True, slots=True)
class WindowState:
    """The window in force, the moment it reaches back to, the warning due, and the boundary if that is nearer."""

    hours: int
    since: datetime
    warning: str | None = None
    boundary: Operation | None = None


@dataclass(frozen=True, slots=True)
class Preview:
    """What another window would bring into the context and what it would drop, and what the messages weigh then.

    ``budget_tokens`` is what a whole request may have, ``dollars_per_token`` the price of its input if it is known.
    """

    state: WindowState
    hours_now: int
    entering: tuple[Message, ...]
    leaving: tuple[Message, ...]
    tokens_now: int
    tokens_then: int
    budget_tokens: int
    dollars_per_token: float | None


@dataclass(frozen=True, slots=True)
class ContextWindow:
    """Changes ``context_hours`` of the persona in focus; every change is an operation of the journal."""

    settings: PersonaSettings
    clock: Clock
    focus: Focus
    context: Context

    async def set(self, span: Span) -> WindowState:
        """Reach back ``span``, rounded to whole hours and brought within bounds."""
        choice = timespan.window_hours(span)
        await self.settings.set_window(self.focus.target().persona.slug, choice.hours)
        return await self.state(choice.warning)

    async def shift(self, span: Span, sign: Literal[1, -1]) -> WindowState:
        """Reach back ``span`` more (1) or less (-1)."""
        slug = self.focus.target().persona.slug
        choice = await self.settings.shift_window(slug, lambda hours: timespan.shifted(hours, span, sign))
        return await self.state(choice.warning)

    async def reset(self) -> WindowState:
        """Remove the setting, so that the default holds."""
        change = await self.settings.set_window(self.focus.target().persona.slug, None)
        return await self.state(None if change.changed else _HELD_ALREADY)

    async def state(self, warning: str | None = None) -> WindowState:
        """Return the window in force."""
        target = self.focus.target()
        now = self.clock.now()
        return _state(target, await self.context.seen(target, now), warning)

    async def moments(self, since: datetime) -> list[datetime]:
        """Return when something was said in the thread after ``since``, in context or not."""
        return await self.context.store.read(window_rows.moments, self.focus.target().thread_id, since)

    async def preview(self, choice: WindowChoice) -> Preview:
        """Return what the window ``choice`` would change; nothing is."""
        target = self.focus.target()
        settings = replace(target.persona.settings, context_hours=choice.hours)
        other = replace(target, persona=replace(target.persona, settings=settings))
        now = self.clock.now()
        seen, would_see = await self.context.seen(target, now), await self.context.seen(other, now)
        return Preview(
            state=_state(other, would_see),
            hours_now=target.persona.settings.context_hours,
            entering=_only_in(would_see, seen),
            leaving=_only_in(seen, would_see),
            tokens_now=sum(map(tokens_of, seen.messages)),
            tokens_then=sum(map(tokens_of, would_see.messages)),
            budget_tokens=(await self.context.budget(target)).tokens,
            dollars_per_token=await self.context.input_price(target.choice.model),
        )


def _state(target: Target, seen: View, warning: str | None = None) -> WindowState:
    hours = target.persona.settings.context_hours
    nearer = seen.base if seen.base is not None and seen.base.created_at > seen.cutoff else None
    return WindowState(hours, seen.cutoff, warning, nearer)


def _only_in(view: View, other: View) -> tuple[Message, ...]:
    known = {message.id for message in other.messages}
    return tuple(message for message in view.messages if message.id not in known)
