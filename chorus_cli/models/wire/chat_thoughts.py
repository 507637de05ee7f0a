"""Thoughts in chat completions: in which fields they come, and in which they go back."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.models.providers.echoes import NO_RULE, EchoRule, Filler
from chorus_cli.models.providers.thought_parts import Called, Pieces, replayed
from chorus_cli.models.wire.received import JsonObject, object_at, objects_at, text_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chorus_cli.models.providers.thought_parts import PartsRecord
    from chorus_cli.models.rules.request import PromptMessage

FORM = "chat"
FIELDS = ("reasoning_content", "reasoning")
"""The names that providers have for readable thoughts; some send both, with the same text."""

_DETAILS, _CONTENT = "reasoning_details", "content"
_CAME_IN = "came_in"
_BLANK = " "
_READABLE = ("text", "summary")
_GROWING = (*_READABLE, "data")

_SHORT_ID = re.compile(r"[a-zA-Z0-9]{9}")
_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"


class ReceivedThoughts:
    """Takes the thoughts in the chunks of a reply: ``own`` keeps what goes back in another form than their text."""

    def __init__(self, own: PartsRecord) -> None:
        self._own = own
        self._came_in = ""
        self._details: dict[tuple[str, object], JsonObject] = {}
        self._repeating: set[tuple[str, object]] = set()
        self._chunk: JsonObject = {}
        self._pieces = Pieces()

    def texts(self, delta: JsonObject) -> Iterator[str]:
        """Yield the readable thoughts of a chunk."""
        added = [self._join(piece) for piece in objects_at(delta, _DETAILS)] if _DETAILS in delta else ()
        field = next((name for name in FIELDS if text_at(delta, name)), "")
        if field not in {"", FIELDS[0], self._came_in}:
            self._came_in = field
            self._own.add({_CAME_IN: field})
        if field:
            yield text_at(delta, field)
        else:
            yield from filter(None, added)

    def chunk(self, part: JsonObject) -> str:
        """Take a piece of Mistral's thoughts, which are parts of the content, and return its text."""
        text = "".join(text_at(each, "text") for each in objects_at(part, "thinking"))
        if not self._chunk:
            self._chunk |= {"type": "thinking", "thinking": [{"type": "text", "text": self._pieces}]}
            self._own.add(self._chunk)
        self._pieces.append(text)
        self._chunk |= {name: part[name] for name in ("signature", "closed") if part.get(name) is not None}
        return text

    def _join(self, piece: JsonObject) -> str:
        """Join a piece of a detail to those before it of the same type and number, and return its new readable text."""
        key = text_at(piece, "type"), piece.get("index")
        if key not in self._details:
            self._details[key] = {**piece}
            self._own.add(self._details[key])
        known, added = self._details[key], ""
        for name, value in piece.items():
            if name in _GROWING and isinstance(value, str):
                before = known.get(name)
                text = before if isinstance(before, Pieces) else Pieces()
                known[name] = text
                new = self._grown(key, text, value)
                added = added or (new if name in _READABLE else "")
            elif value is not None and (known.get(name) is None or name == "signature"):
                known[name] = value
        return added

    def _grown(self, key: tuple[str, object], text: Pieces, piece: str) -> str:
        """Add a piece, and return what is new of it: MiniMax sends the whole text each time."""
        if not piece:
            return ""
        # Looking at the first piece spares joining all of them for each token.
        if text and len(piece) >= len(text) and piece.startswith(text[0]):
            before = "".join(text)
            if piece.startswith(before) and (len(piece) > len(before) or key in self._repeating):
                self._repeating.add(key)
                text[:] = [piece]
                return piece[len(before) :]
        text.append(piece)
        return piece


class AssistantForm(NamedTuple):
    """How the replies of a conversation are written for one server: the thoughts by ``rule``, and the ids of calls."""

    rule: EchoRule
    has_short_ids: bool = False


def with_thoughts(message: PromptMessage, shaped: JsonObject, form: AssistantForm) -> JsonObject:
    """Return a reply in the shape of the protocol with its thoughts, or with the least that must be in their place."""
    if message.role != "assistant" or form.rule is NO_RULE:
        return shaped
    parts = list(replayed(message, FORM)) if message.thoughts else []
    own = [part for part in parts if isinstance(part, dict)]
    signed = {part.call.id: dict(part.own) for part in parts if isinstance(part, Called) and part.own}
    if signed:
        shaped["tool_calls"] = [each | signed.get(text_at(each, "id"), {}) for each in objects_at(shaped, "tool_calls")]
    rule = form.rule
    if rule.field == _CONTENT:
        chunks = [part for part in own if part.get("type") == "thinking"]
        content = shaped[_CONTENT]
        spoken = [{"type": "text", "text": content}] if content else []
        return shaped | {_CONTENT: [*chunks, *spoken]} if chunks else shaped
    details = [part for part in own if _CAME_IN not in part]
    if rule.field == _DETAILS and details:
        return shaped | {_DETAILS: details}
    text = message.thoughts.text if message.thoughts else ""
    if not text and (rule.filler is Filler.ALL or (rule.filler is Filler.CALLS and message.tool_calls)):
        text = _BLANK
    return shaped | {_field(rule, own): text} if text else shaped


def _field(rule: EchoRule, own: list[JsonObject]) -> str:
    """Return the field of readable thoughts: that of the rule, else the one in which they came."""
    if rule.field in FIELDS:
        return rule.field
    if rule.field == _DETAILS:
        return "reasoning"
    return next((text_at(part, _CAME_IN) for part in own if _CAME_IN in part), FIELDS[0])


def with_short_ids(shaped: JsonObject) -> JsonObject:
    """Return a message with ids of nine letters, the only ones that some of Mistral's models take."""
    if "tool_call_id" in shaped:
        return shaped | {"tool_call_id": short_id(text_at(shaped, "tool_call_id"))}
    if "tool_calls" not in shaped:
        return shaped
    calls = [each | {"id": short_id(text_at(each, "id"))} for each in objects_at(shaped, "tool_calls")]
    return shaped | {"tool_calls": calls}


def short_id(id_: str) -> str:
    """Return the id of a call if it has nine letters, else nine of its hash."""
    if _SHORT_ID.fullmatch(id_):
        return id_
    number = int.from_bytes(hashlib.sha256(id_.encode()).digest())
    letters = []
    for _ in range(9):
        number, place = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[place])
    return "".join(letters)


def extra_content(piece: JsonObject) -> JsonObject:
    """Return what Google's endpoint adds to a call, among it its signature."""
    found = object_at(piece, "extra_content")
    return {"extra_content": found} if found else {}
