"""Pastes that are taken up to a limit, in time that grows with their length.

The library's own parser looks through all of a paste again with each kilobyte that arrives: 10 MB take minutes, in
which no key has an effect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys

from chorus_cli.core import limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from prompt_toolkit.input import Input

_BEGIN, _END = "\x1b[200~", "\x1b[201~"


def bound_pastes(keyboard: Input, tell: Callable[[str], None]) -> None:
    """Have ``keyboard`` leave out pastes that are too long; ``tell`` is called with a sentence about each."""
    if isinstance(keyboard, Vt100Input):
        keyboard.vt100_parser = PasteParser(keyboard.vt100_parser.feed_key_callback, tell)


class PasteParser(Vt100Parser):
    """Takes keys as the library does, but pastes piece by piece; of one that is too long nothing is kept.

    A copied text that brings a mark of the end, which most terminals take out, shall not go on as keys that send it: of
    the marks that arrive at once, up to the beginning of another paste, the last one is the end.
    """

    def __init__(self, pressed: Callable[[KeyPress], None], tell: Callable[[str], None]) -> None:
        super().__init__(pressed)
        self._tell = tell
        self._pieces: list[str] = []
        self._length = 0
        self._tail = ""

    def feed(self, data: str) -> None:
        """Take the next input; that of a paste goes past the parser of keys."""
        if not self._in_bracketed_paste:
            super().feed(data)
            return
        arrived = self._tail + data
        text, end, rest = _ended(arrived)
        if end:
            self._take(text)
            self._finish()
            self.feed(rest)
        else:
            # The mark of the end may have arrived in part.
            kept = len(_END) - 1
            self._take(arrived[:-kept])
            self._tail = arrived[-kept:]

    def _take(self, text: str) -> None:
        self._length += len(text)
        if self._length <= limits.PASTE.most:
            self._pieces.append(text)
        else:
            self._pieces.clear()

    def _finish(self) -> None:
        text, length = "".join(self._pieces), self._length
        self._in_bracketed_paste = False
        self._pieces, self._length, self._tail = [], 0, ""
        if length <= limits.PASTE.most:
            self.feed_key_callback(KeyPress(Keys.BracketedPaste, text))
            return
        self._tell(
            f"The paste has {length:,} characters and was left out; at most {limits.PASTE.most:,} are taken. "
            "Put it in a file and name that with @FILE, or pipe it to chorus ask."
        )


def _ended(arrived: str) -> tuple[str, str, str]:
    """Return the text of a paste, the mark of its end, and the input behind it; only the text if it goes on."""
    text, end, rest = arrived.partition(_END)
    this_paste, _, _ = rest.partition(_BEGIN)
    if _END in this_paste:
        more, _, _ = this_paste.rpartition(_END)
        return text + more.replace(_END, ""), end, rest[len(more) + len(_END) :]
    return text, end, rest
