"""Shows a reply while it arrives: painted on a terminal with escape sequences, otherwise as plain text."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

from chorus_cli.core.text.safe_text import SafeTextStream, hidden_warning
from chorus_cli.models.rules.events import (
    Asking,
    Notice,
    ReasoningDelta,
    TextDelta,
    ToolStarted,
    ToolUsed,
    TurnDone,
    WaitBegun,
    WaitOver,
)
from chorus_cli.terminal.reply.dim_lines import tool_line
from chorus_cli.terminal.reply.painted import PaintedReply

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from chorus_cli.log.rules.messages import Thought
    from chorus_cli.models.rules.events import TurnEvent
    from chorus_cli.terminal.prompt.typing_ahead import ReplyKeyboard
    from chorus_cli.terminal.screen.output import Screen

_PIECE_CHARACTERS = 4_096
"""Making so much text safe takes some milliseconds at most."""


async def show_events(
    events: AsyncGenerator[TurnEvent, None],
    answers: Screen,
    asides: Screen,
    keyboard: ReplyKeyboard | None = None,
    *,
    shows_thoughts: bool = False,
) -> TurnDone | None:
    """Show the events of a turn and return its last one, ``None`` if it never came; the cursor ends on a new line.

    Text typed on the ``keyboard`` is shown below a painted reply, thoughts above it if it ``shows_thoughts``.
    The words before a call of a tool are settled when the tool starts: those after it are painted below its line.
    """

    def begun() -> PaintedReply | PlainReply:
        if answers.guard.allows_sequences:
            return PaintedReply(answers, asides, keyboard=keyboard, shows_thoughts=shows_thoughts)
        return PlainReply(answers, asides)

    reply = begun()
    try:
        async with aclosing(events):
            async for event in events:
                if isinstance(event, ToolStarted):
                    await reply.finish()
                    reply.close(event.thought)
                    reply = begun()
                for piece in _pieces(event):
                    reply.show(piece)
                    if piece is not event:
                        await asyncio.sleep(0)
        await reply.finish()
    finally:
        reply.close()
    return reply.done


def _pieces(event: TurnEvent) -> Iterator[TurnEvent]:
    """Yield an event, in pieces if it is a long text: one may have megabytes."""
    if isinstance(event, TextDelta | ReasoningDelta) and len(event.text) > _PIECE_CHARACTERS:
        for start in range(0, len(event.text), _PIECE_CHARACTERS):
            yield replace(event, text=event.text[start : start + _PIECE_CHARACTERS])
    else:
        yield event


class PlainReply:
    """Appends one reply to ``answers``; notices and errors go to ``asides``.

    Thoughts and progress are not shown, and the tools that are used only to a person at a terminal.
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
            case WaitOver() | Asking() | ReasoningDelta() | ToolStarted():
                return
            case ToolUsed():
                self._end_line()
                if self._asides.is_terminal:
                    columns = shutil.get_terminal_size().columns
                    self._asides.notice(tool_line(event, columns, unicode=self._asides.unicode))
            case Notice(text) | WaitBegun(text):
                self._end_line()
                self._asides.notice(text)
            case TurnDone():
                self.done = event
                self.close(event.thought)
                if event.error is not None:
                    self._asides.error(event.complaint)

    async def finish(self) -> None:
        """Do nothing: all text that has arrived is shown already."""

    def close(self, thought: Thought | None = None) -> None:
        """Show the text held back, end the line, and report hidden characters; a second call does nothing.

        At a terminal a line reports the ``thought``.
        """
        if self._closed:
            return
        self._closed = True
        self._write(self._safe.close())
        self._end_line()
        warning = hidden_warning(self._safe)
        if warning:
            self._asides.notice(warning)
        if thought is not None and self._asides.is_terminal:
            self._asides.notice(thought.words)

    def _end_line(self) -> None:
        if self._open_line:
            self._answers.write("\n")
            self._open_line = False

    def _write(self, text: str) -> None:
        if text:
            self._answers.write(text)
            self._open_line = not text.endswith("\n")
