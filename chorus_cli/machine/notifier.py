"""Passes sentences about background work to the user, and does work that a cancellation must not interrupt."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

Listener = Callable[[str], None]


class Notifier:
    """Passes sentences to the chat while the chat listens; without a listener, sentences are dropped."""

    def __init__(self) -> None:
        self._listeners: list[tuple[Listener, Listener, Listener]] = []

    def progress(self, sentence: str) -> None:
        """Tell the user at once about the progress of the running command."""
        for progress, _, _ in self._listeners:
            progress(sentence)

    def aside(self, sentence: str) -> None:
        """Tell the user about work in the background; the sentence may wait until the prompt is back."""
        for _, aside, _ in self._listeners:
            aside(sentence)

    def done(self, sentence: str) -> None:
        """Tell the user, with the terminal's bell, that a reply or a job in the background has ended."""
        for _, _, done in self._listeners:
            done(sentence)

    @contextmanager
    def heard_by(self, progress: Listener, aside: Listener, done: Listener | None = None) -> Iterator[None]:
        """Within this context, pass sentences to these listeners; without ``done``, use ``aside`` in its place."""
        listeners = (progress, aside, done or aside)
        self._listeners.append(listeners)
        try:
            yield
        finally:
            self._listeners.remove(listeners)


T = TypeVar("T")


async def run_to_completion(work: Awaitable[T], hurry: Callable[[], None] | None = None) -> tuple[T, bool]:
    """Return the result of ``work``, and whether the caller was cancelled meanwhile; a cancellation calls ``hurry``."""
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


async def to_its_end(work: Awaitable[T], hurry: Callable[[], None] | None = None) -> T:
    """Return the result of ``work``; a cancellation calls ``hurry``, and takes effect once the work has ended."""
    result, is_stopped = await run_to_completion(work, hurry)
    if is_stopped:
        raise asyncio.CancelledError
    return result


async def stoppable(work: Callable[[Callable[[], bool]], T]) -> T:
    """Do ``work`` in a thread; its parameter is a function that returns true after a cancellation, as a sign to end."""
    stopped = threading.Event()
    try:
        return await asyncio.to_thread(work, stopped.is_set)
    except asyncio.CancelledError:
        stopped.set()
        raise
