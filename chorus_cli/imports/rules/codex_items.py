"""Lines of Codex CLI that belong to the conversation, in one form for all its versions."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from chorus_cli.core.json import values
from chorus_cli.imports.rules.conversation import ForeignFile
from chorus_cli.imports.rules.tool_rows import Result

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from chorus_cli.core.json.values import Record

_PICTURE_MARK = re.compile(r"</?image\b[^<>]*>\s*")
_OWN_KINDS = ("user_instructions", "environment_context")


class Kind(Enum):
    """The kind of a line of the conversation."""

    USER = auto()
    REPLY = auto()
    THOUGHT = auto()
    CALL = auto()
    RESULT = auto()
    MODEL = auto()
    ROLLBACK = auto()
    SUMMARY = auto()


@dataclass(frozen=True, slots=True)
class Said:
    """A line: ``is_event`` if the person saw it, otherwise the model read or wrote it.

    ``call`` is the id of a call or of the call that a result belongs to; ``text`` is the model's name, the name of a
    called tool or the text of a result where the line is one. ``turns`` is the number of turns taken back.
    """

    kind: Kind
    text: str = ""
    timestamp: datetime | None = None
    is_event: bool = False
    files: tuple[ForeignFile, ...] = ()
    call: str = ""
    arguments: object = None
    turns: int = 0

    @property
    def result(self) -> Result:
        """The result that the line is."""
        return Result(self.text, self.timestamp)


def said_in(kind: str, payload: Record, timestamp: datetime | None) -> Said | None:
    """Return the part of the conversation in a line, ``None`` if there is none."""
    if kind == "turn_context":
        return Said(Kind.MODEL, values.line(payload.get("model")))
    if kind == "compacted":
        return Said(Kind.SUMMARY)
    return _event(payload, timestamp) if kind == "event_msg" else _item(payload, timestamp)


def _event(payload: Record, timestamp: datetime | None) -> Said | None:
    item = values.record(payload.get("item"))
    match payload.get("type"), item.get("type"):
        case "user_message", _ if payload.get("kind") not in _OWN_KINDS:
            pictures = [{"type": "input_image", "image_url": url} for url in values.items(payload.get("images"))]
            return Said(
                Kind.USER, _trimmed(payload.get("message")), timestamp, is_event=True, files=tuple(_files(pictures))
            )
        case "agent_message", _:
            return Said(Kind.REPLY, _trimmed(payload.get("message")), timestamp, is_event=True)
        case "agent_reasoning", _:
            return Said(Kind.THOUGHT, _trimmed(payload.get("text")), timestamp)
        case "item_completed", "UserMessage":
            return Said(Kind.USER, _words(item.get("content")), timestamp, is_event=True)
        case "item_completed", "AgentMessage":
            return Said(Kind.REPLY, _words(item.get("content")), timestamp, is_event=True)
        case "thread_rolled_back", _:
            return Said(Kind.ROLLBACK, turns=values.whole_number(payload.get("num_turns")))
    return None


def _item(payload: Record, timestamp: datetime | None) -> Said | None:
    kind = payload.get("type")
    if kind == "message":
        role = {"user": Kind.USER, "assistant": Kind.REPLY}.get(str(payload.get("role")))
        content = payload.get("content")
        return role and Said(role, _words(content), timestamp, files=tuple(_files(values.records(content))))
    if kind == "reasoning":
        return Said(Kind.THOUGHT, _words(payload.get("summary")), timestamp)
    if not isinstance(kind, str):
        return None
    call = values.identifier(payload.get("call_id"))
    if kind.endswith("_call_output"):
        return Said(Kind.RESULT, _output(payload.get("output")), timestamp, call=call)
    if kind.endswith("_call"):
        named = payload.get("name") or kind.removesuffix("_call")
        given = next((payload[field] for field in ("arguments", "input", "action") if field in payload), None)
        return Said(Kind.CALL, values.line(named), timestamp, call=call, arguments=given)
    return None


def _words(content: object) -> str:
    """Return the text of parts; marks of the places of pictures are none."""
    parts: Sequence[Record] = [{"text": content}] if isinstance(content, str) else values.records(content)
    texts = (_PICTURE_MARK.sub("", values.text(part.get("text"))) for part in parts)
    return "\n".join(filter(str.strip, texts)).strip()


def _trimmed(text: object) -> str:
    return values.text(text).strip()


def _files(parts: Sequence[Record]) -> Iterator[ForeignFile]:
    for part in parts:
        if part.get("type") == "input_image":
            found = values.from_data_url(part.get("image_url"))
            media_type, data = found or ("", None)
            suffix = media_type.rpartition("/")[2]
            yield ForeignFile(f"image{'.' + suffix if suffix else ''}", media_type, data=data)


def _output(output: object) -> str:
    """Return the output of a tool, which older versions wrote as JSON in a text, with facts beside it."""
    if isinstance(output, str):
        try:
            inner = values.record(json.loads(output)).get("output") if output.startswith("{") else None
        except (ValueError, RecursionError):
            inner = None
        return values.text(inner if isinstance(inner, str) else output)
    if isinstance(output, dict):
        return _output(output.get("content"))
    return _words(output)
