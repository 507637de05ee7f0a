"""Shared wording of times, counts, windows and operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.core.log.messages import Role
from chorus_cli.core.log.operations import Kind, Operation
from chorus_cli.core.log.runs import expanded
from chorus_cli.core.time import timestamps
from chorus_cli.core.time.timespan import format_span

if TYPE_CHECKING:
    from datetime import datetime

    from chorus_cli.core.log.messages import Message
    from chorus_cli.core.settings.jsonc import JsonValue
    from chorus_cli.core.time.timespan import Span, WindowChoice
    from chorus_cli.services.context.window import WindowState


_LONGEST_LINE = 60


def local(moment: datetime) -> str:
    """Format a moment in local time: ``Thu 2026-02-12 14:30``."""
    return f"{timestamps.local(moment):%a %Y-%m-%d %H:%M}"


def counted(number: int, thing: str) -> str:
    """Format a count with its noun: ``1 message``, ``1,200 messages``."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def shortened(text: str, longest: int = _LONGEST_LINE) -> str:
    """Return a text as one line, truncated to at most ``longest`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def speaker(role: Role, persona: str) -> str:
    """Return the speaker's name for a message of this role."""
    match role:
        case Role.USER:
            return "Human"
        case Role.ASSISTANT:
            return persona
        case Role.TOOL_USE | Role.TOOL_RESULT:
            return f"{persona} ({role})"


def reach(state: WindowState) -> str:
    """Say since when messages are in context, and name the boundary if it lies within the window."""
    since = f"Messages since {local(state.since)} are in context."
    return f"{since}\nThe context starts at {start(state.boundary)}." if state.boundary else since


def start(boundary: Operation) -> str:
    """Name the boundary that a context starts at: ``your /new of Thu 2026-02-12 14:30``."""
    moment = local(boundary.created_at)
    match boundary.kind:
        case Kind.CLEAR if boundary.begins:
            return f"the creation of this persona on {moment}"
        case Kind.RESTORE:
            return f"the session restored on {moment}"
        case Kind.EDIT:
            return f"your edit of {moment}"
        case _:
            return f"your /new of {moment}"


def confirmation(state: WindowState) -> str:
    """Confirm a new window, with a warning if it was clamped to the bounds."""
    lines = [state.warning, f"Context window set to {state.hours}h", reach(state)]
    return "\n".join(line for line in lines if line)


def rounding(span: Span, choice: WindowChoice) -> str:
    """Say that a length of time is rounded to hours; ``""`` for a moment, or if a warning says more."""
    if choice.warning or span.is_moment or span.seconds == choice.hours * 3600:
        return ""
    return f"{format_span(span.seconds)} is rounded to whole hours."


def deed(operation: Operation) -> str:
    """Say what an operation did."""
    match operation.kind:
        case Kind.CLEAR:
            return "this persona was made" if operation.begins else "new conversation"
        case Kind.WINDOW if operation.window is not None:
            return f"window {_hours(operation.window.before)} → {_hours(operation.window.after)}"
        case Kind.EDIT:
            return f"edit of the context, {counted(len(operation.members), 'message')} kept"
        case Kind.RESTORE:
            return f"restored session, {counted(len(operation.members), 'message')}"
        case Kind.COMPACT if operation.rewords:
            return "another wording of the summary"
        case Kind.COMPACT:
            return f"{counted(len(expanded(operation.folds)), 'message')} summarised"
        case Kind.RETRY:
            return "another reply to the last message"
        case Kind.UNDO | Kind.REDO if operation.subject is not None:
            subject = operation.subject
            what = (
                f"operation {subject.operation_id}" if subject.operation_id is not None else f"turn {subject.turn_id}"
            )
            return f"{operation.kind} of {what}"
        case _:
            return str(operation.kind)


def turn(question: Message) -> str:
    """Name a turn by the user's message in it."""
    said = shortened(question.content)
    return f'your message "{said}" and its reply' if question.role is Role.USER else f'the message "{said}"'


def _hours(value: JsonValue) -> str:
    """Format the ``context_hours`` of a settings file, which may hold any value written by hand."""
    return "default" if value is None else f"{value}h" if isinstance(value, int) else shortened(str(value))
