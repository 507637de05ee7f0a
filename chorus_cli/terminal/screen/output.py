"""Screens. All text for the user except prompt_toolkit's own goes through a `Screen`, which writes it through a guard.

``core/text/safe_text`` filters the input of a renderer, and the guard filters the output, because a renderer can turn
harmless text into unsafe characters: ``&#x202e;`` in Markdown becomes a bidi override. The guard wraps the file instead
of using a render hook, because rich's live displays and window titles bypass hooks.
"""

from __future__ import annotations

import asyncio
import errno
import locale
import math
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache
from threading import RLock
from typing import Literal, TextIO

from chorus_cli.core.errors import OutputError
from chorus_cli.core.text import code_points
from chorus_cli.core.text.phrases import shortened
from chorus_cli.core.text.safe_text import safe_text
from chorus_cli.machine.bug_report import own_standard_error

_DIM = "\x1b[2m"
_RED = "\x1b[31m"
_END = "\x1b[0m"
BELL = "\a"
_LONGEST_MESSAGE = 120
_QUIET_SECONDS = 1.0
_OFF = frozenset({"", "0", "false"})
_WITHOUT_OSC = ("dumb", "linux", "vt")
ESCAPE_PICTURE = "\u241b"

_FORBIDDEN = (
    rf"{code_points.CONTROLS}\r{code_points.C1_CONTROLS}{code_points.UNICODE_LINE_BREAKS}{code_points.BIDI_CONTROLS}"
)
_INVISIBLE = rf"{code_points.IGNORABLES}{code_points.TAG_CHARACTERS}{code_points.CANCEL_TAG}"

_NUMBERS = "[0-9;]{0,128}"
_CSI = rf"\x1b\[(?:{_NUMBERS}[A-HJKm]|\?(?:7|25|2026)[hl])"
_MESSAGE = rf"\x1b\](?:9;Chorus: |777;notify;Chorus;)[^{_FORBIDDEN}\t\n]{{0,200}}\x07"

_BLOCKED = f"(?P<forbidden>[{_FORBIDDEN}])|(?P<invisible>[{_INVISIBLE}])"


@cache
def _suspect() -> re.Pattern[str]:
    return re.compile(f"[{_FORBIDDEN}{_INVISIBLE}{code_points.SURROGATES}{code_points.BLACK_FLAG}]")


@cache
def _token() -> re.Pattern[str]:
    return re.compile(
        rf"(?P<own>\r?{_CSI})"
        rf"|(?P<text>\r\n|{code_points.FLAG_PATTERN})"
        rf"|(?P<unfinished>(?:\r?\x1b(?:\[\??{_NUMBERS})?|\r|{code_points.UNFINISHED_FLAG_PATTERN})\Z)"
        rf"|{_BLOCKED}"
    )


