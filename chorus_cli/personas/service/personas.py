"""Finding personas and reading their files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from chorus_cli.core.errors import PersonaError, UnknownPersonaError
from chorus_cli.core.json.jsonc import JsonValue
from chorus_cli.log.rules.speakers import Speakers
from chorus_cli.personas import files as persona_files
from chorus_cli.personas.files import CARD_FILE, SETTINGS_FILE, Fingerprint
from chorus_cli.personas.rules.persona import DEFAULT_PERSONA, Persona, checked_name, folded
from chorus_cli.settings import files as settings_file
from chorus_cli.settings.rules.table import Layer, Settings, resolve
from chorus_cli.storage.permissions import is_there

THIS_RUN = "this run"
"""The source of a value that holds until the end of the run."""


class Personas:
    """The personas of a folder; with ``copies``, only copies of settings change, in the folder ``copies`` returns."""

    def __init__(self, folder: Path, config_file: Path, copies: Callable[[], Path] | None = None) -> None:
        self.folder = folder
        self.config_file = config_file
        self._copies = copies
        self._copied: dict[str, Path] = {}
        self._loaded: dict[str, tuple[Fingerprint, Persona]] = {}
        self._for_this_run: dict[str, dict[str, JsonValue]] = {}

    def slugs(self) -> tuple[str, ...]:
        """Return the slugs of the personas in use."""
        return persona_files.slugs(self.folder)

    def archived(self) -> tuple[str, ...]:
        """Return the slugs of the archived personas."""
        return persona_files.slugs(self.folder, archived=True)

    def first(self) -> str:
        """Return the slug of the persona for the first start of Chorus."""
        known = self.slugs()
        if not known:
            raise PersonaError(
                f"There is no persona in use in {self.folder}. Move that folder away, and Chorus "
                "restores the shipped personas."
            )
        return DEFAULT_PERSONA if DEFAULT_PERSONA in known else known[0]

    def find(self, name: str) -> str:
        """Return the slug of the persona in use whose slug, name or alias is ``name``, or else begins with it."""
        known = self.slugs()
        called = self._called(name, known)
        if not called:
            self._refuse_archived(name)
        if found := self._the_one(name, called or self._begun(name, known)):
            return found
        raise UnknownPersonaError(name, known)

    def find_archived(self, name: str) -> str:
        """Return the slug of the archived persona whose slug, name or alias is ``name``, or else begins with it."""
        archived = self.archived()
        if found := self._the_one(name, self._called(name, archived) or self._begun(name, archived)):
            return found
        listing = f"Archived: {', '.join(archived)}." if archived else "None is archived."
        raise PersonaError(f"No archived persona is called {name!r}. {listing}")

    def archived_begun(self, name: str) -> list[str]:
        """Return the slugs of the archived personas with a slug, name or alias that begins with ``name``."""
        return self._begun(name, self.archived())

    def find_any(self, name: str) -> str:
        """Return the slug of the persona in use that ``name`` means, or of an archived persona of exactly that name."""
        is_archived = not self._called(name, self.slugs()) and self._called(name, self.archived())
        return self.find_archived(name) if is_archived else self.find(name)

    def called(self, name: str) -> str | None:
        """Return the slug of the one persona with exactly that slug, name or alias, else ``None``."""
        found = self._called(name, self.slugs()) or self._called(name, self.archived())
        return found[0] if len(found) == 1 else None

    def names_taken(self) -> frozenset[str]:
        """Return the names that a new folder cannot have: names in the folder, and names and aliases of personas."""
        called = [self._names(slug) for slug in (*self.slugs(), *self.archived())]
        beside = [entry.name for entry in self.folder.iterdir()] if self.folder.is_dir() else []
        return frozenset(beside).union(*called)

    def check_name(self, slug: str | None, name: str) -> str:
        """Return ``name`` normalised; refuse an invalid name, and the name of a persona other than ``slug``."""
        checked = checked_name(name)
        self._refuse_archived(checked, but=slug)
        owners = [owner for owner in self._called(checked, self.slugs()) if owner != slug]
        if owners:
            raise PersonaError(f"The name {checked} is taken: {self.load(owners[0]).name} already has it.")
        return checked

    def load(self, slug: str) -> Persona:
        """Return a persona as its files are now; the files are read again only if one of them has changed."""
        # The fingerprint is taken before the files are read, so that the next call notices a change made meanwhile.
        fingerprint = persona_files.fingerprint(self.folder, slug, self.config_file)
        known = self._loaded.get(slug)
        if known is not None and known[0] == fingerprint and slug not in self._copied:
            return known[1]
        if fingerprint is None:
            raise UnknownPersonaError(slug, self.slugs())
        own, own_warnings = settings_file.read_layer(self.settings_path(slug))
        defaults, default_warnings = settings_file.read_defaults(self.config_file)
        prompt, prompt_warnings = persona_files.read_prompt(self.folder, slug)
        files = (own, prompt, defaults)
        resolved = resolve([Layer(THIS_RUN, self._for_this_run.get(slug, {})), *files])
        without_own = resolve([defaults])
        documents, document_warnings = persona_files.documents(self.folder, slug)
        persona = Persona(
            slug=slug,
            settings=resolved.settings,
            documents=documents,
            sources=resolved.sources,
            defaults=without_own.settings,
            default_sources=without_own.sources,
            warnings=(*own_warnings, *prompt_warnings, *default_warnings, *resolved.warnings, *document_warnings),
            unreadable=tuple(layer.name for layer in files if not layer.readable),
            has_card=is_there(self.folder / slug / CARD_FILE),
            links=persona_files.links(self.folder, slug),
        )
        # The next attempt to read a file may succeed although the file has not changed.
        if not (persona.unreadable or document_warnings or slug in self._copied):
            self._loaded[slug] = fingerprint, persona
        return persona

    def set_for_this_run(self, slug: str, key: str, value: JsonValue) -> None:
        """Set a value that replaces the files' value until the end of this run; ``None`` removes it."""
        self._for_this_run[slug] = {**self._for_this_run.get(slug, {}), key: value}
        self._loaded.pop(slug, None)

    def forget_this_run(self, slug: str) -> None:
        """Remove all values that `set_for_this_run` has set for a persona."""
        self._for_this_run.pop(slug, None)
        self._loaded.pop(slug, None)

    def set_in_this_run(self, slug: str) -> Mapping[str, JsonValue]:
        """Return the values that `set_for_this_run` has set for a persona, by key."""
        return {key: value for key, value in self._for_this_run.get(slug, {}).items() if value is not None}

    def defaults(self) -> Settings:
        """Return the settings of a persona whose own files set nothing."""
        defaults, _ = settings_file.read_defaults(self.config_file)
        return resolve([defaults]).settings

    def own_settings(self, slug: str) -> Settings:
        """Return the settings of a persona's own file alone, without warnings; this is fast enough for lists."""
        own, _ = settings_file.read_layer(self.settings_path(slug))
        return resolve([own]).settings

    def speakers(self, slug: str) -> Speakers:
        """Return the names of a persona, which may be only in the log, and of its user, without reading documents."""
        own, _ = settings_file.read_layer(self.settings_path(slug))
        defaults, _ = settings_file.read_defaults(self.config_file)
        has_card = is_there(self.folder / slug / CARD_FILE)
        return Persona(slug, resolve([own, defaults]).settings, has_card=has_card).speakers

    def settings_path(self, slug: str) -> Path:
        """Return the path of a persona's settings file, or of its copy once `changeable_settings_path` has made one."""
        return self._copied.get(slug) or self.folder / slug / SETTINGS_FILE

    def changeable_settings_path(self, slug: str) -> Path:
        """Return the path of the settings file to change; with ``copies``, the first call copies the persona's file."""
        if self._copies is not None and slug not in self._copied:
            copy = self._copies() / slug / SETTINGS_FILE
            settings_file.copied(self.settings_path(slug), copy)
            self._copied[slug] = copy
        return self.settings_path(slug)

    def _called(self, name: str, slugs: Sequence[str]) -> list[str]:
        """Return the slugs of personas with exactly that name; a slug takes precedence over names and aliases."""
        wanted = folded(name)
        return [wanted] if wanted in slugs else [slug for slug in slugs if wanted in self._names(slug)]

    def _begun(self, name: str, slugs: Sequence[str]) -> list[str]:
        wanted = folded(name)
        return [slug for slug in slugs if wanted and any(known.startswith(wanted) for known in self._names(slug))]

    def _the_one(self, name: str, meant: Sequence[str]) -> str:
        """Return the only slug that a name means, empty if there is none; refuse a name that means several."""
        *others, last = meant or [""]
        if others:
            raise PersonaError(f"{name!r} is ambiguous: {', '.join(others)} or {last}.")
        return last

    def _names(self, slug: str) -> Collection[str]:
        chosen = self.own_settings(slug)
        return {slug, folded(chosen.name), *map(folded, chosen.aliases)} - {""}

    def _refuse_archived(self, name: str, but: str | None = None) -> None:
        found = [slug for slug in self._called(name, self.archived()) if slug != but]
        if found:
            raise PersonaError(f"{name} is archived. /persona unarchive {found[0]} brings it back.")
