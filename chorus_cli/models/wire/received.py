"""Replies that arrive over the wire: their JSON, their parts as events, and reasoning between tags."""

from __future__ import annotations

import json
from enum import Enum
from typing import TYPE_CHECKING

from chorus_cli.core.text.code_points import PairJoiner
from chorus_cli.log.rules.calls import CallAssembly
from chorus_cli.models.providers.echoes import PartsRecord
from chorus_cli.models.providers.failures import FailedError, Failure, Trouble
from chorus_cli.models.rules.costs import CACHED, THOUGHT, WRITTEN
from chorus_cli.models.rules.events import ReasoningDelta, ReplyEnd, TextDelta

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from chorus_cli.log.rules.calls import CallPiece
    from chorus_cli.models.rules.events import ModelEvent

JsonObject = dict[str, object]
NOT_JSON = Failure(Trouble.INVALID_RESPONSE, words="not valid JSON")

DONE = "[DONE]"
_STOP = "stop"
_CALLS = "tool_calls"


def json_objects(data: str) -> list[JsonObject]:
    """Return the objects in the data of an event: one, those of a list, none in empty data or the mark of the end.

    Raises:
        FailedError: the data is not JSON, or JSON of another kind.
    """
    if data.strip() in {"", DONE}:
        return []
    try:
        found: object = json.loads(data)
    except (ValueError, RecursionError):
        raise FailedError(NOT_JSON) from None
    listed = found if isinstance(found, list) else [found]
    objects = [item for item in listed if isinstance(item, dict)]
    if len(objects) < len(listed):
        raise FailedError(Failure(Trouble.INVALID_RESPONSE, words="not an event of its protocol"))
    return objects


def text_at(value: Mapping[str, object], *names: str) -> str:
    """Return the text under the first of ``names`` that has one, else an empty text."""
    found = (value.get(name) for name in names)
    return next((text for text in found if isinstance(text, str)), "")


def object_at(value: Mapping[str, object], *names: str) -> JsonObject:
    """Return the object under the first of ``names`` that has one, else an empty one."""
    found = (value.get(name) for name in names)
    return next((item for item in found if isinstance(item, dict)), {})


def objects_at(value: Mapping[str, object], name: str) -> list[JsonObject]:
    """Return the objects in the list under ``name``."""
    found = value.get(name)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def place_of(index: object) -> int | None:
    """Return the place of an item, ``None`` if a server writes no number."""
    return index if isinstance(index, int) else None


def count_at(value: Mapping[str, object], name: str) -> int:
    """Return the number of tokens under ``name``, 0 without one."""
    found = value.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else 0


def cache_counts(cached_tokens: int, written_tokens: int = 0) -> dict[str, int]:
    """Return the tokens of the prompt that the provider's cache served and stored, as far as there are any."""
    counts = {CACHED: cached_tokens, WRITTEN: written_tokens}
    return {name: count for name, count in counts.items() if count}


def thought_count(tokens: int) -> dict[str, int]:
    """Return the tokens of the reply that the model thought, if there are any."""
    return {THOUGHT: tokens} if tokens else {}


def usage_of(prompt_tokens: int, completion_tokens: int, total_tokens: int = 0) -> dict[str, int]:
    """Return token counts under the names that ``ReplyEnd`` uses; the total is their sum unless it is given."""
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": total_tokens or prompt_tokens + completion_tokens,
    }


class ReplyParts:
    """The parts of one reply: pieces of text, thoughts and calls, in the order of their arrival.

    ``own`` takes what the provider wants back word for word; ``form`` names its protocol.
    """

    def __init__(self, form: str) -> None:
        self.own = PartsRecord()
        self._form = form
        self._text = PairJoiner()
        self._reasoning = PairJoiner()
        self._calls = CallAssembly()

    def text(self, piece: str) -> Iterator[ModelEvent]:
        """Yield a piece of the text, without half a character at its end."""
        if text := self._text.join(piece):
            self.own.said(text)
            yield TextDelta(text)

    def reasoning(self, piece: str) -> Iterator[ModelEvent]:
        """Yield a piece of the thoughts, without half a character at its end."""
        if text := self._reasoning.join(piece):
            yield ReasoningDelta(text)

    def call(self, piece: CallPiece) -> None:
        """Keep a piece of a call for the end."""
        if self._calls.add(piece):
            self.own.called(piece.id)

    def end(self, finish_reason: str | None, usage: Mapping[str, int]) -> Iterator[ModelEvent]:
        """Yield the remaining text and the end; a reply that stops with calls is said to stop for them."""
        if text := self._text.rest():
            self.own.said(text)
            yield TextDelta(text)
        calls = self._calls.calls()
        reason = _CALLS if calls and finish_reason == _STOP else finish_reason
        yield ReplyEnd(reason, usage, calls, self.own.written(self._form))


_OPENING = "<think>"
_CLOSING = "</think>"

_MOST_HELD = 1_000
"""Characters, nearly all of them blanks, that may be held before a tag: a text of blanks alone may have no end."""


class _Stage(Enum):
    BEGINNING = "beginning"
    THINKING = "thinking"
    BETWEEN = "between the reasoning and the reply"
    REPLY = "reply"


class ThinkTags:
    """Tells the reasoning between ``<think>`` and ``</think>`` at the beginning of a reply from the reply.

    Tags may be cut over chunks: a text that may become one is held until that is decided.
    """

    def __init__(self) -> None:
        self._stage = _Stage.BEGINNING
        self._held = ""

    def split(self, text: str) -> Iterator[tuple[bool, str]]:
        """Yield the texts that the next piece decides, each with whether it is reasoning."""
        self._held += text
        if self._stage is _Stage.BEGINNING:
            self._open()
        if self._stage is _Stage.THINKING:
            yield True, self._thought()
        if self._stage is _Stage.BETWEEN:
            # The blank lines between the two belong to neither.
            self._held = self._held.lstrip()
            self._stage = _Stage.REPLY if self._held else _Stage.BETWEEN
        if self._stage is _Stage.REPLY:
            yield False, self._taken()

    def rest(self) -> Iterator[tuple[bool, str]]:
        """Yield the text that is still held: it became no tag."""
        yield self._stage is _Stage.THINKING, self._taken()

    def _open(self) -> None:
        begun = self._held.lstrip()
        if begun.startswith(_OPENING):
            self._stage, self._held = _Stage.THINKING, begun.removeprefix(_OPENING)
        elif not _OPENING.startswith(begun) or len(self._held) > _MOST_HELD:
            self._stage = _Stage.REPLY

    def _thought(self) -> str:
        """Take the reasoning out of the held text, but for an end that may become the closing tag."""
        thought, closing, after = self._held.partition(_CLOSING)
        if closing:
            self._stage, self._held = _Stage.BETWEEN, after
            return thought
        decided = len(thought) - _overlap(thought, _CLOSING)
        self._held = thought[decided:]
        return thought[:decided]

    def _taken(self) -> str:
        taken, self._held = self._held, ""
        return taken


def _overlap(text: str, tag: str) -> int:
    """Return the length of the longest end of ``text`` with which ``tag`` begins."""
    return next((length for length in range(len(tag) - 1, 0, -1) if text.endswith(tag[:length])), 0)
