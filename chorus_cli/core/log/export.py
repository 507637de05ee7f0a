"""A conversation as a document: Markdown to be read, by people and by other programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chorus_cli.core.log.marks import NO_MARKS, LogMarks, marker
from chorus_cli.core.log.messages import Message, Role
from chorus_cli.core.time import timestamps

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from chorus_cli.core.log.operations import Operation

_SHORTEST_FENCE = 3


@dataclass(frozen=True, slots=True)
class Export:
    """What is written down: messages with the boundaries between them, of whom, and when.

    ``is_whole`` says that it is everything that was ever said in the thread, not only what is in context; ``marks``
    what of that was taken back.
    """

    persona: str
    name: str
    thread_id: int
    exported_at: datetime
    is_whole: bool
    entries: tuple[Message | Operation, ...]
    marks: LogMarks = NO_MARKS

    @property
    def messages(self) -> list[Message]:
        """The messages alone."""
        return [entry for entry in self.entries if isinstance(entry, Message)]


def markdown(export: Export) -> str:
    """Write an export as Markdown: a heading for each message, below it the words as they were stored."""
    what = "everything that was said" if export.is_whole else "what was in context"
    count = len(export.messages)
    head = (
        f"# {' '.join(export.name.split())}\n\n"
        f"Thread #{export.thread_id}, {what}: {count:,} message{'s' if count != 1 else ''}, "
        f"exported on {_local(export.exported_at)}."
    )
    return "\n\n".join([head, *(_entry(entry, export) for entry in export.entries)]) + "\n"


def _entry(entry: Message | Operation, export: Export) -> str:
    if not isinstance(entry, Message):
        return f"---\n\n*{marker(entry)} {_local(entry.created_at)}*"
    parts = [f"## {_speaker(entry.role, export.name)}, {_local(entry.timestamp)}", _body(entry)]
    if entry.tool_calls:
        parts.append(_fenced(entry.tool_calls, "json"))
    if entry.status.broke_off:
        parts.append(f"*[{entry.status}]*")
    if words := export.marks.words(entry):
        parts.append(f"*{words}*")
    return "\n\n".join(part for part in parts if part)


def _body(message: Message) -> str:
    content = message.content.strip("\n")
    return _fenced(content, "") if message.role is Role.TOOL_RESULT and content else content


def _fenced(text: str, language: str) -> str:
    """Return a block of code that nothing in the text can end."""
    longest = max((len(run) for run in _runs(text)), default=0)
    fence = "`" * max(_SHORTEST_FENCE, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _runs(text: str) -> Sequence[str]:
    """Return the runs of backticks in a text."""
    return "".join(sign if sign == "`" else " " for sign in text).split()


def _speaker(role: Role, name: str) -> str:
    match role:
        case Role.USER:
            return "Human"
        case Role.ASSISTANT:
            return " ".join(name.split())
        case Role.TOOL_USE:
            return f"{' '.join(name.split())} calls a tool"
        case Role.TOOL_RESULT:
            return "The tool answers"


def _local(moment: datetime) -> str:
    return f"{timestamps.local(moment):%Y-%m-%d %H:%M:%S}"
