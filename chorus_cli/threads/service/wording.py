"""Sentences about replies in the background and about messages that wait for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.core.errors import ChorusError
from chorus_cli.core.text.phrases import counted, enumerated, shortened
from chorus_cli.models.rules.events import TurnDone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chorus_cli.personas.rules.persona import Target
    from chorus_cli.threads.service.running_turn import RunningTurn


def waiting_line(target: Target) -> str:
    """Say that a message waits for the end of the reply in its thread."""
    return (
        f"Your message waits for the reply in thread #{target.thread_number}; /undo takes it back. "
        "/thread new opens a thread that answers now."
    )


def left_line(target: Target) -> str:
    """Say that a reply goes on in the background."""
    return (
        f"The reply goes on in the background; /thread {target.thread_number} shows it. "
        "Messages here wait for it; /thread new opens another thread."
    )


def next_line(turn: RunningTurn) -> str:
    """Name the message that is being answered now, after it has waited."""
    return f"Next, your waiting message: {shortened(turn.text)}"


def ended_line(turn: RunningTurn, slug_in_focus: str) -> str:
    """Say how a reply in the background ended; its thread is named with its persona unless that is in focus."""
    persona, number = turn.target.persona, turn.target.thread_number
    place = turn.target.thread_label(slug_in_focus)
    if isinstance(turn.error, ChorusError):
        message = f'"{shortened(turn.text)}"' if turn.text else "/retry"
        return f"{message} in {place} was not answered: {turn.error}"
    about = f' to "{shortened(turn.text)}"' if turn.text else ""
    last = turn.events[-1] if turn.events else None
    end = "broke off" if isinstance(last, TurnDone) and last.error is not None else "is done"
    way = "" if persona.slug == slug_in_focus else f"/persona {persona.slug}, then "
    return f"The reply{about} in {place} {end}; {way}/thread {number} shows it."


def closing_lines(stopped: Sequence[RunningTurn], unsent: int) -> list[str]:
    """Say what the end of the chat broke off: these turns, and so many messages that waited."""
    lines = []
    if stopped:
        replies = counted(len(stopped), "reply", "replies")
        places = enumerated([f"thread #{turn.target.thread_number}" for turn in stopped])
        lines.append(f"Stopped: {replies} in {places}. What has come is kept; /retry asks again.")
    if unsent:
        kept = "kept as a draft" if unsent == 1 else "kept as drafts"
        lines.append(f"Not sent: {counted(unsent, 'message')}, {kept} for the next start.")
    return [*lines, *(str(turn.error) for turn in stopped if isinstance(turn.error, ChorusError))]
