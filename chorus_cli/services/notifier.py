"""Sentences that services have for the user besides their results."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Listener = Callable[[str], None]


class Notifier:
    """Passes sentences on to the chat while it listens; without a listener they are dropped."""

    def __init__(self) -> None:
        self._listeners: list[tuple[Listener, Listener]] = []

    def progress(self, sentence: str) -> None:
        """Tell at once how the command that is being carried out gets on."""
        for listener, _ in self._listeners:
            listener(sentence)

    def aside(self, sentence: str) -> None:
        """Tell of work in the background; the sentence may wait until the prompt is back."""
        for _, listener in self._listeners:
            listener(sentence)

    @contextmanager
    def heard_by(self, progress: Listener, aside: Listener) -> Iterator[None]:
        """Pass sentences on to these listeners meanwhile."""
        listeners = (progress, aside)
        self._listeners.append(listeners)
        try:
            yield
        finally:
            self._listeners.remove(listeners)
