"""A character card: its fields, and the persona that is made from it.

The JSON of version 1 has six texts at the top; versions 2 and 3 hold them and more under ``data``. A text that is
missing or of another type is read as empty.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from chorus_cli.core import limits
from chorus_cli.core.errors import ImportFormatError, PersonaError
from chorus_cli.core.json.jsonc import JsonValue, set_key
from chorus_cli.core.json.values import Record, items, line, record, records, text
from chorus_cli.core.text.phrases import counted, shortened
from chorus_cli.memory.rules.items import LONGEST_CONTENT
from chorus_cli.memory.rules.recall import with_keys
from chorus_cli.personas.rules.macros import Names, replaced
from chorus_cli.personas.rules.persona import FORBIDDEN, LONGEST_NAME, Document, checked_name
from chorus_cli.settings.rules.schema import template

OLD_FIELDS = ("name", "description", "personality", "scenario", "first_mes", "mes_example")
"""The fields of version 1; for old programs, a newer card may repeat them at the top."""
OWN = "chorus"
"""The key of Chorus in the ``extensions`` of a card, and of an entry in its lorebook."""
DEPTH_PROMPT = "depth_prompt"
"""The key of SillyTavern's character note in the ``extensions`` of a card."""
LAST_INSTRUCTIONS = "post_history_instructions"

_FEWEST_OLD_FIELDS = 4
_NEWEST = 3
_EMBEDDED = "embeded://"
_SPECIFICATION = re.compile(r"chara_card_v([0-9]{1,3})")
_VERSION = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,3})?)")
_DECORATOR = re.compile(r"@@+([a-z_]+)(?: (.*))?")
_MOST_ENTRIES = 10_000
_MOST_GREETINGS = 1_000
_DEPTH = 4


@dataclass(frozen=True, slots=True)
class LoreEntry:
    """A lorebook entry as a memory item: ``content`` has keys, then text; an entry that is always sent is ``pinned``.

    ``document`` names the document that Chorus has exported as this entry; such an entry has no keys.
    """

    content: str
    pinned: bool = False
    document: str = ""


@dataclass(frozen=True, slots=True)
class Card:
    """The fields of a card; ``greetings`` are the first message and the alternatives to it.

    ``depth_note``, SillyTavern's character note, comes before the last ``depth`` messages; ``last_instructions`` come
    after all messages. ``notes`` are sentences for the user about parts that Chorus does not support. ``summary`` is
    the persona's description if Chorus has written the card.
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
    depth_note: str = ""
    depth: int = 0
    last_instructions: str = ""
    creator: str = ""
    creator_notes: str = ""
    lore: tuple[LoreEntry, ...] = ()
    notes: tuple[str, ...] = ()
    summary: str = ""

    @property
    def char(self) -> str:
        """The name that replaces ``{{char}}``."""
        return self.nickname or self.name


def fields_of(value: object) -> Record | None:
    """Return the fields of the card in a JSON value, ``None`` if the value is no card."""
    top = record(value)
    if isinstance(top.get("spec"), str) and _SPECIFICATION.fullmatch(str(top["spec"])):
        return record(top.get("data")) or None
    return top if sum(key in top for key in OLD_FIELDS) >= _FEWEST_OLD_FIELDS else None


def card_of(value: object) -> Card | None:
    """Return the card in a JSON value, ``None`` if the value is no card."""
    data = fields_of(value)
    if data is None:
        return None
    top = record(value)
    entries = records(record(data.get("character_book")).get("entries"))[:_MOST_ENTRIES]
    depth_prompt = record(record(data.get("extensions")).get(DEPTH_PROMPT))
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
        depth_note=_text(depth_prompt, "prompt"),
        depth=depth if type(depth := depth_prompt.get("depth")) is int and 0 <= depth < _MOST_ENTRIES else _DEPTH,
        last_instructions=_text(data, LAST_INSTRUCTIONS),
        creator=line(data.get("creator")),
        creator_notes=_text(record(data.get("creator_notes_multilingual")), "en") or _text(data, "creator_notes"),
        lore=tuple(filter(None, map(_entry, sorted(entries, key=_order)))),
        notes=tuple(_notes(top, entries)),
        summary=line(own(data).get("description")),
    )


def icon_entry(value: object) -> str:
    """Return the archive's entry that the JSON names as main icon, or else as first icon; empty if there is none."""
    icons = [each for each in records((fields_of(value) or {}).get("assets")) if each.get("type") == "icon"]
    chosen = next((icon for icon in icons if icon.get("name") == "main"), icons[0] if icons else {})
    address = chosen.get("uri")
    is_entry = isinstance(address, str) and address.startswith(_EMBEDDED)
    return str(address).removeprefix(_EMBEDDED) if is_entry else ""


