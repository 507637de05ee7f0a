"""Tool calls in a reply: assembled from the pieces of a stream, and written as the log keeps them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from chorus_cli.core import limits
from chorus_cli.core.errors import ModelError
from chorus_cli.core.text.code_points import join_surrogates

SIGNED = "__thought__"  # separates a call's id from Gemini's signature, as in litellm


class ToolCall(NamedTuple):
    """One call in a reply: ``arguments`` is the model's text, which should be a JSON object."""

    id: str
    name: str
    arguments: str

    @property
    def as_json(self) -> str:
        """The call as the log keeps it: a list with one call in the shape of the OpenAI API."""
        return calls_as_json([self])


def calls_as_json(calls: Iterable[ToolCall]) -> str:
    """Return calls as the log keeps them: a list in the shape of the OpenAI API."""
    listed = [
        {"id": id_, "type": "function", "function": {"name": name, "arguments": sent}} for id_, name, sent in calls
    ]
    return json.dumps(listed, ensure_ascii=False)


@dataclass(frozen=True)
class CallPiece:
    """A piece of a call in a chunk of a stream; a server may leave out or repeat any field."""

    index: int | None = None
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(slots=True)
class _Slot:
    """A call that is still arriving."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    ends_with: str = ""

    def is_followed_by(self, piece: CallPiece) -> bool:
        """Return whether a piece begins another call: it has another id, or a name although the arguments are whole."""
        if piece.id and self.id:
            return piece.id != self.id
        # Some servers repeat the name in every piece. Arguments are parsed only if they end with a brace, to save time.
        may_be_whole = bool(piece.name and self.name) and self.ends_with == "}"
        return may_be_whole and _listed("".join(self.arguments)) != [None]

    def add(self, piece: CallPiece) -> None:
        """Append a piece; an id or a name that is repeated counts once."""
        self.id = self.id or piece.id
        if piece.name != self.name:
            self.name += piece.name
        self.arguments.append(piece.arguments)
        self.ends_with = piece.arguments.rstrip()[-1:] or self.ends_with


class CallAssembly:
    """Assembles the calls of a reply.

    A piece belongs to the newest call with its index. Without an index it belongs to the call with its id, or else to
    the newest call. Some servers give every call the index 0; `_Slot.is_followed_by` tells their calls apart.
    """

    def __init__(self) -> None:
        self._slots: list[_Slot] = []
        self._by_index: dict[int, _Slot] = {}
        self._length = 0

    def add(self, piece: CallPiece) -> bool:
        """Take the next piece of a stream; return whether it begins a call. Raise `ModelError` beyond the limits."""
        self._length += len(piece.id) + len(piece.name) + len(piece.arguments)
        if self._length > limits.ARRIVING_CALLS.most or len(self._slots) > limits.KEPT_CALLS.most:
            raise ModelError("Chorus stopped the reply: its tool calls are too many or too long.")
        slot = self._slot_of(piece)
        begins = slot is None or slot.is_followed_by(piece)
        if slot is None or begins:
            slot = _Slot()
            self._slots.append(slot)
        if piece.index is not None:
            self._by_index[piece.index] = slot
        slot.add(piece)
        return begins

    def calls(self) -> tuple[ToolCall, ...]:
        """Return the calls that have a name or arguments, in the order in which they began."""
        assembled = (ToolCall(slot.id, slot.name, "".join(slot.arguments)) for slot in self._slots)
        cleaned = (ToolCall(*map(join_surrogates, call)) for call in assembled)
        return tuple(call for call in cleaned if call.name.strip() or call.arguments.strip())

    def _slot_of(self, piece: CallPiece) -> _Slot | None:
        if piece.index is not None:
            return self._by_index.get(piece.index)
        same = (slot for slot in self._slots if piece.id and slot.id == piece.id)
        return next(same, self._slots[-1] if self._slots else None)


def unique_id(wanted: str, taken: Collection[str]) -> str:
    """Return the id ``wanted``, made unique with a number if it is empty or ``taken``; a signature in it stays."""
    base, sign, signature = wanted.strip().partition(SIGNED)
    ending = f"{sign}{signature}"
    if base and f"{base}{ending}" not in taken:
        return f"{base}{ending}"
    base, number = base or "call", 1
    while f"{base}_{number}{ending}" in taken:
        number += 1
    return f"{base}_{number}{ending}"


def stored_calls(tool_calls: str) -> tuple[ToolCall, ...]:
    """Return the calls in JSON text, as the log keeps them; calls not in the shape of the OpenAI API are left out."""
    found: list[ToolCall] = []
    for call in _listed(tool_calls):
        match call:
            case {"id": str(id_), "function": {"name": str(name), "arguments": str(arguments)}}:
                found.append(ToolCall(*map(join_surrogates, (id_, name, arguments))))
    return tuple(found)


def calls_in_words(tool_calls: str) -> str:
    """Return each call in JSON text as a line with its name and arguments; text without calls is returned as it is."""
    return "\n".join(f"{name} {arguments}" for _, name, arguments in stored_calls(tool_calls)) or tool_calls


def called_name(tool_calls: str) -> str:
    """Return the name of the first call in JSON text, ``a tool`` if it cannot be read."""
    return next((call.name for call in stored_calls(tool_calls)), "") or "a tool"


def _listed(tool_calls: str) -> list[object]:
    """Return the values of a list in JSON text, or a list with its only value; ``[None]`` if the text is no JSON."""
    try:
        found: object = json.loads(tool_calls)
    except (ValueError, RecursionError):
        return [None]
    return found if isinstance(found, list) else [found]
