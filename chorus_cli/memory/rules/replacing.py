"""Which text may replace which memory item, and which texts have nearly the same words."""

from __future__ import annotations

import re
from collections import Counter

from chorus_cli.core.text.apart import APART, set_apart
from chorus_cli.memory.rules.items import Item, Source
from chorus_cli.memory.rules.recall import keys_of

NEAR_SHARE = 0.8
"""The share of the words of the longer text that near texts have in common."""
LONGEST_COMPARED = 2_000
"""Characters of the longest text that is compared with others."""

_READ = {Source.TOOL: "a tool's", Source.FILE: "a file's"}


def words_of(text: str) -> Counter[str]:
    """Return the words of a text in lower case, with their numbers; an ideograph is a word."""
    return Counter(re.findall(r"\w+", set_apart(text).replace(APART, " ").casefold()))


def shared(words: Counter[str], others: Counter[str]) -> float:
    """Return the share of the words of the longer text that both texts have, from 0 to 1."""
    return (words & others).total() / max(words.total(), others.total(), 1)


def source_of_successor(source: Source, old: Item) -> Source:
    """Return the source of the successor of an item; ``source`` is that of the new text.

    If a model rewords a text of a file, a tool or an import, the successor keeps that source.
    """
    return old.source if source is Source.MODEL and old.source is not Source.YOU else source


def why_kept(old: Item, source: Source) -> str:
    """Return why a text of this source must not replace an item, as a sentence for the model; empty if it may."""
    if source is Source.YOU:
        return ""
    user = f"Only the user can replace it, with /memory replace {old.id} TEXT."
    if old.pinned:
        return f"The user pinned memory item #{old.id}, so nothing was changed. {user}"
    if source in _READ and old.source is Source.YOU:
        return (
            f"Memory item #{old.id} has the user's own words, and the new text may be {_READ[source]}, "
            f"so nothing was changed. {user}"
        )
    return ""


def keyed_as(old: str, text: str) -> str:
    """Return a text below the line of keys of the content that it replaces, unless it has keys of its own."""
    if keys_of(old) is None or keys_of(text) is not None:
        return text
    first_line, *_ = old.partition("\n")
    return f"{first_line}\n{text}"