def own(fields: Record) -> Record:
    """Return the fields that Chorus has put into a card, or into an entry of its lorebook."""
    return record(record(fields.get("extensions")).get(OWN))


def _text(data: Record, key: str) -> str:
    return text(data.get(key)).strip()


def _notes(top: Record, entries: Sequence[Record]) -> Iterator[str]:
    """Yield a sentence for the user about a newer version than Chorus knows, and one about patterns as keys."""
    version = _VERSION.fullmatch(line(top.get("spec_version")))
    if version and float(version[1]) > _NEWEST:
        yield f"The card follows version {version[1]} of the specification; Chorus knows versions up to {_NEWEST}."
    if patterns := sum(entry.get("use_regex") is True for entry in entries):
        keys = "patterns as keys; Chorus reads these patterns as plain words."
        yield f"{counted(patterns, 'entry has', 'entries have')} {keys}"


def _order(entry: Record) -> float:
    order = entry.get("insertion_order")
    return float(order) if isinstance(order, int | float) and abs(order) < _MOST_ENTRIES**2 else 0.0


def _entry(entry: Record) -> LoreEntry | None:
    """Return an entry, ``None`` if it is switched off or empty."""
    decorators, content = _decorated(text(entry.get("content")))
    is_always = "activate" in decorators
    content, document = content.strip(), line(own(entry).get("document"))
    if not content or entry.get("enabled") is False or ("dont_activate" in decorators and not is_always):
        return None
    if not document:
        others = items(entry.get("secondary_keys")) if entry.get("selective") is True else ()
        keys = _keys(entry.get("keys")), _keys([*others, *decorators.get("additional_keys", "").split(",")])
        content = with_keys(*keys, content)[:LONGEST_CONTENT].strip()
    return LoreEntry(content, entry.get("constant") is True or is_always, document)


def _keys(found: object) -> tuple[str, ...]:
    return tuple(filter(None, map(line, items(found))))


def _decorated(content: str) -> tuple[Mapping[str, str], str]:
    """Return the decorators at the beginning of an entry's content, by name, and the content after them."""
    lines = content.lstrip().split("\n")
    decorators: dict[str, str] = {}
    for number, each in enumerate(lines):
        found = _DECORATOR.fullmatch(each.strip())
        if found is None:
            return decorators, "\n".join(lines[number:])
        decorators[found[1]] = found[2] or ""
    return decorators, ""


EXAMPLES = "examples.md"
"""The document that holds the example messages."""

_START = re.compile(r"^[ \t]*<START>[ \t]*$", re.IGNORECASE | re.MULTILINE)
_NO_FILE_NAME = re.compile(r"[^\w .-]+")
_LONGEST_DESCRIPTION = 100
_MOST_NAMESAKES = 1_000
_NAMELESS = "Character"


@dataclass(frozen=True, slots=True)
class CardPersona:
    """The persona that is made from a card: its name, settings file and system prompt, documents and memory items."""

    name: str
    settings: str
    prompt: str
    documents: tuple[Document, ...]
    lore: tuple[LoreEntry, ...]


def names_for(card: Card) -> Iterator[str]:
    """Yield names for the persona, the best first: the card's name, made valid, then the same name with numbers."""
    kept = "".join(" " if sign in FORBIDDEN or not sign.isprintable() else sign for sign in card.name)
    name = " ".join(unicodedata.normalize("NFC", kept).split())
    wanted = (each[:LONGEST_NAME].strip() for each in (name, f"Card {name}" if name else ""))
    best = next(filter(_is_allowed, wanted), _NAMELESS)
    yield best
    for number in range(2, _MOST_NAMESAKES):
        yield f"{best[: LONGEST_NAME - 5].strip()} {number}"


