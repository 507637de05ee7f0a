"""Personas made of character cards, and cards written of personas."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chorus_cli.core.cards import png
from chorus_cli.core.cards.as_persona import CardPersona, as_persona, greeting, names_for
from chorus_cli.core.cards.card import Card, card_of
from chorus_cli.core.cards.document import exported, for_older_programs, parsed, written
from chorus_cli.core.errors import PersonaError
from chorus_cli.core.log.acts import Clear
from chorus_cli.core.log.inclusions import Greeting
from chorus_cli.core.log.messages import MessageContent, Role
from chorus_cli.core.log.operations import NewOperation
from chorus_cli.core.memory.items import ItemType
from chorus_cli.core.personas.names import slug_of
from chorus_cli.storage.files import card_files, export_files
from chorus_cli.storage.files.persona_files import DOCUMENTS_FOLDER
from chorus_cli.storage.sqlite import persona_rows
from chorus_cli.storage.sqlite.log import operation_rows, thread_rows
from chorus_cli.storage.sqlite.memory import item_changes
from chorus_cli.storage.sqlite.memory.item_changes import Addition, NewItem
from chorus_cli.storage.sqlite.persona_rows import NewPersona

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from chorus_cli.core.context.target import Target
    from chorus_cli.services.memory.access import MemoryAccess
    from chorus_cli.services.personas.personas import Personas
    from chorus_cli.storage.files.card_files import CardFile
    from chorus_cli.storage.sqlite.store import Connection


@dataclass(frozen=True, slots=True)
class Made:
    """A persona that was made of a card, and the greeting that opens its first thread, if it has one."""

    slug: str
    persona: CardPersona
    greeting: str


@dataclass(frozen=True, slots=True)
class Cards:
    """Makes personas of cards, with their memory, and writes cards of personas."""

    memory: MemoryAccess
    personas: Personas

    async def read(self, path: Path) -> CardFile | None:
        """Return the card in a file, ``None`` if the file is of another kind.

        Raises:
            ImportFormatError: it cannot be read, or a card in it is damaged or too large.
        """
        return await asyncio.to_thread(card_files.read, path)

    async def owner_of(self, file: CardFile) -> str | None:
        """Return the slug of the persona, in use or archived, that was made of the same card; ``None`` without one."""
        return await asyncio.to_thread(self._owner_of, file.json)

    async def make(self, file: CardFile) -> Made:
        """Make a persona of a card: its folder, its memory items and its first thread, all or nothing.

        Raises:
            PersonaError: its folder cannot be made.
            StorageError: the log cannot be written.
        """
        name = await asyncio.to_thread(self._free_name, file.card)
        new, slug = as_persona(file.card, name), slug_of(name, self.personas.names_taken())
        tokens = await self.memory.count(lore.content for lore in new.lore)
        items = [
            NewItem(ItemType.PRD_SECTION, lore.content, tokens[lore.content], pinned=lore.pinned) for lore in new.lore
        ]
        now, user = self.memory.clock.now(), self.personas.defaults().user_name
        said = greeting(file.card, 0, user) if file.card.greetings else ""
        addition = Addition(slug, items, "import", now, title=file.name)
        documents = {f"{DOCUMENTS_FOLDER}/{each.name}": each.content.encode() for each in new.documents}
        files = NewPersona(slug, new.settings, {**documents, **file.kept})
        await self.memory.write(_store, self.personas.folder, files, addition, said)
        return Made(slug, new, said)

    async def greet(self, target: Target, number: int) -> str:
        """Put a greeting of the persona's card, from 1, into the thread of a target, and return it.

        Raises:
            PersonaError: the persona was made of no card, or the card has no such greeting.
            ImportFormatError: the card cannot be read.
        """
        card = card_of(await asyncio.to_thread(self._stored, target.persona.slug))
        if card is None:
            raise PersonaError(f"{target.persona.name} was made of no character card, so it has no greeting.")
        if not 1 <= number <= len(card.greetings):
            raise PersonaError(f"The card of {target.persona.name} has {len(card.greetings)} greetings; choose one.")
        said = greeting(card, number - 1, target.persona.settings.user_name)
        await self.memory.write(_greet, target.persona.slug, target.thread_id, said, self.memory.clock.now())
        return said

    async def export(self, slug: str, path: Path, *, replace: bool) -> None:
        """Write a persona as a card of version 3: a picture, or JSON if the name of the file ends in .json.

        Raises:
            FileExistsError: the file is there already and was not to be replaced.
            ImportFormatError: the card that the persona was made of cannot be read.
            OutputError: the file cannot be written.
        """
        await asyncio.to_thread(self._export, slug, path, replace=replace)

    def _export(self, slug: str, path: Path, *, replace: bool) -> None:
        persona = self.personas.load(slug)
        document = exported(persona, self._stored(slug), self.memory.clock.now())
        if path.suffix.lower() == ".json":
            content = written(document, indent=2) + b"\n"
        else:
            cards = {png.OLD_KEYWORD: written(for_older_programs(document)), png.NEW_KEYWORD: written(document)}
            content = png.with_cards(card_files.picture(self.personas.folder, slug, persona.name), cards)
        export_files.write(path, content, replace=replace)

    def _stored(self, slug: str) -> object:
        """Return the JSON of the card that a persona was made of, ``None`` if it was made otherwise."""
        found = card_files.stored_json(self.personas.folder, slug)
        return None if found is None else parsed(found)

    def _owner_of(self, json: bytes) -> str | None:
        slugs = (*self.personas.slugs(), *self.personas.archived())
        return next((slug for slug in slugs if card_files.stored_json(self.personas.folder, slug) == json), None)

    def _free_name(self, card: Card) -> str:
        """Return the first name for the persona of a card that it may have.

        Raises:
            PersonaError: there is none.
        """
        for name in names_for(card):
            try:
                return self.personas.check_name(None, name)
            except PersonaError:
                continue
        raise PersonaError(f"No name is free for {card.name}. Archive or rename one of its namesakes.")


def _store(connection: Connection, personas: Path, new: NewPersona, addition: Addition, said: str) -> None:
    boundary = NewOperation(new.slug, Clear(begins=True), addition.now)
    persona_rows.create(connection, personas, new, boundary)
    thread = thread_rows.new(connection, new.slug, "", addition.now)
    if said:
        _greet(connection, new.slug, thread.id, said, addition.now)
    if addition.items:
        item_changes.add(connection, addition)


def _greet(connection: Connection, slug: str, thread_id: int, said: str, now: datetime) -> None:
    message = MessageContent(thread_id, Role.ASSISTANT, said, now)
    operation_rows.introduce(connection, NewOperation(slug, Greeting(), now, thread_id, members=(message,)))
