"""The prompt's output: the scrollback shows each sent message exactly once, and a dumb terminal gets an `Echo`."""

from __future__ import annotations

import sys
from contextlib import suppress

from prompt_toolkit.application import Application
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.output import Output, create_output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.utils import get_cwidth

from chorus_cli.core.text.phrases import counted
from chorus_cli.core.text.safe_text import safe_text
from chorus_cli.terminal.prompt.keyboard import can_mark_pastes

_NEXT_LINE = "\r\n  "
_MOST_ROWS = 200


class PromptOutput(Vt100_Output):
    """prompt_toolkit's output to ``terminal``, changed to leave pastes marked and to spare the scrollback of tmux."""

    def __init__(self, terminal: Vt100_Output) -> None:
        super().__init__(
            terminal.stdout,
            terminal.get_size,
            term=terminal.term,
            default_color_depth=terminal.default_color_depth,
            enable_bell=terminal.enable_bell,
            enable_cpr=terminal.enable_cpr,
        )

    def disable_bracketed_paste(self) -> None:
        """Leave pastes marked until the chat ends: prompt_toolkit would unmark them whenever it erases the prompt."""
        if not can_mark_pastes():
            super().disable_bracketed_paste()

    def enable_bracketed_paste(self) -> None:
        """Do nothing where ``typing_ahead`` has marked pastes already."""
        if not can_mark_pastes():
            super().enable_bracketed_paste()

    def erase_down(self) -> None:
        """Erase from the cursor, which is in the first column, to the end of the screen."""
        # If erasing began at the very first cell, tmux would scroll the rows up instead, and keep them twice.
        self.erase_end_of_line()
        self.cursor_forward(1)
        super().erase_down()
        self.cursor_backward(1)


class Echo:
    """The input line of a dumb or plain terminal: a ``sign`` and the typed text, brought up to date by `show`."""

    def __init__(self, output: Output) -> None:
        self.sign = ""
        self._output = output
        self._shown = ""
        self._behind = ""

    def show(self, text: str, after_cursor: str = "") -> None:
        """Show ``text`` after the sign. If it fits in one row, put the cursor before its last part ``after_cursor``."""
        wanted = self.sign + safe_text(text).replace("\n", _NEXT_LINE)
        behind = safe_text(after_cursor) if self._is_one_row(wanted) else ""
        if (wanted, behind) == (self._shown, self._behind):
            return
        if wanted == self._shown and behind.endswith(self._behind):
            self._write("\b" * get_cwidth(behind.removesuffix(self._behind)))
        else:
            self._write(self._behind)
            self._extend(wanted)
            self._write("\b" * get_cwidth(behind))
        self._behind = behind

    def _extend(self, wanted: str) -> None:
        shown = self._shown
        if wanted.startswith(shown):
            self._write(wanted[len(shown) :])
        elif self._is_one_row(shown) and self._is_one_row(wanted):
            self._write(f"\r{' ' * get_cwidth(shown)}\r{wanted}")
        else:
            self._write(f"\r\n{wanted}")
        self._shown = wanted

    def ask(self, lines: list[str]) -> None:
        """Write the first lines of a question; the last line becomes the sign before the answer."""
        self._write("".join(f"{line}\r\n" for line in lines[:-1]))
        self.sign = f"{lines[-1]} "

    def break_off(self) -> None:
        """Go to the next line, if something is shown; the next `show` writes the sign and all of the text there."""
        if self._shown:
            self._write("\r\n")
            self._shown = self._behind = ""

    def _is_one_row(self, line: str) -> bool:
        return _NEXT_LINE not in line and get_cwidth(line) < self._output.get_size().columns

    def _write(self, text: str) -> None:
        self._output.write(text)
        # A closed terminal is noticed where its input is read.
        with suppress(OSError):
            self._output.flush()


def prompt_output() -> Output:
    """Return the output of the prompt."""
    output = create_output(sys.stdout)
    return PromptOutput(output) if isinstance(output, Vt100_Output) else output


def is_too_tall(application: Application[str]) -> bool:
    """Return whether the text at the prompt needs more rows than the terminal has."""
    size = application.output.get_size()
    return application.layout.container.preferred_height(size.columns, size.rows + 1).preferred > size.rows


def draw_sent(application: Application[str], sign: str) -> None:
    """Print the sent message after ``sign`` in place of the prompt: whole, or the beginning of a very long one."""
    from chorus_cli.terminal.drawing import beginning

    columns = application.output.get_size().columns - get_cwidth(sign)
    rows, more = beginning(application.current_buffer.text, _MOST_ROWS, columns)
    if more:
        rows.append(f"… {counted(more, 'more line')}")
    application.renderer.erase()
    application.print_text(FormattedText([("class:sign", sign), ("", "\n  ".join(rows) + "\n")]))