def as_persona(card: Card, name: str, alias: str = "") -> CardPersona:
    """Return the persona that a card makes; raise an ``ImportFormatError`` if its system prompt or note is too long."""
    prompt, (words, depth) = system_prompt(card), note(card)
    for part, made, longest in (("system prompt", prompt, limits.SYSTEM_PROMPT), ("note", words, limits.NOTE)):
        if len(made) > longest.most:
            raise ImportFormatError(
                f"The persona's {part} would have {len(made):,} characters, but Chorus allows at most "
                f"{longest.most:,}. Shorten the card's texts."
            )
    first_line = replaced(card.description.partition("\n")[0], Names(card.char, "you"))
    values: dict[str, JsonValue] = {"description": card.summary or shortened(first_line, _LONGEST_DESCRIPTION)}
    values |= {"aliases": [alias]} if alias else {}
    values |= {"nickname": card.char} if card.char not in {name, ""} else {}
    values |= {"note": words, "note_depth": depth} if words else {}
    settings = template(name)
    for key, value in values.items():
        settings = set_key(settings, key, value)
    return CardPersona(name, settings, prompt, tuple(_documents(card)), _items(card))


class PromptPart(NamedTuple):
    """A part of a system prompt: the field of the card that it comes from, the words before it, and its text."""

    field: str
    label: str
    text: str


def prompt_parts(card: Card) -> list[PromptPart]:
    """Return the parts of the system prompt that a card makes, in their order."""
    parts = (
        PromptPart("system_prompt", "", card.system_prompt or "{{original}}"),
        PromptPart("description", "", card.description),
        PromptPart("personality", "{{char}}'s personality: ", card.personality),
        PromptPart("scenario", "Scenario: ", card.scenario),
    )
    return [part for part in parts if part.text]


def system_prompt(card: Card) -> str:
    """Return the system prompt that a card makes."""
    return "\n\n".join(label + words for _, label, words in prompt_parts(card)).strip()


def note(card: Card) -> tuple[str, int]:
    """Return the note that a card makes, ``""`` for none, and the depth of the note."""
    # Here ``{{original}}`` means the program's own last instructions, and Chorus has none.
    last = card.last_instructions.replace("{{original}}", "").strip()
    return "\n\n".join(filter(None, (card.depth_note, last))), 0 if last else card.depth


def examples(card: Card) -> str:
    """Return the text of the document with the example messages, empty if the card has none."""
    if not card.examples:
        return ""
    talks = filter(None, (talk.strip() for talk in _START.split(card.examples)))
    return "How {{char}} writes, in examples:\n\n" + "\n\n---\n\n".join(talks)


def greeting(said: str, char: str, user: str) -> str:
    """Return a greeting with its macros replaced; ``char`` and ``user`` are the names of the character and the user."""
    return replaced(said, Names(char, user)).strip()


def _is_allowed(name: str) -> bool:
    try:
        return bool(checked_name(name))
    except PersonaError:
        return False


def _documents(card: Card) -> Iterator[Document]:
    taken = {EXAMPLES}
    if content := examples(card):
        yield Document(EXAMPLES, content)
    for number, entry in enumerate(entry for entry in card.lore if entry.document):
        stem = _NO_FILE_NAME.sub("-", entry.document).removesuffix(".md").strip(" .-")[:80] or "document"
        file = f"{stem}.md" if f"{stem}.md".casefold() not in taken else f"{stem}-{number}.md"
        taken.add(file.casefold())
        yield Document(file, entry.content)


def _items(card: Card) -> tuple[LoreEntry, ...]:
    """Return the entries that become memory items; of entries with the same content, return the first."""
    unique: dict[str, LoreEntry] = {}
    for entry in card.lore:
        if not entry.document:
            unique.setdefault(entry.content, entry)
    return tuple(unique.values())


def parsed(document: bytes) -> object:
    """Return the value of a JSON document; a number too large for a float becomes 0, ``NaN`` becomes ``None``."""
    try:
        return json.loads(document.decode("utf-8-sig"), parse_constant=lambda _: None, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise ImportFormatError(f"The card is not valid JSON: {error}.") from None


def written(document: object, *, indent: int | None = None) -> bytes:
    """Return the JSON of a document in UTF-8; lone surrogates are escaped."""
    return json.dumps(document, ensure_ascii=False, indent=indent).encode("utf-8", "backslashreplace")


def _finite(number: str) -> float:
    found = float(number)
    return found if math.isfinite(found) else 0.0
