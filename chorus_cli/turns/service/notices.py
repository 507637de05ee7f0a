"""Notices of a turn: why a message is refused, and which part of the context is not in its request."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

from chorus_cli.core.errors import MessageRefusedError, SettingsError
from chorus_cli.core.text.phrases import counted
from chorus_cli.core.time.timeline import MAXIMUM_CONTEXT_HOURS, window_reaching
from chorus_cli.core.time.timestamps import cutoff
from chorus_cli.models.rules.budget import TOKENS_PER_MESSAGE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from chorus_cli.context.rules.plan import RequestPlan
    from chorus_cli.context.rules.view import ContextSnapshot
    from chorus_cli.memory.rules.items import FlashReport
    from chorus_cli.personas.rules.persona import Persona, Target


def refuse_unreadable_settings(persona: Persona) -> None:
    """Refuse to send a request without the prompt of a persona, and perhaps to another model than it names."""
    if persona.unreadable:
        reasons = (_place(path, persona.warnings) for path in persona.unreadable)
        raise SettingsError(
            f"Nothing was sent: settings of {persona.name} cannot be read, so that its prompt may be missing. "
            f"Mend {' and '.join(reasons)} and ask again."
        )


def _place(path: str, warnings: Sequence[str]) -> str:
    """Return the path of a settings file with the line and column that a warning about it begins with, if one does."""
    places = (re.match(rf"{re.escape(path)}:\d+:\d+(?=:)", warning) for warning in warnings)
    return next((place[0] for place in places if place), path)


def refuse_unfitting(snapshot: ContextSnapshot, message_tokens: int, *, preamble_tokens: int = 0) -> None:
    """Refuse a message that does not fit the model, even alone; the sentence has all sizes."""
    if not fits(snapshot, preamble_tokens + message_tokens):
        raise _unfitting(snapshot, message_tokens)


def fits(snapshot: ContextSnapshot, message_tokens: int) -> bool:
    """Return whether a message of so many estimated tokens, its preamble included, fits the model alone."""
    return snapshot.request_settings.fixed_tokens + message_tokens + TOKENS_PER_MESSAGE <= snapshot.budget.room.budget


def _unfitting(snapshot: ContextSnapshot, message_tokens: int) -> MessageRefusedError:
    target, budget = snapshot.request_settings.target, snapshot.budget
    measured, model = snapshot.request_settings.system_prompt, target.choice.model
    system = budget.corrected(measured.prompt_tokens + measured.document_tokens + TOKENS_PER_MESSAGE)
    if system >= budget.tokens:
        return MessageRefusedError(
            f"{target.persona.name} leaves no room for a message: the system prompt has "
            f"~{budget.corrected(measured.prompt_tokens):,} tokens and the documents "
            f"{budget.corrected(measured.document_tokens):,}, but a request to {model} may have {budget.tokens:,}. "
            "The message was not stored; shorten them, or choose a model with a larger limit."
        )
    return MessageRefusedError(
        f"The message is too large for {model}: it has ~{budget.corrected(message_tokens):,} tokens and "
        f"the system prompt and documents {system:,}, but a request may have "
        f"{budget.tokens:,} of the model's {budget.limit.tokens:,}. It was not stored; shorten it or choose a model "
        "with a larger limit."
    )


def reopened_notice(target: Target) -> str:
    """Say that the thread of a turn was closed and is open again."""
    return f"Thread #{target.thread_number} was closed by another Chorus; it is open again."


def flash_notice(report: FlashReport) -> str:
    """Say that COLD items were archived, and how they come back."""
    archived = counted(report.items_archived, "COLD memory item")
    was = "was" if report.items_archived == 1 else "were"
    return f"{archived} {was} archived; /memory restore {report.checkpoint_id} reverts this."


def shortfalls(plan: RequestPlan) -> dict[str, str]:
    """Say which parts of the context are not, or not whole, in a request; each sentence under its subject."""
    model = plan.snapshot.request_settings.target.choice.model
    found: dict[str, str] = {}
    if number := len(plan.too_large):
        found["left out"] = (
            f"The oldest {counted(number, 'message')} in the window did not fit {model} and stayed out of this "
            "request. All are still in the log."
        )
    if plan.summary is None and plan.snapshot.view.summary is not None:
        found["summary"] = (
            "The summary of the earlier conversation did not fit beside your message and stayed out of this request."
        )
    if number := len(plan.cut):
        found["cut"] = (
            f"{counted(number, 'message')} did not fit {model} whole and went without the middle. "
            "The log has all of it."
        )
    return found


def members_notice(snapshot: ContextSnapshot, last_window: datetime | None, now: datetime) -> str:
    """Say that the members of an edit or a restore have left the window since the ``last_window`` of a request."""
    boundary, hours = snapshot.view.boundary, snapshot.request_settings.target.persona.settings.context_hours
    if boundary is None or not boundary.members or boundary.created_at > snapshot.view.cutoff:
        return ""
    if snapshot.last_spoken is not None and boundary.created_at <= (last_window or cutoff(snapshot.last_spoken, hours)):
        return ""
    number = len(boundary.members)
    have, them = ("has", "it") if number == 1 else ("have", "them")
    lead = f"The {counted(number, 'message')} of the {boundary.act.kind} {have} left the {hours}h window"
    age = now - boundary.created_at
    if age >= timedelta(hours=MAXIMUM_CONTEXT_HOURS):
        return f"{lead}, and no window reaches back that far. /context edit shows {them}."
    return f"{lead}. /context {window_reaching(age)}h brings {them} back."
