"""Where the window of each conversation begins, held still while a provider remembers the beginning of the request.

A window that slid with every message would change what a request begins with, and no prompt cache would ever help.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from chorus_cli.core.context.view import cutoff

if TYPE_CHECKING:
    from datetime import datetime

    from chorus_cli.core.context.snapshot import Target

_COLD_AFTER = timedelta(minutes=5)
_LONGEST_HELD = timedelta(hours=1)
_SHARE_OF_WINDOW = 8


@dataclass(frozen=True, slots=True)
class _Held:
    """A beginning, what it was made for, and when it was made and last used."""

    cutoff: datetime
    hours: int
    model: str
    operation_id: int
    made_at: datetime
    used_at: datetime


class HeldCutoffs:
    """The beginnings in force, by persona and thread."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, int], _Held] = {}

    def cutoff(self, target: Target, now: datetime, operation_id: int) -> datetime:
        """Return where the window begins for a request that is made now.

        ``operation_id`` is the newest operation that concerns the thread: whatever was done to the context begins the
        request anew, and so does another model, a pause of five minutes, or an eighth of the window, at most an hour,
        in either direction of the clock: one that is set back by less lets a beginning last twice as long at most.
        """
        held = self._held.get(_key(target))
        if held is not None and _is_warm(held, target, now, operation_id):
            return held.cutoff
        return cutoff(now, target.persona.settings.context_hours)

    def last(self, target: Target) -> datetime | None:
        """Return where the last request of this process began, however long ago; ``None`` if there was none."""
        held = self._held.get(_key(target))
        return held.cutoff if held is not None else None

    def hold(self, target: Target, since: datetime, now: datetime, operation_id: int) -> None:
        """Let the requests that follow begin at ``since``, as the one that is made now."""
        held = self._held.get(_key(target))
        made_at = held.made_at if held is not None and held.cutoff == since else now
        hours = target.persona.settings.context_hours
        self._held[_key(target)] = _Held(since, hours, target.choice.model, operation_id, made_at, now)


def _key(target: Target) -> tuple[str, int]:
    return target.persona.slug, target.thread_id


def _is_warm(held: _Held, target: Target, now: datetime, operation_id: int) -> bool:
    hours = target.persona.settings.context_hours
    longest = min(_LONGEST_HELD, timedelta(hours=hours) / _SHARE_OF_WINDOW)
    return (
        (held.hours, held.model, held.operation_id) == (hours, target.choice.model, operation_id)
        and now - held.used_at <= _COLD_AFTER
        # In both directions: a clock that is set back by a little brings nothing back that had left the window.
        and abs(now - held.made_at) <= longest
    )
