"""Saves the context with a summary as a session, and finds, lists, reads and restores sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from chorus_cli.attachments.rules.tokens import attachment_tokens
from chorus_cli.context.rules.view import View, without_eliza
from chorus_cli.context.service.context import Context
from chorus_cli.context.service.current import Current
from chorus_cli.core.errors import ModelError, SessionError, StorageError
from chorus_cli.core.text.code_points import cleaned_input
from chorus_cli.core.text.phrases import enumerated, quoted, shortened
from chorus_cli.core.time.timestamps import BEGINNING, cutoff, in_hours
from chorus_cli.log.rows import operation_rows, thread_lists
from chorus_cli.log.rules.messages import (
    TOOL_ROLES,
    Message,
    MessageContent,
    Status,
    content_of,
    is_filled,
    words_of,
)
from chorus_cli.machine.notifier import run_to_completion
from chorus_cli.machine.ports import Clock
from chorus_cli.models.rules.budget import TOKENS_PER_MESSAGE, tokens_of
from chorus_cli.personas.rules.persona import Target
from chorus_cli.personas.service.personas import Personas
from chorus_cli.sessions import files as session_files
from chorus_cli.sessions import rows as session_rows
from chorus_cli.sessions.rows import IDLE, MANUAL, Restored, Saving, SessionRow
from chorus_cli.sessions.rules import format as session_format
from chorus_cli.sessions.rules.format import SavedThread, Session, meant, slug
from chorus_cli.storage.permissions import advised
from chorus_cli.storage.port import Connection
from chorus_cli.storage.store import Store
from chorus_cli.turns.rules import entries_of
from chorus_cli.turns.service.folding import Summarizer, can_summarize

_MOST_NAMED = 6
_SOUGHT = "A backup may have it: backups are zip archives, from which you can copy this one file."
_SAVED_ELSEWHERE = (
    "The log alone cannot restore it. Restore it once on the machine that has its file, or copy the file from there."
)


class ContextCopy(NamedTuple):
    """A copy of the context of all threads, as a session whose name is only the date, without a summary.

    ``said`` are the rows of the messages that no edit or restore added. ``window_starts`` has the start of the window
    of each copied thread; other windows start at ``since``. ``running`` is the number of replies in progress, which
    are left out. ``operation_id`` is the newest operation of the log. ``through_message_id`` is the copy's newest
    message before all turns in progress.
    """

    session: Session
    said: Mapping[int, Message]
    window_starts: Mapping[int, datetime]
    since: datetime
    running: int
    operation_id: int
    through_message_id: int

    def has_left(self, message: MessageContent) -> bool:
        """Return whether a message is too old for the window of its thread."""
        return message.timestamp <= self.window_starts.get(message.thread_id, self.since)

    def said_after(self, message_id: int) -> list[Message]:
        """Return the messages said after a message of the log; a message that a fork shares is returned once."""
        return [row for id_, row in self.said.items() if id_ > message_id]


async def copied(context: Context, target: Target, now: datetime) -> ContextCopy:
    """Copy the views of all open threads of the persona at ``now``, and count the tokens of the messages."""
    since = cutoff(now, target.persona.settings.context_hours)
    views, operation_id = await context.store.read(_views, context, target, now)
    threads: list[SavedThread] = []
    messages: list[Message] = []
    said: dict[int, Message] = {}
    running: list[int] = []
    window_starts: dict[int, datetime] = {}
    for thread_id, (title, uncounted) in views.items():
        view, _ = await context.counted_view(uncounted, target.choice.model)
        running += [message.turn_id for message in view.messages if message.status is Status.STREAMING]
        # A row that a fork shares names the thread that it was written in; its copy names the thread of the view.
        own = [row._replace(thread_id=thread_id) for row in view.messages if _can_be_saved(row)]
        if own or thread_id == target.thread_id:
            put_in = set(view.boundary.members_in(thread_id)) if view.boundary else set()
            summary, folded = (view.summary.content, sum(map(_can_be_saved, view.folded))) if view.summary else ("", 0)
            threads.append(SavedThread(thread_id, title, summary, folded))
            window_starts[thread_id] = view.cutoff
            messages += own
            for each in own:
                if each.introduced_by is None or each.id not in put_in:
                    said.setdefault(each.id, each)
    begin = min([since, *window_starts.values()])
    if begin == BEGINNING:
        begin = min((each.timestamp for each in messages), default=begin)
    session = Session(
        session_id=f"{now:%Y-%m-%d}",
        persona=target.persona.slug,
        timestamp=now.astimezone(UTC),
        description="",
        summary="",
        token_estimate=sum(map(tokens_of, messages)),
        window_start=begin,
        window_end=now.astimezone(UTC),
        active_thread_id=target.thread_id,
        threads=tuple(threads),
        messages=tuple(map(content_of, messages)),
    )
    through = min([max((each.id for each in messages), default=0), *(turn_id - 1 for turn_id in running)])
    return ContextCopy(session, said, window_starts, since, len(running), operation_id, through)


def _views(
    connection: Connection, context: Context, target: Target, now: datetime
) -> tuple[dict[int, tuple[str, View]], int]:
    """Read the title and view of each thread and the newest operation in one transaction."""
    titles = thread_lists.open_titles(connection, target.persona.slug, target.thread_id)
    views = {
        thread_id: (title, context.read_view(connection, target._replace(thread_id=thread_id), now))
        for thread_id, title in titles.items()
    }
    return views, operation_rows.newest_id_of_all(connection)


def _can_be_saved(message: Message) -> bool:
    """Return whether a message can be saved: it is no reply in progress, and not empty unless it is a tool's."""
    return message.status is not Status.STREAMING and (message.role in TOOL_ROLES or is_filled(message))


