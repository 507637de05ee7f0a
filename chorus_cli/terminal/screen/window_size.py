"""The size of the terminal's window, which its user may be changing at the moment."""

from __future__ import annotations

import asyncio
import shutil
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

_REST_SECONDS = 0.35
"""tmux tells a program every quarter of a second at most, so that between two sizes it may have any."""


class WindowSize:
    """What ``size`` says, and for how long it has said so; ``monotonic`` tells the time in seconds."""

    def __init__(
        self,
        monotonic: Callable[[], float] = time.monotonic,
        size: Callable[[], os.terminal_size] = shutil.get_terminal_size,
    ) -> None:
        self._size = size
        self._monotonic = monotonic
        self._seen = size()
        self._rests_at = monotonic()

    def current(self) -> os.terminal_size:
        """Return the size as it is."""
        return self._size()

    async def come_to_rest(self) -> None:
        """Wait until the size has been the same for a while, if it is another than last time.

        Painting over what a window of another size shows would erase too much, or too little.
        """
        while (seconds := self._unrest_seconds()) > 0:  # noqa: ASYNC110 - nobody tells that it rests
            await asyncio.sleep(seconds)

    def _unrest_seconds(self) -> float:
        now, size = self._monotonic(), self._size()
        if size != self._seen:
            self._seen, self._rests_at = size, now + _REST_SECONDS
        return self._rests_at - now
