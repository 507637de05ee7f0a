"""Jobs: how they end, the sentences that tell the user and the model about them, and the output that is kept."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from signal import Signals

from chorus_cli.core import limits
from chorus_cli.core.text.phrases import counted, first_few, shortened
from chorus_cli.core.time.timeline import duration

ENDED_HEADING = "Ended jobs:"
MOST_LINES = 50
MOST_CHARACTERS = 8_000
"""A message has at most this many lines and characters of a job's output; the characters are about 2,000 tokens."""

_LONGEST_COMMAND = 200
_CHANGES_FOLDER = re.compile(r"(?:cd|pushd)(?:\s[^;&|\n]*)?")
# The lines of a job are indented, so that the model does not mistake output for another part of the preamble.
_ITEM, _LINE = "\n  ", "\n    "
_TENTHS_BELOW_SECONDS = 10
_FIRST_SIGNAL_CODE = 128


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A running job: the seconds since its start, and the last line of its output."""

    number: int
    command: str
    seconds: float
    last_line: str


@dataclass(frozen=True, slots=True)
class Ending:
    """How a job ended: ``code`` is its exit code, or the negated number of the signal that killed it."""

    code: int
    seconds: float
    is_stopped: bool = False

    def describe(self) -> str:
        """Return the state in words: ``done``, ``exit code 2``, ``killed by SIGSEGV``, ``stopped``."""
        if self.is_stopped:
            return "stopped"
        if self.code == 0:
            return "done"
        if self.code < 0:
            return f"killed by {signal_name(-self.code)}"
        # If a signal killed the last command of a shell, the shell exits with 128 plus the signal's number.
        of_signal = signal_name(self.code - _FIRST_SIGNAL_CODE) if self.code > _FIRST_SIGNAL_CODE else ""
        return f"exit code {self.code} ({of_signal})" if of_signal.startswith("SIG") else f"exit code {self.code}"

    def told(self) -> str:
        """Return the state and how long the job ran: ``exit code 2 after 12 s.``."""
        return f"{self.describe()} after {elapsed(self.seconds)}."


@dataclass(frozen=True, slots=True)
class EndedJob:
    """A job that has ended: the last lines of its output, the number of all its lines, and the time of its end."""

    number: int
    command: str
    ending: Ending
    last_lines: tuple[str, ...]
    line_count: int
    at: datetime

    @property
    def named(self) -> str:
        """Name the job's output, or the job's end if it printed nothing: ``the output of job #2 (make)``."""
        return f"the {'output' if self.last_lines else 'end'} of job #{self.number} ({shortened(self.command)})"


def signal_name(number: int) -> str:
    """Return the name of a signal: ``SIGKILL``, or ``signal 37`` for one without a name."""
    try:
        return Signals(number).name
    except ValueError:
        return f"signal {number}"


def elapsed(seconds: float) -> str:
    """Write how long a job ran: ``0.4 s``, ``12 s``, ``3 m 20 s``, ``3 h 20 m``."""
    return duration(timedelta(seconds=seconds), _TENTHS_BELOW_SECONDS)


def going_line(elsewhere: str = "") -> str:
    """Say which message will have the result; ``elsewhere`` names the job's thread if another thread is in focus."""
    if elsewhere:
        return f"The next message in {elsewhere} will have the result."
    return "Your next message will have the result; /undo leaves it out."


def kept_back_line(ended: EndedJob) -> str:
    """Say that an undo keeps the output of a job out of the next message."""
    return f"Undone: your next message will not have {ended.named}. /jobs log {ended.number} shows it."


def going_again_line(ended: Sequence[EndedJob]) -> str:
    """Say that the next message will have the output of jobs again, because the message that had it was undone."""
    jobs = ", ".join(f"#{each.number}" for each in ended)
    return f"Your next message will have the output of {'job' if len(ended) == 1 else 'jobs'} {jobs} again."


def own_shell_line(command: str) -> str:
    """Say that a change of folder ends with its command; empty if the command does anything else."""
    if not _CHANGES_FOLDER.fullmatch(command):
        return ""
    return f"Each command has its own shell, which ends with it. Write both commands in one line: !{command} && ls"


def withheld_line(names: Sequence[str]) -> str:
    """Say which environment variables a failed job did not get; empty without names."""
    if not names:
        return ""
    return f"The command did not get {first_few(names)}: jobs get only the keys in job_env."


def news_text(ended: Sequence[EndedJob]) -> str:
    """Return the lines about ended jobs for the model, oldest first; older outputs that do not fit are left out."""
    room = MOST_CHARACTERS
    texts: list[str] = []
    for each in reversed(ended):
        size = sum(len(line) + len(_LINE) for line in each.last_lines)
        fits = size <= room or not texts
        texts.insert(0, _news(each) if fits else _brief_news(each))
        room -= size if fits else 0
    return _ITEM.join([ENDED_HEADING, *texts]) if texts else ""


def brief_news_text(ended: Sequence[EndedJob]) -> str:
    """Return the lines about ended jobs without their output, for a request that has no room for the output."""
    return _ITEM.join([ENDED_HEADING, *map(_brief_news, ended)]) if ended else ""


def _news(ended: EndedJob) -> str:
    shown = len(ended.last_lines)
    if not shown:
        return f"{_state(ended)} It printed nothing."
    number = counted(ended.line_count, "line")
    heading = f"The last {shown} of its {number}" if shown < ended.line_count else f"Its output, {number}"
    return _LINE.join([f"{_state(ended)} {heading}:", *ended.last_lines])


