"""Which message the last request of each conversation began with, where older ones had no room in it.

A request that left out one turn more each time would never begin as the one before, and no prompt cache would help.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chorus_cli.core.context.assembly import Prompt
    from chorus_cli.core.context.snapshot import Target


class HeldBeginnings:
    """The ids of those messages, by persona and thread."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, int], int] = {}

    def first(self, target: Target) -> int | None:
        """Return the message, ``None`` if the last request left nothing out or was of another process."""
        return self._first.get(_key(target))

    def hold(self, target: Target, prompt: Prompt) -> None:
        """Let the requests that follow begin as this one, which is about to be sent."""
        if prompt.too_large and prompt.sent:
            self._first[_key(target)] = prompt.sent[0].id
        else:
            self._first.pop(_key(target), None)


def _key(target: Target) -> tuple[str, int]:
    return target.persona.slug, target.thread_id
