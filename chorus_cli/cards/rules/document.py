"""The JSON document of a card: reading it, and writing that of a persona as version 3.

What another program has put into a card stays in it, and so does every field that was not changed here.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from chorus_cli.cards.rules.as_persona import EXAMPLES, as_persona, examples, names_for, system_prompt
from chorus_cli.cards.rules.card import OLD_FIELDS, OWN, Card, card_of, fields_of
from chorus_cli.core.errors import ImportFormatError
from chorus_cli.core.json.jsonc import parse_object
from chorus_cli.core.json.values import record, records

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from chorus_cli.personas.rules.persona import Document, Persona

_TEXTS = (
    *OLD_FIELDS,
    *("creator_notes", "system_prompt", "post_history_instructions", "creator", "character_version"),
)
_LISTS = ("alternate_greetings", "tags", "group_only_greetings")


def parsed(document: bytes) -> object:
    """Return the value of a JSON document.

    Raises:
        ImportFormatError: it is not JSON in UTF-8, or nested too deeply.
    """
    try:
        return json.loads(document.decode("utf-8-sig"), parse_constant=lambda _: None, parse_float=_finite)
    except UnicodeDecodeError as error:
        raise ImportFormatError(f"The card is not UTF-8 (byte {error.start + 1}).") from None
    except json.JSONDecodeError as error:
        raise ImportFormatError(f"The card is no valid JSON (line {error.lineno}, column {error.colno}).") from None
    except (ValueError, RecursionError):
        raise ImportFormatError("The card holds a number or a nesting beyond any limit.") from None


def written(document: object, *, indent: int | None = None) -> bytes:
    """Return the JSON of a document, in UTF-8; lone surrogates are escaped as they were."""
    return json.dumps(document, ensure_ascii=False, indent=indent).encode("utf-8", "backslashreplace")


def exported(persona: Persona, stored: object, now: datetime) -> dict[str, Any]:
    """Return the document of a persona in version 3; ``stored`` is that of the card it was made of, else ``None``."""
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
    """Return the same document as version 2, which programs read that do not know version 3."""
    return document | {"spec": "chara_card_v2", "spec_version": "2.0"}


def _finite(number: str) -> float:
    found = float(number)
    return found if math.isfinite(found) else 0.0


def _with_defaults(fields: object) -> dict[str, Any]:
    """Return fields with those that version 3 demands; a field of a wrong type is replaced by an empty one."""
    data: dict[str, Any] = dict(record(fields))
    data |= {key: "" for key in _TEXTS if not isinstance(data.get(key), str)}
    data |= {key: [] for key in _LISTS if not isinstance(data.get(key), list)}
    return data if isinstance(data.get("extensions"), dict) else data | {"extensions": {}}


def _change(data: dict[str, Any], card: Card, persona: Persona) -> None:
    """Write to the fields everything that was changed in the persona since its card made it."""
    is_new = not card.version
    if is_new or persona.name not in names_for(card):
        data["name"] = persona.name
    prompt = persona.settings.system_prompt
    if is_new or prompt not in {system_prompt(card, persona.name), system_prompt(card, card.char)}:
        data["system_prompt"] = prompt
        data |= dict.fromkeys(("description", "personality", "scenario", "post_history_instructions"), "")
    found = next((each.content for each in persona.documents if each.name == EXAMPLES), "")
    if found not in {examples(card, persona.name), examples(card, card.char)}:
        data["mes_example"] = found
    _put_documents(data, [each for each in persona.documents if each.name != EXAMPLES])
    described = persona.settings.description
    if described and (
        is_new or described != parse_object(as_persona(card, persona.name).settings).values["description"]
    ):
        own = dict(record(data["extensions"].get(OWN)))
        data["extensions"] = data["extensions"] | {OWN: own | {"description": described}}


def _put_documents(data: dict[str, Any], documents: Iterable[Document]) -> None:
    """Put documents into the lorebook, as entries that are always sent; those that are there already stay."""
    book = dict(record(data.get("character_book")))
    entries = records(book.get("entries"))
    wanted = {document.name: document.content for document in documents}
    kept = [entry for entry in entries if not (name := _document_of(entry)) or wanted.get(name) == entry.get("content")]
    there = {_document_of(entry) for entry in kept}
    added = [_entry(name, content) for name, content in wanted.items() if name not in there]
    if added or len(kept) < len(entries):
        extensions = book.get("extensions") if isinstance(book.get("extensions"), dict) else {}
        data["character_book"] = book | {"extensions": extensions, "entries": [*kept, *added]}


def _document_of(entry: object) -> str:
    name = record(record(record(entry).get("extensions")).get(OWN)).get("document")
    return name if isinstance(name, str) else ""


def _entry(name: str, content: str) -> dict[str, Any]:
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
