"""Notifications that work in the background is done: the terminal's bell, or a message on the desktop.

A message is sent by OSC 9, which most terminals know, or by OSC 777 to those that know only that one. tmux and screen
pass it on inside a sequence of their own; tmux only if it is configured to, so there, and where the terminal would show
the sequence as text, the bell rings too.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from chorus_cli.core.text.phrases import shortened
from chorus_cli.core.text.safe_text import safe_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from chorus_cli.terminal.screen.output import Screen

BELL = "\a"
_LONGEST = 120
_REST_SECONDS = 1.0
_WITHOUT_OSC = ("dumb", "linux", "vt")


class Notification:
    """Rings on a screen; replies that end within a second ring the bell once."""

    def __init__(
        self,
        screen: Screen,
        environment: Mapping[str, str] = os.environ,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._screen = screen
        self._environment = environment
        self._monotonic = monotonic
        self._rang_at = -_REST_SECONDS

    def ring(self, way: str, sentence: str) -> None:
        """Notify the user by ``way``, a value of the setting ``notify``: ``off``, ``bell`` or ``osc``."""
        message = desktop_message(sentence, self._environment) if way == "osc" else ""
        if message:
            self._screen.ring(message)
        if way == "bell" or (way == "osc" and (not message or "TMUX" in self._environment)):
            self._ring_bell()

    def _ring_bell(self) -> None:
        now = self._monotonic()
        if now - self._rang_at >= _REST_SECONDS:
            self._rang_at = now
            self._screen.ring(BELL)


def desktop_message(sentence: str, environment: Mapping[str, str]) -> str:
    """Return the sequence that shows a sentence on the desktop; empty where the terminal may show it as text."""
    terminal = environment.get("TERM", "")
    if not terminal or terminal.startswith(_WITHOUT_OSC):
        return ""
    text = shortened(safe_text(sentence), _LONGEST)
    if terminal.startswith("rxvt") or "VTE_VERSION" in environment:
        # A semicolon would end the text.
        message = f"\x1b]777;notify;Chorus;{text.replace(';', ',')}{BELL}"
    else:
        message = f"\x1b]9;Chorus: {text}{BELL}"
    if "TMUX" in environment:
        return f"\x1bPtmux;\x1b{message}\x1b\\"
    return f"\x1bP{message}\x1b\\" if "STY" in environment else message
