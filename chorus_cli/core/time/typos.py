"""Slips of the keyboard in what was meant to be a time: ``yesteday``, ``3 dyas``."""

from __future__ import annotations

import re

from chorus_cli.core.time.dates import MONTHS
from chorus_cli.core.time.moments import WEEKDAYS
from chorus_cli.core.time.number_words import NUMBER_WORDS

_WORD = re.compile(r"(?<![^\W_])[^\W\d_]{3,}(?![^\W_])")
_MOST_WORDS = 8
_ALIKE = 0.75
_KNOWN = (
    *("since", "from", "for", "over", "within", "during", "the", "last", "past", "previous", "ago", "back", "and"),
    *("week", "weeks", "day", "days", "hour", "hours", "minute", "minutes", "second", "seconds"),
    *("fortnight", "fortnights", "half", "couple", "few", "today", "yesterday", "before", "this", "morning", "night"),
    *("midnight", *WEEKDAYS, *MONTHS, *NUMBER_WORDS),
)


def mended(words: str) -> str | None:
    """Return casefolded words with known ones for those that are nearly so; ``None`` if that changes nothing."""
    if len(words.split()) > _MOST_WORDS:
        return None
    better = _WORD.sub(lambda found: _nearest(found[0]), words)
    return None if better == words else better


def _nearest(word: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - most times have no slip in them

    return word if word in _KNOWN else next(iter(get_close_matches(word, _KNOWN, 1, _ALIKE)), word)
