"""Listing, creating, archiving and deleting personas."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chorus_cli.core.errors import PersonaError, UnknownPersonaError
from chorus_cli.core.time import timestamps
from chorus_cli.log.rows import operation_rows
from chorus_cli.log.rules import journal
from chorus_cli.log.rules.acts import Clear
from chorus_cli.log.rules.operations import NewOperation
from chorus_cli.personas import files as persona_files
from chorus_cli.personas import rows as persona_rows
from chorus_cli.personas.rows import NewPersona
from chorus_cli.personas.rules.persona import DEFAULT_PERSONA, slug_of
from chorus_cli.settings.rules.schema import template

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from pathlib import Path

    from chorus_cli.machine.ports import Clock
    from chorus_cli.personas.rows import LeaveBehind, PersonaActivity
    from chorus_cli.personas.rules.persona import Persona
    from chorus_cli.personas.service.personas import Personas
    from chorus_cli.storage.store import Store


@dataclass(frozen=True, slots=True)
class PersonaEntry:
    """A persona, with the number and newest time of its messages, and whether it is archived."""

    persona: Persona
    messages: int
    last_spoken: datetime | None
    archived: bool = False

    def as_json(self, *, active: bool) -> dict[str, object]:
        """Return the entry for ``chorus personas --json``."""
        return {
            "persona": self.persona.slug,
            "name": self.persona.name,
            "aliases": list(self.persona.settings.aliases),
            "description": self.persona.settings.description,
            "model": self.persona.settings.model,
            "context_hours": self.persona.settings.context_hours,
            "messages": self.messages,
            "last_spoken": timestamps.to_text(self.last_spoken) if self.last_spoken else None,
            "active": active,
            "archived": self.archived,
        }


@dataclass(frozen=True, slots=True)
class PersonaAdmin:
    """The personas of the user; those that are deleted are moved to the folder ``deleted``.

    ``leave_behind`` parts a new persona from the memory and the sessions of an earlier one of its slug.
    """

    store: Store
    clock: Clock
    personas: Personas
    deleted: Path
    leave_behind: LeaveBehind

    async def members(self) -> list[PersonaEntry]:
        """Return all personas: those in use, then the archived ones."""
        activity = await self.store.read(persona_rows.activity)
        return await asyncio.to_thread(self._members, activity)

    async def member(self, slug: str) -> PersonaEntry:
        """Return one persona.

        Raises:
            UnknownPersonaError: its folder is gone.
        """
        activity = await self.store.read(persona_rows.activity)
        return self._member(slug, activity.get(slug), archived=slug in self.personas.archived())

    async def logged(self, name: str | None, otherwise: str) -> tuple[str, str]:
        """Return slug and name of a persona, in use, archived or only in the log; without ``name``, of ``otherwise``.

        Raises:
            PersonaError: there is no such persona, in the log either.
        """
        try:
            slug = self.personas.find_any(name) if name else otherwise
            return slug, self.personas.load(slug).name
        except UnknownPersonaError:
            wanted = name or otherwise
            if wanted not in await self.store.read(persona_rows.activity):
                raise
            return wanted, wanted

    async def create(self, name: str) -> str:
        """Create a persona called ``name`` from the commented template, and return its slug.

        If an earlier persona had the same slug, the new one begins a new conversation.

        Raises:
            PersonaError: the name is not valid, or another persona has it.
        """
        checked = self.personas.check_name(None, name)
        slug = slug_of(checked, self.personas.names_taken())
        boundary = NewOperation(slug, Clear(begins=True), self.clock.now())
        new = NewPersona(slug, template(checked))
        await self.store.write_in_steps(persona_rows.create, self.personas.folder, new, boundary, self.leave_behind)
        return slug

    async def had_a_namesake(self, slug: str) -> bool:
        """Return whether the log has an earlier persona of the same slug."""
        operations = await self.store.read(operation_rows.all_of, slug, 0)
        return len(journal.own(operations)) < len(operations)

    async def archive(self, slug: str) -> None:
        """Archive a persona: it is no longer listed or found; its files and messages stay.

        Raises:
            PersonaError: it is the default persona, or its folder cannot be written.
        """
        _refuse_default(slug)
        await asyncio.to_thread(persona_files.archive, self.personas.folder, slug, self.clock.now())

    async def unarchive(self, slug: str) -> None:
        """Bring an archived persona back.

        Raises:
            PersonaError: its folder cannot be written.
        """
        await asyncio.to_thread(persona_files.unarchive, self.personas.folder, slug)

    async def delete(self, slug: str) -> Path:
        """Move an archived persona's folder away and return where it is now; its log and memory stay.

        Raises:
            PersonaError: it is the default persona or not archived, or it cannot be moved.
        """
        _refuse_default(slug)
        if slug not in self.personas.archived():
            raise PersonaError(f"{slug} is not archived, and only archived personas are deleted.")
        now = self.clock.now()
        return await asyncio.to_thread(persona_files.move_away, self.personas.folder, slug, self.deleted, now)

    def _members(self, activity: Mapping[str, PersonaActivity]) -> list[PersonaEntry]:
        slugs = [(slug, False) for slug in self.personas.slugs()] + [(slug, True) for slug in self.personas.archived()]
        return [self._member(slug, activity.get(slug), archived=archived) for slug, archived in slugs]

    def _member(self, slug: str, trace: PersonaActivity | None, *, archived: bool) -> PersonaEntry:
        persona = self.personas.load(slug)
        if trace is None:
            return PersonaEntry(persona, 0, None, archived)
        return PersonaEntry(persona, trace.messages, trace.last_spoken, archived)


def _refuse_default(slug: str) -> None:
    if slug == DEFAULT_PERSONA:
        raise PersonaError(f"{slug} is the persona that a fresh start talks to; it stays. Its settings can be changed.")
