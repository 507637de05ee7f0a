"""A copy of a persona's context in all its threads: the material of a session."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from chorus_cli.core.time.window import cutoff
from chorus_cli.log.rows import operation_rows, thread_lists
from chorus_cli.log.rules.messages import Role, Status, is_filled
from chorus_cli.sessions.rules.format import SavedThread

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from chorus_cli.context.rules.snapshot import ContextSnapshot, Frame
    from chorus_cli.context.rules.view import View
    from chorus_cli.context.service.context import Context
    from chorus_cli.log.rules.messages import Message
    from chorus_cli.personas.rules.target import Target
    from chorus_cli.storage.store import Connection

_TOOL_ROLES = frozenset({Role.TOOL_USE, Role.TOOL_RESULT})


@dataclass(frozen=True, slots=True)
class ThreadCopy:
    """The context of one thread; ``messages`` are those of the view that can be saved, each as one of this thread.

    A fork has messages of another thread, which the view names as their own.
    """

    thread: SavedThread
    view: View
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class ContextCopy:
    """The context of all threads at ``now``; the window of threads without messages begins at ``since``.

    ``in_progress`` counts the replies in progress, which stay out; ``running_turn_id`` is the first turn of them.
    ``operation_id`` is the newest operation at that moment.
    """

    threads: tuple[ThreadCopy, ...]
    now: datetime
    since: datetime
    in_progress: int
    running_turn_id: int | None
    operation_id: int

    @property
    def through_message_id(self) -> int:
        """The newest message that it covers: none of a turn in progress, which ends later."""
        newest = max((message.id for message in self.messages), default=0)
        return newest if self.running_turn_id is None else min(newest, self.running_turn_id - 1)

    @property
    def window_start(self) -> datetime:
        """The beginning of the earliest window."""
        return min([self.since, *(each.view.cutoff for each in self.threads)])

    def since_in(self, thread_id: int) -> datetime:
        """Return the beginning of a thread's window."""
        return next((each.view.cutoff for each in self.threads if each.thread.id == thread_id), self.since)

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages of all threads, thread by thread."""
        return tuple(message for each in self.threads for message in each.messages)

    def said_after(self, message_id: int) -> tuple[Message, ...]:
        """Return the messages newer than one of the log, without those that an edit or a restore put in.

        A message that several threads have, because one is a fork of the other, is returned once.
        """
        said = {message.id: message for each in reversed(self.threads) for message in _said(each)}
        chosen = (message for each in self.threads for message in _said(each) if message.id > message_id)
        return tuple(message for message in chosen if said[message.id] is message)


@dataclass(frozen=True, slots=True)
class _Found:
    """The rows that the views of the threads are computed from, and the newest operation."""

    snapshots: tuple[tuple[str, ContextSnapshot], ...]
    operation_id: int


async def copied(context: Context, target: Target, now: datetime) -> ContextCopy:
    """Copy the views of all threads of the persona at ``now``, with the tokens of every message."""
    since = cutoff(now, target.persona.settings.context_hours)
    found = await context.store.read(_read, context, await context.frame(target), since, now)
    threads: list[ThreadCopy] = []
    running: list[int] = []
    for title, snapshot in found.snapshots:
        thread_id, view = snapshot.target.thread_id, (await context.counted(snapshot)).view
        running += [message.turn_id for message in view.messages if message.status is Status.STREAMING]
        messages = tuple(row._replace(thread_id=thread_id) for row in view.messages if _can_be_saved(row))
        if messages or thread_id == target.thread_id:
            threads.append(ThreadCopy(_saved_thread(thread_id, title, view), view, messages))
    return ContextCopy(tuple(threads), now, since, len(running), min(running, default=None), found.operation_id)


def _read(connection: Connection, context: Context, frame: Frame, since: datetime, now: datetime) -> _Found:
    """Read all rows in one transaction, so that a session is of one moment."""
    target = frame.target
    # A thread with a cached window start has a request of the last minutes, so it is newer than ``since`` anyway.
    titles = thread_lists.titles_in_context(connection, target.persona.slug, target.thread_id, since)
    targets = {each: replace(target, thread_id=each.id, thread_number=each.number) for each in titles}
    snapshots = tuple(
        (title, context.read(connection, replace(frame, target=targets[each]), now)) for each, title in titles.items()
    )
    return _Found(snapshots, operation_rows.newest_id_of_all(connection))


def _saved_thread(thread_id: int, title: str, view: View) -> SavedThread:
    if view.summary is None:
        return SavedThread(thread_id, title)
    return SavedThread(thread_id, title, view.summary.content, sum(map(_can_be_saved, view.folded)))


def _can_be_saved(message: Message) -> bool:
    """Leave out replies in progress and those that failed before their first word; a tool's result may be empty."""
    is_something = is_filled(message) or message.role in _TOOL_ROLES
    return message.status is not Status.STREAMING and is_something


def _said(copy: ThreadCopy) -> Iterator[Message]:
    put_in = set(copy.view.boundary.members_in(copy.thread.id)) if copy.view.boundary else set()
    return (message for message in copy.messages if message.introduced_by is None or message.id not in put_in)
