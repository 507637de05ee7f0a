"""How far back a persona's context reaches: set, shifted, reset, and put back by undo."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from chorus_cli.context.rows import thread_views
from chorus_cli.core.time import timespan
from chorus_cli.core.time.timeline import MAXIMUM_CONTEXT_HOURS
from chorus_cli.core.time.timestamps import cutoff
from chorus_cli.log.rows import operation_rows
from chorus_cli.log.rules.wording import reach

if TYPE_CHECKING:
    from datetime import datetime

    from chorus_cli.context.rules.view import ContextSnapshot
    from chorus_cli.context.service.context import Context
    from chorus_cli.context.service.current import Current
    from chorus_cli.core.time.timespan import Span, WindowChoice
    from chorus_cli.log.rules.operations import Operation
    from chorus_cli.machine.ports import Clock
    from chorus_cli.personas.service.persona_admin import PersonaAdmin
    from chorus_cli.storage.store import Connection


_NO_FURTHER = "No window reaches further back; /context edit brings in older messages that you choose."
_HELD_ALREADY = "The default held already; nothing was changed."


class WindowState(NamedTuple):
    """The window in force, the moment it reaches back to, the warning due, and the newest boundary of the context.

    ``is_out_of_reach`` says whether messages since the boundary are too old for any window.
    """

    hours: int
    since: datetime
    warning: str | None = None
    boundary: Operation | None = None
    is_out_of_reach: bool = False

    def confirmation(self) -> str:
        """Confirm a new window, with a warning if it was clamped, and the way to messages that no window reaches."""
        change = f"Context window set to {self.hours}h"
        older = _NO_FURTHER if self.is_out_of_reach else ""
        return "\n".join(filter(None, [self.warning, change, reach(self.since, self.boundary), older]))

    def reset_confirmation(self) -> str:
        """Confirm that the default holds again, with a warning if it did before."""
        change = f"Context window reset to default ({self.hours}h)"
        return "\n".join(filter(None, [change, self.warning, reach(self.since, self.boundary)]))


class Preview(NamedTuple):
    """The context as it is and as another window would make it; the price of a token of input, if it is known."""

    present: ContextSnapshot
    then: ContextSnapshot
    dollars_per_token: float | None


@dataclass(frozen=True, slots=True)
class ContextWindow:
    """Changes ``context_hours`` of the persona in focus; every change is an operation of the journal."""

    persona_admin: PersonaAdmin
    clock: Clock
    current: Current
    context: Context

    async def set(self, span: Span) -> WindowState:
        """Reach back ``span``, rounded to whole hours and brought within bounds."""
        choice = timespan.window_hours(span)
        await self.persona_admin.set_window(self.current.slug, choice.hours)
        return await self.begun(choice.hours, choice.warning)

    async def shift(self, span: Span, sign: Literal[1, -1]) -> WindowState:
        """Reach back ``span`` more (1) or less (-1)."""
        slug = self.current.slug
        choice = await self.persona_admin.shift_window(slug, lambda hours: timespan.shifted(hours, span, sign))
        return await self.begun(choice.hours, choice.warning)

    async def reset(self) -> WindowState:
        """Remove the setting, so that the default holds."""
        change = await self.persona_admin.set_window(self.current.slug, None)
        return await self.state(None if change.changed else _HELD_ALREADY)

    async def state(self, warning: str | None = None) -> WindowState:
        """Return the window in force."""
        target = self.current.target()
        view = (await self.context.snapshot(target, self.clock.now())).view
        return WindowState(target.persona.settings.context_hours, view.cutoff, warning, view.boundary)

    async def begun(self, hours: int, warning: str | None = None) -> WindowState:
        """Return the state of a window of so many hours that begins now."""
        since = cutoff(self.clock.now(), hours)
        store, thread_id = self.context.store, self.current.thread_id
        boundary = await store.read(operation_rows.boundary, self.current.slug, thread_id)
        is_longest = hours == MAXIMUM_CONTEXT_HOURS
        has_older = is_longest and await store.read(thread_views.has_older, self.current.slug, thread_id, since)
        return WindowState(hours, since, warning, boundary, has_older)

    async def preview(self, choice: WindowChoice) -> Preview:
        """Return the effect of the window ``choice``; nothing is changed."""
        target = self.current.target()
        settings = target.persona.settings._replace(context_hours=choice.hours)
        other = target._replace(persona=target.persona._replace(settings=settings))
        request_settings, now = await self.context.request_settings(target), self.clock.now()

        def read_both(connection: Connection) -> tuple[ContextSnapshot, ContextSnapshot]:
            changed = replace(request_settings, target=other)
            return self.context.read(connection, request_settings, now), self.context.read(connection, changed, now)

        present, then = await self.context.store.read(read_both)
        price = await asyncio.to_thread(self.context.dollars_per_input_token, target.choice.model)
        return Preview(await self.context.counted(present), await self.context.counted(then), price)
