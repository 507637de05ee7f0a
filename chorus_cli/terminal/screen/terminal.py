"""Properties of the terminal: its encoding, and the size of its window, which the user may be changing."""

from __future__ import annotations

import asyncio
import locale
import shutil
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

_REST_SECONDS = 0.35
"""tmux reports a size at most every quarter of a second; between two reports the window may have any size."""


def knows_unicode() -> bool:
    """Return whether the locale encodes text for the terminal as UTF-8."""
    return locale.getpreferredencoding(do_setlocale=False).lower().startswith("utf")


class WindowSize:
    """The size of the window, and since when it has been the same; ``monotonic`` returns the time in seconds."""

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
        """Return the current size."""
        return self._size()

    async def come_to_rest(self) -> None:
        """Wait until a changed size has been stable for a while.

        Rows painted at another size cannot be erased exactly.
        """
        for seconds in iter(self._unrest_seconds, 0.0):
            await asyncio.sleep(seconds)

    def _unrest_seconds(self) -> float:
        now, size = self._monotonic(), self._size()
        if size != self._seen:
            self._seen, self._rests_at = size, now + _REST_SECONDS
        return max(0.0, self._rests_at - now)
