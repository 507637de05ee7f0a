"""Keys at the prompt: Chorus's own bindings, and keys that were typed before the prompt appeared."""

from __future__ import annotations

import asyncio
import os
import select
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from prompt_toolkit import filters
from prompt_toolkit.application import Application, get_app, run_in_terminal
from prompt_toolkit.application.current import set_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.history import History
from prompt_toolkit.input import Input
from prompt_toolkit.input.posix_utils import PosixStdinReader
from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.utils import is_dumb_terminal

from chorus_cli.core.errors import CommandError
from chorus_cli.editing.service.unsent import joined
from chorus_cli.terminal.prompt.history import remember
from chorus_cli.terminal.prompt.keyboard import AtRest, pastes_unmarked, stop, suspended_by
from chorus_cli.terminal.prompt.output import is_too_tall

_LEAVING_SECONDS = 3.0
_PATH_BEGINNINGS = ("/", "~/", "file://", "'", '"')
_THOUGHTS = "/thoughts"
_TYPING = filters.has_focus(DEFAULT_BUFFER) & ~filters.is_searching
_MOST_READS = 64  # of 1,024 bytes each: as many as a terminal may hold
_HUNG_UP = select.POLLHUP | select.POLLERR | select.POLLNVAL


class KeyReader(PosixStdinReader):
    """Reads keys of a terminal until reading fails, because the terminal is closed or another process group has it.

    prompt_toolkit would try again for ever.
    """

    def read(self, count: int = 1024) -> str:
        """Return the text that can be read now, of at most ``count`` bytes."""
        try:
            is_ready = bool(select.select([self.stdin_fd], [], [], 0)[0])
            data = os.read(self.stdin_fd, count) if is_ready else b""
        except OSError:
            is_ready, data = True, b""
        self.closed = self.closed or (is_ready and not data)
        text = self._stdin_decoder.decode(data)
        # Programs that type into a dumb terminal, such as Emacs's shell mode, send Ctrl-J for Enter.
        return text.replace("\n", "\r") if is_dumb_terminal() else text


class Leave(Exception):  # noqa: N818 - it is no error: the user wants to go
    """The user asked at the prompt to leave."""


class Compose(Exception):  # noqa: N818 - it is no error: the user wants to go on elsewhere
    """The user asked at the prompt to continue in the editor with the text ``typed``."""

    def __init__(self, typed: str) -> None:
        super().__init__()
        self.typed = typed


class AtSigns:
    """Follows a changing line, and knows which of its at signs were typed: pasted ones must not attach files."""

    def __init__(self) -> None:
        self._text = ""
        self._typed: frozenset[int] = frozenset()

    def begin(self, text: str) -> None:
        """Begin a line with ``text``; its at signs count as pasted, unless the line before had the same text."""
        if text != self._text:
            self._text, self._typed = text, frozenset()

    def add(self, positions: Iterable[int]) -> None:
        """Note at signs that were typed just now."""
        self._typed |= {*positions}

    def follow(self, text: str, cursor: int) -> None:
        """Note that the line is now ``text``: one piece before the cursor was inserted, removed or replaced."""
        old, self._text = self._text, text
        if not self._typed:
            return
        after = len(text) - cursor
        if not old.endswith(text[cursor:]):
            # Another line is shown, for example from the history.
            self._typed = frozenset()
            return
        end, shift = len(old) - after, len(text) - len(old)
        kept = (each for each in self._typed if each < min(end, cursor) and text.startswith(old[: each + 1]))
        self._typed = frozenset((*kept, *(each + shift for each in self._typed if each >= end)))

    def escaped(self, line: str) -> str:
        """Return ``line`` with a backslash before each at sign that was not typed and would attach a file."""
        from chorus_cli.attachments.rules.mentions import escaped

        return escaped(line, self._typed if line == self._text else ())


