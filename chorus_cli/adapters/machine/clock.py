"""Time on this machine: the system's clock, and a timeout that does not run on while the process is stopped."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable

_Answer = TypeVar("_Answer")
_TICKS = 60


class SystemClock:
    """The system's clock."""

    def now(self) -> datetime:
        """Return the present moment in the local zone."""
        return datetime.now().astimezone()

    def monotonic(self) -> float:
        """Return seconds of a clock that never goes back."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait without blocking the event loop."""
        await asyncio.sleep(seconds)


class Patience:
    """A timeout, in seconds, for one wait or several.

    The time is counted in ticks: a process stopped by Ctrl-Z misses one tick at most, whereas a deadline would have
    passed when it continues, even if the answer has arrived.
    """

    def __init__(self, seconds: float) -> None:
        self._tick_seconds = seconds / _TICKS
        self._ticks_left = _TICKS

    @property
    def is_over(self) -> bool:
        """Whether the time is used up."""
        return self._ticks_left <= 0

    async def wait_for(self, awaitable: Awaitable[_Answer]) -> _Answer:
        """Await an answer.

        Raises:
            TimeoutError: it did not come in time.
        """
        async with asyncio.timeout(None) as watchdog:
            self._start_tick(watchdog)
            try:
                return await awaitable
            finally:
                self._ticking.cancel()

    def _start_tick(self, watchdog: asyncio.Timeout) -> None:
        self._ticking = asyncio.get_running_loop().call_later(self._tick_seconds, self._end_tick, watchdog)

    def _end_tick(self, watchdog: asyncio.Timeout) -> None:
        self._ticks_left -= 1
        if self.is_over:
            watchdog.reschedule(asyncio.get_running_loop().time())
        else:
            self._start_tick(watchdog)
