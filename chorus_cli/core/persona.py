"""A persona as its files describe it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from chorus_cli.core.settings import Settings

DEFAULT_PERSONA = "chorus"


@dataclass(frozen=True, slots=True)
class Document:
    """A text that a persona always has at hand."""

    name: str
    content: str


@dataclass(frozen=True, slots=True)
class Persona:
    """Somebody to talk to.

    ``slug`` is the folder's name and the key of everything stored. ``sources`` says per setting where its value comes
    from; ``warnings`` are sentences about its files that the user should read once.
    """

    slug: str
    settings: Settings
    documents: tuple[Document, ...] = ()
    sources: Mapping[str, str] | None = None
    warnings: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name to show."""
        return self.settings.name or self.slug
