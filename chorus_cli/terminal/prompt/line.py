"""The prompt: reads one message or command, limits pastes, and shows hidden characters."""

from __future__ import annotations

import re
import shutil
from bisect import bisect_right
from contextlib import nullcontext, suppress
from itertools import accumulate
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.cursor_shapes import ModalCursorShapeConfig
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.formatted_text import FormattedText, StyleAndTextTuples
from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout.controls import SearchBufferControl
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.layout.utils import explode_text_fragments
from prompt_toolkit.output import DummyOutput, create_output
from prompt_toolkit.styles import Style
from prompt_toolkit.utils import is_dumb_terminal

from chorus_cli.core import limits
from chorus_cli.core.text.safe_text import may_hide, revealed, safe_text
from chorus_cli.terminal.prompt.completion import LineCompleter
from chorus_cli.terminal.prompt.history import remember
from chorus_cli.terminal.prompt.keyboard import HANG_UPS
from chorus_cli.terminal.prompt.keys import (
    Compose,
    KeyReader,
    Leave,
    Line,
    key_bindings,
    presses,
    suspended_by_others,
    text_of,
)
from chorus_cli.terminal.prompt.output import Echo, draw_sent, prompt_output
from chorus_cli.terminal.screen.output import folded, knows_unicode, prompt_sign

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from prompt_toolkit.application import Application
    from prompt_toolkit.buffer import Buffer
    from prompt_toolkit.history import History
    from prompt_toolkit.input import Input

    from chorus_cli.personas.rules.persona import Persona
    from chorus_cli.services import Services
    from chorus_cli.terminal.prompt.keyboard import AtRest

    Act = Callable[[], None]
    Toolbar = Callable[[int], list[tuple[str, str]]]


_ANSWERS = ("y", "yes", "n", "no", "d", "discard")
_ATTACHES = " Tab attaches this file"
_AGAIN = " Press Ctrl-C again to quit"
_OWN_GROUND = "fg:default bg:default"
_MENU_LINES, _LINES_BESIDE_MENU = 8, 3
_PASTE_ENDS = "\x1b[201~"
_EARLY_END = re.compile(rf"{re.escape(_PASTE_ENDS)}(?=(?:(?!\x1b\[200~).)*?{re.escape(_PASTE_ENDS)})", re.DOTALL)
_REVEALED = "class:control-character"
# prompt_toolkit draws a line character by character at each key press, so only the ends of a long line are shown.
_END_CHARACTERS = 5_000
_LEFT_OUT = " … "

STYLE = Style.from_dict(
    {
        "sign": "bold ansimagenta",
        "bottom-toolbar": "noreverse dim",
        "bottom-toolbar.text": "noreverse dim",
        "warning": "nodim bold",
        # prompt_toolkit's own styles have fixed colours, which ignore the terminal's background.
        "completion-menu": _OWN_GROUND,
        "completion-menu.completion.current": f"{_OWN_GROUND} reverse",
        "completion-menu.meta.completion": f"{_OWN_GROUND} dim",
        "completion-menu.meta.completion.current": f"{_OWN_GROUND} nodim reverse",
        "scrollbar.background": _OWN_GROUND,
        "scrollbar.button": f"{_OWN_GROUND} reverse",
        "search": f"{_OWN_GROUND} underline",
        "control-character": f"{_OWN_GROUND} reverse",
    }
)


