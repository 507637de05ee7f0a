"""Translates statements that are written for SQLite into the SQL of PostgreSQL."""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

LOCK = 0x63686F72  # "chor"
"""The first key of the advisory lock that a writing transaction holds, so that ids become visible in their order."""

LOCKING = f"SELECT pg_advisory_xact_lock({LOCK}, hashtext(current_schema()))"

RUNS = 0x72756E73  # "runs"
"""The first key of the advisory lock that a run holds while it is connected; the second is `key_of` the run."""

_WORDS = re.compile(
    r"""
    (?P<text>'(?:[^']|'')*')
    | (?P<index>\ (?:INDEXED\ BY\ \w+|NOT\ INDEXED)\b)
    | (?P<join>\bCROSS\ JOIN\b)
    | (?P<plus>(?<=[\s(])\+(?=[a-z]))
    | (?P<is>\bIS\ (?P<not>NOT\ )?(?!NULL\b|NOT\b|DISTINCT\b|TRUE\b|FALSE\b))
    | (?P<name>(?<!:):(?P<named>[a-z_]+))
    | (?P<mark>\?)
    | (?P<percent>%)
    | (?P<flag>\bsuperseded(?=\ AND\b))
    """,
    re.VERBOSE,
)
_BESIDE = re.compile(r"\b(?:outbox|input_history|message_vectors)\b")
_VALUE = re.compile(r"\s*(?:SELECT value FROM|DELETE FROM|INSERT INTO) meta\b")


class Statement(NamedTuple):
    """A translated statement: ``is_beside`` if its table is in the file beside, ``of_meta`` if its key decides that."""

    sql: str
    is_beside: bool
    of_meta: bool


@lru_cache(maxsize=2_000)
def translated(sql: str) -> Statement:
    """Remove hints for SQLite's planner; translate ``IS``, ``superseded`` as a condition, and the marks of values."""
    is_beside = bool(_BESIDE.search(sql))
    return Statement(_WORDS.sub(_word, sql), is_beside, bool(_VALUE.match(sql)))


def _word(found: re.Match[str]) -> str:
    match found.lastgroup:
        case "text":
            return found["text"].replace("%", "%%")
        case "join":
            return "JOIN"
        case "not" | "is":
            return "IS DISTINCT FROM " if found["not"] else "IS NOT DISTINCT FROM "
        case "named" | "name":
            return f"%({found['named']})s"
        case "mark":
            return "%s"
        case "percent":
            return "%%"
        case "flag":
            return "superseded = 1"
        case _:
            return ""


def key_of(run: str) -> int:
    """Return the second key of a run's advisory lock (see `RUNS`)."""
    return int.from_bytes(blake2b(run.encode(errors="replace"), digest_size=4).digest()) >> 1
