"""Lists, finds, opens, renames and closes the threads of the persona in focus."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from chorus_cli.context.rows.thread_views import newest_in_context, number_in_view
from chorus_cli.context.service.context import Context
from chorus_cli.context.service.current import Current
from chorus_cli.context.service.transcript import Selection, thoughts_in, transcript
from chorus_cli.core.errors import StorageError, ThreadError, UnknownThreadError
from chorus_cli.core.text.code_points import cleaned_input
from chorus_cli.core.text.phrases import enumerated, quoted
from chorus_cli.log.rows import operation_rows, thread_lists, thread_rows
from chorus_cli.log.rows.thread_rows import ThreadKey
from chorus_cli.log.rules import threads as core_threads
from chorus_cli.log.rules.journal import LogMarks, log_marks, thread_journal
from chorus_cli.log.rules.messages import Message, Thoughts
from chorus_cli.log.rules.operations import Operation
from chorus_cli.log.rules.threads import Thread, ThreadState, state_of
from chorus_cli.machine.ports import Clock
from chorus_cli.memory.rows import item_rows
from chorus_cli.personas.rules.persona import Target
from chorus_cli.storage.port import Connection
from chorus_cli.threads.service.replies import Replies

MOST_CLOSED = 200
"""The largest number of closed threads in a list, because an import may close thousands."""


class ListedThread(NamedTuple):
    """A thread with its state, the number of messages sent word for word, and the number of waiting messages."""

    thread: Thread
    state: ThreadState
    in_view: int
    waiting: int


class History(NamedTuple):
    """All messages of a thread, the effective boundaries between them, and thoughts by the ids of their replies."""

    entries: tuple[Message | Operation, ...]
    marks: LogMarks
    thoughts: Mapping[int, Thoughts]


@dataclass(slots=True)
class Threads:
    """The threads of the persona in focus; ``is_alive`` returns whether the process of a run still runs."""

    context: Context
    in_focus: Current
    replies: Replies
    is_alive: Callable[[str], bool]
    clock: Clock
    _offers: tuple[str, Sequence[Thread]] = field(default=("", ()), init=False)
    _reading: asyncio.Task[None] | None = field(default=None, init=False)

    async def current(self) -> Thread:
        """Return the thread in focus."""
        here = self.in_focus.thread_id
        found = next((thread for thread in await self.all() if thread.id == here), None)
        if found is None:
            raise UnknownThreadError(f"#{self.in_focus.thread_number}")
        return found

    async def all(self) -> list[Thread]:
        """Return all threads, also closed ones, oldest first."""
        slug = self.in_focus.slug
        found = await self.context.store.read(thread_lists.all_threads, slug)
        self._offers = slug, found
        return found

    async def open_threads(self) -> list[Thread]:
        """Return the open threads, oldest first."""
        return await self.context.store.read(thread_lists.open_threads, self.in_focus.slug)

    async def listed(self, *, closed: bool) -> list[ListedThread]:
        """Return the open threads with their states, oldest first; with ``closed``, also the newest closed threads."""
        target, now = self.in_focus.target(), self.clock.now()
        threads = (
            core_threads.with_newest_closed(await self.all(), MOST_CLOSED) if closed else await self.open_threads()
        )
        waiting = {thread.id: self.replies.waiting_in(thread.id) for thread in threads}
        return await self.context.store.read(self._read, target, threads, waiting, now)

    async def found(self, typed: str) -> Thread:
        """Return the thread with this number, title or unique beginning of a title; raise `ThreadError` without one."""
        threads = await self.all()
        number = core_threads.number_in(typed)
        by_number = [thread for thread in threads if thread.number == number]
        found = by_number or ([] if typed.startswith("#") else core_threads.named(threads, typed))
        if len(found) == 1:
            return found[0]
        if found:
            meant = enumerated([f"#{thread.number} ({thread.name})" for thread in found], "or")
            raise ThreadError(f"{quoted(typed)} is ambiguous: {meant}. Give the number or more letters.")
        raise UnknownThreadError(f"called {quoted(typed)}" if number is None else f"#{number}")

    async def new(self, title: str = "") -> None:
        """Open a new thread and switch to it."""
        opened = await self._new(title)
        await self.in_focus.turn_to_thread(opened.id)

    async def new_aside(self) -> Target:
        """Open a new thread, and return it as a target without switching to it."""
        opened = await self._new()
        return self.in_focus.target()._replace(thread_id=opened.id, thread_number=opened.number, is_aside=True)

    async def rename(self, thread: Thread, title: str) -> Thread:
        """Give a thread a title, and return the thread; if the title is empty, the first message names the thread."""
        await self.context.store.write(thread_rows.rename, thread.id, cleaned_input(title)[0])
        return next(each for each in await self.all() if each.id == thread.id)

    async def close(self, threads: Sequence[Thread]) -> list[Thread]:
        """Close threads and break off their replies; return those in which another process goes on writing.

        If the thread in focus is closed, switch to the open thread that was active last or, without one, to a new one.
        """
        for thread in threads:
            await self.replies.stop(thread.id)
        await self.context.store.write(thread_rows.close, [thread.id for thread in threads], self.clock.now())
        if self.in_focus.thread_id in {thread.id for thread in threads}:
            left = await self.open_threads()
            if left:
                await self.in_focus.turn_to_thread(max(left, key=lambda each: (each.last_active, each.id)).id)
            else:
                await self.new()
        running = await self.context.store.read(self._running)
        return [thread for thread in threads if thread.id in running]

    async def history(self, thread: Thread, *, with_thoughts: bool = False) -> History:
        """Return the whole thread, also messages that are not in context."""
        store, selection = self.context.store, Selection(self.in_focus.slug, thread.id)
        operations = await store.read(operation_rows.all_of, selection.persona, thread.id)
        entries = tuple([entry async for entry in transcript(store, selection, operations)])
        thoughts = await thoughts_in(store, entries) if with_thoughts else {}
        return History(entries, log_marks(operations, thread.id), thoughts)

    def offers(self) -> Sequence[Thread]:
        """Return the threads for completion, as they were read last; they are read again in the background."""
        if self._reading is None or self._reading.done():
            self._reading = asyncio.ensure_future(self._read_offers())
        slug, threads = self._offers
        return threads if slug == self.in_focus.slug else ()

    async def _read_offers(self) -> None:
        # The store may be busy, or closed because the chat ends; the next key tries again.
        with suppress(StorageError, RuntimeError):
            await self.all()

    async def _new(self, title: str = "") -> ThreadKey:
        cleaned, _ = cleaned_input(title)
        return await self.context.store.write(thread_rows.new, self.in_focus.slug, cleaned, self.clock.now())

    def _running(self, connection: Connection) -> set[int]:
        """Return the ids of the threads in which a live process writes a reply."""
        writers = thread_rows.writers(connection)
        alive = {run for run in {run for _, run in writers} if run and self.is_alive(run)}
        return {thread_id for thread_id, run in writers if run in alive}

    def _read(
        self,
        connection: Connection,
        target: Target,
        threads: Sequence[Thread],
        waiting: Mapping[int, int],
        now: datetime,
    ) -> list[ListedThread]:
        operations = operation_rows.since_boundary(connection, target.persona.slug, None)
        forgetting = item_rows.forgettings(connection, target.persona.slug).fetchone()[0]
        running = self._running(connection)
        listed: list[ListedThread] = []
        for thread in threads:
            concerning = [
                each for each in operations if each.thread_id in {None, thread.id} and each.concerns(thread.id)
            ]
            journal = thread_journal(thread.id, concerning, forgetting)
            newest = core_threads.newest_reply(newest_in_context(connection, journal))
            state = state_of(
                thread,
                is_running=thread.id in running,
                waiting=waiting[thread.id],
                newest_reply=newest.status if newest else None,
            )
            since = self.context.window_start(target, journal, now)
            in_view = number_in_view(connection, journal, since, target.choice.model)
            listed.append(ListedThread(thread, state, in_view, waiting[thread.id]))
        return listed