class Prompt:
    """The input lines of the chat.

    ``toolbar`` returns the line at the bottom for a number of columns. ``begun`` is called when the user begins a
    text, and ``changed`` when the text changes. ``drawn`` is called once, when the next prompt is on the screen.
    ``refuse`` is called with a line that does not answer a question, and with the possible answers.
    """

    def __init__(
        self,
        services: Callable[[], Services],
        toolbar: Toolbar,
        begun: Act = lambda: None,
        at_rest: AtRest = nullcontext,
        *,
        is_plain: bool = False,
    ) -> None:
        self._toolbar = toolbar
        self._begun = begun
        self._sign = f"{prompt_sign(unicode=knows_unicode() and not is_plain)} "
        self._is_empty = True
        self._is_reading = False
        self.drawn: Act | None = None
        self.changed: Callable[[str], None] = lambda _text: None
        self.refuse: Callable[[str, str], None] = lambda _line, _answers: None
        self._line = Line(at_rest=at_rest)
        self.escaped = self._line.at_signs.escaped
        self._echo = Echo(create_output()) if is_plain or is_dumb_terminal() else None
        self._session: PromptSession[str] = PromptSession(
            multiline=True,
            prompt_continuation="  ",
            # A dumb terminal cannot show the menu, and a screen reader would read the menu at each key.
            completer=None if self._echo else LineCompleter(services),
            complete_while_typing=True,
            key_bindings=key_bindings(self._line),
            input_processors=[Revealing()],
            bottom_toolbar=self._bottom,
            style=STYLE,
            output=DummyOutput() if self._echo else prompt_output(),
        )
        if isinstance(self.keyboard, Vt100Input):
            self.keyboard.stdin_reader = KeyReader(self.keyboard.fileno(), encoding=self.keyboard.stdin.encoding)
        # Search fields show hidden characters too; `Revealing` must see the line before other processors add words.
        for control in self._session.layout.find_all_controls():
            if isinstance(control, SearchBufferControl) and control.input_processors is not None:
                control.input_processors.insert(0, Revealing())
        self._session.default_buffer.on_text_changed += self._typed
        self._session.app.key_processor.before_key_press += self._before_key
        self._session.app.before_render += self._make_fit
        self._session.app.after_render += self._after_render

    def tell_of_long_pastes(self, tell: Callable[[str], None]) -> None:
        """Leave out each paste that is too long, and call ``tell`` with a sentence about it."""
        if isinstance(self.keyboard, Vt100Input):
            self.keyboard.vt100_parser = PasteParser(self.keyboard.vt100_parser.feed_key_callback, tell)

    def feed(self, keys: str) -> None:
        """Pass keys to the next prompt as if they were typed there."""
        if keys:
            store_typeahead(self._session.app.input, presses(keys))

    @property
    def keyboard(self) -> Input:
        """The keys, which prompts and replies read in turn."""
        return self._session.app.input

    @property
    def typed_ahead(self) -> str:
        """The text of the keys that wait for the next prompt."""
        keys = get_typeahead(self.keyboard)
        store_typeahead(self.keyboard, keys)
        return text_of(keys)

    def drop_typed_ahead(self) -> None:
        """Drop the keys that wait for the next prompt."""
        get_typeahead(self.keyboard)

    @property
    def typed(self) -> str:
        """The unfinished text at the prompt, also while a line of the history is shown; empty if it was sent."""
        return self._line.kept if self._is_reading else ""

    async def read(self, persona: Persona, history: History, typed: str = "", *, gives_way: bool = False) -> str:
        """Return a line for ``persona``; the prompt begins with ``typed``, which "/" replaces if it ``gives_way``."""
        self._line.is_too_tall = False
        self._line.offered = typed if gives_way else ""
        self._line.begin(typed)
        self._session.default_buffer.history = history
        self._session.app.erase_when_done = False
        is_vi = persona.settings.editing_mode == "vi"
        self._session.editing_mode = EditingMode.VI if is_vi else EditingMode.EMACS
        # The shape of the cursor shows the vi mode.
        self._session.cursor = ModalCursorShapeConfig() if is_vi else None
        if self._echo:
            self._echo.sign = self._sign
        self._is_reading = self._is_empty = True
        try:
            with suspended_by_others(self._session.app, self._line.at_rest):
                line = await self._session.prompt_async(
                    FormattedText([("class:sign", self._sign.rstrip()), ("", " ")]),
                    default=typed,
                    set_exception_handler=False,
                    handle_sigint=False,
                )
        except HANG_UPS as error:
            raise EOFError from error
        except (Leave, Compose):
            self._is_reading = False
            raise
        finally:
            self._line.go_on()
            self._line.remember_own(history)
            if self._echo:
                self._echo.break_off()
        self._is_reading = False
        return line

    def redraw(self) -> None:
        """Redraw the prompt, if it is on the screen."""
        if self._session.app.is_running:
            self._session.app.invalidate()

    def above(self, draw: Callable[[], None]) -> None:
        """Call ``draw``; if there is a prompt, ``draw`` writes above the prompt and the text typed there."""
        # ``run_in_terminal`` of prompt_toolkit releases the terminal meanwhile, and keys typed then would get lost.
        application = self._session.app
        if self._echo:
            self._echo.break_off()
        if not application.is_running:
            draw()
            return
        application.renderer.erase()
        draw()
        application.renderer.request_absolute_cursor_position()
        application.invalidate()

    @property
    def is_up(self) -> bool:
        """Whether the user can type."""
        return self._session.app.is_running

    async def confirm(self, question: str, choices: Collection[str] = "yn") -> str | None:
        """Ask until the answer is one of ``choices`` (y, n, d for discard); return it, or ``None`` as `answer` does."""
        words = [word for word in _ANSWERS if word[0] in choices]
        return await self.chosen(question, words, "y = yes, n = keep a draft, d = discard" if "d" in choices else "y/n")

    async def chosen(self, question: str, words: Collection[str], choice: str) -> str | None:
        """Ask a question until one of ``words`` is typed; return its first letter, or ``None`` as `answer` does.

        ``choice`` tells the user the possible answers.
        """
        while (line := await self.answer(f"{question} ({choice})")) is not None:
            answer = line.strip()
            if answer.casefold() in words:
                return answer.casefold()[0]
            if answer:
                self.refuse(answer, choice)
        return None

    def remember(self, line: str) -> None:
        """Let Up bring back a line that is no answer to a question."""
        remember(self._session.default_buffer.history, line)

    async def answer(self, question: str) -> str | None:
        """Ask a question, and return the line typed; ``None`` for Ctrl-C, Ctrl-D or a closed terminal."""
        session: PromptSession[str] = PromptSession(output=self._session.output, input_processors=[Revealing()])
        # prompt_toolkit cuts the lines of a prompt off at the width, except the last, so the lines are wrapped here.
        width = shutil.get_terminal_size().columns
        lines = [folded(line, width, breaks_words=True) for line in safe_text(question).splitlines()]
        asked = FormattedText([("bold", "\n".join(lines) + " ")])
        if echo := self._echo:
            echo.ask(lines)
            session.app.after_render += lambda _: echo.show(session.default_buffer.text)
        with suppress(KeyboardInterrupt, EOFError, *HANG_UPS):
            try:
                return await session.prompt_async(asked, set_exception_handler=False, handle_sigint=False)
            finally:
                if echo:
                    echo.break_off()
        return None

    def _bottom(self) -> FormattedText:
        # During a search Ctrl-C only ends the search.
        if self._line.is_over and not self._session.app.layout.is_searching:
            return FormattedText([("", _AGAIN)])
        if self._line.offers_to_attach(self._session.default_buffer.document.text_before_cursor):
            return FormattedText([("", _ATTACHES)])
        return FormattedText(self._toolbar(self._session.app.output.get_size().columns))

    def _make_fit(self, _application: Application[str]) -> None:
        # Rows kept free for a closed menu would scroll the answer above the prompt away.
        has_menu = self._session.default_buffer.complete_state is not None
        lines = self._session.app.output.get_size().rows
        self._session.reserve_space_for_menu = min(_MENU_LINES, max(0, lines - _LINES_BESIDE_MENU)) * has_menu

    def _typed(self, buffer: Buffer) -> None:
        self._line.go_on()
        is_typed = self._line.follow(buffer.text, buffer.cursor_position, buffer.working_index)
        was_empty, self._is_empty = self._is_empty, not buffer.text
        if was_empty and buffer.text:
            self._begun()
        if is_typed:
            self.changed(self._line.kept)

    def _before_key(self, _keys: object) -> None:
        self._line.go_to(self._session.default_buffer.working_index)

    def _after_render(self, application: Application[str]) -> None:
        if self._echo:
            document = self._session.default_buffer.document
            self._echo.show(document.text, document.text_after_cursor)
        if self._line.is_too_tall:
            self._line.is_too_tall = False
            draw_sent(application, self._sign)
        if self.drawn is not None:
            drawn, self.drawn = self.drawn, None
            drawn()


