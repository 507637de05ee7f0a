"""Sessions of Qwen Code: lines that name their parents as in Claude Code, with messages in parts as in Gemini's API.

Each line is turned into the line that Claude Code would have written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from chorus_cli.core.json import values
from chorus_cli.imports.rules import claude_code
from chorus_cli.imports.rules.assembly import FileFacts
from chorus_cli.imports.rules.conversation import ForeignConversation
from chorus_cli.imports.rules.gemini_cli import words_of_result

SOURCE = "qwen-code"

_ADDED_BY_HOOK = "<qwen:user-prompt-submit-context>"
_SAID = {"", "mid_turn_user_message", "realtime_message"}


def is_beginning(first: Sequence[object]) -> bool:
    """Return whether one of a file's first values is a line of Qwen Code."""
    lines = [line for line in map(values.record, first) if {"parentUuid", "sessionId"} <= line.keys()]
    return any("systemPayload" in line or "parts" in values.record(line.get("message")) for line in lines)


def conversation_of(lines: Iterable[object], file: FileFacts) -> ForeignConversation:
    """Turn the lines into lines of Claude Code, and read a session from them."""
    return claude_code.conversation_of(_translated(lines), file, SOURCE)


def _translated(lines: Iterable[object]) -> Iterator[object]:
    written: Counter[str] = Counter()
    for line in lines:
        record = values.record(line)
        title = values.record(record.get("systemPayload")).get("customTitle")
        if title is not None:
            yield {"type": "custom-title", "customTitle": title}
        key = values.identifier(record.get("uuid"))
        written[key] += 1
        yield _as_claude_code(record, key, written[key]) if record else line or None


def _as_claude_code(record: values.Record, key: str, number: int) -> values.Record:
    """Return a line as Claude Code would have written it: the ``number``-th piece of the message ``key``."""
    found = {
        **record,
        "type": _kind(record),
        "isMeta": record.get("type") != "user" or values.line(record.get("subtype")) not in _SAID,
        "message": {"id": key, "model": record.get("model"), "content": [*map(_block, _parts(record))]},
    }
    is_more = key and number > 1 and record.get("type") != "user"
    return {**found, "uuid": f"{key}#{number}", "parentUuid": key} if is_more else found


def _kind(record: values.Record) -> str:
    match record.get("type"), record.get("subtype"):
        case ("tool_result", "code_mode_tool_result"):
            return "system"
        # A rewind becomes a message without words, from which the session goes on; without a parent, it is a new root.
        case ("user" | "tool_result", _) | ("system", "rewind"):
            return "user"
        case ("assistant", _):
            return "assistant"
    return "system"


def _parts(record: values.Record) -> Sequence[values.Record]:
    """Return a message's parts: of a result only the answers, of the user's message only parts that the user saw."""
    parts = values.records(values.record(record.get("message")).get("parts"))
    if record.get("type") == "tool_result":
        return [part for part in parts if "functionResponse" in part]
    if record.get("type") != "user":
        return parts
    shown = values.text(values.record(record.get("systemPayload")).get("displayText"))
    if shown:
        parts = [{"text": shown}, *(part for part in parts if "text" not in part)]
    return [part for part in parts if not values.text(part.get("text")).startswith(_ADDED_BY_HOOK)]


def _block(part: values.Record) -> values.Record:
    names = ("functionCall", "functionResponse", "inlineData")
    call, answer, file = (values.record(part.get(name)) for name in names)
    if call:
        return {"type": "tool_use", "id": call.get("id"), "name": call.get("name"), "input": call.get("args")}
    if answer:
        return {"type": "tool_result", "tool_use_id": answer.get("id"), "content": words_of_result([part])}
    if file:
        media_type = values.line(file.get("mimeType"))
        kind = "image" if media_type.startswith("image/") else "document"
        source = {"media_type": media_type, "data": file.get("data")}
        return {"type": kind, "title": file.get("displayName"), "source": source}
    kind = "thinking" if part.get("thought") is True else "text"
    return {"type": kind, kind: part.get("text")}
