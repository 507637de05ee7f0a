"""Prints the log of a persona."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.commands.wording import speaker
from chorus_cli.core.log.marks import marker
from chorus_cli.core.log.messages import is_reply_of_calls
from chorus_cli.core.log.operations import NO_NUMBERS, Numbers, Operation
from chorus_cli.core.time import timestamps
from chorus_cli.core.tools.calls import calls_in_words

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from datetime import datetime

    from chorus_cli.core.log.marks import LogMarks
    from chorus_cli.core.log.messages import Message
    from chorus_cli.terminal.screen.output import Screen


async def show_transcript(
    entries: AsyncIterator[Message | Operation],
    marks: LogMarks,
    persona: str,
    screen: Screen,
    numbers: Numbers = NO_NUMBERS,
) -> None:
    """Print each entry after its local time; ``numbers`` are those of the persona's threads."""
    async for entry in entries:
        if isinstance(entry, Operation):
            screen.line(f"[{_stamp(entry.created_at)}] {_marker(entry, numbers)}\n")
        elif not is_reply_of_calls(entry):
            screen.line(f"[{_stamp(entry.timestamp)}] {speaker(entry.role, persona)}: {_words(entry, marks)}\n")


def _stamp(moment: datetime) -> str:
    return f"{timestamps.local(moment):%Y-%m-%d %H:%M:%S}"


def _marker(boundary: Operation, numbers: Numbers) -> str:
    words = marker(boundary)
    if boundary.members:
        words = f"{words} {boundary.describe()}"
    if boundary.thread_id is None:
        return words
    return f"{words}, in thread #{numbers.thread(boundary.thread_id)}"


def _words(message: Message, marks: LogMarks) -> str:
    status = f"[{message.status}]" if message.status.broke_off else ""
    wording = "[another wording]" if message.revises is not None else ""
    behind = " ".join(filter(None, (status, wording, marks.words(message))))
    said = "\n".join(filter(None, (message.content, calls_in_words(message.tool_calls or ""))))
    return f"{said} {behind}".lstrip() if behind else said