class PasteParser(Vt100Parser):
    """Parses keys as prompt_toolkit does, but drops a paste that is too long, while it arrives.

    A copied text may contain the mark that ends a paste; the rest of the text would act as keys, and could send it.
    Therefore, if several end marks arrive at once before another paste begins, only the last one ends the paste.
    """

    def __init__(self, pressed: Callable[[KeyPress], None], tell: Callable[[str], None]) -> None:
        super().__init__(self._press)
        self._pressed = pressed
        self._tell = tell
        self._dropped = 0

    def feed(self, data: str) -> None:
        """Take the next input; the text of a paste is not parsed as keys."""
        super().feed(_EARLY_END.sub("", data))
        # A part of the end mark may have arrived, which is no part of the paste.
        most = limits.PASTE.most + len(_PASTE_ENDS) - 1
        if self._in_bracketed_paste and (self._dropped or len(self._paste_buffer) > most):
            kept = self._paste_buffer[1 - len(_PASTE_ENDS) :]
            self._dropped += len(self._paste_buffer) - len(kept)
            self._paste_buffer = kept

    def _press(self, press: KeyPress) -> None:
        length, self._dropped = self._dropped + len(press.data), 0
        if press.key is not Keys.BracketedPaste or length <= limits.PASTE.most:
            self._pressed(press)
            return
        self._tell(
            f"The paste is too long: it has {length:,} characters, and the prompt takes at most {limits.PASTE.most:,}. "
            "Save it to a file and attach that with @FILE, or pipe it to chorus ask."
        )


