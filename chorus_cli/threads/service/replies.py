"""The replies of this process: one at a time in each thread, in any number of threads.

A message for a thread that has a reply in progress waits, and the outbox keeps it in a row.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import AbstractContextManager, aclosing, suppress
from typing import NamedTuple

from chorus_cli.core.errors import ChorusError, CommandError, JournalError, MessageNotStoredError, StorageError
from chorus_cli.core.text.code_points import cleaned_input
from chorus_cli.core.text.command_signs import typed_line
from chorus_cli.editing.rows import outbox_rows
from chorus_cli.editing.rows.outbox_rows import Left, Unsaid
from chorus_cli.log.rules.acts import Way
from chorus_cli.log.rules.attachments import Attachment
from chorus_cli.machine.ports import Clock
from chorus_cli.models.rules.events import PermissionAsked, TurnEvent, WaitBegun
from chorus_cli.personas.rules.persona import Target
from chorus_cli.storage.store import Store
from chorus_cli.threads.service.running_turn import (
    RunningTurn,
    Unsent,
    asking_line,
    closing_lines,
    ended_line,
    not_sent_line,
)
from chorus_cli.turns.service.conversation import Conversation

_NO_WAIT = "So your message does not wait for the reply, and is back at the prompt."
_NOT_SENT = "A message that waited was not sent."
_IN_ROW = "Your text is kept; /rescue shows it."


class ReplyHooks(NamedTuple):
    """Functions of the chat. A turn runs within ``busy()``; ``in_focus`` returns the slug of the persona in focus.

    ``tell`` shows a sentence about a reply in the background. ``report_bug`` stores a traceback and returns a sentence.
    """

    busy: Callable[[], AbstractContextManager[None]]
    in_focus: Callable[[], str]
    tell: Callable[[str], None]
    report_bug: Callable[[Exception], str]


class Outbox(NamedTuple):
    """The rows of a run's messages that are not in the log yet; a run whose log is in memory has no such rows."""

    store: Store
    run: str
    clock: Clock
    is_in_memory: bool

    async def kept(self, unsent: Unsent) -> Unsent:
        """Store a message in a row, unless it has a row or the log is in memory."""
        if unsent.row is not None or self.is_in_memory:
            return unsent
        text = Unsaid(unsent.target.persona.slug, cleaned_input(typed_line(unsent.text))[0])
        left = Left(text, self.clock.now(), self.run, unsent.target.thread_id)
        return unsent._replace(row=await self.store.write(outbox_rows.add, left))

    async def dropped(self, unsent: Unsent) -> Unsent:
        """Delete the row of a message in the log or the prompt; if that fails, the message is offered again later."""
        if unsent.row is not None:
            with suppress(StorageError):
                await self.store.write(outbox_rows.drop, [unsent.row])
        return unsent._replace(row=None)


