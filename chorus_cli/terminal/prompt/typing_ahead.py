"""Typing while a reply is shown: the line being typed is visible, and lines ended with Enter wait to be sent.

Between two replies prompt_toolkit's type-ahead holds the keys. The prompt's own input parses the keys, because a paste
may begin at the prompt and end during the reply.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from prompt_toolkit.input import Input
from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys

from chorus_cli.core.text.safe_text import safe_line
from chorus_cli.models.rules.events import Decision, PermissionAsked
from chorus_cli.terminal.prompt.keys import is_hung_up
from chorus_cli.terminal.screen.output import Screen, prompt_sign, widest
from chorus_cli.terminal.screen.painted_rows import Row, beginning_of, dim_row, dots, end_of

_FRAME_SECONDS = 1 / 15
_ESCAPE_SECONDS = 0.5  # Escape and a key within this time are Alt and that key, as at the prompt
_SHOWN_LINES = 3
_ENTER, _NEW_LINE = KeyPress(Keys.ControlM, "\r"), KeyPress(Keys.ControlJ, "\n")

Permit = Callable[[PermissionAsked], Awaitable[None]]


async def refused(asked: PermissionAsked) -> None:
    """Refuse a tool, because nobody can be asked."""
    asked.answer(Decision.NO, "")


class TypedLine:
    """The keys of the line being typed and of the lines that wait, oldest first; the cursor is always at the end."""

    def __init__(self) -> None:
        self._keys: list[KeyPress] = []
        self._waiting: list[list[KeyPress]] = []
        self._is_escaped = False

    @property
    def text(self) -> str:
        """The line being typed."""
        return _text_of(self._keys)

    @property
    def waiting(self) -> list[str]:
        """The lines that wait."""
        return [_text_of(keys) for keys in self._waiting]

    @property
    def unsent(self) -> str:
        """All lines that wait and the line being typed, one below the other."""
        return "\n".join([*self.waiting, self.text] if self._keys else self.waiting)

    def press(self, press: KeyPress) -> None:
        """Apply a key press to the lines."""
        is_escaped, self._is_escaped = self._is_escaped, press.key is Keys.Escape
        if press.key is Keys.BracketedPaste:
            self._add(KeyPress(press.key, press.data.replace("\r\n", "\n").replace("\r", "\n")))
        elif is_escaped:
            # A key with Alt; only Alt-Enter has a meaning.
            if press.key is Keys.ControlM:
                self._add(_NEW_LINE)
        elif isinstance(press.key, Keys):
            self._edit(press.key)
        else:
            self._add(press)

    def forget_escape(self) -> None:
        """Take the next key as pressed without Alt, because Escape was pressed too long ago."""
        self._is_escaped = False

    def presses(self) -> list[KeyPress]:
        """Return the keys that type all these lines at a prompt, without the keys that were erased."""
        return [*(press for keys in self._waiting for press in (*keys, _ENTER)), *self._keys]

    def _add(self, press: KeyPress) -> None:
        if press.data:
            self._keys.append(press)

    def _edit(self, key: Keys) -> None:
        text = self.text
        match key:
            case Keys.ControlM if text.endswith("\\"):
                self._keep(len(text) - 1)
                self._add(_NEW_LINE)
            case Keys.ControlM if text.strip():
                self._waiting.append(self._keys)
                self._keys = []
            case Keys.ControlJ:
                self._add(_NEW_LINE)
            case Keys.ControlH:
                self._keep(len(text) - 1)
            case Keys.ControlW:
                kept = text.rstrip()
                self._keep(len(kept) - len(kept.rsplit(maxsplit=1)[-1]) if kept else 0)
            case Keys.ControlU:
                self._keep(len(text) - 1 if text.endswith("\n") else text.rfind("\n") + 1)
            case Keys.Up if self._waiting and not text:
                self._keys = self._waiting.pop()

    def _keep(self, length: int) -> None:
        surplus = len(self.text) - max(0, length)
        while surplus > 0:
            last = self._keys.pop()
            self._add(KeyPress(last.key, last.data[:-surplus]))
            surplus -= len(last.data)


class ReplyKeyboard:
    """Reads the keyboard ``source`` while a reply is shown on ``screen``.

    ``keep`` is called with the unsent text when the lines that wait change, and ``keep_soon`` when only the line being
    typed changes. ``on_background`` is called when Ctrl-B is pressed. ``permit`` asks whether a tool may run.
    """

    def __init__(
        self,
        source: Input,
        screen: Screen,
        keep: Callable[[str], None],
        keep_soon: Callable[[str], None],
        on_background: Callable[[], None],
    ) -> None:
        self.permit: Permit = refused
        self._source = source
        self._screen = screen
        self._keep = keep
        self._keep_soon = keep_soon
        self._on_background = on_background
        self._line = TypedLine()
        self._changed: Callable[[], None] | None = None
        self._frame: asyncio.TimerHandle | None = None
        self._shown_at = 0.0
        self._escape: asyncio.TimerHandle | None = None

    def begin(self, changed: Callable[[], None]) -> None:
        """Read from now on; call ``changed``, at most 15 times a second, when the rows have changed."""
        self._changed = changed
        self._take(get_typeahead(self._source))
        asyncio.get_running_loop().add_reader(self._source.fileno(), self._read)

    def end(self) -> None:
        """Stop reading and leave everything typed to the next prompt; a second call does nothing."""
        if self._changed is None:
            return
        self._changed = None
        asyncio.get_running_loop().remove_reader(self._source.fileno())
        for timer in (self._frame, self._escape):
            if timer is not None:
                timer.cancel()
        self._frame = self._escape = None
        # Keys that were kept from the shell at Ctrl-Z are newer than the line.
        rescued = get_typeahead(self._source)
        store_typeahead(self._source, [*self._line.presses(), *rescued])
        self._line = TypedLine()

    def rows(self, columns: int) -> list[Row]:
        """Return rows for the three newest lines that wait and the line being typed, shortened to ``columns``."""
        waiting = self._line.waiting
        shown = [f"waiting: {safe_line(line[: 2 * columns])}" for line in waiting[-_SHOWN_LINES:]]
        if len(waiting) > _SHOWN_LINES:
            shown.insert(0, f"+{len(waiting) - _SHOWN_LINES} more")
        rows = [beginning_of(line, columns) for line in shown]
        if self._line.text:
            rows.append(self._typed(columns))
        return [dim_row(row, columns, colour=self._screen.colour) for row in rows]

    def _typed(self, columns: int) -> str:
        unicode = self._screen.unicode
        sign = f"{prompt_sign(unicode=unicode)} "
        # A longer end of the text cannot fit.
        end = safe_line(self._line.text[-2 * columns :])
        if len(self._line.text) <= 2 * columns and widest(sign + end) <= columns:
            return sign + end
        sign += dots(unicode=unicode)
        return sign + end_of(end, columns - widest(sign))

    def _read(self) -> None:
        if is_hung_up(self._source.fileno()):
            # The terminal is gone; its signal ends the chat.
            asyncio.get_running_loop().remove_reader(self._source.fileno())
            return
        self._take([*get_typeahead(self._source), *self._source.read_keys()])
        if self._changed is None:
            return
        if self._escape is not None:
            self._escape.cancel()
        self._escape = asyncio.get_running_loop().call_later(_ESCAPE_SECONDS, self._end_escape)

    def _end_escape(self) -> None:
        self._escape = None
        self._take(self._source.flush_keys())
        self._line.forget_escape()

    def _take(self, presses: Iterable[KeyPress]) -> None:
        shown, count = self._line.unsent, len(self._line.waiting)
        for press in presses:
            if press.key is Keys.ControlB:
                self._on_background()
            else:
                self._line.press(press)
        if len(self._line.waiting) != count:
            self._keep(self._line.unsent)
        elif self._line.unsent != shown:
            self._keep_soon(self._line.unsent)
        else:
            return
        if self._frame is None:
            loop = asyncio.get_running_loop()
            self._frame = loop.call_at(max(loop.time(), self._shown_at + _FRAME_SECONDS), self._show)

    def _show(self) -> None:
        self._frame, self._shown_at = None, asyncio.get_running_loop().time()
        if self._changed is not None:
            self._changed()


def _text_of(keys: Iterable[KeyPress]) -> str:
    return "".join(press.data for press in keys)
