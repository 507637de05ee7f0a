"""How sessions are named: by the local day and what they are about, ``2026-02-12_auth-refactor``.

The name of a session is also that of its file, so whatever does not fit the grammar is never used as one.
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
    """Return whether ``text`` may name a session, and so a file."""
    return len(text) <= _LONGEST_ID and _ID.fullmatch(text) is not None


def slug(description: str, first_message: str) -> str:
    """Return what stands behind the day: the description in small letters of ASCII, with hyphens for spaces.

    Where nothing is left of it, six characters of a hash of the first message.
    """
    letters = unicodedata.normalize("NFKD", description).encode("ascii", "ignore").decode().lower()
    joined = _OTHER_SIGNS.sub("", _BLANKS_AND_HYPHENS.sub("-", letters))
    short = _BLANKS_AND_HYPHENS.sub("-", joined).strip("-")[:LONGEST_SLUG].strip("-")
    return short or blake2b(first_message.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_DIGITS]


def stem(now: datetime, slug: str) -> str:
    """Return the name that a session of the local moment ``now`` has, unless another has it already."""
    return f"{now:%Y-%m-%d}_{slug}"


def candidates(stem: str) -> Iterator[str]:
    """Yield the names that a session may have, the nicest first: numbered from the second on."""
    yield stem
    yield from (f"{stem}-{number}" for number in count(2))


def meant(typed: str, known: Iterable[str]) -> list[str]:
    """Return the names that ``typed`` may mean, in order: the one that it is, else those that begin with it.

    If none does, those count whose words behind the date begin so: people remember the words.
    """
    wanted = typed.strip().lower()
    names = sorted(known)
    if wanted in names or not wanted:
        return [wanted] if wanted else []
    beginning = [name for name in names if name.startswith(wanted)]
    return beginning or [name for name in names if name.partition("_")[2].startswith(wanted)]
