"""The provider's own parts of a reply, word for word, between what the log has of it anyway.

    {"form": "anthropic", "parts": [{"type": "thinking", …}, {"said": 14}, {"called": "toolu_1"}]}

``said`` stands for so many characters of the reply's text, ``called`` for the call of that id; either may have fields
of the provider's beside it, such as a signature. Everything else is a part as the provider sent it.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.log.rules.calls import ToolCall, stored_calls

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from chorus_cli.models.rules.request import PromptMessage

SAID, CALLED = "said", "called"

_NUMBERED = r"(?:_\d+)?"
_NO_ID = "call"


class Said(NamedTuple):
    """A piece of a reply's text; ``own`` are the provider's fields of it."""

    text: str
    own: Mapping[str, object]


class Called(NamedTuple):
    """A call of a reply; ``own`` are the provider's fields of it."""

    call: ToolCall
    own: Mapping[str, object]


class Pieces(list[str]):
    """A text of a part that is still growing: to append to it does not copy what there is."""


class PartsRecord:
    """Takes the parts of a reply in the order of their arrival."""

    def __init__(self) -> None:
        self._parts: list[dict[str, object]] = []
        self._has_own = False

    def said(self, text: str) -> None:
        """Take a piece of the text."""
        newest = self._parts[-1] if self._parts else {}
        if newest.keys() == {SAID}:
            newest[SAID] = int(str(newest[SAID])) + len(text)
        else:
            self._parts.append({SAID: len(text)})

    def begin_said(self) -> None:
        """Have the next piece of the text begin a part of its own."""
        self._parts.append({SAID: 0})

    def called(self, id_: str) -> None:
        """Take a call."""
        self._parts.append({CALLED: id_})

    def sign(self, kind: str, fields: Mapping[str, object]) -> None:
        """Take the provider's fields of the newest piece of the text, or of the newest call."""
        newest = self._parts[-1] if self._parts else {}
        if kind not in newest:
            newest = {SAID: 0}
            self._parts.append(newest)
        newest.update(fields)
        self._has_own = True

    def add(self, part: dict[str, object]) -> None:
        """Take a part that is neither text nor a call; it may still be completed, and its texts may be `Pieces`."""
        self._parts.append(part)
        self._has_own = True

    def written(self, form: str) -> str:
        """Return the parts as the log keeps them, for the protocol ``form``; empty if nothing in them is its own."""
        return json.dumps({"form": form, "parts": _joined(self._parts)}) if self._has_own else ""


def _joined(value: object) -> object:
    match value:
        case Pieces():
            return "".join(value)
        case dict():
            return {name: _joined(each) for name, each in value.items()}
        case list():
            return [_joined(each) for each in value]
        case _:
            return value


def replayed(message: PromptMessage, form: str) -> Iterator[Said | Called | dict[str, object]]:
    """Yield the parts of a reply in the order in which they came; those of another protocol are left out.

    All of its text and each of its calls is among them once, whatever the parts say.
    """
    text, calls = message.content, list(stored_calls(message.tool_calls or ""))
    for part in _parts(message, form):
        own = {name: value for name, value in part.items() if name not in {SAID, CALLED}}
        if SAID in part:
            piece, text = text[: _length(part)], text[_length(part) :]
            yield Said(piece, own)
        elif CALLED in part:
            found = next((call for call in calls if _is_named(call.id, str(part[CALLED]))), None)
            if found is not None:
                calls.remove(found)
                yield Called(found, own)
        else:
            yield part
    yield from (Called(call, {}) for call in calls)


def _parts(message: PromptMessage, form: str) -> list[dict[str, object]]:
    """Return the parts of a reply if they are of this protocol and fit its text, else that text alone."""
    plain: list[dict[str, object]] = [{SAID: len(message.content)}] if message.content else []
    try:
        written: object = json.loads(message.thoughts.parts if message.thoughts else "")
    except (ValueError, RecursionError):
        # None, or damaged: a log may be.
        return plain
    match written:
        case {"form": str(found), "parts": [*parts]} if found == form:
            known = [part for part in parts if isinstance(part, dict)]
            return known if sum(map(_length, known)) == len(message.content) else plain
    return plain


def _length(part: Mapping[str, object]) -> int:
    length = part.get(SAID, 0)
    return length if isinstance(length, int) else 0


def _is_named(id_: str, sent: str) -> bool:
    """Return whether the call ``id_`` of the log is the one that came as ``sent``: it may have got a number."""
    return re.fullmatch(re.escape(sent.strip() or _NO_ID) + _NUMBERED, id_) is not None
