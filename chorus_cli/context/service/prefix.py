"""The prefix that a provider's cache knows: where the requests of each thread begin.

While a prefix is warm, the window starts where the last request began, the system message has the same memory items,
and messages that had no room stay out; so request N begins request N+1, byte for byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from chorus_cli.context.rules.snapshot import RequestStart
from chorus_cli.core.time.window import cutoff

if TYPE_CHECKING:
    from datetime import datetime

    from chorus_cli.context.rules.plan import RequestPlan
    from chorus_cli.memory.rules.items import Item
    from chorus_cli.personas.rules.target import Target

_COLD_AFTER = timedelta(minutes=5)
_LONGEST_HELD = timedelta(hours=1)
_SHARE_OF_WINDOW = 8


@dataclass(frozen=True, slots=True)
class _Prefix:
    """The start of the last request, the settings it was made for, and when its window was made and last used.

    ``operation_id`` is the newest operation then. ``first_message_id`` is ``None`` if the request left nothing out.
    ``hot`` are the memory items of its system message, ``summary_id`` the fold that wrote its summary.
    """

    window: datetime
    hours: int
    model: str
    operation_id: int
    made_at: datetime
    used_at: datetime
    first_message_id: int | None
    hot: tuple[Item, ...]
    summary_id: int | None
    limit: int | None

    def is_warm(self, target: Target, now: datetime, operation_id: int) -> bool:
        """Return whether a request made now goes on with the window."""
        hours = target.persona.settings.context_hours
        longest = min(_LONGEST_HELD, timedelta(hours=hours) / _SHARE_OF_WINDOW)
        return (
            (self.hours, self.limit) == (hours, target.persona.settings.context_token_limit)
            and (self.model, self.operation_id) == (target.choice.model, operation_id)
            and now - self.used_at <= _COLD_AFTER
            # In both directions: a clock that is set back by a little brings nothing back that had left the window.
            and abs(now - self.made_at) <= longest
        )


class Prefixes:
    """The prefixes of this process, by persona and thread."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], _Prefix] = {}

    def request_start(self, target: Target, now: datetime, operation_id: int) -> RequestStart:
        """Return the start of a request that is made now.

        ``operation_id`` is the newest operation that breaks the prefix: a new one renews the window; so does another
        model, a pause of five minutes, or an eighth of the window, at most an hour, in either direction of the clock:
        one that is set back by less lets a window last twice as long at most.
        """
        known = self._known.get((target.persona.slug, target.thread_id))
        if known is None:
            return RequestStart(cutoff(now, target.persona.settings.context_hours))
        if known.is_warm(target, now, operation_id):
            return RequestStart(known.window, known.first_message_id, known.hot, known.summary_id)
        window = cutoff(now, target.persona.settings.context_hours)
        return RequestStart(window, known.first_message_id)

    def last_window(self, target: Target) -> datetime | None:
        """Return the start of the window of the last request of this process; ``None`` if there was none."""
        known = self._known.get((target.persona.slug, target.thread_id))
        return known.window if known is not None else None

    def hold(self, plan: RequestPlan, now: datetime) -> None:
        """Let the requests that follow begin as this one, which is made now.

        Its first message counts only if it left older ones out: leaving out one turn more each time would change the
        beginning of each request, and no cache would help.
        """
        snapshot = plan.snapshot
        target, window = snapshot.frame.target, snapshot.view.cutoff
        key = target.persona.slug, target.thread_id
        known = self._known.get(key)
        self._known[key] = _Prefix(
            window,
            target.persona.settings.context_hours,
            target.choice.model,
            snapshot.newest_operation_id,
            known.made_at if known is not None and known.window == window else now,
            now,
            plan.begins_at if plan.too_large else None,
            snapshot.hot,
            snapshot.view.summary.operation_id if snapshot.view.summary else None,
            target.persona.settings.context_token_limit,
        )