class Saved(NamedTuple):
    """A saved session, how many replies in progress it lacks, and why its summary failed."""

    row: SessionRow
    in_progress: int
    problem: str = ""


class Loaded(NamedTuple):
    """A session, whether it comes from the log, and a sentence about its file if that cannot be read.

    A session comes from the log if it has no readable file here, or was extended on another machine.
    """

    session: Session
    is_from_log: bool = False
    problem: str = ""


class _Summary(NamedTuple):
    text: str
    problem: str = ""


_STOPPED = _Summary(session_format.STOPPED, "The summary was stopped; the session is saved without one.")


class Listing(NamedTuple):
    """The sessions of a persona, newest first, and a sentence for each missing or unreadable file."""

    rows: tuple[SessionRow, ...]
    problems: tuple[str, ...]


async def listed(store: Store, personas: Path, persona: str) -> Listing:
    """Return the sessions of a persona, including those whose files were added by hand and have no row."""
    rows = await store.read(session_rows.of, persona)
    files = await asyncio.to_thread(session_files.ids, personas, persona)
    known = files | await store.read(session_rows.restorable, persona)
    gone = (row.session_id for row in rows if row.session_id not in known)
    lacks = f"is not on this machine. {_SAVED_ELSEWHERE}" if store.server else f"is gone. {_SOUGHT}"
    problems = [f"The file of {each} {lacks}" for each in gone]
    for name in sorted(files - {row.session_id for row in rows}):
        try:
            found = await asyncio.to_thread(session_files.read, personas, persona, name)
            rows.append(session_rows.row_of(found))
        except SessionError as error:
            problems.append(str(error))
    return Listing(tuple(sorted(rows, key=lambda row: row.timestamp, reverse=True)), tuple(problems))


