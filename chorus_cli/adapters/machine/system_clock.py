"""The system's time."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime


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
