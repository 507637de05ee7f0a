"""Shows the output of a command of the shell while it arrives, made safe."""

from __future__ import annotations

from codecs import getincrementaldecoder
from typing import TYPE_CHECKING

from chorus_cli.core.text.safe_text import SafeTextStream, hidden_warning

if TYPE_CHECKING:
    from chorus_cli.terminal.screen.output import Screen


class JobOutput:
    """Appends output to ``screen``; bytes that are not UTF-8 become replacement characters."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._safe = SafeTextStream()
        self._is_line_open = False

    def show(self, piece: bytes) -> None:
        """Show the next bytes."""
        self._write(self._safe.feed(self._decoder.decode(piece)))

    def close(self) -> None:
        """Show the text held back, end the line, and report hidden characters."""
        self._write(self._safe.feed(self._decoder.decode(b"", final=True)) + self._safe.close())
        if self._is_line_open:
            self._screen.write("\n")
        warning = hidden_warning(self._safe, "this output")
        if warning:
            self._screen.notice(warning)

    def _write(self, text: str) -> None:
        if text:
            self._screen.write(text)
            self._is_line_open = not text.endswith("\n")