@dataclass(slots=True)
class Sessions:
    """The sessions of all personas; the files of new ones are written below the folder ``saved_in``.

    A private chat has no such folder until it saves: ``install`` then makes it, with the shipped personas in it.
    """

    clock: Clock
    personas: Personas
    current: Current
    context: Context
    summarizer: Summarizer
    saved_in: Path
    install: Callable[[], None]
    _offers: tuple[str, Sequence[tuple[str, SessionRow | None]]] = field(default=("", ()), init=False)
    _reading: asyncio.Task[None] | None = field(default=None, init=False)

    async def save(self, target: Target, description: str) -> Saved:
        """Save the context of all threads of the persona; a cancellation stops only the summary, not the save."""
        copy = await copied(self.context, target, self.clock.now())
        messages = copy.session.messages
        if not messages:
            raise SessionError(_nothing(target, copy))
        try:
            summary = await self._summary(target, "", messages, messages)
        except asyncio.CancelledError:
            summary = _STOPPED
        session = _described(copy.session, description, summary)
        await asyncio.to_thread(self.install)
        through = copy.through_message_id
        # A cancellation while the file is written comes too late.
        row, _ = await self._stored(Saving(session, MANUAL, through, through, copy.operation_id))
        if row is None:
            raise SessionError(
                "Something was purged while the session was being saved, so nothing was saved. Save it again."
            )
        return Saved(row, copy.running, summary.problem)

    async def save_idle(self, target: Target) -> Saved | None:
        """Save the context for the idle timer; return ``None`` if nothing was said since the last save.

        The newest idle session is extended and keeps its name and description. A new session is made if a boundary has
        changed since that save, or if a message of that session left the context for another reason than its age.
        """
        copy = await copied(self.context, target, self.clock.now())
        through = await self.context.store.read(session_rows.through, target.persona.slug)
        if not (unsaved := copy.said_after(through)):
            return None
        known = await self.context.store.read(session_rows.idle_session, target.persona.slug)
        old = None
        # A session whose file is gone or damaged is not extended.
        with suppress(SessionError):
            if known:
                old = await asyncio.to_thread(
                    session_files.read, self.saved_in, target.persona.slug, known[0].session_id
                )
        aged = None if old is None else _aged(copy, old)
        if known is None or old is None or aged is None:
            is_new, summarized = True, 0
            summary = await self._summary(target, "", copy.session.messages, copy.session.messages)
            session = _described(copy.session, session_format.described(unsaved), summary)
        else:
            is_new, summarized = False, known[1]
            so_far = old.summary if session_format.can_be_extended(old.summary) else ""
            whole = _in_threads(copy, aged)
            said = tuple(map(content_of, copy.said_after(summarized))) if so_far else whole
            summary = await self._summary(target, so_far, said, whole)
            tokens = await asyncio.to_thread(self._tokens, aged)
            session = _extended(replace(copy.session, summary=summary.text), old, copy, aged, tokens)
        reached = summarized if summary.problem else copy.through_message_id
        saving = Saving(session, IDLE, copy.through_message_id, reached, copy.operation_id, through, is_new)
        row, is_stopped = await self._stored(saving)
        if is_stopped:
            raise asyncio.CancelledError
        return Saved(row, copy.running, summary.problem) if row else None

    async def listing(self, persona: str) -> Listing:
        """Return the sessions of a persona."""
        return await listed(self.context.store, self.personas.folder, persona)

    async def load(self, persona: str, typed: str) -> Loaded:
        """Return a persona's session by its name, by the unique beginning of its name, or by its description."""
        session_id, store = await self._find(persona, typed), self.context.store
        try:
            found = await asyncio.to_thread(session_files.read, self.personas.folder, persona, session_id)
        except SessionError as error:
            is_missing = isinstance(error.__cause__, FileNotFoundError)
            if kept := await store.read(session_rows.kept, persona, session_id):
                problem = "" if is_missing else f"The session comes from the log. {advised(error)}"
                return Loaded(kept, is_from_log=True, problem=problem)
            if not is_missing:
                raise
            raise SessionError(f"{error} {_SAVED_ELSEWHERE if store.server else _SOUGHT}") from error
        rows = await store.read(session_rows.of, persona)
        is_extended = any(row.session_id == session_id and row.timestamp > found.timestamp for row in rows)
        kept = await store.read(session_rows.kept, persona, session_id) if is_extended else None
        return Loaded(kept, is_from_log=True) if kept else Loaded(found)

    async def thread_numbers(self, persona: str, session: Session) -> dict[int, int]:
        """Return, by thread id, the number of each thread in the log, or else its place in the session."""
        return await self.context.store.read(session_rows.thread_numbers, persona, session)

    async def restore(self, target: Target, typed: str) -> tuple[Loaded, Restored]:
        """Replace the context of every thread by a session, and switch to the thread that was active at the save.

        A file that cannot be read stays as it is.
        """
        loaded = await self.load(target.persona.slug, typed)
        now = self.clock.now()
        restored = await self.context.store.write(session_rows.restore, target.persona.slug, loaded.session, now)
        self.current.go_on_in(restored.thread)
        if loaded.is_from_log and not loaded.problem:
            # If the file cannot be written, the log still has the session.
            with suppress(SessionError):
                await asyncio.to_thread(session_files.write, self.saved_in, loaded.session)
        return loaded, restored

    def offers(self, persona: str) -> Sequence[tuple[str, SessionRow | None]]:
        """Return the names and rows of sessions, newest first, as they were read last; begin to read them again."""
        if self._reading is None or self._reading.done():
            self._reading = asyncio.ensure_future(self._read_offers(persona))
        known, offers = self._offers
        return offers if known == persona else ()

    async def _read_offers(self, persona: str) -> None:
        # Another process may hold the store, or the chat may be closing it; the next key press tries again.
        with suppress(StorageError, RuntimeError):
            rows = {row.session_id: row for row in await self.context.store.read(session_rows.of, persona)}
            names = await asyncio.to_thread(session_files.ids, self.personas.folder, persona)
            names |= await self.context.store.read(session_rows.restorable, persona)
            times = {name: (name[:10], f"{rows[name].timestamp}" if name in rows else "") for name in names}
            newest_first = sorted(names, key=times.__getitem__, reverse=True)
            self._offers = persona, [(name, rows.get(name)) for name in newest_first]

    async def _stored(self, saving: Saving) -> tuple[SessionRow | None, bool]:
        """Write a session even if the caller is cancelled, and return its row and whether the caller was cancelled."""
        try:
            return await run_to_completion(self.context.store.write(session_rows.save, self.saved_in, saving))
        except StorageError as error:
            raise SessionError(
                f"{error} The session is not recorded in the log; if its file was written, /context history finds it."
            ) from error

    async def _summary(
        self, target: Target, so_far: str, said: Sequence[MessageContent], whole: Sequence[MessageContent]
    ) -> _Summary:
        """Return ``so_far`` extended by ``said``; after a failure, the old text or `FAILED`; for ELIZA, an extract."""
        # A fork repeats messages of its origin, which are sent only once.
        told = without_eliza([*dict.fromkeys(each._replace(thread_id=0) for each in said)])
        if not can_summarize(target) or not (so_far or told):
            return _Summary(session_format.extract(whole))
        entries = entries_of(told, target.persona.speakers)
        try:
            written = await self.summarizer.extended(target, session_format.TASK, so_far, entries)
        except ModelError as error:
            return _Summary(so_far or session_format.FAILED, str(error))
        return _Summary(shortened(written, session_format.LONGEST_SUMMARY))

    def _tokens(self, messages: Iterable[MessageContent]) -> int:
        count = self.context.counter.count
        texts = sum(count(each.preamble) + count(each.content) + TOKENS_PER_MESSAGE for each in messages)
        return texts + sum(attachment_tokens(each.attachments, "") for each in messages if each.attachments)

    async def _find(self, persona: str, typed: str) -> str:
        rows = await self.context.store.read(session_rows.of, persona)
        files = await asyncio.to_thread(session_files.ids, self.personas.folder, persona)
        found, words = meant(typed, files | {row.session_id for row in rows}), " ".join(typed.casefold().split())
        if words and not found:
            # The name of a session has nothing of a description in letters such as Cyrillic ones.
            found = [row.session_id for row in rows if row.description.casefold().startswith(words)]
        if len(found) == 1:
            return found[0]
        if found:
            rest = len(found) - _MOST_NAMED
            named = enumerated([*found[:_MOST_NAMED], *([f"one of {rest:,} more"] if rest > 0 else [])], "or")
            raise SessionError(f"{quoted(typed)} is ambiguous: {named}. Type more of the name.")
        name = self.personas.own_settings(persona).name or persona
        raise SessionError(f"{name} has no session {quoted(typed)}. /context history lists the sessions.")


