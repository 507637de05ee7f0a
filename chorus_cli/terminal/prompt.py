"""The prompt: reads one message or command, of one line or many."""

from __future__ import annotations

import locale
import shutil
import textwrap
from contextlib import suppress
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.formatted_text import FormattedText

from chorus_cli.core.safe_text import safe_line, safe_text
from chorus_cli.terminal.completer import CommandCompleter
from chorus_cli.terminal.key_bindings import Line, key_bindings

if TYPE_CHECKING:
    from collections.abc import Callable

    from prompt_toolkit.application import Application
    from prompt_toolkit.buffer import Buffer
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding.key_processor import KeyPress

    from chorus_cli.commands.command_context import CommandContext


_SIGN = "❯"
_PLAIN_SIGN = ">"
_YES_OR_NO = ("y", "yes", "n", "no")
_DISCARD = ("d", "discard")


class Prompt:
    """The lines that the user types into."""

    def __init__(self, context: Callable[[], CommandContext]) -> None:
        self._drawn: Callable[[], None] | None = None
        self._line = Line()
        self._session: PromptSession[str] = PromptSession(
            multiline=True,
            prompt_continuation="  ",
            completer=CommandCompleter(context),
            complete_while_typing=True,
            key_bindings=key_bindings(self._line),
            enable_suspend=True,
        )
        self._session.default_buffer.on_text_changed += self._typed
        self._session.app.after_render += self._after_render

    def when_drawn(self, drawn: Callable[[], None]) -> None:
        """Call ``drawn`` once, when the next prompt is on the screen."""
        self._drawn = drawn

    def feed(self, keys: str) -> None:
        """Take keys as if they were typed at the next prompt."""
        if keys:
            # Nearly nobody types before the prompt is there.
            from prompt_toolkit.input.typeahead import store_typeahead  # noqa: PLC0415
            from prompt_toolkit.input.vt100_parser import Vt100Parser  # noqa: PLC0415

            pressed: list[KeyPress] = []
            Vt100Parser(pressed.append).feed_and_flush(keys)
            store_typeahead(self._session.app.input, pressed)

    async def read(self, name: str, history: History, typed: str = "") -> str:
        """Ask for a message to the persona called ``name``; ``typed`` stands there already.

        Up, Down and Ctrl-R go through ``history``, and what is typed is added to it.

        Raises:
            Leave: Ctrl-D or Ctrl-C on an empty line, twice.
            EOFError: the terminal is gone.
        """
        unicode = locale.getpreferredencoding(do_setlocale=False).lower().startswith("utf")
        self._line.is_over = False
        self._line.offered = typed
        self._session.default_buffer.history = history
        message = FormattedText([("bold", f"{safe_line(name)} {_SIGN if unicode else _PLAIN_SIGN} ")])
        try:
            return await self._session.prompt_async(message, default=typed, handle_sigint=False)
        except OSError as error:
            raise EOFError from error

    def above(self, draw: Callable[[], None]) -> None:
        """Let ``draw`` write above the prompt and what is typed there; where no prompt is, it just writes.

        prompt_toolkit's own way hands the terminal back meanwhile, and what is typed then goes astray.
        """
        application = self._session.app
        if not application.is_running:
            draw()
            return
        application.renderer.erase()
        draw()
        application.renderer.request_absolute_cursor_position()
        application.invalidate()

    async def confirm(self, question: str, *, discardable: bool = False) -> str:
        """Ask a question until it is answered; return ``y`` or ``n``, or ``d`` if something can be discarded.

        Ctrl-C, Ctrl-D and a terminal that is gone mean no.
        """
        session: PromptSession[str] = PromptSession()
        words = (*_YES_OR_NO, *_DISCARD) if discardable else _YES_OR_NO
        choice = "(y/n, or d to discard it)" if discardable else "(y/n)"
        # What stands above the last line of a prompt is cut off at the width, so it is broken before.
        width = shutil.get_terminal_size().columns
        lines = [textwrap.fill(line, width) for line in f"{safe_text(question)} {choice}".splitlines()]
        asked = FormattedText([("bold", "\n".join(lines) + " ")])
        with suppress(KeyboardInterrupt, EOFError, OSError):
            while True:
                answer = (await session.prompt_async(asked, handle_sigint=False)).strip().casefold()
                if answer in words:
                    return answer[0]
        return "n"

    def _typed(self, _buffer: Buffer) -> None:
        self._line.is_over = False

    def _after_render(self, _application: Application[str]) -> None:
        if self._drawn is not None:
            drawn, self._drawn = self._drawn, None
            drawn()
