"""A character card: its fields, read from the JSON of any version of the specification.

Version 1 has six texts at the top; versions 2 and 3 hold them and more under ``data``. Any field may be missing or of
another type and is then empty.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chorus_cli.core.json.values import items, line, record, records, text
from chorus_cli.core.text.phrases import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from chorus_cli.core.json.values import Record

OLD_FIELDS = ("name", "description", "personality", "scenario", "first_mes", "mes_example")
"""The fields of version 1, which a card of version 2 may have at the top too, for old programs."""
OWN = "chorus"
"""The key of Chorus among the extensions of a card, and of an entry of its lorebook."""

_FEWEST_OLD_FIELDS = 4
_NEWEST = 3.0
_EMBEDDED = "embeded://"
_SPECIFICATION = re.compile(r"chara_card_v([0-9]{1,3})")
_DECORATOR = re.compile(r"@@+([a-z_]+)(?: (.*))?")
_MOST_ENTRIES = 10_000
_MOST_GREETINGS = 1_000


@dataclass(frozen=True, slots=True)
class LoreEntry:
    """An entry of a lorebook: its keys, of which ``others`` must be met too, and its content.

    A ``constant`` one is always sent. ``document`` names the document of a persona that Chorus has exported so.
    """

    keys: tuple[str, ...]
    content: str
    others: tuple[str, ...] = ()
    constant: bool = False
    document: str = ""


@dataclass(frozen=True, slots=True)
class Card:
    """The fields of a card; ``greetings`` are the first message and the alternatives to it.

    ``notes`` are sentences for the user about unused parts. ``summary`` is the line about the persona that Chorus
    has exported.
    """

    version: int
    name: str
    nickname: str = ""
    description: str = ""
    personality: str = ""
    scenario: str = ""
    greetings: tuple[str, ...] = ()
    examples: str = ""
    system_prompt: str = ""
    last_instructions: str = ""
    creator: str = ""
    creator_notes: str = ""
    lore: tuple[LoreEntry, ...] = ()
    notes: tuple[str, ...] = ()
    summary: str = ""

    @property
    def char(self) -> str:
        """The name that stands for ``{{char}}``."""
        return self.nickname or self.name


def fields_of(value: object) -> Record | None:
    """Return the fields of a card from its JSON, ``None`` if it is no card."""
    top = record(value)
    if isinstance(top.get("spec"), str) and _SPECIFICATION.fullmatch(str(top["spec"])):
        return record(top.get("data")) or None
    is_old = isinstance(top.get("name"), str) and sum(key in top for key in OLD_FIELDS) >= _FEWEST_OLD_FIELDS
    return top if is_old else None


def card_of(value: object) -> Card | None:
    """Return the card of its JSON, ``None`` if that is no card."""
    data = fields_of(value)
    if data is None:
        return None
    top = record(value)
    lore, notes = _lore(data)
    greetings = (data.get("first_mes"), *items(data.get("alternate_greetings"))[:_MOST_GREETINGS])
    return Card(
        version=3 if top.get("spec") == "chara_card_v3" else 2 if "spec" in top else 1,
        name=line(data.get("name")),
        nickname=line(data.get("nickname")),
        description=_text(data, "description"),
        personality=_text(data, "personality"),
        scenario=_text(data, "scenario"),
        greetings=tuple(filter(None, (text(greeting).strip() for greeting in greetings))),
        examples=_text(data, "mes_example"),
        system_prompt=_text(data, "system_prompt"),
        last_instructions=_text(data, "post_history_instructions"),
        creator=line(data.get("creator")),
        creator_notes=_creator_notes(data),
        lore=lore,
        notes=(*_version_notes(top), *notes),
        summary=line(record(record(data.get("extensions")).get(OWN)).get("description")),
    )


def icon_entry(value: object) -> str:
    """Return the entry of a CHARX archive that holds the main icon, from the card's JSON; empty if it names none."""
    icons = [each for each in records((fields_of(value) or {}).get("assets")) if each.get("type") == "icon"]
    chosen = next((icon for icon in icons if icon.get("name") == "main"), icons[0] if icons else {})
    address = chosen.get("uri")
    is_entry = isinstance(address, str) and address.startswith(_EMBEDDED)
    return str(address).removeprefix(_EMBEDDED) if is_entry else ""


def _text(data: Record, key: str) -> str:
    return text(data.get(key)).strip()


def _creator_notes(data: Record) -> str:
    in_english = text(record(data.get("creator_notes_multilingual")).get("en")).strip()
    return in_english or _text(data, "creator_notes")


def _version_notes(top: Record) -> list[str]:
    """Return a sentence if the card is of a newer version than any that is known here."""
    found = _SPECIFICATION.fullmatch(str(top.get("spec")))
    try:
        version = max(float(line(top.get("spec_version")) or 0), float(found[1]) if found else 0)
    except ValueError:
        return []
    if not math.isfinite(version) or version <= _NEWEST:
        return []
    return [f"It is of version {version:g} of the specification; the newest one known here is {_NEWEST:g}."]


def _lore(data: Record) -> tuple[tuple[LoreEntry, ...], list[str]]:
    """Return the entries of the lorebook in their order, and sentences about those that are not used."""
    found = records(record(data.get("character_book")).get("entries"))
    used = [entry for entry in found[:_MOST_ENTRIES] if _is_enabled(entry) and text(entry.get("content")).strip()]
    entries = [entry for entry in map(_entry, sorted(used, key=_order)) if entry.content]
    notes = []
    if off := len(found) - len(used):
        notes.append(f"{counted(off, 'entry', 'entries')} of its lorebook {'is' if off == 1 else 'are'} off or empty.")
    if patterns := sum(entry.get("use_regex") is True for entry in used):
        keys = "keys that are patterns, which are read as words."
        notes.append(f"{counted(patterns, 'entry has', 'entries have')} {keys}")
    return tuple(entries), notes


def _is_enabled(entry: Record) -> bool:
    decorators, _ = _decorated(text(entry.get("content")))
    is_off = "dont_activate" in decorators and "activate" not in decorators
    return entry.get("enabled") is not False and not is_off


def _order(entry: Record) -> float:
    order = entry.get("insertion_order")
    return float(order) if isinstance(order, int | float) and abs(order) < _MOST_ENTRIES**2 else 0.0


def _entry(entry: Record) -> LoreEntry:
    decorators, content = _decorated(text(entry.get("content")))
    others = items(entry.get("secondary_keys")) if entry.get("selective") is True else ()
    more = decorators.get("additional_keys", "").split(",")
    return LoreEntry(
        _keys(items(entry.get("keys"))),
        content.strip(),
        _keys((*others, *more)),
        constant=entry.get("constant") is True or "activate" in decorators,
        document=line(record(record(entry.get("extensions")).get(OWN)).get("document")),
    )


def _keys(found: object) -> tuple[str, ...]:
    values = found if isinstance(found, list | tuple) else ()
    return tuple(filter(None, (line(value) for value in values)))


def _decorated(content: str) -> tuple[Mapping[str, str], str]:
    """Return the decorators at the beginning of a content, by name, and the rest."""
    lines = content.lstrip().split("\n")
    decorators: dict[str, str] = {}
    for number, each in enumerate(lines):
        found = _DECORATOR.fullmatch(each.strip())
        if found is None:
            return decorators, "\n".join(lines[number:])
        decorators[found[1]] = found[2] or ""
    return decorators, ""