class Line:
    """State of the input line that the key bindings share.

    ``is_over``: Ctrl-C was pressed on an empty line less than ``leaving_seconds`` ago, so a second Ctrl-C quits unless
    the user types first. ``offered``: the text that "/" replaces. ``is_too_tall``: the sent message does not fit on the
    screen. ``dropped``: a pasted text that names a file, and the path of the file. ``kept``: the text to bring back if
    the chat is killed.
    """

    def __init__(self, leaving_seconds: float = _LEAVING_SECONDS, at_rest: AtRest = nullcontext) -> None:
        self.at_rest = at_rest
        self.offered = ""
        self.is_too_tall = False
        self.at_signs = AtSigns()
        self.kept = ""
        self.dropped: tuple[str, str] | None = None
        self._own = ""
        self._position = self._lines_above = 0
        self._leaving_seconds = leaving_seconds
        self._over_until = 0.0

    def begin(self, text: str, position: int = 0) -> None:
        """Begin with the user's own ``text``; ``position`` is its place among the lines of the history."""
        self.at_signs.begin(text)
        self.kept = self._own = text
        self._position, self._lines_above = position, 0

    def go_to(self, position: int) -> None:
        """Note the line's place in the history before a key is handled; the place grows while the history is read."""
        self._position = position

    def follow(self, text: str, cursor: int, position: int) -> bool:
        """Note that the line is now ``text``; return true if the user typed, false if the user went to another line.

        A changed line of the history is kept below the user's own text.
        """
        self.at_signs.follow(text, cursor)
        steps, self._position = self._position - position, position
        self._lines_above += steps
        if not steps:
            self._own = self._own if self._lines_above else text
            self.kept = joined(self._own, text) if self._lines_above else text
        return not steps

    def remember_own(self, history: History) -> None:
        """Let Up bring back the user's own text, if a line of the history is sent or cleared in its place."""
        if self._lines_above and self._own.strip():
            remember(history, self._own)

    @property
    def is_over(self) -> bool:
        """Whether a Ctrl-C quits."""
        return time.monotonic() < self._over_until

    def end(self, went_on: Callable[[], None]) -> None:
        """Let a Ctrl-C within ``leaving_seconds`` quit; after this time, call ``went_on``."""
        self._over_until = time.monotonic() + self._leaving_seconds
        asyncio.get_running_loop().call_later(self._leaving_seconds, went_on)

    def paste(self, pressed: str) -> str:
        """Return a pasted text with line feeds as line ends. If it is the path of a file, Tab can attach the file.

        When a file is dropped, a terminal pastes its path in quotes, with escaped blanks, or as a ``file://`` address.
        """
        from chorus_cli.attachments.files.document_files import is_file
        from chorus_cli.storage.typed_paths import bare

        text = pressed.replace("\r\n", "\n").replace("\r", "\n")
        typed = text.strip()
        try:
            path = bare(typed) if typed.startswith(_PATH_BEGINNINGS) and "\n" not in typed else ""
        except (CommandError, ValueError):
            # A text that begins like an address need not be one: file://[x.
            path = ""
        self.dropped = (text, path) if path and is_file(path) else None
        return text

    def offers_to_attach(self, before_cursor: str) -> bool:
        """Return whether the text before the cursor ends with the path of a file that was pasted."""
        return self.dropped is not None and before_cursor.endswith(self.dropped[0])

    def go_on(self) -> None:
        """Let the next Ctrl-C not quit."""
        self._over_until = 0.0


def key_bindings(line: Line) -> KeyBindings:
    """Return the bindings that act on ``line``."""
    bindings = KeyBindings()
    _bind_typing(bindings, line)
    _bind_pasting(bindings, line)
    _bind_leaving(bindings, line)
    return bindings


