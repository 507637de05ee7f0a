"""Keys of memory items: words in the first line of an item by which a message calls it.

    Keys: White Tower, Mirador; with: king, queen
    The White Tower is the seat of the kings.

A message calls the item if it has one of the keys and, where there are some behind ``with:``, one of those too. Case
does not count. A key is found at the beginning of a word, which may go on with two more letters, as in a plural; in
scripts that are written without blanks it is found anywhere.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

FIRST_WORD = "Keys"
"""The word that the first line begins with."""

_LEAD = f"{FIRST_WORD}: "
_WITH = "; with: "
_MOST_KEYS = 100
_SEPARATORS = re.compile(r"[,;\s]+")


class Keys(NamedTuple):
    """The keys of an item; where there are ``others``, a message must have one of each."""

    keys: tuple[str, ...]
    others: tuple[str, ...] = ()

    def call(self, folded_text: str) -> bool:
        """Return whether a text, in folded case, has the keys."""
        return _has_any(folded_text, self.keys) and (not self.others or _has_any(folded_text, self.others))


def with_keys(keys: Iterable[str], others: Iterable[str], content: str) -> str:
    """Return a content under the line of its keys; without keys it has none."""
    first, second = _cleaned(keys), _cleaned(others)
    if not first:
        return content
    return f"{_LEAD}{', '.join(first)}{_WITH + ', '.join(second) if second else ''}\n{content}"


def keys_of(content: str) -> Keys | None:
    """Return the keys in the first line of a content, ``None`` if it names none."""
    if not content.startswith(_LEAD):
        return None
    first, _, others = content.partition("\n")[0][len(_LEAD) :].partition(_WITH)
    keys = _split(first)
    return Keys(keys, _split(others)) if keys else None


def _cleaned(keys: Iterable[str]) -> Sequence[str]:
    """Return keys without blanks around them and without the signs that part keys, each once."""
    cleaned = (" ".join(_SEPARATORS.sub(" ", key).split()) for key in keys)
    return list(dict.fromkeys(key for key in cleaned if key))[:_MOST_KEYS]


def _split(keys: str) -> tuple[str, ...]:
    found = (" ".join(key.split()) for key in keys.split(",", _MOST_KEYS)[:_MOST_KEYS])
    return tuple(key for key in found if key)


def _has_any(folded_text: str, keys: Iterable[str]) -> bool:
    return any(_is_in(key.casefold(), folded_text) for key in keys)


def _is_in(key: str, text: str) -> bool:
    position = text.find(key)
    while position >= 0:
        end = position + len(key)
        begins_word = not (_is_cased(key[0]) and position and _is_cased(text[position - 1]))
        if begins_word and not (_is_cased(key[-1]) and all(map(_is_cased, text[end : end + 3].ljust(3)))):
            return True
        position = text.find(key, position + 1)
    return False


def _is_cased(character: str) -> bool:
    """Return whether a character is part of words that blanks set apart."""
    return character.isdigit() or character.lower() != character.upper()
