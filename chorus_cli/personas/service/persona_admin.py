"""Creates, archives and deletes personas, and changes their settings, one value or the whole file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from chorus_cli.core.errors import JsoncError, PersonaError, SettingsError
from chorus_cli.core.json import jsonc
from chorus_cli.core.json.jsonc import BYTE_ORDER_MARK, JsonValue
from chorus_cli.core.time import timestamps
from chorus_cli.log.rules.acts import Clear
from chorus_cli.log.rules.operations import NewOperation
from chorus_cli.machine.ports import Clock
from chorus_cli.personas import files as persona_files
from chorus_cli.personas import rows as persona_rows
from chorus_cli.personas.files import PROMPT_FILE, NewPersona
from chorus_cli.personas.rows import LeaveBehind, PersonaActivity, values_in
from chorus_cli.personas.rules.persona import DEFAULT_PERSONA, Persona, folded, slug_of
from chorus_cli.personas.service.personas import Personas
from chorus_cli.settings import files as settings_file
from chorus_cli.settings.rules import table as settings
from chorus_cli.settings.rules.schema import template
from chorus_cli.settings.rules.table import SETTINGS, Layer, Setting, misfits
from chorus_cli.storage.port import Connection
from chorus_cli.storage.store import Store

_WINDOW = settings.setting_of(settings.WINDOW_KEY)


@dataclass(frozen=True, slots=True)
class PersonaEntry:
    """A persona, the number of its messages, the time of the newest one, and whether the persona is archived."""

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
class SettingState:
    """A setting's value, and its value without the persona's own files, each with its source, such as ``file:line``."""

    setting: Setting
    value: JsonValue
    source: str
    default: JsonValue
    default_source: str


@dataclass(frozen=True, slots=True)
class OpenSettings:
    """The ``text`` of a settings file as it was opened, and the ``draft`` to edit: a template if the file is empty."""

    slug: str
    path: Path
    text: str
    draft: str


@dataclass(frozen=True, slots=True)
class Change:
    """The value of a setting in a persona's file before and after a change; ``None`` where the file has none."""

    setting: Setting
    before: JsonValue
    after: JsonValue

    @property
    def changed(self) -> bool:
        """Whether the two values differ."""
        return not jsonc.same(self.before, self.after)


class UnrecordedActions:
    """The user's newest action outside the journal, by persona; ``/undo`` asks before it undoes an older step."""

    def __init__(self) -> None:
        self._newest: dict[str, tuple[datetime, str]] = {}

    def add(self, slug: str, told: str, done_at: datetime) -> None:
        """Remember an action for the persona ``slug``; ``told`` says what it did, and how the user reverts it."""
        self._newest[slug] = done_at, f"Your latest action {told}"

    def newest(self, slug: str, since: datetime | None) -> str:
        """Return the sentence about the action, empty if there is none or it is older than ``since``."""
        done_at, told = self._newest.get(slug, (None, ""))
        return told if done_at and (since is None or done_at > since) else ""

    def forget(self, slug: str) -> None:
        """Forget the action, because the user has undone something older."""
        self._newest.pop(slug, None)


