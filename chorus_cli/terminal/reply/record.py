"""A turn as a JSON value, for scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.log.rules.messages import Status
from chorus_cli.models.rules.events import ReasoningDelta, TextDelta, ToolStarted, TurnDone, WaitBegun, WaitOver

if TYPE_CHECKING:
    from collections.abc import Callable

    from chorus_cli.core.json.jsonc import JsonValue
    from chorus_cli.models.rules.events import TurnEvent
    from chorus_cli.personas.rules.target import Target


class TurnRecord:
    """Takes the events of a turn, and writes them as one value: the last reply, and facts about it.

    ``is_stored`` once the message is in the log; ``done`` is the last event, once it came. The ``seconds`` begin when
    the message is sent, after any wait for another reply.
    """

    def __init__(self, target: Target, monotonic: Callable[[], float]) -> None:
        self.is_stored = False
        self.done: TurnDone | None = None
        self._target = target
        self._monotonic = monotonic
        self._began = monotonic()
        self._words: list[str] = []
        self._thoughts: list[str] = []

    def take(self, event: TurnEvent) -> None:
        """Take the next event."""
        self.is_stored = not isinstance(event, WaitBegun)
        match event:
            case WaitOver():
                self._began = self._monotonic()
            case TextDelta(text):
                self._words.append(text)
            case ReasoningDelta(text):
                self._thoughts.append(text)
            case ToolStarted():
                self._words.clear()
                self._thoughts.clear()
            case TurnDone():
                self.done = event

    def as_json(self) -> dict[str, JsonValue]:
        """Return reply, usage, model, thread and seconds, thoughts if there are any, and the status if it broke off."""
        facts: dict[str, JsonValue] = {
            "reply": "".join(self._words),
            "usage": dict(self.done.usage) if self.done else {},
            "model": self._target.choice.model,
            "thread": self._target.thread_number,
            "seconds": round(self._monotonic() - self._began, 3),
        }
        if self._thoughts:
            facts["thoughts"] = "".join(self._thoughts)
        if self.done is not None and self.done.thought is not None:
            facts["thought_seconds"], facts["thought_tokens"] = self.done.thought
        if self.done is None or self.done.error is not None:
            facts["status"] = str(self.done.status if self.done else Status.INTERRUPTED)
        return facts
