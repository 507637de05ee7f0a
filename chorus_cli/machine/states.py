"""The ends of jobs, and the processes that outlive them."""

from __future__ import annotations

from dataclasses import dataclass
from signal import Signals

_FIRST_SIGNAL_CODE = 128
_QUICK_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job that runs: its seconds so far, and the last line of its output, empty if there is none."""

    number: int
    command: str
    seconds: float
    last_line: str


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a job: its exit code, negative for the signal that killed it, and whether it was stopped by the user.

    ``seconds`` is how long it ran.
    """

    code: int
    seconds: float
    is_stopped: bool = False

    @property
    def is_quick_success(self) -> bool:
        """Whether it went well and fast, so that nothing needs to be said."""
        return self.code == 0 and not self.is_stopped and self.seconds < _QUICK_SECONDS

    @property
    def is_failure(self) -> bool:
        """Whether it failed by itself."""
        return self.code != 0 and not self.is_stopped

    def describe(self) -> str:
        """Return the state in words: ``done``, ``exit code 2``, ``killed by SIGSEGV``, ``stopped``."""
        if self.is_stopped:
            return "stopped"
        if self.code == 0:
            return "done"
        if self.code < 0:
            return f"killed by {signal_name(-self.code)}"
        # A shell reports the signal that killed its last command so.
        of_signal = signal_name(self.code - _FIRST_SIGNAL_CODE) if self.code > _FIRST_SIGNAL_CODE else ""
        return f"exit code {self.code} ({of_signal})" if of_signal.startswith("SIG") else f"exit code {self.code}"


@dataclass(frozen=True, slots=True)
class EndedJob:
    """A job that has ended: its last lines in readable form, and the number of all its lines."""

    number: int
    command: str
    ending: Ending
    last_lines: tuple[str, ...]
    line_count: int


@dataclass(frozen=True, slots=True)
class Leftover:
    """A process that outlived its job; ``is_in_group`` if it still belongs to the job's group and ends with Chorus."""

    process_id: int
    name: str
    is_in_group: bool


def signal_name(number: int) -> str:
    """Return the name of a signal: ``SIGKILL``, or ``signal 37`` for one without a name."""
    try:
        return Signals(number).name
    except ValueError:
        return f"signal {number}"
