"""The prompt: reads one message or command, of one line or many."""

from __future__ import annotations

import locale
from contextlib import suppress
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import has_focus, is_searching
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.key_binding import KeyBindings

from chorus_cli.core.safe_text import safe_line, safe_text
from chorus_cli.terminal.completer import CommandCompleter

if TYPE_CHECKING:
    from collections.abc import Callable

    from prompt_toolkit.application import Application
    from prompt_toolkit.buffer import Buffer
    from prompt_toolkit.key_binding import KeyPressEvent
    from prompt_toolkit.key_binding.key_processor import KeyPress

    from chorus_cli.commands.command_context import CommandContext


_SIGN = "❯"
_PLAIN_SIGN = ">"
_YES_OR_NO = ("y", "yes", "n", "no")
_DISCARD = ("d", "discard")


class Leave(Exception):  # noqa: N818 - it is no error: the user wants to go
    """The user asked at the prompt to leave."""


class Prompt:
    """The lines that the user types into."""

    def __init__(self, context: Callable[[], CommandContext]) -> None:
        self._drawn: Callable[[], None] | None = None
        self._patience = _Patience()
        self._session: PromptSession[str] = PromptSession(
            multiline=True,
            prompt_continuation="  ",
            completer=CommandCompleter(context),
            complete_while_typing=True,
            key_bindings=_bindings(self._patience),
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

    async def read(self, name: str, typed: str = "") -> str:
        """Ask for a message to the persona called ``name``; ``typed`` stands there already.

        Raises:
            Leave: Ctrl-D or Ctrl-C on an empty line, twice.
            EOFError: the terminal is gone.
        """
        unicode = locale.getpreferredencoding(do_setlocale=False).lower().startswith("utf")
        self._patience.is_over = False
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
        asked = FormattedText([("bold", f"{safe_text(question)} {choice} ")])
        with suppress(KeyboardInterrupt, EOFError, OSError):
            while True:
                answer = (await session.prompt_async(asked, handle_sigint=False)).strip().casefold()
                if answer in words:
                    return answer[0]
        return "n"

    def _typed(self, _buffer: Buffer) -> None:
        self._patience.is_over = False

    def _after_render(self, _application: Application[str]) -> None:
        if self._drawn is not None:
            drawn, self._drawn = self._drawn, None
            drawn()


class _Patience:
    """Whether the last key was Ctrl-C on an empty line, so that a second one leaves."""

    def __init__(self) -> None:
        self.is_over = False


def _bindings(patience: _Patience) -> KeyBindings:
    bindings = KeyBindings()
    typing = has_focus(DEFAULT_BUFFER) & ~is_searching

    @bindings.add("enter", filter=typing)
    def _send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.newline(copy_margin=False)
        elif buffer.text.strip():
            buffer.validate_and_handle()

    @bindings.add("escape", "enter", filter=typing)
    @bindings.add("c-j", filter=typing)
    def _new_line(event: KeyPressEvent) -> None:
        event.current_buffer.newline(copy_margin=False)

    @bindings.add("c-d", filter=typing)
    def _leave_or_delete(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.delete()
        else:
            event.app.exit(exception=Leave)

    @bindings.add("c-c", filter=typing)
    def _clear_or_leave(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
            patience.is_over = False
        elif patience.is_over:
            event.app.exit(exception=Leave)
        else:
            patience.is_over = True

    return bindings
