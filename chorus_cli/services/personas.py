"""Finding personas and reading their files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chorus_cli.core import settings
from chorus_cli.core.errors import UnknownPersonaError
from chorus_cli.core.persona import Persona
from chorus_cli.storage import persona_files, settings_file

if TYPE_CHECKING:
    from pathlib import Path

    from chorus_cli.core.jsonc import JsonValue


@dataclass(frozen=True, slots=True)
class Personas:
    """The personas of a folder, with the defaults that ``config.jsonc`` gives to all of them."""

    folder: Path
    config_file: Path

    def slugs(self) -> tuple[str, ...]:
        """Return the names of the personas' folders."""
        return persona_files.slugs(self.folder)

    def find(self, name: str) -> str:
        """Return the slug of the persona called ``name``: its folder, its display name or an alias, in any case.

        Raises:
            UnknownPersonaError: nobody is called that.
        """
        known = self.slugs()
        wanted = name.strip().casefold()
        if wanted in known:
            return wanted
        for slug in known:
            chosen = self.load(slug).settings
            if wanted in {chosen.name.casefold(), *(alias.casefold() for alias in chosen.aliases)}:
                return slug
        raise UnknownPersonaError(name, known)

    def load(self, slug: str) -> Persona:
        """Read a persona's files as they are now, so that an edit takes effect on the next turn.

        Raises:
            UnknownPersonaError: the folder is gone.
        """
        if slug not in self.slugs():
            raise UnknownPersonaError(slug, self.slugs())
        own, own_warnings = settings_file.read_layer(self.settings_path(slug))
        defaults, default_warnings = settings_file.read_defaults(self.config_file)
        resolved = settings.resolve([own, defaults])
        documents, document_warnings = persona_files.documents(self.folder, slug)
        return Persona(
            slug=slug,
            settings=resolved.settings,
            documents=documents,
            sources=resolved.sources,
            warnings=(*own_warnings, *default_warnings, *resolved.warnings, *document_warnings),
        )

    def settings_path(self, slug: str) -> Path:
        """Return the file that holds a persona's settings."""
        return persona_files.settings_path(self.folder, slug)

    def change(self, slug: str, key: str, value: JsonValue) -> None:
        """Set one setting of a persona in its file.

        Raises:
            SettingsError: the setting does not take this value, or the file cannot be written.
            JsoncError: the file is not valid JSONC; it is left as it is.
        """
        settings_file.change_key(self.settings_path(slug), key, settings.check(key, value))
