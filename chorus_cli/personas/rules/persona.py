"""Personas as their files describe them, checks of their names, and the target of a message."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import NamedTuple

from chorus_cli.core import limits
from chorus_cli.core.errors import PersonaError
from chorus_cli.log.rules.speakers import Speakers
from chorus_cli.models.rules.choice import ModelChoice
from chorus_cli.settings.rules.table import Settings

DEFAULT_PERSONA = "chorus"


class Document(NamedTuple):
    """A text that is part of every prompt of a persona."""

    name: str
    content: str


class Persona(NamedTuple):
    """A character to talk to, with its settings and documents; ``slug`` is its folder's name and its key everywhere.

    ``sources`` say where each setting comes from; ``defaults`` are the settings without the persona's own files.
    ``unreadable`` names settings files, or the prompt, that cannot be read. A persona made from a card ``has_card``.
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
    links: tuple[str, ...] = ()

    @property
    def notices(self) -> tuple[str, ...]:
        """The warnings, and sentences about links to files outside the persona's folder."""
        return (*self.warnings, *self.links)

    @property
    def name(self) -> str:
        """The name to show."""
        return self.settings.name or self.slug

    @property
    def speakers(self) -> Speakers:
        """The names of the persona and, for a persona from a card, of the user."""
        return Speakers(self.name, " ".join(self.settings.user_name.split())) if self.has_card else Speakers(self.name)


class Target(NamedTuple):
    """The persona, thread and model of a message; the next run resumes this thread unless the target ``is_aside``.

    If ``thread_id`` is 0, the message opens a thread of its own, which is closed from the start.
    """

    persona: Persona
    thread_id: int
    choice: ModelChoice
    thread_number: int = 0
    is_aside: bool = False

    def thread_label(self, slug: str) -> str:
        """Return ``thread #3``, or ``thread #3 of Frodo`` if ``slug`` is another persona."""
        return f"thread #{self.thread_number}" + ("" if self.persona.slug == slug else f" of {self.persona.name}")


LONGEST_NAME = limits.PERSONA_NAME.most
COMMAND_WORDS = frozenset(
    {*("list", "switch", "new", "edit", "archive", "unarchive", "delete", "info"), *("import", "export", "greeting")}
)
"""Commands after ``/persona``, which cannot be names of personas."""

_USER = "human"
_DEVICES = r"con|prn|aux|nul|com[0-9]|lpt[0-9]"
FORBIDDEN = '/\\:[]<>"|?*'
_NAMELESS = "persona"


def checked_name(name: str) -> str:
    """Return a name or alias, stripped and in NFC; refuse a name that transcripts, commands or folders cannot have."""
    checked = unicodedata.normalize("NFC", name.strip())
    key = folded(checked)
    first_word = key.partition(" ")[0]
    problems = {
        f"a name has at most {LONGEST_NAME} characters, this one has {len(checked)}": len(checked) > LONGEST_NAME,
        "a name contains no control or invisible characters": not checked.isprintable(),
        f"a name contains none of the characters {' '.join(FORBIDDEN)}": any(sign in FORBIDDEN for sign in checked),
        "a name needs at least one letter or digit": not any(map(str.isalnum, checked)),
        "transcripts use that name for you": key == _USER,
        f"/persona {first_word} is a command": first_word in COMMAND_WORDS,
        "Windows reserves that name for a device": re.fullmatch(_DEVICES, key) is not None,
    }
    if problem := next((sentence for sentence, is_so in problems.items() if is_so), ""):
        raise PersonaError(f"A persona cannot be called {checked[:LONGEST_NAME]!r}: {problem}.")
    return checked


def folded(name: str) -> str:
    """Return a name for comparisons: capitals, additional blanks and Unicode composition make no difference."""
    return " ".join(unicodedata.normalize("NFC", name).casefold().split())


def slug_of(name: str, taken: Collection[str]) -> str:
    """Return the name of a new folder: ``name`` in ASCII letters, digits and hyphens, with a number if taken."""
    ascii_letters = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().casefold()
    stem = re.sub(r"[^a-z0-9]+", "-", ascii_letters).strip("-")[: LONGEST_NAME - 4].strip("-") or _NAMELESS
    candidates = (stem, *(f"{stem}-{number}" for number in range(2, len(taken) + 4)))
    free = (each for each in candidates if each not in taken and each not in COMMAND_WORDS)
    return next(each for each in free if not re.fullmatch(_DEVICES, each))
