"""Makes personas from character cards, and writes personas as cards."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from chorus_cli.cards import files as card_files
from chorus_cli.cards.rules import png
from chorus_cli.cards.rules.card import (
    Card,
    CardPersona,
    as_persona,
    card_of,
    greeting,
    names_for,
    parsed,
    written,
)
from chorus_cli.cards.rules.export import exported, for_older_programs
from chorus_cli.context.rows import greetings
from chorus_cli.core.errors import ImportFormatError, PersonaError, SettingsError
from chorus_cli.core.text.phrases import counted, shortened
from chorus_cli.log.rows import thread_rows
from chorus_cli.memory.rows import item_changes
from chorus_cli.memory.rows.item_changes import Addition, NewItem
from chorus_cli.memory.rules.items import ItemType, Source
from chorus_cli.personas.files import DOCUMENTS_FOLDER, PROMPT_FILE, NewPersona
from chorus_cli.personas.rules.persona import Target, folded, slug_of
from chorus_cli.settings import files as settings_file
from chorus_cli.settings.rules.table import setting_of
from chorus_cli.storage import typed_paths

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from chorus_cli.cards.files import CardFile
    from chorus_cli.memory.service.memory import Memory
    from chorus_cli.personas.service.persona_admin import PersonaAdmin
    from chorus_cli.personas.service.personas import Personas
    from chorus_cli.storage.port import Connection


_LONGEST_NOTES = 600
_USER_NAME = "user_name"


@dataclass(frozen=True, slots=True)
class Taken:
    """Slug and name of a persona that was made from a card, and sentences about the persona for the user.

    ``greeting``, if not empty, opens the first thread. ``is_new`` says that the persona did not exist before.
    """

    slug: str
    name: str
    told: str
    greeting: str = ""
    is_new: bool = True

    def as_json(self) -> dict[str, object]:
        """Return the persona for a program."""
        return {"persona": self.slug, "new": self.is_new, "told": self.told}


@dataclass(frozen=True, slots=True)
class Cards:
    """Makes personas from cards, with their memory, and writes personas as cards."""

    memory: Memory
    personas: Personas
    persona_admin: PersonaAdmin

    async def take_in_all(
        self, paths: Iterable[Path], *, is_dry: bool = False
    ) -> tuple[list[Taken], list[Path], list[Path]]:
        """Make personas from the cards among the files and in the folders; return these, the cards and other paths."""
        found, others = await asyncio.to_thread(card_files.sorted_out, paths)
        # One file at a time is in memory, because pictures are large.
        files = (await asyncio.to_thread(card_files.read, path) for path in found)
        return [await self.take_in(file, is_dry=is_dry) async for file in files if file is not None], found, others

    async def take_in(self, file: CardFile, *, is_dry: bool = False) -> Taken:
        """Make a persona from a card: its folder, its memory items and its first thread, all or nothing.

        If a persona was made from the same card before, no other persona is made. A dry run makes nothing.
        """
        owner = await asyncio.to_thread(self._owner_of, file.json)
        if owner is not None:
            told = f"{self.personas.load(owner).name} was made from {file.name} before."
            if owner in self.personas.archived():
                told += f" /persona unarchive {owner} brings it back from the archive."
            return Taken(owner, file.card.name, told, is_new=False)
        name = await asyncio.to_thread(self._free_name, file.card)
        slug = slug_of(name, self.personas.names_taken())
        alias = self._free_alias(file.card, name) if file.card.nickname else ""
        persona, user = as_persona(file.card, name, alias), self.personas.defaults().user_name
        said = next((greeting(each, file.card.char, user) for each in file.card.greetings), "")
        if not is_dry:
            await self._make(slug, persona, file, said)
        return Taken(slug, name, "\n".join(_sentences(persona, file, is_dry=is_dry)), said)

    async def first_stranger(self, paths: Iterable[Path]) -> str:
        """Return the first new persona's name; empty if no card is new, or config.jsonc has faults or a user name."""
        if not settings_file.asks_for(self.personas.config_file, _USER_NAME):
            return ""
        taken, *_ = await self.take_in_all(paths, is_dry=True)
        return next((each.name for each in taken if each.is_new), "")

    async def call_user(self, name: str) -> str:
        """Let all cards call the user ``name``, or the default if ``name`` is empty; return a sentence about this."""
        setting = setting_of(_USER_NAME)
        name = name or str(setting.default)
        if not setting.accepts(name):
            raise SettingsError(f"{setting.misfit(name)}.")
        path = self.personas.config_file
        await asyncio.to_thread(settings_file.change_for_all, path, (_USER_NAME,), name)
        return f"The characters of cards now call you {name} ({_USER_NAME} in {path.name})."

    async def _make(self, slug: str, new: CardPersona, file: CardFile, said: str) -> None:
        tokens = await self.memory.count(lore.content for lore in new.lore)
        items = [
            NewItem(ItemType.PRD_SECTION, lore.content, Source.IMPORT, tokens[lore.content], pinned=lore.pinned)
            for lore in new.lore
        ]
        addition = Addition(slug, items, "import", self.memory.clock.now(), file.name)
        documents = {f"{DOCUMENTS_FOLDER}/{each.name}": each.content.encode() for each in new.documents}
        files = NewPersona(slug, new.settings, {PROMPT_FILE: f"{new.prompt}\n".encode(), **documents, **file.kept})
        store = partial(_store, addition=addition, said=said)
        await self.memory.renewing(lambda: self.persona_admin.make(files, addition.now, store))

    async def greet(self, target: Target, number: int) -> str:
        """Put greeting ``number``, from 1, into a thread and return it; it replaces an unanswered greeting."""
        known, name = await self._greetings(target), target.persona.name
        if known is None:
            raise PersonaError(f"{name} has no greeting: it does not come from a character card.")
        if not 1 <= number <= len(known):
            amount = counted(len(known), "greeting")
            raise PersonaError(f"The card of {name} has {amount}; there is no greeting {number}.")
        said, store, now = known[number - 1], self.memory.store, self.memory.clock.now()
        await store.write(greetings.greet, target.persona.slug, target.thread_id, said, now)
        return said

    async def greet_anew(self, before: Target, target: Target) -> bool:
        """After a change of names, put the new names into unanswered greetings; return whether there were any."""
        old, new = await self._greetings(before) or (), await self._greetings(target) or ()
        if old == new:
            return False
        words, now = dict(zip(old, new, strict=True)), self.memory.clock.now()
        return await self.memory.store.write(greetings.greet_anew, target.persona.slug, words, now)

    async def first_greeting(self, target: Target) -> str:
        """Return the greeting that begins a new conversation; empty if there is none, or if the card cannot be read."""
        with suppress(ImportFormatError):
            return next(iter(await self._greetings(target) or ()), "")
        return ""

    async def _greetings(self, target: Target) -> Sequence[str] | None:
        """Return the greetings of a persona's card, ``None`` if the persona has no card."""
        persona = target.persona
        card = card_of(await asyncio.to_thread(self._stored, persona.slug)) if persona.has_card else None
        if card is None:
            return None
        char = persona.settings.nickname or card.char or persona.name
        return [greeting(each, char, persona.settings.user_name) for each in card.greetings]

    async def export(self, slug: str, path: Path, *, replace: bool) -> None:
        """Write a persona as a card of version 3: a picture, or JSON if the name of the file ends in .json.

        Raise a ``FileExistsError`` if the file exists and ``replace`` is false.
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
        typed_paths.write(path, content, replace=replace)

    def _stored(self, slug: str) -> object:
        found = card_files.stored_json(self.personas.folder, slug)
        return None if found is None else parsed(found)

    def _owner_of(self, json: bytes) -> str | None:
        slugs = (*self.personas.slugs(), *self.personas.archived())
        return next((slug for slug in slugs if card_files.stored_json(self.personas.folder, slug) == json), None)

    def _free_alias(self, card: Card, name: str) -> str:
        """Return the nickname in a card as an alias of the persona, empty if it equals the name or is taken."""
        with suppress(PersonaError):
            alias = self.personas.check_name(None, card.nickname)
            return "" if folded(alias) == folded(name) else alias
        return ""

    def _free_name(self, card: Card) -> str:
        for name in names_for(card):
            try:
                return self.personas.check_name(None, name)
            except PersonaError:
                continue
        raise PersonaError(f"Too many personas are called {card.name}. Rename or delete one of them.")


def _sentences(persona: CardPersona, file: CardFile, *, is_dry: bool) -> Iterator[str]:
    card, pinned = file.card, sum(lore.pinned for lore in persona.lore)
    amounts = {"document": len(persona.documents), "memory item": len(persona.lore)}
    parts = [counted(number, thing) for thing, number in amounts.items() if number]
    having = ", ".join([*(["a greeting"] if card.greetings else []), *parts])
    having += f" ({pinned:,} pinned)" if pinned else ""
    creator = f" (by {card.creator})" if card.creator else ""
    created = f"{'Would create' if is_dry else 'Created'} {persona.name}"
    yield f"{created} from {file.name}{creator}{': ' + having if having else ''}."
    if len(card.greetings) > 1:
        yield f"The card has {len(card.greetings):,} greetings; in its chat, /persona greeting 2 uses the second."
    if card.creator_notes:
        yield f"Creator's notes: {shortened(card.creator_notes, _LONGEST_NOTES)}"
    yield from card.notes


def _store(connection: Connection, addition: Addition, said: str) -> None:
    thread = thread_rows.new(connection, addition.persona, "", addition.now)
    if said:
        greetings.greet(connection, addition.persona, thread.id, said, addition.now)
    if addition.items:
        item_changes.add(connection, addition)
