"""How a request to a model ended: the status of its reply, and the pause before a failed one is retried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chorus_cli.core import limits
from chorus_cli.core.errors import ModelError
from chorus_cli.log.rules.messages import Status
from chorus_cli.models.rules.events import ARRIVED, ReasoningDelta, TextDelta

if TYPE_CHECKING:
    from chorus_cli.log.rules.calls import ToolCall
    from chorus_cli.models.rules.events import ReplyEnd
    from chorus_cli.models.rules.request import ModelRequest

PAUSES_SECONDS = (1.0, 3.0)
LONGEST_PAUSE_SECONDS = 60.0

_CUT = "The reply of {model} broke off (the connection was cut)."
_NOTHING = (
    "The model sent no reply and no end of the stream. If you set the address of its server, check that the server "
    "speaks the API of this provider."
)
_EMPTY = "The model sent an empty reply. If that happens again, choose another model with /model."
_LENGTH = "The reply was cut off at the model's output limit."
_FILTERED = "The provider's content filter stopped the reply."
_ONLY_CALLS = (
    "The model went on calling tools instead of answering. Ask again in other words, or keep the tools from it with "
    "/settings set tools false."
)
_CUT_REASONS = frozenset({None, "length", "max_tokens", "content_filter"})


@dataclass(slots=True)
class Lengths:
    """The lengths of a reply and of the thoughts before it, so that one without an end is stopped."""

    said: int = 0
    thought: int = 0

    def take(self, event: object) -> None:
        """Count the next event.

        Raises:
            ModelError: the reply or the thoughts have become longer than any that is meant to be read.
        """
        match event:
            case TextDelta():
                self.said += len(event.text)
            case ReasoningDelta():
                self.thought += len(event.text)
        if self.said > limits.REPLY.most:
            raise ModelError(f"The reply was stopped at {limits.REPLY.size}.", advice=ARRIVED)
        if self.thought > limits.THOUGHTS.most:
            raise ModelError(f"The model was stopped, for it went on thinking for {limits.THOUGHTS.size}.")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The status of a reply, and the sentence that explains it when it is not complete."""

    status: Status
    error: ModelError | None = None


def calls_to_answer(request: ModelRequest, end: ReplyEnd) -> tuple[ToolCall, ...]:
    """Return the calls that a reply ends with, none if it was cut: their arguments may not be whole then."""
    is_whole = end.finish_reason not in _CUT_REASONS
    return end.calls if is_whole and request.tools and request.may_call else ()


def outcome(model: str, text: str, end: ReplyEnd, failure: ModelError | None, *, has_thought: bool = False) -> Outcome:
    """Judge a reply of ``model`` without calls to answer: by its text, its end, and the failure, if any."""
    sentence = _shortfall(text, end, has_thought=has_thought)
    advice = ARRIVED if sentence == _CUT else ""
    error = failure or (ModelError(sentence.format(model=model), advice=advice) if sentence else None)
    if error is None:
        return Outcome(Status.COMPLETE)
    return Outcome(Status.TRUNCATED if text.strip() else Status.FAILED, error)


def _shortfall(text: str, end: ReplyEnd, *, has_thought: bool) -> str:
    """Say why a reply is not whole; ``""`` if it is."""
    is_empty = not text.strip() and not end.calls
    match end.finish_reason:
        case None:
            return _NOTHING if is_empty and not has_thought else _CUT
        case "length" | "max_tokens":
            return _LENGTH
        case "content_filter":
            return _FILTERED
        case _ if is_empty:
            return _EMPTY
        case _:
            return _ONLY_CALLS if end.calls else ""


def pause_before_retry(error: ModelError, failures: int) -> float | None:
    """Return the seconds to wait after the ``failures``-th failure without a reply, or ``None`` to give up.

    The pause that the provider asks for is kept, unless it is longer than a minute.
    """
    if not error.retryable or failures > len(PAUSES_SECONDS):
        return None
    wanted = error.retry_after_seconds
    if wanted is not None and wanted > LONGEST_PAUSE_SECONDS:
        return None
    return max(PAUSES_SECONDS[failures - 1], wanted or 0.0)
