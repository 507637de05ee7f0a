"""The arguments of commands about the memory: items, types, lists, and texts to remember."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from chorus_cli.core.errors import CommandError, MemoryItemError
from chorus_cli.core.text.cutting import quoted
from chorus_cli.core.text.phrases import shortened
from chorus_cli.core.text.surrogates import cleaned_input
from chorus_cli.framework.arguments import NUMBER, TEXT, Candidate, Parameter
from chorus_cli.memory.rules.items import ItemType, Tier, checked_tier, checked_type
from chorus_cli.services import Services

_FORCE = "--force"
_PREFIX = re.compile(r"\s*([A-Za-z_-]+(?: [A-Za-z]+)?)\s*:\s*(?P<text>.*)", re.DOTALL)
_MEANINGS = {
    ItemType.TASK: "something to be done",
    ItemType.CODE: "a piece of code",
    ItemType.ERROR: "an error message",
    ItemType.TEST_RESULT: "the result of tests",
    ItemType.PRD_SECTION: "a part of a document",
    Tier.HOT: "in every request",
    Tier.WARM: "in a request that refers to it",
    Tier.COLD: "in no request",
    Tier.ARCHIVED: "put away by a flash save",
}


@dataclass(frozen=True, slots=True)
class AskedItems:
    """A page of items, from 1, of one tier or of one type, or of all."""

    tier: Tier | None = None
    item_type: ItemType | None = None
    page: int = 1


@dataclass(frozen=True, slots=True)
class Note:
    """A text to remember, and its type."""

    item_type: ItemType
    text: str


def cleaned(text: str) -> str:
    """Return a typed text in the form in which it is stored."""
    return cleaned_input(text)[0]


def _asked_items(text: str, _now: datetime) -> AskedItems:
    *words, last = text.split()
    page = int(last) if re.fullmatch(r"[0-9]{1,6}", last) else None
    if page == 0:
        raise CommandError("Page numbers start at 1.")
    name = " ".join([*words, *([last] if page is None else [])])
    if not name:
        return AskedItems(page=page or 1)
    try:
        return AskedItems(tier=checked_tier(name), page=page or 1)
    except MemoryItemError:
        pass
    try:
        return AskedItems(item_type=checked_type(name), page=page or 1)
    except MemoryItemError:
        known = ", ".join(word.lower() for word in (*Tier, *ItemType))
        raise CommandError(f"{quoted(name)} is neither a tier nor a type. Choose one of: {known}.") from None


def _type(text: str, _now: datetime) -> ItemType:
    return checked_type(text)


def _note(text: str, _now: datetime) -> Note:
    """Parse a text that may begin with a type and a colon."""
    match = _PREFIX.fullmatch(text)
    try:
        if match is not None:
            return Note(checked_type(match[1]), match["text"])
    except MemoryItemError:
        pass
    return Note(ItemType.TASK, text)


def _force(text: str, _now: datetime) -> bool:
    if text.casefold() != _FORCE:
        raise CommandError(f"/memory flash takes only {_FORCE}, not {quoted(text)}.")
    return True


def _named(names: Sequence[ItemType | Tier], end: str = "") -> list[Candidate]:
    return [Candidate(name.lower() + end, _MEANINGS[name]) for name in names]


def _items(services: Services, text: str) -> Sequence[Candidate]:
    sign = text[: text.startswith("#")]
    heads = services.memory.offers(services.focus.slug)
    return [Candidate(f"{sign}{head.id}", f"{head.item_type}: {shortened(head.beginning)}") for head in heads]


ITEM = replace(NUMBER, name="item", help="the number of a memory item, such as 3 or #3", complete=_items)
TYPE = Parameter(
    "type",
    _type,
    f"one of {', '.join(each.lower() for each in ItemType)}",
    lambda _services, _text: _named([*ItemType]),
)
TIER_OR_TYPE = Parameter(
    "tier or type",
    _asked_items,
    "a tier (hot, warm, cold, archived) or a type such as task; a number at the end is a page",
    lambda _services, _text: _named([*Tier, *ItemType]),
)
CONTENT = replace(TEXT, help="the rest of the line, as typed")
NOTE = Parameter(
    "type: text",
    _note,
    "the text to remember; a type and a colon may stand before it, otherwise it is a task",
    lambda _services, _text: _named([*ItemType], end=": "),
)
FORCE = Parameter(
    _FORCE,
    _force,
    "even if the next request has room",
    lambda _services, _text: (Candidate(_FORCE, "even if the next request has room"),),
)
CHECKPOINT = replace(NUMBER, name="checkpoint", help="the number of a checkpoint, such as 3")
