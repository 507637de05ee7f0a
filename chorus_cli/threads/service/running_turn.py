"""A turn that goes on by itself, on the screen or in the background, and the sentences about it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import NamedTuple

from chorus_cli.core.errors import ChorusError
from chorus_cli.core.text.phrases import counted, enumerated, shortened
from chorus_cli.log.rules.attachments import Attachment
from chorus_cli.machine.notifier import run_to_completion
from chorus_cli.models.rules.events import TextDelta, TurnDone, TurnEvent, WaitBegun
from chorus_cli.personas.rules.persona import Target


class Unsent(NamedTuple):
    """A message that is not in the log yet; ``row`` is its row of the outbox. If ``is_alone``, its thread is new.

    If the text is empty, ``again`` is the command that was given instead.
    """

    target: Target
    text: str
    row: int | None = None
    attachments: tuple[Attachment, ...] = ()
    is_alone: bool = False
    again: str = "/retry"


class RunningTurn:
    """The turn of a message, which a task of its own answers; one listener at a time can follow the events.

    ``ended`` is called with the turn when the turn is over; ``next`` is then the turn of the next waiting message, if
    there is one. After a turn whose listener was cancelled (``is_given_up``), no waiting message is sent.
    """

    def __init__(
        self, sent: Unsent, events: AsyncGenerator[TurnEvent, None], ended: Callable[[RunningTurn], None]
    ) -> None:
        self.target = sent.target
        self.text = sent.text
        self.attachments = sent.attachments
        self.again = sent.again
        self.is_followed = False
        self.is_over = False
        self.is_stopped = False
        self.is_given_up = False
        self.next: RunningTurn | None = None
        self._came: list[TurnEvent] = []
        self._news = asyncio.Event()
        self._is_begun = asyncio.Event()
        self._is_left = False
        self._is_broken_off = False
        self._task = asyncio.create_task(self._take_in(events), name=f"turn in thread {self.target.thread_id}")
        self._task.add_done_callback(lambda _task: self._end(ended))

    @property
    def events(self) -> tuple[TurnEvent, ...]:
        """The events so far."""
        return tuple(self._came)

    @property
    def chain(self) -> tuple[RunningTurn, ...]:
        """This turn, and the turns of messages that have waited for it, as far as these have begun."""
        return (self, *(self.next.chain if self.next is not None else ()))

    @property
    def is_waiting(self) -> bool:
        """Whether the message is not stored yet, because another reply is being written in its thread."""
        return bool(self._came) and isinstance(self._came[-1], WaitBegun)

    @property
    def has_words(self) -> bool:
        """Whether the reply has begun."""
        return any(isinstance(event, TextDelta) and event.text.strip() for event in self._came)

    @property
    def error(self) -> Exception | None:
        """The error that prevented the turn, if the turn is over; an error of the reply is in the last event."""
        error = self._task.exception() if self.is_over and not self._task.cancelled() else None
        return error if isinstance(error, Exception) else None

    async def followed(self) -> AsyncGenerator[TurnEvent, None]:
        """Yield all events until the turn is over or `leave` is called; then raise the error that prevented the turn.

        If the listener is cancelled, the reply is broken off. The listener still gets all events that have come, so
        that every stored word is shown.
        """
        self.is_followed, self._is_left = True, False
        position = 0
        try:
            while True:
                self._news.clear()
                while position < len(self._came):
                    yield self._came[position]
                    position += 1
                if self.is_over or self._is_left:
                    break
                await self._news.wait()
        except asyncio.CancelledError:
            self.is_given_up = True
            # If the task is cancelled before its first step, it does not even store the message.
            if self._is_begun.is_set():
                self.is_stopped = self._is_broken_off = self._task.cancel()
            for event in self._came[position:]:
                yield event
            raise
        finally:
            self.is_followed = False
        if self.error is not None:
            raise self.error

    def leave(self) -> None:
        """End `followed`; the turn goes on."""
        self._is_left = True
        self._news.set()

    async def stop(self) -> None:
        """Break the reply off, and wait until its end is stored."""
        await run_to_completion(self._stop())

    async def over(self) -> None:
        """Wait for the end of the turn."""
        await asyncio.wait({self._task})

    async def _stop(self) -> None:
        await self._is_begun.wait()
        self.is_stopped = self.is_stopped or not self.is_over
        if not self._is_broken_off:
            self._task.cancel()
        self._is_broken_off = False
        await self.over()

    async def _take_in(self, events: AsyncGenerator[TurnEvent, None]) -> None:
        self._is_begun.set()
        async with aclosing(events):
            async for event in events:
                self._came.append(event)
                self._news.set()

    def _end(self, ended: Callable[[RunningTurn], None]) -> None:
        self.is_over = True
        try:
            ended(self)
        finally:
            self._news.set()


def waiting_line(target: Target) -> str:
    """Say that a message waits for the end of the reply in its thread."""
    return (
        f"Your message will be sent after the reply in thread #{target.thread_number}; /undo cancels it. "
        "/thread new opens a thread where you need not wait."
    )


def left_line(turn: RunningTurn) -> str:
    """Say that a reply goes on in the background."""
    return (
        f"The reply continues in the background; /thread {turn.target.thread_number} shows it. "
        "Messages here wait for it; /thread new opens another thread."
    )


def asking_line(target: Target, slug_in_focus: str) -> str:
    """Say that a reply in the background waits for the user's permission to run a tool."""
    place, way = target.thread_label(slug_in_focus), _way_to(target, slug_in_focus)
    return f"The reply in {place} wants to run a tool; {way} shows the question."


