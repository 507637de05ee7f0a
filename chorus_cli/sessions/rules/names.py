"""Names of sessions: the local date and a description, ``2026-02-12_auth-refactor``.

The name of a session is also that of its file, so only text that fits the grammar is used as one.
"""

from __future__ import annotations

import re
import unicodedata
from hashlib import blake2b
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

LONGEST_SLUG = 40

_HASH_DIGITS = 6
_LONGEST_ID = 80
_ID = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}_[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
_BLANKS_AND_HYPHENS = re.compile(r"[\s-]+")
_OTHER_SIGNS = re.compile(r"[^a-z0-9-]")


def is_session_id(text: str) -> bool:
    """Return whether ``text`` is a valid name of a session, and so of a file."""
    return len(text) <= _LONGEST_ID and _ID.fullmatch(text) is not None


def slug(description: str, first_message: str) -> str:
    """Return the part of a name after the date: the description in lower-case ASCII, with hyphens for spaces.

    If nothing is left of it, six characters of a hash of the first message.
    """
    letters = unicodedata.normalize("NFKD", description).encode("ascii", "ignore").decode().lower()
    joined = _OTHER_SIGNS.sub("", _BLANKS_AND_HYPHENS.sub("-", letters))
    short = _BLANKS_AND_HYPHENS.sub("-", joined).strip("-")[:LONGEST_SLUG].strip("-")
    return short or blake2b(first_message.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_DIGITS]


def stem(now: datetime, slug: str) -> str:
    """Return the name of a session at the local time ``now``, before a number is added."""
    return f"{now:%Y-%m-%d}_{slug}"


def candidates(stem: str) -> Iterator[str]:
    """Yield the stem and then the stem with numbers from 2 on."""
    yield stem
    yield from (f"{stem}-{number}" for number in count(2))


def meant(typed: str, known: Iterable[str]) -> list[str]:
    """Return the names that match ``typed``, sorted: the equal one, else those that begin with it.

    If there are none, those in which the part after the date begins with it: people remember the words.
    """
    wanted = typed.strip().lower()
    names = sorted(known)
    if wanted in names or not wanted:
        return [wanted] if wanted else []
    beginning = [name for name in names if name.startswith(wanted)]
    return beginning or [name for name in names if name.partition("_")[2].startswith(wanted)]
