"""How a request to a model ended: the status of its reply, and the pause before a failed one is retried."""

from __future__ import annotations

from dataclasses import dataclass

from chorus_cli.core.errors import ModelError
from chorus_cli.core.log.messages import Status

PAUSES_SECONDS = (1.0, 3.0)
LONGEST_PAUSE_SECONDS = 60.0

_CUT = "The reply broke off: the connection was cut. What has arrived is kept."
_NOTHING = (
    "The model sent no reply and no end of the stream. If you set the address of its server, check that the server "
    "speaks the OpenAI API."
)
_EMPTY = "The model sent an empty reply. If that happens again, choose another model with /model."
_LENGTH = "The reply was cut off at the model's output limit."
_FILTERED = "The provider's content filter stopped the reply."


@dataclass(frozen=True, slots=True)
class Outcome:
    """The status of a reply, and the sentence that explains it when it is not complete."""

    status: Status
    error: ModelError | None = None


def outcome(text: str, finish_reason: str | None, failure: ModelError | None) -> Outcome:
    """Judge a reply by its text, the provider's finish reason (``None`` when none came) and the failure, if any."""
    said_something = bool(text.strip())
    if failure is not None:
        return Outcome(Status.TRUNCATED if said_something else Status.FAILED, failure)
    if not said_something:
        return Outcome(Status.FAILED, ModelError(_NOTHING if finish_reason is None else _EMPTY))
    match finish_reason:
        case None:
            return Outcome(Status.TRUNCATED, ModelError(_CUT))
        case "length" | "max_tokens":
            return Outcome(Status.TRUNCATED, ModelError(_LENGTH))
        case "content_filter":
            return Outcome(Status.TRUNCATED, ModelError(_FILTERED))
        case _:
            return Outcome(Status.COMPLETE)


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
