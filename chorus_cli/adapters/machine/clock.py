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
    """Time as the machine keeps it."""

    def now(self) -> datetime:
        """Return the present moment in the local zone."""
        return datetime.now().astimezone()

    def monotonic(self) -> float:
        """Return seconds that only ever grow."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait without keeping anything else waiting."""
        await asyncio.sleep(seconds)


class Patience:
    """So many seconds of waiting, in one go or in several.

    They are counted in ticks: a process that was stopped by Ctrl-Z has missed one tick at most when it goes on, whereas
    a deadline would have passed although the answer lies ready.
    """

    def __init__(self, seconds: float) -> None:
        self._tick_seconds = seconds / _TICKS
        self._ticks_left = _TICKS

    @property
    def is_over(self) -> bool:
        """Whether all of it is used up."""
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
