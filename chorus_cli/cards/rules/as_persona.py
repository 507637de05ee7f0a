"""The persona that a card makes: its settings, documents, memory items and greetings.

The macros of the card stay in them, and are replaced when they are sent.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core import limits
from chorus_cli.core.errors import ImportFormatError, PersonaError
from chorus_cli.core.json.jsonc import set_key
from chorus_cli.core.text.phrases import shortened
from chorus_cli.memory.rules.items import LONGEST_CONTENT
from chorus_cli.memory.rules.recall import with_keys
from chorus_cli.personas.rules.macros import Names, replaced
from chorus_cli.personas.rules.names import FORBIDDEN, LONGEST_NAME, checked_name
from chorus_cli.personas.rules.persona import Document
from chorus_cli.settings.rules.schema import template

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chorus_cli.cards.rules.card import Card

EXAMPLES = "examples.md"
"""The document that holds the example messages."""

_START = re.compile(r"^[ \t]*<START>[ \t]*$", re.IGNORECASE | re.MULTILINE)
_CHAR = re.compile(r"\{\{\s*char\s*\}\}|<(?:bot|char)>", re.IGNORECASE)
_NO_FILE_NAME = re.compile(r"[^\w .-]+")
_LONGEST_DESCRIPTION = 100
_MOST_NAMESAKES = 1_000
_NAMELESS = "Character"


class Lore(NamedTuple):
    """A memory item that an entry of a lorebook makes; one that is always sent is pinned."""

    content: str
    pinned: bool


@dataclass(frozen=True, slots=True)
class CardPersona:
    """A persona as a card makes it under a name: the text of its settings file, its documents, and its lore."""

    name: str
    settings: str
    documents: tuple[Document, ...]
    lore: tuple[Lore, ...]


def names_for(card: Card) -> Iterator[str]:
    """Yield names for the persona, the best first: that of the card, as far as a persona may have it, then numbered."""
    kept = "".join(" " if sign in FORBIDDEN or not sign.isprintable() else sign for sign in card.name)
    name = " ".join(unicodedata.normalize("NFC", kept).split())
    wanted = (each[:LONGEST_NAME].strip() for each in (name, f"Card {name}" if name else ""))
    best = next(filter(_is_allowed, wanted), _NAMELESS)
    yield best
    for number in range(2, _MOST_NAMESAKES):
        yield f"{best[: LONGEST_NAME - 5].strip()} {number}"


def as_persona(card: Card, name: str) -> CardPersona:
    """Return the persona that a card makes under ``name``.

    Raises:
        ImportFormatError: its system prompt would be too long.
    """
    prompt = system_prompt(card, name)
    if len(prompt) > (longest := limits.SYSTEM_PROMPT).most:
        raise ImportFormatError(
            f"Its system prompt would have {len(prompt):,} characters; {longest.most:,} are the most."
        )
    settings = set_key(template(name), "system_prompt", prompt)
    settings = set_key(settings, "description", _description(card))
    return CardPersona(name, settings, tuple(_documents(card, name)), tuple(_lore(card, name)))


def system_prompt(card: Card, name: str) -> str:
    """Return the system prompt of the persona that a card makes under ``name``."""
    parts = (
        card.system_prompt or "{{original}}",
        card.description,
        f"{{{{char}}}}'s personality: {card.personality}" if card.personality else "",
        f"Scenario: {card.scenario}" if card.scenario else "",
        # The specification has the program's own instructions here, and Chorus has none.
        card.last_instructions.replace("{{original}}", "").strip(),
    )
    return _called(card, name, "\n\n".join(filter(None, parts)))


def examples(card: Card, name: str) -> str:
    """Return the document of the example messages, empty if there are none."""
    if not card.examples:
        return ""
    talks = filter(None, (talk.strip() for talk in _START.split(card.examples)))
    return _called(card, name, "How {{char}} writes, in examples:\n\n" + "\n\n---\n\n".join(talks))


def greeting(card: Card, number: int, user: str) -> str:
    """Return a greeting, from 0, as ``{{char}}`` says it to the user of that name."""
    return replaced(card.greetings[number], Names(card.char, user)).strip()


def _is_allowed(name: str) -> bool:
    try:
        return bool(checked_name(name))
    except PersonaError:
        return False


def _called(card: Card, name: str, text: str) -> str:
    """Put the card's own name in place of ``{{char}}`` where the persona has another."""
    return text if card.char in {name, ""} else _CHAR.sub(lambda _: card.char, text)


def _description(card: Card) -> str:
    first_line = card.description.partition("\n")[0]
    return card.summary or shortened(replaced(first_line, Names(card.char, "you")), _LONGEST_DESCRIPTION)


def _documents(card: Card, name: str) -> Iterator[Document]:
    taken = {EXAMPLES}
    if content := examples(card, name):
        yield Document(EXAMPLES, content)
    for number, entry in enumerate(entry for entry in card.lore if entry.document):
        stem = _NO_FILE_NAME.sub("-", entry.document).removesuffix(".md").strip(" .-")[:80] or "document"
        file = f"{stem}.md" if f"{stem}.md".casefold() not in taken else f"{stem}-{number}.md"
        taken.add(file.casefold())
        yield Document(file, _called(card, name, entry.content))


def _lore(card: Card, name: str) -> Iterator[Lore]:
    seen: set[str] = set()
    for entry in card.lore:
        content = with_keys(entry.keys, entry.others, _called(card, name, entry.content))[:LONGEST_CONTENT].strip()
        if not entry.document and content not in seen:
            seen.add(content)
            yield Lore(content, entry.constant)
