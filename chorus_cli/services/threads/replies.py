"""The replies of this process: one at a time in each thread, in as many threads as the user likes.

A message for a thread that is being answered waits. It is a draft in a file until its turn is stored, so that an exit
does not lose it.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.errors import ChorusError, CommandError, JournalError
from chorus_cli.core.models.events import TurnDone, WaitBegun
from chorus_cli.core.text.phrases import shortened
from chorus_cli.services.threads.running_turn import RunningTurn

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from chorus_cli.core.context.target import Target
    from chorus_cli.core.models.events import TurnEvent
    from chorus_cli.services.editing.drafts import UnsentDrafts
    from chorus_cli.services.turns.conversation import Conversation


class Waiting(NamedTuple):
    """A message that waits for the end of a reply; ``draft`` is its file, ``None`` if none could be written."""

    target: Target
    text: str
    draft: Path | None


class Surroundings(NamedTuple):
    """The chat around the replies.

    ``busy`` is entered while a reply is written. ``in_focus`` returns the slug of the persona in focus. ``tell`` takes
    a sentence when a reply has ended in the background. ``report_bug`` keeps a traceback and returns a sentence.
    """

    busy: Callable[[], AbstractContextManager[None]]
    in_focus: Callable[[], str]
    tell: Callable[[str], None]
    report_bug: Callable[[Exception], str]


class Replies:
    """Begins turns and keeps those that are running, those that ended unseen, and the messages that wait."""

    def __init__(self, conversation: Conversation, drafts: UnsentDrafts, surroundings: Surroundings) -> None:
        self._conversation = conversation
        self._drafts = drafts
        self._surroundings = surroundings
        self._running: dict[int, RunningTurn] = {}
        self._unseen: dict[int, RunningTurn] = {}
        self._waiting: list[Waiting] = []
        self._unstored: dict[int, Path | None] = {}
        self._is_closed = False

    @property
    def running(self) -> tuple[RunningTurn, ...]:
        """The turns that are being answered, in the order of their beginning."""
        return tuple(self._running.values())

    @property
    def waiting(self) -> tuple[Waiting, ...]:
        """The messages that wait, in the order of their sending."""
        return tuple(self._waiting)

    def waiting_in(self, thread_id: int) -> int:
        """Return the number of messages that wait in a thread."""
        return sum(each.target.thread_id == thread_id for each in self._waiting)

    def in_thread(self, thread_id: int) -> RunningTurn | None:
        """Return the turn that is being answered in a thread."""
        return self._running.get(thread_id)

    def unseen_in(self, thread_id: int) -> RunningTurn | None:
        """Return the newest turn of a thread if it ended in the background, and forget it: it is shown now."""
        return self._unseen.pop(thread_id, None)

    async def send(self, target: Target, text: str, draft: Path | None = None) -> RunningTurn | None:
        """Begin the turn of a message, and delete its ``draft`` when it is stored.

        Return ``None`` if the message waits for the end of another turn of its thread.
        """
        if draft is None and target.thread_id in self._running:
            draft = await asyncio.to_thread(self._drafts.keep, target.persona.slug, text)
        sent = Waiting(target, text, draft)
        if target.thread_id not in self._running:
            return self._begin(sent)
        self._waiting.append(sent)
        return None

    def retry(self, target: Target) -> RunningTurn:
        """Begin to answer the last message of a thread again.

        Raises:
            JournalError: it is being answered now.
        """
        if target.thread_id in self._running:
            number = target.thread_number
            raise JournalError(
                f"The last message of thread #{number} is being answered now. /thread {number} shows the reply; "
                "Ctrl-C stops it there."
            )
        return self._begun(target, "", self._conversation.retry(target))

    def take_back(self, thread_id: int) -> Waiting | None:
        """Return the newest message that waits in a thread, which then is not sent; ``None`` if there is none."""
        found = next((each for each in reversed(self._waiting) if each.target.thread_id == thread_id), None)
        if found is not None:
            self._waiting.remove(found)
            self._drafts.drop(found.draft)
        return found

    def give_back(self, turn: RunningTurn) -> str:
        """Return the message of a turn that was stopped before it was stored; the user has it again."""
        self._drafts.drop(self._unstored.pop(turn.target.thread_id, None))
        return turn.text

    async def stop(self, thread_id: int) -> bool:
        """Break off the reply in a thread, and return whether there was one; messages that wait there stay drafts."""
        self._waiting = [each for each in self._waiting if each.target.thread_id != thread_id]
        turn = self._running.get(thread_id)
        if turn is not None:
            await turn.stop()
        self._unseen.pop(thread_id, None)
        return turn is not None

    async def settle(self) -> None:
        """Wait until no turn is running and no message waits."""
        while self._running:
            await asyncio.gather(*(turn.over() for turn in self.running))
            # The end of a turn is handled in the next round of the loop.
            await asyncio.sleep(0)

    async def close(self) -> None:
        """Break off all replies; messages that wait stay drafts, which the next run offers."""
        self._is_closed = True
        self._waiting.clear()
        for turn in self.running:
            await turn.stop()

    def _begin(self, sent: Waiting) -> RunningTurn:
        return self._begun(sent.target, sent.text, self._answered(sent))

    def _begun(self, target: Target, text: str, events: AsyncGenerator[TurnEvent, None]) -> RunningTurn:
        self._unseen.pop(target.thread_id, None)
        turn = RunningTurn(target, text, self._while_busy(events), self._ended)
        self._running[target.thread_id] = turn
        return turn

    async def _answered(self, sent: Waiting) -> AsyncGenerator[TurnEvent, None]:
        """Answer a message; it is stored with the first event, and also when it is cancelled, unless that is a wait."""
        draft, is_waiting = sent.draft, False
        try:
            async with aclosing(self._conversation.answer(sent.target, sent.text)) as events:
                async for event in events:
                    is_waiting = isinstance(event, WaitBegun)
                    if is_waiting:
                        draft = await self._kept(sent, draft)
                    else:
                        self._drafts.drop(draft)
                        draft = None
                    yield event
        except asyncio.CancelledError:
            if is_waiting:
                self._unstored[sent.target.thread_id] = draft
            else:
                self._drafts.drop(draft)
            raise
        except ChorusError as error:
            if draft is None:
                raise
            raise CommandError(f"{error} Your text is kept in {draft}.") from error

    async def _kept(self, sent: Waiting, draft: Path | None) -> Path | None:
        """Keep a message as a draft while another process is writing a reply in its thread."""
        return draft or await asyncio.to_thread(self._drafts.keep, sent.target.persona.slug, sent.text)

    async def _while_busy(self, events: AsyncGenerator[TurnEvent, None]) -> AsyncGenerator[TurnEvent, None]:
        with self._surroundings.busy():
            async with aclosing(events):
                async for event in events:
                    yield event

    def _ended(self, turn: RunningTurn) -> None:
        thread_id = turn.target.thread_id
        del self._running[thread_id]
        if self._is_closed:
            return
        if not turn.is_followed:
            self._unseen[thread_id] = turn
            self._surroundings.tell(self._told(turn))
        following = next((each for each in self._waiting if each.target.thread_id == thread_id), None)
        if following is not None:
            self._waiting.remove(following)
            self._begin(following)

    def _told(self, turn: RunningTurn) -> str:
        """Return the sentence about a turn that ended in the background."""
        about = f' to "{shortened(turn.text)}"' if turn.text else ""
        is_here = turn.target.persona.slug == self._surroundings.in_focus()
        place = f"thread #{turn.target.thread_number}" + ("" if is_here else f" of {turn.target.persona.name}")
        if isinstance(turn.error, ChorusError):
            return f"The message{about} in {place} was not answered: {turn.error}"
        if isinstance(turn.error, Exception):
            return self._surroundings.report_bug(turn.error)
        last = turn.events[-1] if turn.events else None
        failed = isinstance(last, TurnDone) and last.error is not None
        way = "" if is_here else f"/persona {turn.target.persona.slug}, then "
        end = "broke off" if failed else "is done"
        return f"The reply{about} in {place} {end}; {way}/thread {turn.target.thread_number} shows it."
