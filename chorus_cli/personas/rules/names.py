"""Names of personas: validation, comparison, and the folder names made of them."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from chorus_cli.core import limits
from chorus_cli.core.errors import PersonaError

if TYPE_CHECKING:
    from collections.abc import Collection

LONGEST_NAME = limits.PERSONA_NAME.most
COMMAND_WORDS = frozenset(
    {
        *("list", "switch", "new", "edit", "archive", "unarchive", "delete", "info"),
        *("import", "export", "greeting"),
    }
)
"""Commands after ``/persona``, which cannot be names of personas."""

_USER = "human"
_DEVICES = re.compile(r"con|prn|aux|nul|com[0-9]|lpt[0-9]")
FORBIDDEN = '/\\:[]<>"|?*'
_NAMELESS = "persona"


def checked_name(name: str) -> str:
    """Return a display name or an alias, stripped and normalised.

    Raises:
        PersonaError: it is empty, too long, reserved, or has characters unfit for a transcript or a folder.
    """
    checked = unicodedata.normalize("NFC", name.strip())
    problem = _problem(checked)
    if problem:
        raise PersonaError(f"A persona cannot be called {checked[:LONGEST_NAME]!r}: {problem}.")
    return checked


def folded(name: str) -> str:
    """Return a name in the form for comparison: case, blanks and Unicode composition do not count."""
    return " ".join(unicodedata.normalize("NFC", name).casefold().split())


def slug_of(name: str, taken: Collection[str]) -> str:
    """Return the name of a new folder: the ASCII letters and digits of ``name``, with a number if need be.

    ``taken`` holds the existing folders and all other names and aliases.
    """
    ascii_letters = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().casefold()
    stem = re.sub(r"[^a-z0-9]+", "-", ascii_letters).strip("-")[: LONGEST_NAME - 4].strip("-") or _NAMELESS
    candidates = (stem, *(f"{stem}-{number}" for number in range(2, len(taken) + 4)))
    return next(each for each in candidates if each not in taken and not _is_reserved(each))


def _problem(name: str) -> str:
    key = folded(name)
    if not key:
        return "a name needs at least one letter or digit"
    if len(name) > LONGEST_NAME:
        return f"a name has at most {LONGEST_NAME} characters, this one has {len(name)}"
    if not name.isprintable():
        return "a name contains no control or invisible characters"
    if any(sign in FORBIDDEN for sign in name):
        return f"a name contains none of the characters {' '.join(FORBIDDEN)}"
    if not any(map(str.isalnum, name)):
        return "a name needs at least one letter or digit"
    if key == _USER:
        return "transcripts use that name for you"
    first_word, *_ = key.split()
    if first_word in COMMAND_WORDS:
        return f"/persona {first_word} is a command"
    if _DEVICES.fullmatch(key):
        return "Windows reserves that name for a device"
    return ""


def _is_reserved(slug: str) -> bool:
    return slug in COMMAND_WORDS or _DEVICES.fullmatch(slug) is not None
