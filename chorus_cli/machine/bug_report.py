"""The log file of bugs: tracebacks, and warnings of libraries, without keys and other secrets."""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO, cast

from chorus_cli.core import limits
from chorus_cli.core.errors import ChorusError
from chorus_cli.storage.permissions import is_refusal, refused

# Only a whole secret is recognised, so more of a line is searched for secrets than is kept.
_LONGEST_NOTE, _LOOKED_AT = 200, 10_000


def report_bug(log_file: Path | None, error: BaseException, environment: Mapping[str, str]) -> str:
    """Append the traceback of ``error`` to the log file, if there is one, and return a sentence for the user.

    If no traceback can be kept, the sentence names the place of the bug, but does not quote the error. An error about
    a file's permissions is not a bug; the sentence then says how to get access.
    """
    if is_refusal(error):
        return refused(error)
    kind = type(error).__name__
    if log_file is not None:
        with suppress(OSError):
            log_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            text = _without_keys("".join(traceback.format_exception(error)), environment)
            _append(log_file, f"\n{text}")
            return f"That is a bug in Chorus ({kind}). Its traceback is in {log_file}; please report it."
    *_, last = traceback.extract_tb(error.__traceback__) or [traceback.FrameSummary("?", 0, "?")]
    place = f"{kind} in {last.filename.rpartition(os.sep)[2]}, line {last.lineno}"
    return f"That is a bug in Chorus ({place}), and no traceback was written. Please report this sentence."


def note_line(log_file: Path | None, line: str, environment: Mapping[str, str]) -> None:
    """Append the beginning of a line to the log file, if there is one and it can be written."""
    if log_file is not None and line.strip():
        words = _without_keys(line[:_LOOKED_AT], environment)
        with suppress(OSError):
            _append(log_file, f" {words[:_LONGEST_NOTE]}")


def _without_keys(text: str, environment: Mapping[str, str]) -> str:
    from chorus_cli.core.text.redaction import redact, secrets_in  # noqa: PLC0415 - a start without errors is faster

    return redact(text, secrets_in(environment))


def _append(log_file: Path, entry: str) -> None:
    """Append the time and an entry to the log file; a file that is too large is first renamed to end in ``.old``."""
    with suppress(FileNotFoundError):
        if log_file.stat().st_size > limits.LOG_FILE.most:
            log_file.replace(log_file.with_name(f"{log_file.name}.old"))
    descriptor = os.open(log_file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}{entry}\n")


_BEGINS = "Traceback (most recent call last)"


class ForeignWords(io.TextIOBase):
    """Replaces standard error (``own``); the first line of each text goes to the file that ``log_file`` returns."""

    def __init__(self, own: TextIO | None, log_file: Callable[[], Path | None], environment: Mapping[str, str]) -> None:
        self.own = own
        self.is_kept = True
        self._log_file = log_file
        self._environment = environment
        self._in_traceback = False

    def writable(self) -> bool:
        """Return ``True``, because any text is accepted."""
        return True

    def write(self, text: str) -> int:
        """Log only the first line that has words, because the other lines may quote the conversation."""
        first_line = next(filter(None, map(str.strip, self._own_lines(text))), "")
        if first_line and self.is_kept:
            # A library must not fail because its text cannot be logged.
            with suppress(ChorusError):
                note_line(self._log_file(), first_line, self._environment)
        return len(text)

    def _own_lines(self, text: str) -> Iterator[str]:
        """Yield the lines of a text, but only the kind of error from a traceback, which Python writes line by line."""
        for line in text.splitlines():
            if line.startswith(_BEGINS):
                self._in_traceback = True
            elif not self._in_traceback:
                yield line
            elif line and not line.startswith(" "):
                self._in_traceback = False
                yield line.partition(":")[0]


@contextmanager
def noted(log_file: Callable[[], Path | None], environment: Mapping[str, str]) -> Iterator[None]:
    """Within this context, log what libraries write to standard error."""
    own = sys.stderr
    sys.stderr = cast("TextIO", ForeignWords(own, log_file, environment))
    try:
        yield
    finally:
        sys.stderr = own


@contextmanager
def unnoted() -> Iterator[None]:
    """Within this context, log nothing that libraries write, because they may quote a private chat."""
    words = sys.stderr if isinstance(sys.stderr, ForeignWords) else None
    was_kept = words is not None and words.is_kept
    if words is not None:
        words.is_kept = False
    try:
        yield
    finally:
        if words is not None:
            words.is_kept = was_kept


def own_standard_error() -> TextIO | None:
    """Return the standard error that the user sees; ``None`` if it is closed."""
    return sys.stderr.own if isinstance(sys.stderr, ForeignWords) else sys.stderr
