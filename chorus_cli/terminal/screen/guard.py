r"""The last filter before the terminal: only the escape sequences that Chorus writes itself pass.

The second layer behind ``core/text/safe_text``, needed because a renderer produces characters that no filter of its
input could see (``&#x202e;`` in Markdown becomes a bidi override). It wraps the file instead of using a render hook,
because rich's live displays and window titles bypass hooks.
"""

from __future__ import annotations

import re
from functools import cache
from threading import RLock
from typing import TYPE_CHECKING

from chorus_cli.core.text import code_points

if TYPE_CHECKING:
    from typing import TextIO

ESCAPE_PICTURE = "\u241b"

_ASCII_FORBIDDEN = rf"{code_points.CONTROLS}\r"
_FORBIDDEN = rf"{_ASCII_FORBIDDEN}{code_points.C1_CONTROLS}{code_points.UNICODE_LINE_BREAKS}{code_points.BIDI_CONTROLS}"
_INVISIBLE = rf"{code_points.IGNORABLES}{code_points.TAG_CHARACTERS}{code_points.CANCEL_TAG}"

_NUMBERS = "[0-9;]{0,128}"
_CSI = rf"\x1b\[(?:{_NUMBERS}[A-HJKm]|\?(?:7|25|2026)[hl])"
_MESSAGE = rf"\x1b\](?:9;Chorus: |777;notify;Chorus;)[^{_FORBIDDEN}\t\n]{{0,200}}\x07"

_BLOCKED = f"(?P<forbidden>[{_FORBIDDEN}])|(?P<invisible>[{_INVISIBLE}])"


# Compiled when first needed: ASCII does without the classes of other characters, which are large.
@cache
def _suspect(*, in_ascii: bool) -> re.Pattern[str]:
    others = f"{_FORBIDDEN}{_INVISIBLE}{code_points.SURROGATES}{code_points.BLACK_FLAG}"
    return re.compile(f"[{_ASCII_FORBIDDEN if in_ascii else others}]")


@cache
def _token(*, in_ascii: bool) -> re.Pattern[str]:
    flag, unfinished_flag, blocked = f"|{code_points.FLAG_PATTERN}", f"|{code_points.UNFINISHED_FLAG_PATTERN}", _BLOCKED
    if in_ascii:
        flag, unfinished_flag, blocked = "", "", f"(?P<forbidden>[{_ASCII_FORBIDDEN}])"
    return re.compile(
        rf"(?P<own>\r?{_CSI})"
        rf"|(?P<text>\r\n{flag})"
        rf"|(?P<unfinished>(?:\r?\x1b(?:\[\??{_NUMBERS})?|\r{unfinished_flag})\Z)"
        rf"|{blocked}"
    )


@cache
def _notifications() -> re.Pattern[str]:
    return re.compile(rf"\x07|{_MESSAGE}|\x1bPtmux;\x1b{_MESSAGE}\x1b\\|\x1bP{_MESSAGE}\x1b\\")


class TerminalGuard:
    """A writable text file in front of ``stream``, the terminal or its substitute.

    Passed on: colours and styles, cursor movement, erasing, showing and hiding the cursor, wrapping or not at the edge,
    synchronized output, and a carriage return before a line feed or one of these. Any other control
    character is shown as U+241B (escape) or U+FFFD, an invisible one is left out, and both are counted in ``blocked``.
    A sequence that is not complete waits for the next write; a flush shows that it was none. With ``allow_sequences``
    false, for a pipe, ours are left out and others blocked as always.
    """

    def __init__(self, stream: TextIO, *, allow_sequences: bool = True) -> None:
        self.blocked = 0
        self.allows_sequences = allow_sequences
        self._stream = stream
        self._unfinished = ""
        # rich repaints a status from a thread of its own.
        self._lock = RLock()

    @property
    def encoding(self) -> str:
        """The encoding of the stream; a stream of text without one takes every character."""
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
        """Write an incomplete sequence as text, because no completion came, and flush the stream."""
        with self._lock:
            unfinished, self._unfinished = self._unfinished, ""
            if unfinished:
                self._send(re.sub(_BLOCKED, self._block, unfinished))
            self._stream.flush()

    def ring(self, sequence: str) -> None:
        """Write the bell or a message for the desktop, which no text may contain, and flush; block anything else.

        Without sequences there is no message, and without a terminal no bell.
        """
        with self._lock:
            if not _notifications().fullmatch(sequence):
                self.blocked += 1
            elif self._stream.isatty() and (self.allows_sequences or sequence == "\a"):
                self._send(sequence)
                self._stream.flush()

    def _guarded(self, text: str) -> str:
        if not (self._unfinished or _suspect(in_ascii=text.isascii()).search(text)):
            return text
        whole = self._unfinished + code_points.join_surrogates(text)
        self._unfinished = ""
        return _token(in_ascii=whole.isascii()).sub(self._passed, whole)

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
