"""Whether and when a request that failed before its first token is tried again."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chorus_cli.core.errors import ModelError

PAUSES_SECONDS = (1.0, 3.0)
LONGEST_PAUSE_SECONDS = 60.0


def pause_before_retry(error: ModelError, failures: int) -> float | None:
    """Return the seconds to wait after the ``failures``-th failure, or ``None`` to give up.

    The provider's own wish is honoured unless it asks for more than a minute, which nobody waits for unasked.
    """
    if not error.retryable or failures > len(PAUSES_SECONDS):
        return None
    wished = error.retry_after_seconds
    if wished is not None and wished > LONGEST_PAUSE_SECONDS:
        return None
    return max(PAUSES_SECONDS[failures - 1], wished or 0.0)
