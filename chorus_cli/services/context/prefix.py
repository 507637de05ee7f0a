"""The prefix that a provider's cache knows: where the requests of each thread begin.

While a prefix is warm, the window starts where the last request began, and messages that had no room stay out; so
request N begins request N+1, byte for byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from chorus_cli.core.context.view import cutoff

if TYPE_CHECKING:
    from datetime import datetime

    from chorus_cli.core.context.plan import RequestPlan
    from chorus_cli.core.context.snapshot import ContextSnapshot, Target

_COLD_AFTER = timedelta(minutes=5)
_LONGEST_HELD = timedelta(hours=1)
_SHARE_OF_WINDOW = 8


@dataclass(frozen=True, slots=True)
class _WindowStart:
    """The start of a window, the settings it was made for, and the times when it was made and last used."""

    cutoff: datetime
    hours: int
    model: str
    operation_id: int
    made_at: datetime
    used_at: datetime

    def is_warm(self, target: Target, now: datetime, operation_id: int) -> bool:
        """Return whether a request made now goes on with the prefix."""
        hours = target.persona.settings.context_hours
        longest = min(_LONGEST_HELD, timedelta(hours=hours) / _SHARE_OF_WINDOW)
        return (
            (self.hours, self.model, self.operation_id) == (hours, target.choice.model, operation_id)
            and now - self.used_at <= _COLD_AFTER
            # In both directions: a clock that is set back by a little brings nothing back that had left the window.
            and abs(now - self.made_at) <= longest
        )


class Prefixes:
    """The window starts and first messages in force, by persona and thread."""

    def __init__(self) -> None:
        self._starts: dict[tuple[str, int], _WindowStart] = {}
        self._first_messages: dict[tuple[str, int], int] = {}

    def window_start(self, target: Target, now: datetime, operation_id: int) -> datetime:
        """Return where the window begins for a request that is made now.

        ``operation_id`` is the newest operation on the thread: an operation renews the window, and so does another
        model, a pause of five minutes, or an eighth of the window, at most an hour, in either direction of the clock:
        one that is set back by less lets a window last twice as long at most.
        """
        start = self._starts.get(_key(target))
        if start is not None and start.is_warm(target, now, operation_id):
            return start.cutoff
        return cutoff(now, target.persona.settings.context_hours)

    def last_window_start(self, target: Target) -> datetime | None:
        """Return where the window of the last request of this process began; ``None`` if there was none."""
        start = self._starts.get(_key(target))
        return start.cutoff if start is not None else None

    def hold_window(self, snapshot: ContextSnapshot, now: datetime, operation_id: int) -> None:
        """Let the windows of the requests that follow start as that of the request made now."""
        target, since = snapshot.target, snapshot.view.cutoff
        start = self._starts.get(_key(target))
        made_at = start.made_at if start is not None and start.cutoff == since else now
        hours = target.persona.settings.context_hours
        self._starts[_key(target)] = _WindowStart(since, hours, target.choice.model, operation_id, made_at, now)

    def first_message_id(self, target: Target) -> int | None:
        """Return the message that the last request began with; ``None`` if it left nothing out."""
        return self._first_messages.get(_key(target))

    def hold_first_message(self, plan: RequestPlan) -> None:
        """Let the requests that follow begin with the first message of this one, if it left older ones out.

        Leaving out one turn more each time would change the beginning of each request, and no cache would help.
        """
        key = _key(plan.snapshot.target)
        if plan.too_large and plan.sent:
            self._first_messages[key] = plan.sent[0].id
        else:
            self._first_messages.pop(key, None)


def _key(target: Target) -> tuple[str, int]:
    return target.persona.slug, target.thread_id
