"""Saving the context as a session: by command or by the idle timer, with a summary."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import UTC
from typing import TYPE_CHECKING

from chorus_cli.attachments.rules.tokens import attachment_tokens
from chorus_cli.core.errors import ModelError, SessionError
from chorus_cli.core.text.code_points import cleaned_input
from chorus_cli.core.time.timeline import cutoff
from chorus_cli.log.rows import operation_rows, thread_lists
from chorus_cli.log.rules.messages import Role, Status, content_of, is_filled, words_of
from chorus_cli.machine.notifier import run_to_completion
from chorus_cli.models.rules.budget import TOKENS_PER_MESSAGE, tokens_of
from chorus_cli.sessions import files as session_files
from chorus_cli.sessions import rows as session_rows
from chorus_cli.sessions.rows import IDLE, MANUAL, Coverage, Saving
from chorus_cli.sessions.rules import format as session_format
from chorus_cli.sessions.rules.format import SavedThread, Session, slug, stem
from chorus_cli.turns.rules import entries_of
from chorus_cli.turns.service.folding import can_summarize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime
    from pathlib import Path

    from chorus_cli.context.rules.view import ContextSnapshot, RequestSettings, View
    from chorus_cli.context.service.context import Context
    from chorus_cli.log.rules.messages import Message, MessageContent
    from chorus_cli.machine.ports import Clock
    from chorus_cli.personas.rules.persona import Target
    from chorus_cli.sessions.rows import SessionRow
    from chorus_cli.storage.store import Connection
    from chorus_cli.turns.service.folding import Spent, Summarizer

    Write = Callable[[Connection, Path, Saving], SessionRow | None]

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
    found = await context.store.read(_read, context, await context.request_settings(target), since, now)
    threads: list[ThreadCopy] = []
    running: list[int] = []
    for title, snapshot in found.snapshots:
        thread_id, view = snapshot.target.thread_id, (await context.counted(snapshot)).view
        running += [message.turn_id for message in view.messages if message.status is Status.STREAMING]
        messages = tuple(row._replace(thread_id=thread_id) for row in view.messages if _can_be_saved(row))
        if messages or thread_id == target.thread_id:
            threads.append(ThreadCopy(_saved_thread(thread_id, title, view), view, messages))
    return ContextCopy(tuple(threads), now, since, len(running), min(running, default=None), found.operation_id)


def _read(
    connection: Connection, context: Context, request_settings: RequestSettings, since: datetime, now: datetime
) -> _Found:
    """Read all rows in one transaction, so that a session is of one moment."""
    target = request_settings.target
    # A thread with a cached window start has a request of the last minutes, so it is newer than ``since`` anyway.
    titles = thread_lists.titles_in_context(connection, target.persona.slug, target.thread_id, since)
    targets = {each: target._replace(thread_id=each.id, thread_number=each.number) for each in titles}
    snapshots = tuple(
        (title, context.read(connection, replace(request_settings, target=targets[each]), now))
        for each, title in titles.items()
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


@dataclass(frozen=True, slots=True)
class Saved:
    """A saved session, the number of replies in progress that are not in it, and the error if it has no summary.

    ``threads`` counts those that its messages are from.
    """

    row: SessionRow
    in_progress: int
    problem: str = ""
    threads: int = 1


@dataclass(frozen=True, slots=True)
class _Summary:
    text: str
    problem: str = ""


_STOPPED = _Summary(session_format.STOPPED, "The summary was stopped; the session is saved without one.")


@dataclass(frozen=True, slots=True)
class SessionSaving:
    """Saves the contexts of the personas below the folder ``personas``; it changes no context.

    ``install`` makes that folder with the shipped personas in it if it is not there, as for a private chat.
    """

    personas: Path
    clock: Clock
    context: Context
    summarizer: Summarizer
    install: Callable[[], None]

    async def save(self, target: Target, description: str) -> Saved:
        """Save the context of all threads of the persona; a cancellation stops the summary, and not the save.

        Raises:
            SessionError: the context is empty, something was purged meanwhile, or the file cannot be written; nothing
                was saved.
            HomeError: there is no folder of the personas, and it cannot be made.
        """
        copy = await copied(self.context, target, self.clock.now())
        if not copy.messages:
            raise SessionError(_nothing(target, copy))
        async with self.summarizer.spending() as spent:
            try:
                summary = await self._summary_of_all(target, copy, spent)
            except asyncio.CancelledError:
                summary = _STOPPED
            session = _session(target, description, copy, summary)
            coverage = Coverage(copy.through_message_id, copy.through_message_id, copy.operation_id)
            await asyncio.to_thread(self.install)
            # A cancellation while it is written comes too late.
            row, _ = await self._stored(session_rows.create, Saving(session, MANUAL, coverage), spent)
        if row is None:
            raise SessionError(
                "Something was purged while the session was being saved, so nothing was saved. Save it again."
            )
        return Saved(row, copy.in_progress, summary.problem, session.spoken_threads)

    async def unsaved(self, target: Target) -> tuple[Message, ...]:
        """Return the messages in context, of all threads, that are newer than the last save."""
        return await self._unsaved(target, await copied(self.context, target, self.clock.now()))

    async def save_idle(self, target: Target, description: str) -> Saved | None:
        """Save for the idle timer, unless there are no new messages since the last save.

        The last session of the idle timer is extended if no boundary was set since and nothing in it was undone; it
        keeps its name and description.

        Raises:
            SessionError: the file cannot be written; earlier sessions are as they were.
        """
        copy = await copied(self.context, target, self.clock.now())
        through = await self.context.store.read(session_rows.through, target.persona.slug)
        if not copy.said_after(through):
            return None
        known = await self.context.store.read(session_rows.idle_session, target.persona.slug)
        old = await self._file_of(known[0]) if known else None
        async with self.summarizer.spending() as spent:
            if known is None or old is None or not _holds(copy, old):
                write, summarized = session_rows.create, 0
                summary = await self._summary_of_all(target, copy, spent)
                session = _session(target, description, copy, summary)
            else:
                write, summarized = session_rows.rewrite, known[1]
                session, summary = await self._extended(target, copy, old, summarized, spent)
            reached = summarized if summary.problem else copy.through_message_id
            coverage = Coverage(copy.through_message_id, reached, copy.operation_id)
            row, is_stopped = await self._stored(write, Saving(session, IDLE, coverage, through), spent)
        if is_stopped:
            raise asyncio.CancelledError
        return Saved(row, copy.in_progress, summary.problem, session.spoken_threads) if row else None

    async def _stored(self, write: Write, saving: Saving, spent: Spent) -> tuple[SessionRow | None, bool]:
        """Write a session to completion, and return its row and whether the caller was cancelled meanwhile."""
        return await run_to_completion(spent.stored_with(lambda connection: write(connection, self.personas, saving)))

    async def _unsaved(self, target: Target, copy: ContextCopy) -> tuple[Message, ...]:
        return copy.said_after(await self.context.store.read(session_rows.through, target.persona.slug))

    async def _summary_of_all(self, target: Target, copy: ContextCopy, spent: Spent) -> _Summary:
        messages = tuple(map(content_of, copy.messages))
        return await self._summary(target, "", messages, messages, spent)

    async def _extended(
        self, target: Target, copy: ContextCopy, old: Session, summarized_through: int, spent: Spent
    ) -> tuple[Session, _Summary]:
        """Return the session with the present context, and with messages that have left the context only by age."""
        gone = [message for message in old.messages if message.timestamp <= copy.since_in(message.thread_id)]
        messages, aged = _merged(gone, copy)
        new = tuple(map(content_of, copy.said_after(summarized_through)))
        so_far = old.summary if session_format.can_be_extended(old.summary) else ""
        summary = await self._summary(target, so_far, new if so_far else messages, messages, spent)
        known = {each.thread.id for each in copy.threads}
        session = replace(
            old,
            timestamp=copy.now.astimezone(UTC),
            summary=summary.text,
            token_estimate=sum(map(tokens_of, copy.messages)) + await asyncio.to_thread(self._tokens, aged),
            window_end=copy.now.astimezone(UTC),
            active_thread_id=target.thread_id,
            threads=(*(each for each in old.threads if each.id not in known), *_threads(copy, aged)),
            messages=messages,
        )
        return session, summary

    async def _summary(
        self,
        target: Target,
        so_far: str,
        said: Sequence[MessageContent],
        whole: Sequence[MessageContent],
        spent: Spent,
    ) -> _Summary:
        """Extend a summary by messages; if that fails, return the old one with the error."""
        if not can_summarize(target):
            return _Summary(session_format.extract(whole))
        entries = entries_of(_each_once(said), target.persona.name)
        try:
            written = await self.summarizer.extended(target, session_format.TASK, so_far, entries, spent)
        except ModelError as error:
            return _Summary(so_far or session_format.FAILED, str(error))
        return _Summary(session_format.short(written))

    async def _file_of(self, row: SessionRow) -> Session | None:
        """Return the session in a file, ``None`` if it is gone or damaged: then it is not extended."""
        try:
            return await asyncio.to_thread(session_files.read, self.personas, row.persona, row.session_id)
        except SessionError:
            return None

    def _tokens(self, messages: Iterable[MessageContent]) -> int:
        count = self.context.counter.count
        texts = sum(count(each.preamble) + count(each.content) + TOKENS_PER_MESSAGE for each in messages)
        return texts + sum(attachment_tokens(each.attachments, "") for each in messages if each.attachments)


def _session(target: Target, description: str, copy: ContextCopy, summary: _Summary) -> Session:
    messages = tuple(map(content_of, copy.messages))
    described = " ".join(cleaned_input(description)[0].split())
    return Session(
        session_id=stem(copy.now, slug(described, messages[0].content)),
        persona=target.persona.slug,
        timestamp=copy.now.astimezone(UTC),
        description=described,
        summary=summary.text,
        token_estimate=sum(map(tokens_of, copy.messages)),
        window_start=copy.window_start,
        window_end=copy.now.astimezone(UTC),
        active_thread_id=target.thread_id,
        threads=tuple(each.thread for each in copy.threads),
        messages=messages,
    )


def _holds(copy: ContextCopy, old: Session) -> bool:
    """Return whether all messages of a session are in the copy too, except those that have left by age."""
    present = {_key(each) for each in map(content_of, copy.messages)}
    return all(_key(each) in present for each in old.messages if each.timestamp > copy.since_in(each.thread_id))


def _each_once(messages: Iterable[MessageContent]) -> list[MessageContent]:
    """Return the messages without those of a fork that its origin has too."""
    return list({(each.role, each.timestamp, words_of(each)): each for each in messages}.values())


def _key(message: MessageContent) -> tuple[int, str, datetime, str]:
    return message.thread_id, message.role, message.timestamp, words_of(message)


def _merged(
    gone: Sequence[MessageContent], copy: ContextCopy
) -> tuple[tuple[MessageContent, ...], list[MessageContent]]:
    """Put messages that have left the context before those in it, thread by thread; return all, and those that left."""
    present = {_key(each) for each in map(content_of, copy.messages)}
    aged = [each for each in gone if _key(each) not in present]
    silent = {each.thread_id for each in aged} - {each.thread.id for each in copy.threads}
    merged = [each for each in aged if each.thread_id in silent]
    for thread in copy.threads:
        merged += [each for each in aged if each.thread_id == thread.thread.id]
        merged += map(content_of, thread.messages)
    return tuple(merged), aged


def _threads(copy: ContextCopy, aged: Sequence[MessageContent]) -> Iterator[SavedThread]:
    """Return the threads of a copy; if older messages come before, a summary no longer covers the first ones."""
    longer = {message.thread_id for message in aged}
    for each in copy.threads:
        yield replace(each.thread, summarised=0) if each.thread.id in longer else each.thread


def _nothing(target: Target, copy: ContextCopy) -> str:
    if copy.in_progress:
        return "There is nothing to save yet: only a reply that is still being written is in context."
    hours = target.persona.settings.context_hours
    return (
        f"There is nothing to save: {target.persona.name} has nothing in context. The window is {hours}h; "
        "/context shows what binds, and /context history what is saved already."
    )
