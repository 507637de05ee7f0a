"""Short ways to read a reply with a reader of the wire."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from chorus_cli.models.rules.events import ReasoningDelta, ReplyEnd, TextDelta

if TYPE_CHECKING:
    from chorus_cli.models.rules.events import ModelEvent
    from chorus_cli.models.wire.protocol import ReplyReader


def read(reader: ReplyReader, *payloads: object) -> list[ModelEvent]:
    """Return the events of a reply; text is the data of an event as it is, anything else is written as JSON."""
    found: list[ModelEvent] = []
    for payload in payloads:
        found += reader.events(payload if isinstance(payload, str) else json.dumps(payload))
        if found and isinstance(found[-1], ReplyEnd):
            return found
    return found + list(reader.end())


def text_in(events: list[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def reasoning_in(events: list[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, ReasoningDelta))


def end_of(events: list[ModelEvent]) -> ReplyEnd:
    (end,) = (event for event in events if isinstance(event, ReplyEnd))
    assert events[-1] is end
    return end
