"""Interfaces to the outside world; each Protocol here has at least two implementations."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple, Protocol


class Clock(Protocol):
    """Time: the system's, or a test's."""

    def now(self) -> datetime:
        """Return the present moment as an aware datetime in the local zone."""

    def monotonic(self) -> float:
        """Return the seconds of a clock that never goes back."""

    async def sleep(self, seconds: float) -> None:
        """Wait without blocking other tasks."""


class TokenCounter(Protocol):
    """Counts tokens with a vocabulary; in tests, counts words."""

    @property
    def is_ready(self) -> bool:
        """Whether the vocabulary is loaded, so that counting need not load it first."""

    def load(self) -> None:
        """Load the vocabulary, which takes a while; any thread may call this."""

    def at_most(self, text: str) -> int:
        """Return the number of tokens of ``text``, or an upper bound while the vocabulary is not loaded."""

    def count(self, text: str) -> int:
        """Return the number of tokens of ``text``, which may be any text."""


class AttachmentStore(Protocol):
    """The bytes of attachments, by their SHA-256: in files, or in memory for a private chat."""

    def store(self, data: bytes) -> str:
        """Store ``data``, unless it is stored, and return its SHA-256; raise an ``AttachmentError`` on failure."""

    def read(self, digest: str) -> bytes:
        """Return the bytes whose SHA-256 is ``digest``; raise an ``AttachmentError`` if they are gone or damaged."""

    def has(self, digest: str) -> bool:
        """Return whether the bytes with this SHA-256 are stored."""


class Leftover(NamedTuple):
    """A process that outlived its job; ``is_in_group`` if it still belongs to the job's group and ends with Chorus."""

    process_id: int
    name: str
    is_in_group: bool
