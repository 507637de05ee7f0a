"""A persona as its files describe it."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.settings.rules.table import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_PERSONA = "chorus"


class Document(NamedTuple):
    """A text that is part of every prompt of a persona."""

    name: str
    content: str


class Persona(NamedTuple):
    """A character to talk to, with its settings and documents.

    ``slug`` is the folder's name and the key of everything stored. ``sources`` holds the source of each setting.
    ``defaults`` and ``default_sources`` apply where its own file sets nothing. ``warnings`` are sentences about its
    files that the user should read once; ``unreadable`` are the settings files that could not be read.
    One that ``has_card`` was made of a character card, whose macros are replaced when its texts are sent.
    """

    slug: str
    settings: Settings
    documents: tuple[Document, ...] = ()
    sources: Mapping[str, str] = MappingProxyType({})
    defaults: Settings = Settings()
    default_sources: Mapping[str, str] = MappingProxyType({})
    warnings: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    has_card: bool = False

    @property
    def name(self) -> str:
        """The name to show."""
        return self.settings.name or self.slug