@dataclass(frozen=True, slots=True)
class PersonaAdmin:
    """Makes and changes personas; ``unrecorded`` has the user's actions that the journal does not record."""

    store: Store
    clock: Clock
    personas: Personas
    deleted: Path
    leave_behind: LeaveBehind
    unrecorded: UnrecordedActions = field(default_factory=UnrecordedActions)

    async def members(self) -> list[PersonaEntry]:
        """Return all personas: those in use, then the archived ones."""
        activity = await self.store.read(persona_rows.activity)
        slugs = (*self.personas.slugs(), *self.personas.archived())
        return await asyncio.to_thread(lambda: [self._member(slug, activity) for slug in slugs])

    async def member(self, slug: str) -> PersonaEntry:
        """Return one persona."""
        return self._member(slug, await self.store.read(persona_rows.activity))

    def _member(self, slug: str, activity: Mapping[str, PersonaActivity]) -> PersonaEntry:
        found = activity.get(slug, PersonaActivity(0, None))
        return PersonaEntry(self.personas.load(slug), *found, archived=slug in self.personas.archived())

    async def logged(self, name: str | None, otherwise: str) -> str:
        """Return the slug of the persona ``name``, which may be only in the log, or ``otherwise`` without a name."""
        wanted = folded(name).replace(" ", "-") if name else otherwise
        # An exact match in the log is preferred to a persona whose name only begins with ``name``.
        if self.personas.called(name or otherwise) is None and wanted in await self.store.read(persona_rows.activity):
            return wanted
        return self.personas.find_any(name) if name else otherwise

    async def create(self, name: str) -> tuple[str, bool]:
        """Create a persona from the template; return its slug, and whether the log has rows of this slug already."""
        checked = self.personas.check_name(None, name)
        slug = slug_of(checked, self.personas.names_taken())
        new = NewPersona(slug, template(checked), {PROMPT_FILE: f"You are {checked}.\n".encode()})
        return slug, await self.make(new, self.clock.now())

    async def make(self, new: NewPersona, now: datetime, fill: Callable[[Connection], None] | None = None) -> bool:
        """Make a persona's folder and the rows that ``fill`` stores; return whether the log had rows of its slug."""
        boundary = NewOperation(new.slug, Clear(begins=True), now) if await self.begins_anew(new.slug) else None
        return await self.store.write_in_steps(
            persona_rows.create, self.personas.folder, new, boundary, self.leave_behind, fill
        )

    async def begins_anew(self, slug: str) -> bool:
        """Return whether a new persona of this slug does not see the rows that the log has of the slug.

        On a server's log, they may be of the same persona on another machine. The new persona sees them, unless this
        machine has deleted a persona of this slug.
        """
        return not self.store.server or await asyncio.to_thread(persona_files.was_moved_away, slug, self.deleted)

    async def archive(self, slug: str) -> None:
        """Archive a persona: the user can no longer switch to it; its files and messages stay."""
        _refuse_default(slug)
        await asyncio.to_thread(persona_files.archive, self.personas.folder, slug, self.clock.now())

    async def unarchive(self, slug: str) -> None:
        """Bring an archived persona back."""
        await asyncio.to_thread(persona_files.unarchive, self.personas.folder, slug)

    async def delete(self, slug: str) -> Path:
        """Move an archived persona's folder to the backups and return its new path; its messages and memory stay."""
        _refuse_default(slug)
        now = self.clock.now()
        return await asyncio.to_thread(persona_files.move_away, self.personas.folder, slug, self.deleted, now)

    async def set(self, slug: str, key: str, value: JsonValue) -> Change:
        """Set one value in the persona's file, or remove it with ``None``; the rest of the file stays as it is."""
        setting = settings.setting_of(key)
        if value is not None and not setting.accepts(value):
            raise SettingsError(f"{setting.misfit(value)}.")
        value = await asyncio.to_thread(self._checked_names, slug, key, value)
        if setting is _WINDOW:
            return Change(setting, await self.set_entry(slug, (key,), value), value)
        with _mendable():
            path = self.personas.changeable_settings_path(slug)
            before = await asyncio.to_thread(settings_file.change_key, path, key, value)
        change = Change(setting, before, value)
        if change.changed:
            self._remember(slug, key)
        return change

    async def set_entry(self, slug: str, keys: Sequence[str], value: JsonValue) -> JsonValue:
        """Set one entry of an object in the persona's file, or remove it with ``None``; return its old value.

        ``keys`` are the keys of the objects around the entry, then its own: ``("mcpServers", "time", "disabled")``.
        """
        with _mendable():
            path, now = self.personas.changeable_settings_path(slug), self.clock.now()
            before = await self.store.write_in_steps(persona_rows.change_entry, path, keys, value, slug, now)
        if not persona_rows.is_operation(before, value):
            self._remember(slug, ".".join(keys))
        return before

    async def set_entry_for_all(self, keys: Sequence[str], value: JsonValue) -> None:
        """Set one entry in ``config.jsonc``, or remove it with ``None``."""
        with _mendable():
            await asyncio.to_thread(settings_file.change_for_all, self.personas.config_file, keys, value)

    async def entries(self, slug: str | None, key: str) -> Mapping[str, JsonValue]:
        """Return the unchecked object ``key`` of the persona's own file, or of ``config.jsonc`` without a ``slug``."""
        read, path = settings_file.read_defaults, self.personas.config_file
        if slug is not None:
            read, path = settings_file.read_layer, self.personas.settings_path(slug)
        layer, warnings = await asyncio.to_thread(read, path)
        if not layer.readable:
            raise SettingsError(f"{warnings[0]}.")
        found = layer.values.get(key)
        return found if isinstance(found, dict) else {}

    def _remember(self, slug: str, changed: str) -> None:
        told = f"changed {changed}, which /undo does not revert; /settings edit does."
        self.unrecorded.add(slug, told, self.clock.now())

    async def open(self, slug: str) -> OpenSettings:
        """Open the persona's settings file for editing; an invalid file can be opened too."""
        path = self.personas.changeable_settings_path(slug)
        text = await asyncio.to_thread(settings_file.read_text, path)
        draft = text.removeprefix(BYTE_ORDER_MARK)
        return OpenSettings(slug, path, text, draft if draft.strip() else template(slug))

    async def save(self, opened: OpenSettings, draft: str) -> tuple[Change, ...] | None:
        """Replace the opened file by ``draft`` and return the changes; ``None`` if the file was changed meanwhile."""
        before, after = values_in(opened.text), _checked_values(opened.path.name, draft)
        made = (Change(each, before.get(each.key), after.get(each.key)) for each in SETTINGS)
        changes = [change for change in made if change.changed]
        for change in changes:
            await asyncio.to_thread(self._checked_names, opened.slug, change.setting.key, change.after)
        mark = BYTE_ORDER_MARK if opened.text.startswith(BYTE_ORDER_MARK) else ""
        text = mark + draft.removeprefix(BYTE_ORDER_MARK)
        replaced = await self.store.write_in_steps(
            persona_rows.replace_settings, opened.path, opened.text, text, opened.slug, self.clock.now()
        )
        if not replaced:
            return None
        for change in changes:
            if change.setting is not _WINDOW:
                self._remember(opened.slug, change.setting.key)
        return tuple(changes)

    def _checked_names(self, slug: str, key: str, value: JsonValue) -> JsonValue:
        """Return ``value``; names in it are normalised, and refused if the persona may not have them."""
        if key == "name" and isinstance(value, str) and value:
            return self.personas.check_name(slug, value)
        if key == "aliases" and isinstance(value, list):
            return [self.personas.check_name(slug, alias) for alias in value if isinstance(alias, str)]
        return value


def _refuse_default(slug: str) -> None:
    if slug == DEFAULT_PERSONA:
        raise PersonaError(f"{slug} is the default persona, so it cannot be archived or deleted, only changed.")


@contextmanager
def _mendable() -> Iterator[None]:
    try:
        yield
    except JsoncError as error:
        raise SettingsError(f"{error}. Nothing was changed; /settings edit opens the file to correct it.") from error


def state(persona: Persona, setting: Setting) -> SettingState:
    """Return the state of one setting of a persona."""
    value, default = setting.value_in(persona.settings), setting.value_in(persona.defaults)
    return SettingState(setting, value, persona.sources[setting.key], default, persona.default_sources[setting.key])


def _checked_values(name: str, draft: str) -> Mapping[str, JsonValue]:
    try:
        document = jsonc.parse_object(draft)
    except JsoncError as error:
        raise error.named(name) from error
    refused = misfits(Layer(name, document.values, document.lines))
    if refused:
        raise SettingsError("\n".join(f"{misfit}." for misfit in refused))
    return document.values
