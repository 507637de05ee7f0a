"""Failures of requests to models, as their clients found them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class Trouble(Enum):
    """A failure without an answer of the provider, or with one that makes no sense."""

    UNKNOWN_MODEL = "unknown model"
    NO_KEY = "no key"
    UNREACHABLE = "unreachable"
    UNANSWERED = "unanswered"
    BROKE_OFF = "broke off"
    INVALID_RESPONSE = "invalid response"


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed request.

    ``trouble`` is ``None`` if the provider answered with an error: then ``status`` is its HTTP status (``None`` for an
    error event without one in the middle of a stream), ``body`` its body, decoded if it was JSON, and ``headers`` its
    headers, in lower case. ``words`` is the cause in a few words, as ``connection refused``; empty if unknown.
    """

    trouble: Trouble | None = None
    status: int | None = None
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict)
    words: str = ""


class FailedError(Exception):
    """A request has failed; ``failure`` tells how."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.words or str(failure.trouble or failure.status))
        self.failure = failure