class TerminalGuard:
    """A text file that passes text and harmless escape sequences on to ``stream``.

    Harmless sequences set colours and styles, move, show or hide the cursor, erase, and switch line wrapping or
    synchronized output. Tabs and line feeds pass, and so does a carriage return before a sequence or a line feed. Other
    control characters become U+241B (escape) or U+FFFD, and invisible characters are left out; ``blocked`` counts both.
    An incomplete sequence waits for the next write or flush. Without ``allow_sequences`` all sequences are left out.
    """

    def __init__(self, stream: TextIO, *, allow_sequences: bool = True) -> None:
        self.blocked = 0
        self.allows_sequences = allow_sequences
        self._stream = stream
        self._unfinished = ""
        # A renderer such as rich may write from a worker thread.
        self._lock = RLock()

    @property
    def encoding(self) -> str:
        """The encoding of the stream; UTF-8 if the stream has none."""
        return self._stream.encoding or "utf-8"

    def isatty(self) -> bool:
        """Return whether the stream is a terminal."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """Return the file descriptor of the stream."""
        return self._stream.fileno()

    def write(self, text: str) -> int:
        """Write the permitted part of ``text``; return the length of all of it, as a file does."""
        with self._lock:
            self._send(self._guarded(text))
        return len(text)

    def flush(self) -> None:
        """Write an incomplete sequence as text, and flush the stream."""
        with self._lock:
            unfinished, self._unfinished = self._unfinished, ""
            if unfinished:
                self._send(re.sub(_BLOCKED, self._block, unfinished))
            self._stream.flush()

    def ring(self, sequence: str) -> None:
        """Write the bell or a desktop message to the terminal, and flush; block any other sequence."""
        with self._lock:
            if not re.fullmatch(rf"\x07|{_MESSAGE}", sequence):
                self.blocked += 1
            elif self._stream.isatty() and (self.allows_sequences or sequence == "\a"):
                self._send(sequence)
                self._stream.flush()

    def _guarded(self, text: str) -> str:
        if not (self._unfinished or _suspect().search(text)):
            return text
        whole = self._unfinished + code_points.join_surrogates(text)
        self._unfinished = ""
        return _token().sub(self._passed, whole)

    def _passed(self, match: re.Match[str]) -> str:
        match match.lastgroup:
            case "own":
                return match.group() if self.allows_sequences else ""
            case "text":
                return match.group()
            case "unfinished":
                self._unfinished = match.group()
                return ""
            case _:
                return self._block(match)

    def _block(self, match: re.Match[str]) -> str:
        self.blocked += 1
        if match.lastgroup == "invisible":
            return ""
        return ESCAPE_PICTURE if match.group() == "\x1b" else code_points.REPLACEMENT_CHARACTER

    def _send(self, text: str) -> None:
        if text:
            self._stream.write(_encodable(text, self.encoding))


def _encodable(text: str, encoding: str) -> str:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.encode(encoding, "replace").decode(encoding)
    return text


class Screen:
    """An output stream of the process, made safe. An ``optional`` stream drops text that it cannot write.

    ``breaks_rows`` says whether a terminal that becomes narrower wraps wide rows; otherwise it cuts them off.
    ``painted`` has functions that erase temporary rows at the end of the screen; the rows' owners paint them again.
    """

    def __init__(self, stream: TextIO, environment: Mapping[str, str] = os.environ, *, optional: bool = False) -> None:
        self._optional = optional
        self._environment = environment
        terminal = stream.isatty() and environment.get("TERM") != "dumb"
        self.is_terminal = stream.isatty()
        self.colour = terminal and not environment.get("NO_COLOR")
        self.breaks_rows = _breaks_rows(environment)
        self.guard = TerminalGuard(stream, allow_sequences=terminal)
        self.unicode = self.guard.encoding.lower().startswith("utf")
        self.painted: list[Callable[[], None]] = []
        self.is_plain = False
        if environment.get("ACCESSIBLE", "0") not in _OFF:
            self.make_plain()
        # The kind of line that was written last, because an empty line must separate a reply from a notice.
        self._above: Literal["gap", "notice", "reply"] = "gap"
        self._rang_at = -math.inf

    def make_plain(self) -> None:
        """If this is a terminal, write no escape sequences and no signs that a screen reader would stumble over."""
        if self.is_terminal:
            self.is_plain, self.colour, self.unicode, self.guard.allows_sequences = True, False, False, False

    def write(self, text: str) -> None:
        """Write text that is safe already, and flush; a closed terminal is ignored.

        Raises:
            BrokenPipeError: the program that reads the output has ended.
            OutputError: the output cannot be written, for example because the disk is full.
        """
        try:
            self.guard.write(text)
            self.guard.flush()
        except BrokenPipeError:
            if not self._optional:
                raise
        except OSError as error:
            if error.errno != errno.EIO and not self._optional:
                raise OutputError(f"The output cannot be written: {error.strerror}.") from error

    def line(self, text: str) -> None:
        """Show untrusted text, made safe, without wrapping."""
        self.take_down()
        self.write(safe_text(text) + "\n")

    def paragraph(self, text: str, indent: str = "") -> None:
        """Show untrusted text, made safe and wrapped between words; ``indent`` begins each row but the first."""
        self.take_down()
        self.write(self._wrapped(safe_text(text), indent) + "\n")

    def question(self, text: str) -> None:
        """Show a question as a paragraph, and leave the cursor behind it."""
        self.take_down()
        self.write(self._wrapped(safe_text(text)) + " ")

    def rows(self, rows: Iterable[str], *, dim: bool = False) -> None:
        """Show rows that are safe already and fit the width; ``dim`` rows keep their other styles."""
        begin = _DIM if dim and self.colour else ""
        self.take_down()
        self.write("".join(f"{begin}{row.replace(_END, _END + begin)}{begin and _END}\n" for row in rows))

    def gap(self) -> None:
        """Write an empty line at a terminal."""
        self.write("\n" if self.is_terminal else "")
        self._above = "gap"

    def part_of_reply(self, first: str, last: str) -> None:
        """Write an empty line if a reply's row ``first`` would follow a notice; ``last`` is the reply's last row."""
        if self._above == "notice":
            self._above = "gap"
            if first.strip():
                self.write("\n")
        if last.strip():
            self._above = "reply"

    def speaker(self, name: str) -> None:
        """Show the persona's name, dim, above its words."""
        self.take_down()
        self.part_of_reply(name, "")
        self._styled(_DIM, f"{name}:" if self.is_plain else name)
        self._above = "gap"

    def notice(self, text: str) -> None:
        """Show a dim notice; an empty line separates it from a reply above."""
        self._styled(_DIM, text)

    def error(self, text: str) -> None:
        """Show an error in its colour, without the API keys that it may quote."""
        from chorus_cli.core.text.redaction import redact, secrets_in

        self._styled(_RED, redact(text, secrets_in(self._environment)))

    def notify(self, way: str, sentence: str, now: float) -> None:
        """Signal the end of background work. The ``way`` is ``off``, ``bell`` or ``osc``, a desktop message.

        The bell rings once a second at most, by the monotonic time ``now``. With ``osc`` it rings in terminals that get
        no message, because they might show the message as text or not pass it on.
        """
        if way == "osc" and (message := desktop_message(sentence, self._environment)):
            self.ring(message)
        elif way != "off" and now - self._rang_at >= _QUIET_SECONDS:
            self._rang_at = now
            self.ring(BELL)

    def ring(self, sequence: str) -> None:
        """Write the bell, or a desktop message."""
        with suppress(OSError):
            self.guard.ring(sequence)

    def take_down(self) -> None:
        """Erase temporary rows at the end."""
        for take_down in self.painted:
            take_down()

    def _styled(self, style: str, text: str) -> None:
        self.take_down()
        if self._above == "reply":
            self.gap()
        self._above = "notice"
        safe = self._wrapped(safe_text(text))
        self.write(f"{style}{safe}{_END}\n" if self.colour else f"{safe}\n")

    def _wrapped(self, text: str, indent: str = "") -> str:
        if not self.is_terminal:
            return text
        width = shutil.get_terminal_size().columns
        return "\n".join(folded(line, width, indent) for line in text.splitlines())


