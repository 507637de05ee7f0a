"""Interfaces to the outside world: a Protocol only where there are two implementations."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path
    from signal import Signals


class Clock(Protocol):
    """Time: the system's, or a test's."""

    def now(self) -> datetime:
        """Return the present moment as an aware datetime in the local zone."""

    def monotonic(self) -> float:
        """Return seconds of a clock that never goes back."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


class TokenCounter(Protocol):
    """Counts tokens: the real vocabulary, or words in tests."""

    @property
    def is_ready(self) -> bool:
        """Whether the vocabulary is loaded, so that counting takes no longer than the text needs."""

    def load(self) -> None:
        """Load the vocabulary, which takes a while; any thread may do so."""

    def at_most(self, text: str) -> int:
        """Return the number of tokens of ``text``, or an upper bound of it while the vocabulary is not loaded."""

    def count(self, text: str) -> int:
        """Return the number of tokens of ``text``; never raises for any text."""


class AttachmentStore(Protocol):
    """The bytes of attachments, by their SHA-256: in files, or in memory for a private chat."""

    def store(self, data: bytes) -> str:
        """Store ``data`` once and return its SHA-256."""

    def read(self, digest: str) -> bytes:
        """Return the bytes whose SHA-256 is ``digest``."""

    def has(self, digest: str) -> bool:
        """Return whether the bytes with this SHA-256 are stored."""


class Editor(Protocol):
    """An editor of files: the user's own, or a script in tests."""

    async def open(self, path: Path, line: int | None = None) -> str:
        """Wait until the user has left the file, opened at ``line``; return a sentence if the editor failed."""

    def stays_in_terminal(self) -> bool:
        """Return whether the editor is known to have no window of its own."""

    def end(self) -> None:
        """Ask the open editor, if any, to end."""


class Leftover(NamedTuple):
    """A process that outlived its job; ``is_in_group`` if it still belongs to the job's group and ends with Chorus."""

    process_id: int
    name: str
    is_in_group: bool


class JobProcess(Protocol):
    """A command of the shell that was started, with all processes of its group: real ones, or a script in tests."""

    async def read(self) -> bytes:
        """Wait for the next output; empty at its end."""

    async def wait(self) -> int:
        """Wait until the command ends, and return its exit code, negative for the signal that killed it."""

    def send(self, number: Signals) -> None:
        """Send a signal to the whole group."""

    async def leftovers(self) -> tuple[Leftover, ...]:
        """Return the processes that the command began and that still run, as far as the system tells."""

    def close(self) -> None:
        """Kill what is left of the group, and read no more output."""


class Shell(Protocol):
    """Starts commands of the shell: the user's own, or a script in tests."""

    @property
    def withheld(self) -> tuple[str, ...]:
        """The names of the variables that commands are not given."""

    def start(self, command: str) -> JobProcess:
        """Start a command, without input and without a terminal."""
