"""Shows a reply while it arrives: painted where the terminal can be painted on, else as plain text."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from chorus_cli.core.models.events import Asking, Notice, ReasoningDelta, TextDelta, TurnDone
from chorus_cli.core.text.safe_text import SafeTextStream, hidden_warning
from chorus_cli.terminal.reply.painted import PaintedReply

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from chorus_cli.core.models.events import TurnEvent
    from chorus_cli.terminal.screen.output import Screen


async def show_events(events: AsyncGenerator[TurnEvent, None], answers: Screen, asides: Screen) -> TurnDone | None:
    """Show a whole turn as it happens and return how it ended; a turn that is cancelled leaves a clean line."""
    paints = answers.guard.allows_sequences
    reply = PaintedReply(answers, asides) if paints else PlainReply(answers, asides)
    try:
        async with aclosing(events):
            async for event in events:
                reply.show(event)
        await reply.finish()
    finally:
        reply.close()
    return reply.done


class Arrival:
    """Sees go by what arrives: ``has_words`` says whether any of it is the reply's own text."""

    def __init__(self) -> None:
        self.has_words = False

    async def seen_in(self, events: AsyncGenerator[TurnEvent, None]) -> AsyncGenerator[TurnEvent, None]:
        """Hand on the events of a turn."""
        async with aclosing(events):
            async for event in events:
                if isinstance(event, TextDelta) and event.text.strip():
                    self.has_words = True
                yield event


class PlainReply:
    """One reply on its way to ``answers``, only ever added to; what is not the reply goes to ``asides``.

    What the model thinks is not shown, nor what is waited for.
    """

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
            case Asking() | ReasoningDelta():
                return
            case Notice(text):
                self._end_line()
                self._asides.notice(text)
            case TurnDone():
                self.done = event
                self.close()
                if event.error is not None:
                    self._asides.error(event.complaint)

    async def finish(self) -> None:
        """Do nothing: all that has arrived is shown already."""

    def close(self) -> None:
        """Show what was held back, end the line, and tell of hidden characters; a second time does nothing."""
        if self._closed:
            return
        self._closed = True
        self._write(self._safe.close())
        self._end_line()
        warning = hidden_warning(self._safe)
        if warning:
            self._asides.notice(warning)

    def _end_line(self) -> None:
        if self._open_line:
            self._answers.write("\n")
            self._open_line = False

    def _write(self, text: str) -> None:
        if text:
            self._answers.write(text)
            self._open_line = not text.endswith("\n")
