"""Writes a persona as a character card.

The card has version 3. It keeps the fields of other programs, and all fields that the user has not changed in Chorus.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from chorus_cli.cards.rules.card import (
    DEPTH_PROMPT,
    EXAMPLES,
    LAST_INSTRUCTIONS,
    OLD_FIELDS,
    OWN,
    Card,
    as_persona,
    card_of,
    examples,
    fields_of,
    names_for,
    note,
    own,
    prompt_parts,
    system_prompt,
    written,
)
from chorus_cli.core.json.jsonc import parse_object
from chorus_cli.core.json.values import record, records
from chorus_cli.personas.rules.persona import Document, Persona

_TEXTS = (*OLD_FIELDS, *("creator_notes", "system_prompt", LAST_INSTRUCTIONS, "creator", "character_version"))
_CHAR = re.compile(r"\{\{\s*char\s*\}\}|<(?:bot|char)>", re.IGNORECASE)
_LISTS = ("alternate_greetings", "tags", "group_only_greetings")


def exported(persona: Persona, stored: object, now: datetime) -> dict[str, Any]:
    """Return a persona as a card of version 3; ``stored`` is the JSON of its imported card, ``None`` without one."""
    card, fields = card_of(stored), fields_of(stored)
    top = dict(record(stored))
    data = _with_defaults(fields if "spec" in top else {key: top.get(key, "") for key in OLD_FIELDS})
    before = written(data)
    _change(data, card or Card(0, ""), persona)
    if card is None:
        data["creation_date"] = int(now.timestamp())
    elif written(data) != before:
        data["modification_date"] = int(now.timestamp())
    top |= {key: data[key] for key in OLD_FIELDS if key in top}
    return top | {"spec": "chara_card_v3", "spec_version": "3.0", "data": data}


def for_older_programs(document: dict[str, Any]) -> dict[str, Any]:
    """Return the same card marked as version 2, for programs that do not know version 3."""
    return document | {"spec": "chara_card_v2", "spec_version": "2.0"}


def _with_defaults(fields: object) -> dict[str, Any]:
    """Return the fields; a field that version 3 demands becomes empty if it is missing or of a wrong type."""
    data: dict[str, Any] = dict(record(fields))
    data |= {key: "" for key in _TEXTS if not isinstance(data.get(key), str)}
    data |= {key: [] for key in _LISTS if not isinstance(data.get(key), list)}
    return data if isinstance(data.get("extensions"), dict) else data | {"extensions": {}}


def _change(data: dict[str, Any], card: Card, persona: Persona) -> None:
    """Update the fields with the user's changes to the persona since its card was imported."""
    is_new = not card.version
    if is_new or persona.name not in names_for(card):
        data["name"] = persona.name
    if (nickname := persona.settings.nickname) not in {"", card.char}:
        data["nickname"] = nickname
    prompt = persona.settings.system_prompt
    data |= {"system_prompt": prompt} if is_new else _prompt_fields(prompt, card)
    _put_note(data, card, persona)
    found = next((each.content for each in persona.documents if each.name == EXAMPLES), "")
    if found not in _forms(examples(card), card):
        data["mes_example"] = found
    _put_documents(data, [each for each in persona.documents if each.name != EXAMPLES])
    described = persona.settings.description
    if described and (
        is_new or described != parse_object(as_persona(card, persona.name).settings).values["description"]
    ):
        data["extensions"] = data["extensions"] | {OWN: {**own(data), "description": described}}


def _prompt_fields(prompt: str, card: Card) -> dict[str, str]:
    """Return the fields to be changed in the card, so that an import of the card makes this ``prompt``.

    If the prompt has a part of the card, or only the label of the part, the field of the part gets the text up to the
    next part. The text before all parts becomes the system prompt of the card.
    """
    if prompt in _forms(system_prompt(card), card):
        return {}
    form = 0 if _CHAR.search(prompt) else 1
    first, *others = (
        part._replace(label=_forms(part.label, card)[form], text=_forms(part.text, card)[form])
        for part in prompt_parts(card)
    )
    fields: dict[str, str] = {}
    beginning, left = f"\n\n{first.text}", f"\n\n{prompt}"
    for field, label, words in reversed(others):
        at = left.rfind(f"\n\n{label}{words}")
        if at < 0:
            is_after_first = not label and left.startswith(f"{beginning}\n\n")
            at = left.rfind(f"\n\n{label}") if label else len(beginning) if is_after_first else -1
        found = left[at + 2 + len(label) :] if at >= 0 else ""
        left = left[:at] if at >= 0 else left
        fields |= {field: found} if found != words else {}
    return fields | ({"system_prompt": left.strip()} if left != beginning else {})


def _forms(words: str, card: Card) -> tuple[str, str]:
    """Return a card's words as its persona has them, and with the character's name in place of ``{{char}}``."""
    return words, _CHAR.sub(lambda _: card.char, words)


def _put_note(data: dict[str, Any], card: Card, persona: Persona) -> None:
    """Write a note that was changed: at depth 0 it is the last instructions, else SillyTavern's character note."""
    is_own = persona.settings.note != persona.defaults.note
    words, depth = persona.settings.note.strip() if is_own else "", persona.settings.note_depth
    known, known_depth = note(card)
    if words in _forms(known, card) and (not words or known_depth == depth):
        return
    data[LAST_INSTRUCTIONS] = "" if depth else words
    before = record(data["extensions"].get(DEPTH_PROMPT))
    if before or depth:
        after = {"role": "system", **before, "depth": depth or card.depth, "prompt": words if depth else ""}
        data["extensions"] = data["extensions"] | {DEPTH_PROMPT: after}


def _put_documents(data: dict[str, Any], documents: Iterable[Document]) -> None:
    """Turn documents into lorebook entries that are always sent; drop entries of removed or changed documents."""
    book = dict(record(data.get("character_book")))
    entries = records(book.get("entries"))
    wanted = {document.name: document.content for document in documents}
    kept = [entry for entry in entries if not (name := _document_of(entry)) or wanted.get(name) == entry.get("content")]
    there = {_document_of(entry) for entry in kept}
    added = [_lore_entry(name, content) for name, content in wanted.items() if name not in there]
    if added or len(kept) < len(entries):
        extensions = book.get("extensions") if isinstance(book.get("extensions"), dict) else {}
        data["character_book"] = book | {"extensions": extensions, "entries": [*kept, *added]}


def _document_of(entry: object) -> str:
    name = own(record(entry)).get("document")
    return name if isinstance(name, str) else ""


def _lore_entry(name: str, content: str) -> dict[str, Any]:
    return {
        "keys": [],
        "content": content,
        "extensions": {OWN: {"document": name}},
        "enabled": True,
        "insertion_order": 0,
        "constant": True,
        "use_regex": False,
        "name": name,
    }
