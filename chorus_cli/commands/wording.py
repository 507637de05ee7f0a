"""How moments and operations are put into words, in one way everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.core.log.messages import Role
from chorus_cli.core.text.phrases import shortened
from chorus_cli.core.time import timestamps
from chorus_cli.core.time.timespan import format_span

if TYPE_CHECKING:
    from datetime import datetime

    from chorus_cli.core.log.messages import Message
    from chorus_cli.core.time.timespan import Span, WindowChoice
    from chorus_cli.services.context.window import WindowState


_LONGEST_LINE = 60


def local(moment: datetime) -> str:
    """Write a moment in the local time that held then: ``Thu 2026-02-12 14:30``."""
    return f"{timestamps.local(moment):%a %Y-%m-%d %H:%M}"


def speaker(role: Role, persona: str) -> str:
    """Name who says a message."""
    match role:
        case Role.USER:
            return "Human"
        case Role.ASSISTANT:
            return persona
        case Role.TOOL_USE | Role.TOOL_RESULT:
            return f"{persona} ({role})"


def reach(state: WindowState) -> str:
    """Say since when messages are in context, and what binds when a boundary is nearer than the window."""
    since = f"Messages since {local(state.since)} are in context."
    if state.boundary is None:
        return since
    boundary = f"{state.boundary.describe()} of {local(state.boundary.created_at)}"
    return f"{since}\nA boundary is nearer and is what binds: {boundary}."


def confirmation(state: WindowState) -> str:
    """Confirm a window that was set, with the warning if it had to be brought within bounds."""
    lines = [state.warning, f"Context window set to {state.hours}h", reach(state)]
    return "\n".join(line for line in lines if line)


def rounding(span: Span, choice: WindowChoice) -> str:
    """Say that a length of time is no whole number of hours; a moment needs no such word, nor does a warning."""
    if choice.warning or span.is_moment or span.seconds == choice.hours * 3600:
        return ""
    return f"{format_span(span.seconds)} is rounded to whole hours."


def turn(question: Message) -> str:
    """Name a turn by what the user said in it."""
    said = shortened(question.content)
    return f'your message "{said}" and its reply' if question.role is Role.USER else f'the message "{said}"'