def folded(line: str, width: int, further: str = "", *, breaks_words: bool = False) -> str:
    """Wrap a line between words; later rows have its indentation and ``further``, together at most half the width."""
    indent = (line[: len(line) - len(line.lstrip())] + further)[: width // 2]
    return textwrap.fill(line, width, subsequent_indent=indent, break_long_words=breaks_words, break_on_hyphens=False)


def standard_output() -> Screen:
    """Return the screen for answers. If stdout is closed, answers are dropped, and a reply is still stored whole."""
    return Screen(sys.stdout or _nowhere())


def refuse_closed_output() -> None:
    """Raise an `OutputError` if stdout is closed."""
    if sys.stdout is None:
        raise OutputError("The output cannot be written: it is closed.")


def standard_error() -> Screen:
    """Return the screen for notices and errors."""
    return Screen(own_standard_error() or _nowhere(), optional=True)


def _breaks_rows(environment: Mapping[str, str]) -> bool:
    cuts = environment.get("XTERM_VERSION") or environment.get("STY") or environment.get("TERM", "").startswith("linux")
    return bool(environment.get("TMUX")) or not cuts


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 - it lives as long as the process


def knows_unicode() -> bool:
    """Return whether the locale encodes text for the terminal as UTF-8."""
    return locale.getpreferredencoding(do_setlocale=False).lower().startswith("utf")


def prompt_sign(*, unicode: bool) -> str:
    """Return the sign before the line that is typed."""
    return "❯" if unicode else ">"


def widest(text: str) -> int:
    """Return the most columns that ``text`` takes on any terminal."""
    return len(text) if text.isascii() else len(text) + sum(not character.isascii() for character in text)


def desktop_message(sentence: str, environment: Mapping[str, str]) -> str:
    """Return a sentence as OSC 9, or as OSC 777 for rxvt and VTE; empty if the terminal may not understand either."""
    terminal = environment.get("TERM", "")
    if not terminal or terminal.startswith(_WITHOUT_OSC) or environment.get("TMUX") or environment.get("STY"):
        return ""
    text = shortened(safe_text(sentence), _LONGEST_MESSAGE)
    if terminal.startswith("rxvt") or environment.get("VTE_VERSION"):
        # A semicolon would end the text.
        return f"\x1b]777;notify;Chorus;{text.replace(';', ',')}{BELL}"
    return f"\x1b]9;Chorus: {text}{BELL}"


def can_ask() -> bool:
    """Return whether there is a terminal to ask at."""
    return sys.stdin is not None and sys.stdin.isatty()


def declined(told: str) -> str:
    """Return the text ``told`` after a declined question; if nobody could be asked, it also says how to agree."""
    return told if can_ask() else f"{told.removesuffix('.')}: agree at a terminal, or add --yes."


async def agreed(question: str, screen: Screen) -> bool:
    """Ask a question and return whether the answer is yes; false without a terminal. A signal ends the wait."""
    return can_ask() and (await typed_answer(f"{question} [y/N]", screen) or "").casefold() in {"y", "yes"}


async def typed_answer(question: str, screen: Screen) -> str | None:
    """Ask a question at the terminal and return the typed line, ``None`` for Ctrl-D. A signal ends the wait."""
    screen.question(question)
    loop, arrived = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), arrived.set)
    try:
        await arrived.wait()
    finally:
        loop.remove_reader(sys.stdin.fileno())
    line = sys.stdin.readline()
    return line.strip() if line else None
