"""Saved sessions: listed, found by the beginning of their names, read, and restored."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from chorus_cli.core.errors import SessionError, StorageError
from chorus_cli.core.text.phrases import quoted
from chorus_cli.log.rows import thread_rows
from chorus_cli.sessions import files as session_files
from chorus_cli.sessions import rows as session_rows
from chorus_cli.sessions.rules.format import meant

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from chorus_cli.context.service.current import Current
    from chorus_cli.machine.ports import Clock
    from chorus_cli.personas.rules.persona import Target
    from chorus_cli.personas.service.personas import Personas
    from chorus_cli.sessions.rows import Restored, SessionRow
    from chorus_cli.sessions.rules.format import Session
    from chorus_cli.sessions.service.saving import SessionSaving
    from chorus_cli.storage.store import Store

_MOST_NAMED = 6


@dataclass(frozen=True, slots=True)
class Listing:
    """The sessions of a persona, newest first, and a sentence for each without a readable file."""

    rows: tuple[SessionRow, ...]
    problems: tuple[str, ...]


@dataclass(slots=True)
class Sessions:
    """The sessions of all personas; ``saving`` makes new ones."""

    store: Store
    clock: Clock
    personas: Personas
    current: Current
    saving: SessionSaving
    _offers: tuple[str, Sequence[SessionRow]] = field(default=("", ()), init=False)
    _reading: asyncio.Task[None] | None = field(default=None, init=False)

    async def listing(self, persona: str) -> Listing:
        """Return the sessions of a persona; files that were added by hand get a row."""
        rows = await self.store.read(session_rows.of, persona)
        files = await asyncio.to_thread(session_files.ids, self.personas.folder, persona)
        unknown = sorted(files - {row.session_id for row in rows})
        found, problems = await asyncio.to_thread(self._read_all, persona, unknown)
        # The list is shown even if the database is busy.
        with suppress(StorageError):
            if found:
                await self.store.write(session_rows.adopt, found)
        known = sorted([*rows, *map(session_rows.row_of, found)], key=lambda row: row.timestamp, reverse=True)
        gone = [f"The file of {row.session_id} is gone." for row in rows if row.session_id not in files]
        return Listing(tuple(known), (*gone, *problems))

    async def load(self, persona: str, typed: str) -> Session:
        """Return the session of the persona with that name, or with a name that begins so.

        Raises:
            SessionError: there is none, or several, or it is another persona's, or its file is gone or damaged.
        """
        session_id = await self._find(persona, typed)
        return await asyncio.to_thread(session_files.read, self.personas.folder, persona, session_id)

    async def thread_numbers(self, persona: str, session: Session) -> dict[int, int]:
        """Return the numbers of a session's threads by their ids; one unknown to the log has its place in the session.

        The ids are those of the log that the session was saved from.
        """
        known = await self.store.read(thread_rows.numbers, persona)
        return {thread.id: known.get(thread.id, place) for place, thread in enumerate(session.threads, 1)}

    async def restore(self, target: Target, typed: str) -> tuple[Session, Restored]:
        """Replace the context of every thread by a session, and switch to the thread that was active in it.

        Raises:
            SessionError: as in `load`; nothing was changed.
        """
        session = await self.load(target.persona.slug, typed)
        now = self.clock.now()
        restored = await self.store.write(session_rows.restore, target.persona.slug, session, now)
        self.current.go_on_in(restored.thread)
        return session, restored

    def offers(self, persona: str) -> Sequence[SessionRow]:
        """Return the sessions for completion, newest first, as they were read last; they are read again meanwhile."""
        if self._reading is None or self._reading.done():
            self._reading = asyncio.ensure_future(self._read_offers(persona))
        known, rows = self._offers
        return rows if known == persona else ()

    async def _read_offers(self, persona: str) -> None:
        # The store may be busy, or closed under a chat that ends; the next key tries again.
        with suppress(StorageError, RuntimeError):
            self._offers = persona, await self.store.read(session_rows.of, persona)

    async def _find(self, persona: str, typed: str) -> str:
        rows = await self.store.read(session_rows.of, persona)
        files = await asyncio.to_thread(session_files.ids, self.personas.folder, persona)
        found = meant(typed, files | {row.session_id for row in rows})
        if len(found) == 1:
            return found[0]
        if found:
            raise SessionError(f"{quoted(typed)} may be {_named(found)}. Type a little more of it.")
        owners = await self._owners(persona)
        others = [owners[name] for name in meant(typed, owners)]
        name = self._name(persona)
        if others:
            owner = self._name(others[0])
            raise SessionError(
                f"{quoted(typed)} is a session of {owner}, not of {name}. /persona {others[0]} turns to {owner}."
            )
        raise SessionError(f"{name} has no session {quoted(typed)}. /context history lists them.")

    async def _owners(self, persona: str) -> dict[str, str]:
        """Return the personas of the other personas' sessions, by the sessions' names."""
        owners = dict(await self.store.read(session_rows.others, persona))
        for slug in {*self.personas.slugs(), *self.personas.archived()} - {persona}:
            owners |= dict.fromkeys(await asyncio.to_thread(session_files.ids, self.personas.folder, slug), slug)
        return owners

    def _name(self, slug: str) -> str:
        return self.personas.own_settings(slug).name or slug

    def _read_all(self, persona: str, names: Iterable[str]) -> tuple[list[Session], list[str]]:
        found: list[Session] = []
        problems: list[str] = []
        for name in names:
            try:
                found.append(session_files.read(self.personas.folder, persona, name))
            except SessionError as error:
                problems.append(str(error))
        return found, problems


def _named(names: Sequence[str]) -> str:
    if len(names) > _MOST_NAMED:
        return f"{', '.join(names[:_MOST_NAMED])} or one of {len(names) - _MOST_NAMED:,} more"
    *others, last = names
    return f"{', '.join(others)} or {last}"