def _bind_typing(bindings: KeyBindings, line: Line) -> None:
    @bindings.add("enter", filter=_TYPING)
    def _send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.newline(copy_margin=False)
        elif buffer.text.strip():
            event.app.erase_when_done = line.is_too_tall = is_too_tall(event.app)
            buffer.validate_and_handle()

    @bindings.add("/", filter=_TYPING & ~filters.vi_navigation_mode)
    def _command(event: KeyPressEvent) -> None:
        # A command replaces a message that /undo put here, so that another /undo can follow at once.
        buffer = event.current_buffer
        if line.offered and buffer.text == line.offered:
            # Unlike a reset, this lets Ctrl-_ bring the message back; a "/" typed then is a part of it.
            buffer.text = line.offered = ""
        buffer.insert_text("/")

    @bindings.add(
        "@",
        filter=_TYPING & (filters.emacs_mode | filters.vi_insert_mode),
        save_before=lambda event: not event.is_repeat,
    )
    def _at_sign(event: KeyPressEvent) -> None:
        _insert_typed(event.current_buffer, line, "@" * event.arg, range(event.arg))

    @bindings.add("c-@", filter=_TYPING)
    def _mark(_event: KeyPressEvent) -> None:
        """Select nothing: prompt_toolkit ignores letters while there is a selection, which would be invisible."""

    # In vi mode Escape must not wait for a second key.
    @bindings.add("escape", "enter", filter=_TYPING & filters.emacs_mode)
    @bindings.add("c-j", filter=_TYPING)
    def _new_line(event: KeyPressEvent) -> None:
        event.current_buffer.newline(copy_margin=False)