class Revealing(Processor):
    """Draws invisible and misleading characters as code points, such as ``<U+202E>``; the text itself is unchanged."""

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        """Draw one line."""
        line = transformation_input.document.lines[transformation_input.lineno]
        if len(line) > 2 * _END_CHARACTERS:
            return _both_ends(line)
        if not may_hide(line):
            return Transformation(transformation_input.fragments)
        signs = revealed(line)
        drawn: StyleAndTextTuples = [
            (style if sign == character else f"{style} {_REVEALED}", sign)
            for (style, character, *_), sign in zip(
                explode_text_fragments(transformation_input.fragments), signs, strict=False
            )
        ]
        places = [0, *accumulate(map(len, signs))]
        return Transformation(drawn, places.__getitem__, lambda place: bisect_right(places, place) - 1)


def _both_ends(line: str) -> Transformation:
    """Draw the beginning and the end of a line; a cursor between them is drawn after the beginning."""
    signs = [*revealed(line[:_END_CHARACTERS]), _LEFT_OUT, *revealed(line[-_END_CHARACTERS:])]
    places = [0, *accumulate(map(len, signs))]
    hidden = len(line) - len(signs) + 1

    def drawn_at(place: int) -> int:
        return places[place if place <= _END_CHARACTERS else max(_END_CHARACTERS, place - hidden + 1)]

    def source_of(place: int) -> int:
        number = bisect_right(places, place) - 1
        return number if number <= _END_CHARACTERS else number + hidden - 1

    return Transformation([("", "".join(signs))], drawn_at, source_of)
