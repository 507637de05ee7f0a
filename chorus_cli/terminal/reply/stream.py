"""Shows a reply while it arrives: painted on a terminal with escape sequences, otherwise as plain text.

A painted reply has dim lines below it. The first shows the progress of the request, later the model's thoughts or how
long the reply has been silent. The others are the lines that the user types meanwhile.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import aclosing
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, TypeVar

from chorus_cli.core.text.safe_text import SafeTextStream, hidden_warning, safe_line
from chorus_cli.models.rules import events as turn_events
from chorus_cli.terminal.reply.dim_lines import (
    PREPARING,
    WAITING,
    PrintedThoughts,
    Thinking,
    silence_rows,
    tool_line,
    waited_for,
)
from chorus_cli.terminal.reply.plain import PlainReply, tell_end
from chorus_cli.terminal.screen.painted_rows import PaintedRows, Progress, Wait

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Sequence

    from chorus_cli.log.rules.messages import Thought
    from chorus_cli.terminal.markdown.stream import MarkdownStream
    from chorus_cli.terminal.prompt.typing_ahead import ReplyKeyboard
    from chorus_cli.terminal.screen.output import Screen
    from chorus_cli.terminal.screen.painted_rows import Row

_Result = TypeVar("_Result")

_PIECE_CHARACTERS = 4_096  # it takes at most some milliseconds to make such a piece safe
_FRAME_SECONDS = 1 / 15
_QUICK_ANSWER_SECONDS = 0.3
_REST_PER_WORK = 9  # so that painting takes at most a tenth of the time
# How long drawing the rest of a stopped reply may take: in processor time and, on a busy machine, in real time.
_LAST_DRAWING_SECONDS, _LAST_WAIT_SECONDS = 0.02, 0.1
_LOOK_SECONDS = 0.005
_REST_SECONDS = 0.35  # tmux reports a size at most every quarter of a second
_UNSHOWN = "The end of what arrived is not shown here. It is kept; /copy and /export have it."
_MARKDOWN = "chorus_cli.terminal.markdown.stream"


async def show_events(
    events: AsyncGenerator[turn_events.TurnEvent, None],
    answers: Screen,
    asides: Screen,
    keyboard: ReplyKeyboard | None = None,
    *,
    shows_thoughts: bool = False,
    speaker: str = "",
) -> turn_events.TurnDone | None:
    """Show the events of a turn; return the `TurnDone`, ``None`` if none came. The cursor ends on a new line.

    The ``speaker`` is named above the reply. The text typed on the ``keyboard`` appears below a painted reply and, with
    ``shows_thoughts``, the thoughts appear above it. Without a keyboard, nobody is asked whether a tool may run.
    """
    unnamed = speaker
    said = turn_events.TextDelta | turn_events.ReasoningDelta if shows_thoughts else turn_events.TextDelta

    def begun() -> PaintedReply | PlainReply:
        if answers.guard.allows_sequences:
            return PaintedReply(answers, asides, keyboard, shows_thoughts=shows_thoughts, is_spoken=bool(speaker))
        return PlainReply(answers, asides, keyboard, shows_thoughts=shows_thoughts)

    reply = begun()
    try:
        async with aclosing(events):
            async for event in events:
                if isinstance(event, turn_events.ToolStarted):
                    await reply.finish()
                    reply.close(event.thought)
                    reply = begun()
                elif keyboard and isinstance(event, turn_events.PermissionAsked) and event.is_open():
                    await reply.finish()
                    reply.close()
                    await keyboard.permit(event)
                    reply = begun()
                for piece in _pieces(event):
                    if unnamed and isinstance(piece, said):
                        reply.name(unnamed)
                        unnamed = ""
                    reply.show(piece)
                    if piece is not event:
                        await asyncio.sleep(0)
        await reply.finish()
    finally:
        reply.close()
    return reply.done


def _pieces(event: turn_events.TurnEvent) -> Iterator[turn_events.TurnEvent]:
    if isinstance(event, turn_events.TextDelta | turn_events.ReasoningDelta) and len(event.text) > _PIECE_CHARACTERS:
        for start in range(0, len(event.text), _PIECE_CHARACTERS):
            yield replace(event, text=event.text[start : start + _PIECE_CHARACTERS])
    else:
        yield event


class PaintedReply:
    """Paints the events of a turn in a background task; notices and errors go to ``asides``.

    The task first imports rich in a worker thread, while the model is being asked. A worker thread also draws the rows,
    because some texts take seconds. ``keyboard`` is read until `finish` or `close`.
    """

    def __init__(
        self,
        answers: Screen,
        asides: Screen,
        keyboard: ReplyKeyboard | None = None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        shows_thoughts: bool = False,
        is_spoken: bool = False,
    ) -> None:
        self.done: turn_events.TurnDone | None = None
        self._answers = answers
        self._asides = asides
        self._is_spoken = is_spoken
        self._monotonic = monotonic
        self._size = shutil.get_terminal_size
        self._seen_size = self._size()
        self._rests_at = monotonic()
        self._safe = SafeTextStream()
        self._keyboard = keyboard
        self._progress = Progress(answers, monotonic, self._size, self._typed)
        self._news = asyncio.Event()
        self._thinking = (PrintedThoughts if shows_thoughts else Thinking)(answers, self._news.set)
        # When the last piece of the reply came; ``None`` before the first piece, during thoughts and after the turn.
        self._silent_since: float | None = None
        self._arrived: list[str] = []
        self._rows = PaintedRows(answers.write, breaks_rows=answers.breaks_rows)
        self._open: list[Row] = []
        self._thread = ThreadPoolExecutor(1, "drawing")
        self._is_settled = False
        self._is_closed = False
        self._listener = asyncio.current_task()
        self._painting = asyncio.create_task(self._paint())
        self._progress.begin(PREPARING)
        answers.painted.append(self._take_down)
        if keyboard is not None:
            keyboard.begin(self._show_typed)

    def show(self, event: turn_events.TurnEvent) -> None:
        """Take one event of the turn; its text appears with the next frame."""
        if self._painting.done():
            self._painting.result()
        match event:
            case turn_events.WaitBegun(text):
                self._tell(text)
                self._wait_for(WAITING)
            case turn_events.WaitOver():
                self._wait_for(PREPARING)
            case turn_events.Asking() | turn_events.ToolStarted() | turn_events.Connecting():
                self._wait_for(Wait(safe_line(waited_for(event)), _QUICK_ANSWER_SECONDS))
            case turn_events.TextDelta(text):
                self._progress.end()
                self._thinking.end()
                self._silent_since = self._monotonic()
                self._arrived.append(self._safe.feed(text))
            case turn_events.ReasoningDelta(text):
                self._progress.end()
                self._silent_since = None
                self._thinking.feed(text)
                return
            case turn_events.Notice(text):
                self._tell(text)
            case turn_events.ToolUsed():
                self._tell(tool_line(event, self._size().columns, unicode=self._answers.unicode))
            case turn_events.TurnDone():
                self._silent_since = None
                self.done = event
        self._news.set()

    def name(self, speaker: str) -> None:
        """Show the name of the speaker of the following text."""
        self._progress.end()
        self._answers.speaker(speaker)

    async def finish(self) -> None:
        """Draw all text that has arrived, however long, without blocking the event loop."""
        self._painting.cancel()
        if self._keyboard is not None:
            self._keyboard.end()
        await self._come_to_rest()
        self._end_thoughts()
        while await self._advance(self._monotonic() + _FRAME_SECONDS):
            self._show([])
        await self._drawn(self._markdown.finish, self._size())
        self._is_settled = True

    def close(self, thought: Thought | None = None) -> None:
        """Settle the reply, even a stopped one, and report hidden or omitted text; a second call does nothing."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._keyboard is not None:
            self._keyboard.end()
        self._end_thoughts()
        self._answers.painted.remove(self._take_down)
        self._progress.end()
        self._stop_painting()
        self._arrived.append(self._safe.close())
        # A reply that is stopped before its first word need not wait for rich.
        if any(self._arrived) or "_markdown" in vars(self):
            self._settle()
        if "_markdown" in vars(self):
            self._thread.submit(self._markdown.lexing.close)
        self._thread.shutdown(wait=False)
        thought = self.done.thought if self.done is not None else thought
        if thought is not None and not self._thinking.has_printed:
            self._asides.notice(thought.words)
        tell_end(self.done, self._asides)

    def _settle(self) -> None:
        self._take_in()
        is_whole = self._is_settled or self._settles_in_time()
        if is_whole:
            self._show([])
        else:
            # The drawing thread may still be busy. The rows on the screen stay there.
            if self._open:
                self._answers.part_of_reply(self._open[0].plain, self._open[-1].plain)
            self._rows.show(self._open, [], *self._size())
        for warning in (hidden_warning(self._safe), "" if is_whole else _UNSHOWN):
            if warning:
                self._asides.notice(warning)

    def _settles_in_time(self) -> bool:
        """Draw the rest of a stopped reply; return false if that takes long."""
        drawing = self._thread.submit(self._markdown.finish, self._size())
        worked, deadline = time.process_time(), time.monotonic() + _LAST_WAIT_SECONDS
        while not wait({drawing}, _LOOK_SECONDS).done:
            if time.process_time() - worked > _LAST_DRAWING_SECONDS or time.monotonic() > deadline:
                drawing.cancel()
                return False
        return drawing.result()

    @cached_property
    def _markdown(self) -> MarkdownStream:
        # Only painting needs rich.
        from chorus_cli.terminal.markdown.lexing import LexingProcess
        from chorus_cli.terminal.markdown.stream import MarkdownStream

        return MarkdownStream(LexingProcess(), has_colour=self._answers.colour, is_spoken=self._is_spoken)

    def _wait_for(self, wait: Wait) -> None:
        # The typed lines move from below the reply to below the line of progress.
        self._take_down()
        self._progress.begin(wait)

    def _typed(self, columns: int) -> list[Row]:
        return [] if self._keyboard is None else self._keyboard.rows(columns)

    def _show_typed(self) -> None:
        self._progress.refresh()
        self._news.set()

    def _tell(self, text: str) -> None:
        self._progress.end()
        self._answers.take_down()
        self._asides.notice(text)

    def _end_thoughts(self) -> None:
        self._thinking.end()
        self._print_thoughts()

    def _print_thoughts(self) -> None:
        if rows := self._thinking.take_settled(self._size().columns):
            self._answers.take_down()
            self._answers.part_of_reply(rows[0].plain, rows[-1].plain)
            self._answers.write("".join(f"{row.text}\n" for row in rows))

    def _take_down(self) -> None:
        if "_markdown" in vars(self):
            self._rows.show([], [], *self._size())
            self._news.set()

    def _take_in(self) -> None:
        self._markdown.feed("".join(self._arrived))
        self._arrived.clear()

    async def _paint(self) -> None:
        await asyncio.to_thread(import_module, _MARKDOWN)
        next_second: asyncio.TimerHandle | None = None
        while True:
            await self._news.wait()
            await self._come_to_rest()
            self._news.clear()
            begun = self._monotonic()
            more = await self._advance(begun + _FRAME_SECONDS)
            if self._is_stopped:
                return
            await self._show_frame()
            work = self._monotonic() - begun
            if next_second is not None:
                next_second.cancel()
            if more:
                self._news.set()
            elif self._silent_since is not None:
                next_second = asyncio.get_running_loop().call_later(1, self._news.set)
            await asyncio.sleep(0 if more else max(_FRAME_SECONDS, work * _REST_PER_WORK))

    async def _come_to_rest(self) -> None:
        """Wait until the terminal keeps its size: rows painted at another size cannot be erased exactly."""
        while True:
            now, size = self._monotonic(), self._size()
            if size != self._seen_size:
                self._seen_size, self._rests_at = size, now + _REST_SECONDS
            if now >= self._rests_at:
                return
            await asyncio.sleep(self._rests_at - now)

    async def _show_frame(self) -> None:
        self._print_thoughts()
        size = self._size()
        room = max(1, size.lines - 1 - len(self._rows_below(size.columns)))
        rows = await self._drawn(self._markdown.frame, size, room)
        if self._size() != size:
            self._news.set()
        elif not self._is_stopped:
            self._show(rows, self._rows_below(size.columns))

    def _show(self, rows: list[Row], below: Sequence[Row] = ()) -> None:
        """Write the settled rows; replace the open rows by ``rows`` of the open block and, under them, ``below``."""
        settled, self._open = self._markdown.take_settled(), rows
        # An empty line separates even dim rows from a notice above: written later, it would split the painted rows.
        if first := [*settled[:1], *rows[:1], *below[:1]]:
            self._answers.part_of_reply(first[0].plain, settled[-1].plain if settled else "")
        self._rows.show(settled, [*rows, *below], *self._size())

    async def _drawn(self, work: Callable[..., _Result], *arguments: object) -> _Result:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)

    def _rows_below(self, columns: int) -> list[Row]:
        typed = [] if self._progress.is_shown else self._typed(columns)
        seconds = 0.0 if self._silent_since is None else self._monotonic() - self._silent_since
        return [*(self._thinking.rows(columns) or silence_rows(seconds, columns, self._answers)), *typed]

    async def _advance(self, deadline: float) -> bool:
        self._take_in()
        while await self._drawn(self._markdown.advance, self._size()):
            if self._is_stopped or self._monotonic() >= deadline:
                return True
        return False

    @property
    def _is_stopped(self) -> bool:
        """Whether the turn was cancelled; painting ends then, because storing the reply needs the event loop."""
        return self._listener is not None and self._listener.cancelling() > 0

    def _stop_painting(self) -> None:
        if not self._painting.done():
            self._painting.cancel()
        elif not self._painting.cancelled():
            # This only marks the error as retrieved; settling raises it again.
            self._painting.exception()
