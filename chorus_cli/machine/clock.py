"""The system's clock, a timeout that does not run while the process is stopped, and pauses for other tasks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from datetime import datetime
from typing import TypeVar

_Answer = TypeVar("_Answer")
_TICKS = 60
_LONGEST_TURN_SECONDS = 0.005


class SystemClock:
    """The system's clock."""

    def now(self) -> datetime:
        """Return the present moment in the local zone."""
        return datetime.now().astimezone()

    def monotonic(self) -> float:
        """Return the seconds of a clock that never goes back."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait without blocking the event loop."""
        await asyncio.sleep(seconds)


class Patience:
    """A timeout for one wait or several. It counts sixty ticks; a stop by Ctrl-Z, however long, costs only one tick."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._tick_seconds = self._tick_left = seconds / _TICKS
        self._ticks_left = _TICKS

    @property
    def is_over(self) -> bool:
        """Whether the time is used up."""
        return self._ticks_left <= 0

    async def wait_for(self, awaitable: Awaitable[_Answer]) -> _Answer:
        """Await an answer; raise a ``TimeoutError`` once all ticks are used up."""
        async with asyncio.timeout(None) as watchdog:
            self._next_tick(watchdog)
            try:
                return await awaitable
            finally:
                self._ticking.cancel()
                self._tick_left = max(0.0, self._ticking.when() - asyncio.get_running_loop().time())

    def _next_tick(self, watchdog: asyncio.Timeout) -> None:
        self._ticking = asyncio.get_running_loop().call_later(self._tick_left, self._end_tick, watchdog)
        self._tick_left = self._tick_seconds

    def _end_tick(self, watchdog: asyncio.Timeout) -> None:
        self._ticks_left -= 1
        if self.is_over:
            watchdog.reschedule(asyncio.get_running_loop().time())
        else:
            self._next_tick(watchdog)


class Pauses:
    """Lets the keyboard and other tasks run when the streams that share this object have taken five milliseconds."""

    def __init__(self) -> None:
        self._turn_began: float | None = None

    async def after_chunk(self) -> None:
        """Let other tasks run if this turn of the event loop has lasted for five milliseconds."""
        loop = asyncio.get_running_loop()
        if self._turn_began is None:
            self._turn_began = loop.time()
            loop.call_soon(self._end_turn)
        elif loop.time() - self._turn_began > _LONGEST_TURN_SECONDS:
            await asyncio.sleep(0)

    def _end_turn(self) -> None:
        self._turn_began = None
