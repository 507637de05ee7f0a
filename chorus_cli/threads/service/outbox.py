"""Messages that wait for the end of a reply, each in a row until its turn is stored."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.errors import StorageError
from chorus_cli.core.text.code_points import cleaned_input
from chorus_cli.core.text.command_signs import typed_line
from chorus_cli.editing.rows import outbox_rows
from chorus_cli.editing.rows.outbox_rows import State, Unsaid

if TYPE_CHECKING:
    from chorus_cli.log.rules.attachments import Attachment
    from chorus_cli.machine.ports import Clock
    from chorus_cli.personas.rules.target import Target
    from chorus_cli.storage.store import Store


class Unsent(NamedTuple):
    """A message that is not stored yet; ``row`` is the id of the row of its text, ``None`` if it has none."""

    target: Target
    text: str
    row: int | None = None
    attachments: tuple[Attachment, ...] = ()


class Outbox:
    """The messages that wait, in the order of their sending, in rows of ``run``; without a store in memory only."""

    def __init__(self, store: Store | None, run: str, clock: Clock) -> None:
        self._store = store
        self._run = run
        self._clock = clock
        self._waiting: list[Unsent] = []

    def waiting(self) -> tuple[Unsent, ...]:
        """Return the messages that wait, of all threads."""
        return tuple(self._waiting)

    def waiting_in(self, thread_id: int) -> tuple[Unsent, ...]:
        """Return the messages that wait in a thread."""
        return tuple(each for each in self._waiting if each.target.thread_id == thread_id)

    async def kept(self, unsent: Unsent) -> Unsent:
        """Store a message in a row, unless it has one.

        Raises:
            StorageError: it cannot be stored.
        """
        if unsent.row is not None or self._store is None:
            return unsent
        target, content = unsent.target, cleaned_input(typed_line(unsent.text))[0]
        text = Unsaid(target.persona.slug, content, State.WAITING)
        row = await self._store.write(outbox_rows.keep, self._run, target.thread_id, text, self._clock.now())
        return unsent._replace(row=row)

    async def drop_row(self, unsent: Unsent) -> Unsent:
        """Delete the row of a message that is stored, or that the user has again; one that stays is offered again."""
        if unsent.row is None or self._store is None:
            return unsent
        with suppress(StorageError):
            await self._store.write(outbox_rows.drop, [unsent.row])
        return unsent._replace(row=None)

    async def let_go(self, unsent: Unsent) -> None:
        """Let the row of a message that was refused belong to no run, so that the user finds it."""
        if unsent.row is not None and self._store is not None:
            with suppress(StorageError):
                await self._store.write(outbox_rows.let_go, unsent.row)

    def add(self, unsent: Unsent) -> None:
        """Let a message wait."""
        self._waiting.append(unsent)

    def take_next(self, thread_id: int) -> Unsent | None:
        """Take the oldest message that waits in a thread, to be sent; the thread last used stays the same."""
        found = next(iter(self.waiting_in(thread_id)), None)
        if found is None:
            return None
        self._waiting.remove(found)
        return found._replace(target=replace(found.target, is_aside=True))

    async def take_back(self, thread_id: int) -> str:
        """Take back the newest message that waits in a thread, and return it; empty if there is none."""
        found = next(reversed(self.waiting_in(thread_id)), None)
        if found is None:
            return ""
        self._waiting.remove(found)
        await self.drop_row(found)
        return found.text

    def forget(self, thread_id: int | None = None) -> None:
        """Let no message wait any longer, in a thread or at all; the rows stay, and the next run offers them."""
        self._waiting = [each for each in self._waiting if thread_id not in {None, each.target.thread_id}]
