"""Shared wording of times, counts, windows and operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.core.text.phrases import shortened
from chorus_cli.core.time import timestamps
from chorus_cli.log.rules.calls import calls_in_words
from chorus_cli.log.rules.journal import marker
from chorus_cli.log.rules.messages import Role, words_of
from chorus_cli.log.rules.operations import Operation

if TYPE_CHECKING:
    from datetime import datetime

    from chorus_cli.log.rules.journal import LogMarks
    from chorus_cli.log.rules.messages import Message, Thought
    from chorus_cli.log.rules.operations import Numbers


def local(moment: datetime) -> str:
    """Format a moment in local time: ``Thu 2026-02-12 14:30``."""
    return f"{timestamps.local(moment):%a %Y-%m-%d %H:%M}"


def speaker(role: Role, persona: str) -> str:
    """Return the speaker's name for a message of this role."""
    match role:
        case Role.USER:
            return "Human"
        case Role.ASSISTANT:
            return persona
        case Role.TOOL_USE | Role.TOOL_RESULT:
            return f"{persona} ({role})"


def log_entry(
    entry: Message | Operation, marks: LogMarks, persona: str, numbers: Numbers | None = None, thoughts: str = ""
) -> str:
    """Write a message or a boundary of the log after its local time; with ``numbers``, a boundary names its thread.

    A line before the words of a reply says how long its model thought; with ``thoughts``, these follow in it.
    """
    if isinstance(entry, Operation):
        return f"[{_stamp(entry.created_at)}] {_marker(entry, numbers)}"
    said = "\n".join(filter(None, (_thought(entry.thought, thoughts), _said(entry, marks))))
    return f"[{_stamp(entry.timestamp)}] {speaker(entry.role, persona)}: {said}"


def _thought(thought: Thought | None, text: str) -> str:
    if thought is None:
        return ""
    return f"[{thought.words}:\n{text.strip()}]" if text.strip() else f"[{thought.words}]"


def _stamp(moment: datetime) -> str:
    return f"{timestamps.local(moment):%Y-%m-%d %H:%M:%S}"


def _marker(boundary: Operation, numbers: Numbers | None) -> str:
    words = marker(boundary)
    if boundary.members:
        words = f"{words} {boundary.describe()}"
    if numbers is None or boundary.thread_id is None:
        return words
    return f"{words}, in thread #{numbers.thread(boundary.thread_id)}"


def _said(message: Message, marks: LogMarks) -> str:
    status = f"[{message.status}]" if message.status.broke_off else ""
    wording = "[another wording]" if message.revises is not None else ""
    behind = " ".join(filter(None, (status, wording, marks.words(message))))
    said = "\n".join(filter(None, (words_of(message), calls_in_words(message.tool_calls or ""))))
    return f"{said} {behind}".lstrip() if behind else said


def reach(since: datetime, boundary: Operation | None) -> str:
    """Say since when messages are in context, and name the boundary if it lies within the window."""
    told = f"Messages since {local(since)} are in context."
    if boundary is None or boundary.created_at <= since:
        return told
    return f"{told}\nThe context starts at {start(boundary)}."


def start(boundary: Operation) -> str:
    """Name the boundary that a context starts at: ``your /new of Thu 2026-02-12 14:30``."""
    return f"{boundary.act.start} {local(boundary.created_at)}"


def turn(question: Message, *, is_answered: bool) -> str:
    """Name a turn by the user's message in it."""
    said = shortened(question.content)
    with_reply = " and its reply" if is_answered else ""
    if not said and not question.attachments:
        return f"a purged message{with_reply}"
    return f'your message "{said}"{with_reply}' if question.role is Role.USER else f'the message "{said}"'