def _described(session: Session, description: str, summary: _Summary) -> Session:
    described = " ".join(cleaned_input(description)[0].split())
    name = f"{session.session_id}_{slug(described, session.messages[0].content)}"
    return replace(session, session_id=name, description=described, summary=summary.text)


def _extended(
    fresh: Session, old: Session, copy: ContextCopy, aged: Sequence[MessageContent], aged_tokens: int
) -> Session:
    """Return the ``old`` session with the messages ``aged``, which left the context by age, and the present context."""
    known, longer = {each.id for each in copy.session.threads}, {message.thread_id for message in aged}
    threads = [each for each in old.threads if each.id not in known]
    # With older messages before them, the summarised messages are no longer the first ones of their thread.
    threads += [replace(each, summarised=0) if each.id in longer else each for each in copy.session.threads]
    return replace(
        fresh,
        session_id=old.session_id,
        description=old.description,
        token_estimate=fresh.token_estimate + aged_tokens,
        window_start=old.window_start,
        threads=tuple(threads),
        messages=_in_threads(copy, aged),
    )


def _aged(copy: ContextCopy, old: Session) -> list[MessageContent] | None:
    """Return the messages of a session that left the context by age, ``None`` if any left it for another reason."""
    present = set(map(_key, copy.session.messages))
    gone = [each for each in old.messages if _key(each) not in present]
    return gone if all(map(copy.has_left, gone)) else None


def _in_threads(copy: ContextCopy, aged: Sequence[MessageContent]) -> tuple[MessageContent, ...]:
    """Return the messages ordered by thread; in each thread, the messages that left the context come first."""
    places = {thread.id: place for place, thread in enumerate(copy.session.threads)}
    return tuple(sorted([*aged, *copy.session.messages], key=lambda each: places.get(each.thread_id, -1)))


def _key(message: MessageContent) -> tuple[int, str, datetime, str]:
    return message.thread_id, message.role, message.timestamp, words_of(message)


def _nothing(target: Target, copy: ContextCopy) -> str:
    if copy.running:
        return "There is nothing to save yet: only a reply that is still being written is in context."
    window = in_hours(target.persona.settings.context_hours)
    return (
        f"There is nothing to save: {target.persona.name} has nothing in context. The window is {window}; "
        "/context shows where the context begins, and /context history lists the saved sessions."
    )
