"""The progress of a purge that looks for repetitions, told while it is looked for."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from chorus_cli.core.errors import PurgeError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from chorus_cli.machine.ports import Clock

_SILENCE_SECONDS = 2.0


class Progress:
    """Tells every few seconds of texts that are compared on another thread, and ends that once it is left."""

    def __init__(self, clock: Clock, tell: Callable[[str], None]) -> None:
        self._clock = clock
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._compared = 0
        self._told_at = clock.monotonic()
        self._is_left = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._is_left = True

    def look(self, number: int) -> None:
        """Count texts that were compared.

        Raises:
            PurgeError: nobody waits for the end any more.
        """
        if self._is_left:
            raise PurgeError("Nothing was purged.")
        self._compared += number
        now = self._clock.monotonic()
        if now - self._told_at >= _SILENCE_SECONDS:
            self._told_at = now
            sentence = f"Looking for repetitions: {self._compared:,} texts compared so far."
            self._loop.call_soon_threadsafe(self._tell, sentence)
