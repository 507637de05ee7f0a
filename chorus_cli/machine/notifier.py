"""What work in the background says to the user, and work that a cancellation does not interrupt."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

Listener = Callable[[str], None]


class Notifier:
    """Passes sentences on to the chat while it listens; without a listener they are dropped."""

    def __init__(self) -> None:
        self._listeners: list[tuple[Listener, Listener, Listener]] = []

    def progress(self, sentence: str) -> None:
        """Tell at once how the command that is being carried out gets on."""
        for progress, _, _ in self._listeners:
            progress(sentence)

    def aside(self, sentence: str) -> None:
        """Tell of work in the background; the sentence may wait until the prompt is back."""
        for _, aside, _ in self._listeners:
            aside(sentence)

    def done(self, sentence: str) -> None:
        """Tell that a reply or a job in the background has ended, as an aside that the terminal rings for."""
        for _, _, done in self._listeners:
            done(sentence)

    @contextmanager
    def heard_by(self, progress: Listener, aside: Listener, done: Listener | None = None) -> Iterator[None]:
        """Pass sentences on to these listeners meanwhile; without ``done`` its sentences are asides too."""
        listeners = (progress, aside, done or aside)
        self._listeners.append(listeners)
        try:
            yield
        finally:
            self._listeners.remove(listeners)


T = TypeVar("T")


async def run_to_completion(work: Awaitable[T], hurry: Callable[[], None] | None = None) -> tuple[T, bool]:
    """Do ``work`` to its end, and return also whether the caller was cancelled, which calls ``hurry``."""
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