def _brief_news(ended: EndedJob) -> str:
    return f"{_state(ended)} Its output was left out here." if ended.last_lines else _news(ended)


def _state(ended: EndedJob) -> str:
    return f"#{ended.number} {shortened(ended.command, _LONGEST_COMMAND)}: {ended.ending.told()}"


MOST_BYTES = limits.JOB_OUTPUT.most
"""The most bytes of a job's output that are kept."""

_MOST_BYTES_OF_A_CHARACTER = 4
_ENCODED_BYTES = 4 * _MOST_BYTES_OF_A_CHARACTER
"""Bytes of output that are read for each character to show: escape sequences take up bytes, but are not shown."""

_BEGUN_CHARACTER = re.compile(rb"(?:[\xc0-\xff]|[\xe0-\xff][\x80-\xbf]|[\xf0-\xff][\x80-\xbf]{2})\Z")
_SEQUENCE = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ -/]*[0-Z\\^-~])"
_BEGUN_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b\n]*\x1b?|[ -/]*)\Z")
_LONGEST_SEQUENCE = 4_096
_CONTROLS = {*range(0x20), *range(0x7F, 0xA0)} - {ord("\t"), ord("\n")}
_UNPRINTABLE: dict[int, str | None] = dict.fromkeys(_CONTROLS)
_UNPRINTABLE |= dict.fromkeys((0x85, 0x2028, 0x2029), " ")


class BoundedOutput:
    """The first and the last bytes of an output, half of ``most_bytes`` each; ``most_bytes`` is even."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._half = most_bytes // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._breaks = 0
        self.total_bytes = 0

    def add(self, piece: bytes) -> None:
        """Add the next bytes of the output."""
        self.total_bytes += len(piece)
        self._breaks += piece.count(b"\n")
        missing = self._half - len(self._head)
        self._head += piece[:missing]
        self._tail += piece[missing:][-self._half :]
        # The tail is cut rarely, because each cut moves the whole tail.
        if len(self._tail) > 2 * self._half:
            del self._tail[: -self._half]

    @property
    def line_count(self) -> int:
        """The number of lines so far, including a last line that has no line end yet."""
        newest = self._tail or self._head
        return self._breaks + (bool(newest) and not newest.endswith(b"\n"))

    @property
    def _has_gap(self) -> bool:
        return self.total_bytes > 2 * self._half

    def text(self) -> str:
        """Return the output; if bytes were left out, a line in the middle says how many."""
        if not self._has_gap:
            return (self._head + self._tail).decode(errors="replace")
        tail = self._tail[-self._half :]
        head, end = _without_broken_end(bytes(self._head)), _without_broken_start(bytes(tail))
        left_out = self.total_bytes - len(head) - len(end)
        return "\n".join(
            [head.decode(errors="replace"), f"[… {left_out:,} bytes left out here …]", end.decode(errors="replace")]
        )

    def last_lines(self, most: int, most_characters: int) -> tuple[str, ...]:
        """Return the last lines in readable form within both limits; the first of them may lose its beginning."""
        newest = self._tail[-self._half :] if self._has_gap else self._head + self._tail
        text = _without_broken_start(bytes(newest[-_ENCODED_BYTES * most_characters :])).decode(errors="replace")
        lines = readable(text.removesuffix("\n")).split("\n")[-most:] if text else []
        chosen: list[str] = []
        room = most_characters
        for line in reversed(lines):
            if room <= 0:
                break
            chosen.insert(0, line if len(line) <= room else f"…{line[len(line) - room + 1 :]}")
            room -= len(line) + 1
        return tuple(chosen)

    def last_line(self, most_characters: int = 80) -> str:
        """Return the last line that is not blank, in readable form and cut to size; empty if the last 20 are blank."""
        lines = self.last_lines(20, 20 * most_characters)
        newest = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return newest if len(newest) <= most_characters else f"{newest[: most_characters - 1]}…"


class SequenceFilter:
    """Removes escape sequences, such as colours, from text that arrives in pieces; holds back an unfinished one."""

    def __init__(self) -> None:
        self._begun = ""

    def feed(self, piece: str) -> str:
        """Take the next piece, and return the text that is certainly outside of escape sequences."""
        text = self._begun + piece
        begun = _BEGUN_SEQUENCE.search(text, max(0, len(text) - _LONGEST_SEQUENCE))
        end = begun.start() if begun else len(text)
        self._begun = text[end:]
        return _without_sequences(text[:end])

    def close(self) -> str:
        """Return the rest of the text, which was held back as a possible escape sequence."""
        begun, self._begun = self._begun, ""
        return _without_sequences(begun)


def _without_sequences(text: str) -> str:
    return re.sub(_SEQUENCE, "", text) if "\x1b" in text else text


def readable(text: str) -> str:
    """Return text without escape sequences and control characters; of an overwritten line, only the newest text."""
    plain = _without_sequences(text)
    if "\r" in plain:
        plain = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in plain.split("\n"))
    return plain.translate(_UNPRINTABLE)


def _without_broken_end(data: bytes) -> bytes:
    begun = _BEGUN_CHARACTER.search(data, max(0, len(data) - _MOST_BYTES_OF_A_CHARACTER + 1))
    return data[: begun.start()] if begun else data


def _without_broken_start(data: bytes) -> bytes:
    continuation = re.match(rb"[\x80-\xbf]{0,3}", data)
    return data[continuation.end() :] if continuation else data
