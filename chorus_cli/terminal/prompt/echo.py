"""What is typed, shown in a terminal that only takes signs one after the other (``TERM=dumb``)."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from prompt_toolkit.utils import get_cwidth

from chorus_cli.core.text.safe_text import safe_text

if TYPE_CHECKING:
    from prompt_toolkit.output import Output

_NEXT_LINE = "\r\n  "


class Echo:
    """The prompt's ``sign`` and the line behind it, written on ``output``; a line that is changed is written anew."""

    def __init__(self, output: Output) -> None:
        self.sign = ""
        self._output = output
        self._shown = ""

    def show(self, text: str) -> None:
        """Have ``text`` stand behind the sign."""
        wanted, shown = self.sign + safe_text(text).replace("\n", _NEXT_LINE), self._shown
        if wanted.startswith(shown):
            self._write(wanted[len(shown) :])
        elif self._is_one_row(shown) and self._is_one_row(wanted):
            self._write(f"\r{' ' * get_cwidth(shown)}\r{wanted}")
        else:
            self._write(f"\r\n{wanted}")
        self._shown = wanted

    def break_off(self) -> None:
        """Go to the next line if something is shown; there all of it is shown when it is wanted again."""
        if self._shown:
            self._write("\r\n")
            self._shown = ""

    def _is_one_row(self, line: str) -> bool:
        return _NEXT_LINE not in line and get_cwidth(line) < self._output.get_size().columns

    def _write(self, text: str) -> None:
        self._output.write(text)
        # That the terminal is gone is noticed by whoever reads from it.
        with suppress(OSError):
            self._output.flush()
