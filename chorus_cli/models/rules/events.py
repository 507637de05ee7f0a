"""Events of a turn, from the request to the end of the reply."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from chorus_cli.log.rules.messages import Status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from chorus_cli.core.errors import ChorusError
    from chorus_cli.log.rules.calls import ToolCall
    from chorus_cli.log.rules.messages import Thought

_ASKS_AGAIN = "/retry asks again."
_MESSAGE, _PART = "Your message is kept", "The part that arrived is kept"
_KEPT = f"{_MESSAGE}; {_ASKS_AGAIN}"
ARRIVED = "What has arrived is kept."
"""Advice after an error within a reply, which a turn words anew: it knows whether words came, and what is kept."""

IN_LOG = f"Your message is in the log; {_ASKS_AGAIN}"
"""Advice for the chat after an error that leaves open whether anything was stored."""


@dataclass(frozen=True, slots=True)
class WaitBegun:
    """Nothing is stored yet, because another reply is being written in the thread; ``text`` says so to the user."""

    text: str


@dataclass(frozen=True, slots=True)
class WaitOver:
    """The turn that had to wait is stored now."""


@dataclass(frozen=True, slots=True)
class Asking:
    """The message is stored and ``model`` is being asked."""

    model: str


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of the reply."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """The next piece of the model's thoughts, mostly before the reply."""

    text: str


@dataclass(frozen=True, slots=True)
class ReplyEnd:
    """The provider's end of the reply.

    ``finish_reason`` is the provider's (``stop``, ``length``, …) and ``None`` if the stream ended without one, which
    means that it was cut. ``usage`` holds token counts as reported (``prompt_tokens``, ``completion_tokens``, …), or
    nothing. ``calls`` are the tools that the model calls, as far as the calls have come. ``thought_parts`` are the
    provider's own parts of the thoughts, as ``Thoughts`` has them.
    """

    finish_reason: str | None
    usage: Mapping[str, int] = field(default_factory=dict)
    calls: tuple[ToolCall, ...] = ()
    thought_parts: str = ""


@dataclass(frozen=True, slots=True)
class Notice:
    """A sentence for the user about the turn, not part of the reply."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """The model has called a tool, which is at work now; ``call`` is one line for the user, not yet safe to show.

    The first call of a reply has the ``thought`` before it.
    """

    call: str
    thought: Thought | None = None


@dataclass(frozen=True, slots=True)
class ToolUsed:
    """A tool has answered; ``outcome`` says in a few words what, as in ``3 messages``."""

    call: str
    outcome: str

    @property
    def line(self) -> str:
        """The call and its outcome in one line for the user, not yet safe to show."""
        return f"{self.call}: {self.outcome}"


@dataclass(frozen=True, slots=True)
class TurnDone:
    """The turn is over and its rows are written.

    ``error`` is why the reply broke off, if it did; ``message_id`` is the row of the reply. ``again`` tells the user
    how to get a reply, if no word of it came or the error is one within a reply. ``thought`` is how the model thought
    before it.
    """

    message_id: int
    status: Status
    usage: Mapping[str, int] = field(default_factory=dict)
    error: ChorusError | None = None
    again: str = _KEPT
    thought: Thought | None = None

    @property
    def complaint(self) -> str:
        """Sentences for the user: why the reply broke off and, unless it ended by itself, how to get one."""
        problem, within, advice = str(self.error).partition(ARRIVED)
        if self.status is Status.FAILED:
            told = (problem, advice, self.again)
        else:
            told = (problem, within and self.again.replace(_MESSAGE, _PART), advice)
        return " ".join(filter(None, (each.strip() for each in told)))


ModelEvent = TextDelta | ReasoningDelta | Notice | ReplyEnd
TurnEvent = WaitBegun | WaitOver | Asking | TextDelta | ReasoningDelta | Notice | ToolStarted | ToolUsed | TurnDone