def _way_to(target: Target, slug_in_focus: str) -> str:
    way = "" if target.persona.slug == slug_in_focus else f"/persona {target.persona.slug}, then "
    return f"{way}/thread {target.thread_number}"


def next_line(turn: RunningTurn) -> str:
    """Name the message that is being answered now, after it has waited."""
    return f"Next, your waiting message: {shortened(turn.text)}"


def ended_line(turn: RunningTurn, slug_in_focus: str) -> str:
    """Say how a reply in the background ended; name the persona with the thread unless the persona is in focus."""
    place = turn.target.thread_label(slug_in_focus)
    last = turn.events[-1] if turn.events else None
    is_failed = isinstance(last, TurnDone) and last.error is not None and not turn.has_words
    if is_failed or isinstance(turn.error, ChorusError):
        message = f'"{shortened(turn.text)}"' if turn.text else turn.again
        why = last.complaint if isinstance(last, TurnDone) else turn.error
        return f"{message} in {place} was not answered: {why}"
    about = f' to "{shortened(turn.text)}"' if turn.text else ""
    end = "broke off" if isinstance(last, TurnDone) and last.error is not None else "is done"
    return f"The reply{about} in {place} {end}; {_way_to(turn.target, slug_in_focus)} shows it."


def not_sent_line(number: int, *, is_kept: bool = True) -> str:
    """Say how many waiting messages were not sent."""
    return f"Not sent: {counted(number, 'message')}{', kept for the next start' if is_kept else ''}."


def closing_lines(stopped: Sequence[RunningTurn], unsent: int, slug_in_focus: str) -> list[str]:
    """Say which turns the end of the chat has broken off, and how many waiting messages were not sent."""
    lines = []
    if stopped:
        replies = counted(len(stopped), "reply", "replies")
        places = enumerated([turn.target.thread_label(slug_in_focus) for turn in stopped])
        again = " or ".join(dict.fromkeys(turn.again for turn in stopped))
        lines.append(f"Stopped: {replies} in {places}. What had arrived is kept; {again} asks again.")
    if unsent:
        lines.append(not_sent_line(unsent))
    return [*lines, *(str(turn.error) for turn in stopped if isinstance(turn.error, ChorusError))]
