"""Shows a reply while it arrives: plain, safe text, as fast as it comes."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from chorus_cli.core.events import Notice, ReasoningDelta, TextDelta, TurnDone
from chorus_cli.core.safe_text import SafeTextStream, hidden_warning

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from chorus_cli.core.events import TurnEvent
    from chorus_cli.terminal.screen import Screen


async def show_events(events: AsyncGenerator[TurnEvent, None], answers: Screen, asides: Screen) -> TurnDone | None:
    """Show a whole turn as it happens and return how it ended; a turn that is cancelled leaves a clean line."""
    stream = ReplyStream(answers, asides)
    try:
        async with aclosing(events):
            async for event in events:
                stream.show(event)
    finally:
        stream.close()
    return stream.done


class ReplyStream:
    """One reply on its way to ``answers``; what is not the answer goes to ``asides``."""

    def __init__(self, answers: Screen, asides: Screen) -> None:
        self._answers = answers
        self._asides = asides
        self._safe = SafeTextStream()
        self._open_line = False
        self._closed = False
        self.done: TurnDone | None = None

    def show(self, event: TurnEvent) -> None:
        """Show one event of the turn."""
        match event:
            case TextDelta(text):
                self._write(self._safe.feed(text))
            case ReasoningDelta():
                return
            case Notice(text):
                self.end_line()
                self._asides.notice(text)
            case TurnDone():
                self.done = event
                self.close()
                if event.error is not None:
                    self._asides.error(str(event.error))

    def close(self) -> None:
        """Show what was held back, end the line, and tell of hidden characters; a second time does nothing."""
        if self._closed:
            return
        self._closed = True
        self._write(self._safe.close())
        self.end_line()
        warning = hidden_warning(self._safe)
        if warning:
            self._asides.notice(warning)

    def end_line(self) -> None:
        """Go to the beginning of a line if the reply stands in the middle of one."""
        if self._open_line:
            self._answers.write("\n")
            self._open_line = False

    def _write(self, text: str) -> None:
        if text:
            self._answers.write(text)
            self._open_line = not text.endswith("\n")
