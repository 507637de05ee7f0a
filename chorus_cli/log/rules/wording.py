"""Wording of times, boundaries and turns; the log and a conversation as text, Markdown and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType

from chorus_cli.core.text.phrases import counted, fenced, has_controls, quotation, shortened, with_references
from chorus_cli.core.time import timestamps
from chorus_cli.log.rules.attachments import as_json, with_lines
from chorus_cli.log.rules.calls import calls_in_words
from chorus_cli.log.rules.journal import NO_MARKS, LogMarks, marker
from chorus_cli.log.rules.messages import Message, Role, Thoughts, is_written, words_of
from chorus_cli.log.rules.operations import NO_NUMBERS, Numbers, Operation
from chorus_cli.log.rules.speakers import Speakers


def local(moment: datetime) -> str:
    """Format a moment in local time: ``Thu 2026-02-12 14:30``."""
    return f"{timestamps.local(moment):%a %Y-%m-%d %H:%M}"


def told_by(role: Role, names: Speakers) -> str:
    """Return who says a message of this role, in words for people and models."""
    match role:
        case Role.USER:
            return names.user
        case Role.ASSISTANT:
            return names.persona
        case Role.TOOL_USE:
            return f"{names.persona} calls a tool"
        case Role.TOOL_RESULT:
            return "The tool answers"


def log_entry(
    entry: Message | Operation, marks: LogMarks, names: Speakers, numbers: Numbers | None = None, thoughts: str = ""
) -> str:
    """Write a message after its ``thoughts``, or a boundary of the log; ``numbers`` give the thread of a boundary."""
    if isinstance(entry, Operation):
        words = f"{marker(entry)} {entry.describe()}" if entry.members else marker(entry)
        where = ""
        if numbers is not None and entry.thread_id is not None:
            where = f", in thread #{numbers.thread(entry.thread_id)}"
        return f"[{_stamp(entry.created_at)}] {words}{where}"
    thought = entry.thought.words if entry.thought is not None else ""
    before = f"[{thought}:\n{thoughts.strip()}]" if thoughts.strip() else f"[{thought}]"
    said = "\n".join(filter(None, (before if thought else "", _said(entry, marks))))
    return f"[{_stamp(entry.timestamp)}] {told_by(entry.role, names)}: {said}"


def _stamp(moment: datetime) -> str:
    return f"{timestamps.local(moment):%Y-%m-%d %H:%M:%S}"


def _said(message: Message, marks: LogMarks) -> str:
    status = f"[{message.status}]" if message.status.broke_off else ""
    wording = "[another wording]" if message.revises is not None else ""
    behind = " ".join(filter(None, (status, wording, marks.words(message))))
    said = "\n".join(filter(None, (words_of(message), calls_in_words(message.tool_calls or ""))))
    return f"{said} {behind}".lstrip() if behind else said


def reach(since: datetime, boundary: Operation | None, *, is_preview: bool = False) -> str:
    """Say since when messages are in context, or would be (``is_preview``), and name a boundary within the window."""
    reached = "of any age" if since == timestamps.BEGINNING else f"since {local(since)}"
    told = f"Messages {reached} {'would be' if is_preview else 'are'} in context."
    if boundary is None or boundary.created_at <= since:
        return told
    return f"{told}\nThe context starts at {start(boundary)}."


def start(boundary: Operation) -> str:
    """Name the boundary at which a context starts: ``your /new of Thu 2026-02-12 14:30``."""
    return f"{boundary.act.start} {local(boundary.created_at)}"


def turn(question: Message, *, is_answered: bool) -> str:
    """Name a turn by the message that opened it."""
    said = shortened(question.content)
    with_reply = " and its reply" if is_answered else ""
    if not said and not question.attachments:
        return f"a purged message{with_reply}"
    return f'your message "{said}"{with_reply}' if question.role is Role.USER else f'the message "{said}"'


@dataclass(frozen=True, slots=True)
class Export:
    """The messages of a thread, or only those in its context, with the boundaries between them."""

    persona: str
    names: Speakers
    thread_id: int
    exported_at: datetime
    is_whole: bool
    entries: tuple[Message | Operation, ...]
    marks: LogMarks = NO_MARKS
    numbers: Numbers = NO_NUMBERS
    thoughts: Mapping[int, Thoughts] = field(default_factory=dict)

    @property
    def messages(self) -> list[Message]:
        """The entries that are messages."""
        return [entry for entry in self.entries if isinstance(entry, Message)]


def without_empty_replies(entries: Iterable[Message | Operation]) -> tuple[Message | Operation, ...]:
    """Return the entries without the rows of replies that failed before the first word or thought."""
    return tuple(
        entry for entry in entries if not isinstance(entry, Message) or is_written(entry) or entry.thought is not None
    )


def document(export: Export, *, is_json: bool) -> str:
    """Write an export as JSON or as Markdown."""
    if not is_json:
        return markdown(export)
    value = {
        "persona": export.persona,
        "name": export.names.persona,
        "thread": export.numbers.thread(export.thread_id),
        "exported_at": timestamps.to_text(export.exported_at),
        "whole_thread": export.is_whole,
        "messages": [
            message_as_json(message, export.numbers, export.marks, export.thoughts.get(message.id))
            for message in export.messages
        ],
    }
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def markdown(export: Export) -> str:
    """Write an export as Markdown: a heading and the words of each message; control characters are escaped."""
    what = "everything that was said" if export.is_whole else "what was in context"
    amount, thread = counted(len(export.messages), "message"), export.numbers.thread(export.thread_id)
    head = (
        f"# {' '.join(export.names.persona.split())}\n\n"
        f"Thread #{thread}, {what}: {amount}, exported on {_stamp(export.exported_at)}."
    )
    text = "\n\n".join([head, *(_entry(entry, export) for entry in export.entries)]) + "\n"
    return with_references(text) if has_controls(text) else text


def _entry(entry: Message | Operation, export: Export) -> str:
    if not isinstance(entry, Message):
        return f"---\n\n*{marker(entry)} {_stamp(entry.created_at)}*"
    text, _ = export.thoughts.get(entry.id, Thoughts())
    thought = [f"*{entry.thought.words}*", text.strip("\n")] if entry.thought is not None else []
    content = with_lines(entry.content.strip("\n"), entry.attachments)
    parts = [
        f"## {' '.join(told_by(entry.role, export.names).split())}, {_stamp(entry.timestamp)}",
        quotation("\n\n".join(filter(None, thought))) if thought else "",
        fenced(content) if entry.role is Role.TOOL_RESULT and content else content,
    ]
    if entry.tool_calls:
        parts.append(fenced(entry.tool_calls, "json"))
    if entry.status.broke_off:
        parts.append(f"*[{entry.status}]*")
    if words := export.marks.words(entry):
        parts.append(f"*{words}*")
    return "\n\n".join(part for part in parts if part)


def entry_as_json(
    entry: Message | Operation,
    marks: LogMarks,
    numbers: Numbers = NO_NUMBERS,
    thoughts: Mapping[int, Thoughts] = MappingProxyType({}),
) -> dict[str, object]:
    """Return a message or boundary as JSON; only a boundary has a ``marker``. ``thoughts`` are keyed by message id."""
    if isinstance(entry, Message):
        return message_as_json(entry, numbers, marks, thoughts.get(entry.id))
    return {
        "marker": marker(entry),
        "operation": entry.number,
        "kind": entry.act.kind,
        "thread": None if entry.thread_id is None else numbers.thread(entry.thread_id),
        "timestamp": timestamps.to_text(entry.created_at),
        "members": list(entry.members),
    }


def message_as_json(
    message: Message, numbers: Numbers, marks: LogMarks | None = None, thoughts: Thoughts | None = None
) -> dict[str, object]:
    """Return a message as JSON; ``numbers`` name its thread and operation, ``marks`` show undos and replacements."""
    fields: dict[str, object] = {
        "id": message.id,
        "persona": message.persona,
        "thread": numbers.thread(message.thread_id),
        "turn": message.turn_id,
        "role": message.role,
        "content": message.content,
        "timestamp": timestamps.to_text(message.timestamp),
        "status": message.status,
        "model": message.model,
        "tokens": message.token_count,
        "introduced_by": None if message.introduced_by is None else numbers.operation(message.introduced_by),
    }
    text, parts = thoughts or Thoughts()
    seldom = {
        "tool_calls": message.tool_calls,
        "tool_call_id": message.tool_call_id,
        "attachments": [as_json(each) for each in message.attachments] or None,
        "thoughts": text or None,
        "thought_parts": parts or None,
        "thought_seconds": message.thought.seconds if message.thought else None,
        "thought_tokens": message.thought.tokens if message.thought else None,
    }
    fields |= {name: value for name, value in seldom.items() if value is not None}
    if marks is not None:
        fields |= {"undone": marks.is_undone(message), "replaced": marks.is_replaced(message)}
    return fields
