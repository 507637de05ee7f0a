"""Work that is done to its end although its caller is cancelled."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")


async def run_to_completion(work: Awaitable[T], hurry: Callable[[], None] | None = None) -> tuple[T, bool]:
    """Do ``work`` to its end and return its result, and whether the caller was cancelled meanwhile.

    ``hurry`` is called at each cancellation, to bring that end about sooner.

    Raises:
        Exception: the error of ``work``.
    """
    task = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            cancelled = True
            if hurry is not None:
                hurry()
    return task.result(), cancelled