def _bind_pasting(bindings: KeyBindings, line: Line) -> None:
    @bindings.add(Keys.BracketedPaste, filter=_TYPING)
    def _paste(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text(line.paste(event.data))

    @filters.Condition
    def is_offered() -> bool:
        return line.offers_to_attach(get_app().current_buffer.document.text_before_cursor)

    @bindings.add("tab", filter=_TYPING & is_offered)
    def _attach(event: KeyPressEvent) -> None:
        from chorus_cli.attachments.rules.mentions import may_follow, mention_of

        if line.dropped is not None:
            text, path = line.dropped
            buffer = event.current_buffer
            buffer.delete_before_cursor(len(text))
            blank = "" if may_follow(buffer.document.text_before_cursor) else " "
            _insert_typed(buffer, line, f"{blank}{mention_of(path)} ", [len(blank)])
            line.dropped = None


def _clear(buffer: Buffer, line: Line) -> None:
    line.remember_own(buffer.history)
    remember(buffer.history, buffer.text)
    buffer.reset()
    line.begin("", buffer.working_index)
    # prompt_toolkit does not report a reset as a change.
    buffer.on_text_changed.fire()


def _insert_typed(buffer: Buffer, line: Line, text: str, at_signs: Iterable[int]) -> None:
    start = buffer.cursor_position
    buffer.insert_text(text)
    line.at_signs.add(start + each for each in at_signs)


def _bind_leaving(bindings: KeyBindings, line: Line) -> None:
    @bindings.add("c-x", "c-e", filter=_TYPING)
    @bindings.add("v", filter=_TYPING & filters.vi_navigation_mode & ~filters.has_selection)
    def _compose(event: KeyPressEvent) -> None:
        # The line comes back when the editor is closed, and must not appear twice.
        event.app.erase_when_done = True
        event.app.exit(exception=Compose(event.current_buffer.text))

    @bindings.add("c-t", filter=_TYPING & filters.Condition(lambda: not get_app().current_buffer.text))
    def _thoughts(event: KeyPressEvent) -> None:
        event.app.erase_when_done = True
        event.app.exit(result=_THOUGHTS)

    @bindings.add("c-d", filter=_TYPING)
    def _leave_or_delete(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.delete()
        else:
            event.app.exit(exception=Leave)

    @bindings.add("c-c", filter=_TYPING)
    def _clear_or_leave(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            _clear(event.current_buffer, line)
        elif line.is_over:
            event.app.exit(exception=Leave)
        else:
            line.end(event.app.invalidate)

    # Pasted colours look like a report of the mouse, which prompt_toolkit then fails to read.
    @bindings.add(Keys.Vt100MouseEvent)
    def _ignore(_event: KeyPressEvent) -> None:
        return

    @bindings.add("c-z")
    def _suspend(_event: KeyPressEvent) -> None:
        # prompt_toolkit's own binding would leave pastes marked for the shell.
        # 0 stops all processes of the job, because the shell waits for all of them.
        run_in_terminal(lambda: _stop(0, line.at_rest))


def suspended_by_others(application: Application[str], at_rest: AtRest) -> AbstractContextManager[None]:
    """Suspend a prompt when another program sends the signal of Ctrl-Z, and lend the terminal to the shell."""

    def suspend() -> None:
        with set_app(application):
            run_in_terminal(lambda: _stop(os.getpid(), at_rest))

    return suspended_by(suspend)


def _stop(process_id: int, at_rest: AtRest) -> None:
    with pastes_unmarked():
        stop(process_id, at_rest)


def presses(keys: str) -> list[KeyPress]:
    """Parse characters from a terminal into key presses."""
    pressed: list[KeyPress] = []
    Vt100Parser(pressed.append).feed_and_flush(keys)
    return pressed


def text_of(pressed: Iterable[KeyPress]) -> str:
    """Return the text that keys typed: Enter adds a line break, Backspace removes a character, others do nothing."""
    text = ""
    for each in pressed:
        if each.key in {Keys.ControlM, Keys.ControlJ}:
            text += "\n"
        elif each.key is Keys.ControlH:
            text = text[:-1]
        elif each.key is Keys.BracketedPaste or not isinstance(each.key, Keys):
            text += each.data
    return text


@contextmanager
def keys_ahead(source: Input) -> Iterator[list[KeyPress]]:
    """Yield a list of the keys typed ahead, which the block may change.

    The next prompt gets the list, then the keys typed during the block. It also gets the end of an unfinished paste.
    """
    # Keys that were kept from the shell at Ctrl-Z are older than the keys still in the terminal.
    pressed = get_typeahead(source)
    descriptor = source.fileno()
    for _ in range(_MOST_READS):
        if is_hung_up(descriptor) or not select.select([descriptor], [], [], 0)[0]:
            break
        pressed += source.read_keys()
    try:
        yield pressed
    finally:
        store_typeahead(source, [*pressed, *get_typeahead(source)])


def key_taken(source: Input, key: Keys) -> bool:
    """Remove a key from the keys that were typed ahead, and return whether it was among them."""
    with keys_ahead(source) as typed:
        others = [press for press in typed if press.key is not key]
        is_there, typed[:] = len(others) < len(typed), others
    return is_there


@contextmanager
def ctrl_d_dropped(source: Input) -> Iterator[None]:
    """Remove Ctrl-D, which would quit at the next prompt, from the keys typed during the block."""
    before = get_typeahead(source)
    try:
        yield
    finally:
        key_taken(source, Keys.ControlD)
        store_typeahead(source, [*before, *get_typeahead(source), *source.flush_keys()])


def line_ahead(source: Input) -> bool:
    """Return whether text was typed ahead. If not, drop the keys: Enter would send the text already at the prompt."""
    with keys_ahead(source) as typed:
        if not text_of(typed).strip():
            typed.clear()
    return bool(typed)


def lines_held_back(source: Input) -> bool:
    """Make each Enter typed ahead a line break, but drop those at the end; return whether lines are left."""
    line_break = KeyPress(Keys.ControlJ, "\n")
    with keys_ahead(source) as typed:
        are_lines = any(press.key is Keys.ControlM for press in typed)
        while are_lines and typed and typed[-1].key is Keys.ControlM:
            typed.pop()
        typed[:] = [line_break if press.key is Keys.ControlM else press for press in typed]
        return are_lines and bool(typed)


def is_hung_up(descriptor: int) -> bool:
    """Return whether the terminal is gone."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return any(event & _HUNG_UP for _, event in poll.poll(0))