class Replies:
    """Begins turns, and keeps the turns that are running and the turns that have ended unseen."""

    def __init__(self, conversation: Conversation, outbox: Outbox, hooks: ReplyHooks) -> None:
        self._conversation = conversation
        self._outbox = outbox
        self._hooks = hooks
        self._turns: dict[int, RunningTurn] = {}
        self._unseen: dict[int, RunningTurn] = {}
        self._waiting: list[Unsent] = []
        self._unstored: dict[RunningTurn, Unsent] = {}
        self._is_closed = False

    @property
    def running(self) -> tuple[RunningTurn, ...]:
        """The turns that are being answered, in the order of their beginning."""
        return tuple(turn for turn in self._turns.values() if not turn.is_waiting)

    @property
    def waiting_count(self) -> int:
        """The number of messages that wait for a reply of this process or of another."""
        return len(self._waiting) + sum(turn.is_waiting for turn in self._turns.values())

    def waiting_in(self, thread_id: int) -> int:
        """Return the number of messages that wait in a thread for a reply of this process or of another."""
        turn = self._turns.get(thread_id)
        waits_elsewhere = turn is not None and turn.is_waiting and bool(turn.text or turn.attachments)
        return len(self._in_line(thread_id)) + waits_elsewhere

    def not_sent_line(self, thread_ids: Iterable[int]) -> str:
        """Say how many waiting messages a stop of their threads leaves unsent; empty if none waits."""
        waiting = sum(map(self.waiting_in, thread_ids))
        return not_sent_line(waiting, is_kept=not self._outbox.is_in_memory) if waiting else ""

    def busy_threads(self, slug: str) -> list[int]:
        """Return the numbers of a persona's threads with a reply in progress or a message that waits."""
        targets = [*(turn.target for turn in self._turns.values()), *(each.target for each in self._waiting)]
        return sorted({target.thread_number for target in targets if target.persona.slug == slug})

    def in_thread(self, thread_id: int) -> RunningTurn | None:
        """Return the oldest unseen turn of a thread, which then counts as seen, or else any turn in progress."""
        return self._unseen.pop(thread_id, None) or self._turns.get(thread_id)

    async def send(
        self, target: Target, text: str, attachments: tuple[Attachment, ...] = (), *, is_kept: bool = False
    ) -> RunningTurn | None:
        """Begin the turn of a message; if it ``is_kept``, the outbox has the message until the log has it.

        Return ``None`` if the message has to wait; raise `MessageNotStoredError` if the outbox cannot keep it then.
        """
        sent = Unsent(target, text, attachments=attachments)
        sent = await self._kept(sent) if is_kept else sent
        if target.thread_id in self._turns:
            try:
                sent = await self._outbox.kept(sent)
            except StorageError as error:
                raise MessageNotStoredError(f"{error} {_NO_WAIT}") from error
        if target.thread_id in self._turns:
            self._waiting.append(sent)
            return None
        self._unseen.pop(target.thread_id, None)
        return self._begin(sent)

    async def send_aside(self, target: Target, text: str, attachments: tuple[Attachment, ...] = ()) -> None:
        """Begin the turn of a message in a new thread, in the background; if it is refused, close the thread."""
        self._begin(await self._kept(Unsent(target, text, attachments=attachments, is_alone=True)))

    def retry(self, target: Target, way: Way = Way.AGAIN) -> RunningTurn:
        """Answer the last message of a thread again, or go on with its reply, unless it is being answered now."""
        if target.thread_id in self._turns:
            number = target.thread_number
            raise JournalError(
                f"The last message of thread #{number} is being answered now. /thread {number} shows the reply; "
                "Ctrl-C stops it there."
            )
        self._unseen.pop(target.thread_id, None)
        again = "/continue" if way is Way.CONTINUE else "/retry"
        return self._begun(Unsent(target, "", again=again), self._conversation.retry(target, way))

    async def take_back(self, thread_id: int) -> Unsent | None:
        """Cancel the newest waiting message of a thread, and return it; ``None`` if no message waits."""
        if waiting := self._in_line(thread_id):
            self._waiting.remove(waiting[-1])
            return await self._outbox.dropped(waiting[-1])
        turn = self._turns.get(thread_id)
        if turn is None or not turn.is_waiting:
            return None
        await turn.stop()
        if not turn.is_waiting:
            return None
        return Unsent(turn.target, await self.give_back(turn), attachments=turn.attachments, again=turn.again)

    def hold_back(self, thread_id: int) -> list[Unsent]:
        """Cancel all waiting messages of a thread, and return them, oldest first; any rows stay in the outbox."""
        held = self._in_line(thread_id)
        self._waiting = [each for each in self._waiting if each not in held]
        return held

    async def drop(self, held: Sequence[Unsent]) -> None:
        """Delete the outbox rows of messages that were held back; their texts are stored with the prompt's text."""
        for each in held:
            await self._outbox.dropped(each)

    async def give_back(self, turn: RunningTurn) -> str:
        """Return the message of a turn that was stopped before the message was stored, and delete its outbox row."""
        unstored = self._unstored.pop(turn, None)
        if unstored is not None:
            await self._outbox.dropped(unstored)
        return turn.text

    async def break_off(self, thread_id: int) -> bool:
        """Break off the reply in a thread, and return whether there was one; then the next waiting message is sent."""
        turn = self._turns.get(thread_id)
        if turn is not None:
            await turn.stop()
            self._forget(turn)
        return turn is not None

    def forget_unseen(self, thread_id: int) -> None:
        """Forget the newest of the turns that ended unseen in a thread, because that turn was undone."""
        unseen = self._unseen.get(thread_id)
        if unseen is not None and thread_id not in self._turns:
            self._forget(unseen.chain[-1])

    async def stop(self, thread_id: int) -> bool:
        """Break off the reply in a thread, and return whether there was one; cancel waiting messages, keep any rows."""
        self._waiting = [each for each in self._waiting if each.target.thread_id != thread_id]
        self._unseen.pop(thread_id, None)
        return await self.break_off(thread_id)

    async def settle(self) -> None:
        """Wait until no turn is running and no message waits."""
        while self._turns:
            await asyncio.gather(*(turn.over() for turn in self._turns.values()))
            # The event loop handles the end of a turn in its next iteration.
            await asyncio.sleep(0)

    async def close(self) -> list[str]:
        """Break off all replies; return sentences about them and waiting messages, which the outbox or a file keeps."""
        self._is_closed = True
        running, waiting = self.running, self._waiting
        kept_before = [each for each in self._unstored.values() if each.row is not None]
        self._waiting = []
        for turn in tuple(self._turns.values()):
            await turn.stop()
        unsent = [*waiting, *(each for each in self._unstored.values() if each not in kept_before)]
        lost = [each for each in unsent if each.row is None]
        told = [self._rescued(each, MessageNotStoredError(_NOT_SENT)) for each in lost]
        return [*closing_lines(running, len(unsent) - len(lost), self._hooks.in_focus()), *told]

    def _in_line(self, thread_id: int) -> list[Unsent]:
        return [each for each in self._waiting if each.target.thread_id == thread_id]

    def _begin(self, sent: Unsent) -> RunningTurn:
        return self._begun(sent, self._answered(sent))

    def _begun(self, sent: Unsent, events: AsyncGenerator[TurnEvent, None]) -> RunningTurn:
        events = self._while_busy(events, sent.target)
        turn = RunningTurn(sent, events, self._ended)
        self._turns[sent.target.thread_id] = turn
        return turn

    async def _answered(self, sent: Unsent) -> AsyncGenerator[TurnEvent, None]:
        """Answer a message; the first event or a cancellation deletes its outbox row, unless the message waits."""
        is_waiting = False
        try:
            async with aclosing(self._conversation.answer(sent.target, sent.text, sent.attachments)) as events:
                async for event in events:
                    is_waiting = isinstance(event, WaitBegun)
                    sent = await (self._kept(sent) if is_waiting else self._outbox.dropped(sent))
                    yield event
        except asyncio.CancelledError:
            if is_waiting:
                self._unstored[self._turns[sent.target.thread_id]] = sent
            else:
                await self._outbox.dropped(sent)
            raise
        except ChorusError as error:
            if sent.is_alone:
                # The message must be kept even if its thread cannot be closed.
                with suppress(StorageError):
                    await self._conversation.close_unused(sent.target)
            turn = self._turns.get(sent.target.thread_id)
            if isinstance(error, MessageNotStoredError) and not (turn is not None and turn.is_followed):
                sent = await self._kept(sent)
                if sent.row is None:
                    raise CommandError(self._rescued(sent, error)) from error
            if sent.row is None:
                raise
            with suppress(StorageError):
                await self._outbox.store.write(outbox_rows.let_go, sent.row)
            raise CommandError(f"{error} {_IN_ROW}") from error

    async def _kept(self, sent: Unsent) -> Unsent:
        with suppress(StorageError):
            return await self._outbox.kept(sent)
        return sent

    def _rescued(self, sent: Unsent, error: ChorusError) -> str:
        """Keep a message in a file, and return the error's sentence with the file's path, or else with the message."""
        return str(self._conversation.runner.rescued(error, sent.target.persona.slug, "user", sent.text))

    async def _while_busy(
        self, events: AsyncGenerator[TurnEvent, None], target: Target
    ) -> AsyncGenerator[TurnEvent, None]:
        with self._hooks.busy():
            async with aclosing(events):
                async for event in events:
                    if isinstance(event, PermissionAsked) and not self._turns[target.thread_id].is_followed:
                        self._hooks.tell(asking_line(target, self._hooks.in_focus()))
                    yield event

    def _forget(self, gone: RunningTurn) -> None:
        """Remove a turn from the turns that the user has not seen."""
        first = self._unseen.get(gone.target.thread_id)
        if first is None:
            return
        if first is gone:
            del self._unseen[gone.target.thread_id]
        for turn in first.chain:
            if turn.next is gone:
                turn.next = gone.next

    def _ended(self, turn: RunningTurn) -> None:
        thread_id = turn.target.thread_id
        del self._turns[thread_id]
        if self._is_closed:
            return
        if not turn.is_given_up and (waiting := self._in_line(thread_id)):
            self._waiting.remove(waiting[0])
            # A message that has waited does not make its thread the last used.
            turn.next = self._begin(waiting[0]._replace(target=waiting[0].target._replace(is_aside=True)))
        if turn.is_followed or (turn.is_stopped and turn.error is None):
            return
        self._unseen.setdefault(thread_id, turn)
        if turn.error is None or isinstance(turn.error, ChorusError):
            self._hooks.tell(ended_line(turn, self._hooks.in_focus()))
        else:
            self._hooks.tell(self._hooks.report_bug(turn.error))
