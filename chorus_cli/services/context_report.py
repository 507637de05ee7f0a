"""What would be sent now, part by part with the reason for each, and what would stay out and why."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chorus_cli.core.assembly import usable
from chorus_cli.core.budget import TOKENS_PER_MESSAGE
from chorus_cli.core.message_tokens import tokens_of
from chorus_cli.core.messages import Status
from chorus_cli.core.meter import Meter

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from chorus_cli.core.assembly import Prompt
    from chorus_cli.core.budget import Budget
    from chorus_cli.core.exchange import PromptMessage
    from chorus_cli.core.messages import Message
    from chorus_cli.core.summary import Summary
    from chorus_cli.core.view import View
    from chorus_cli.ports import Clock
    from chorus_cli.services.context import Context
    from chorus_cli.services.place import Place
    from chorus_cli.storage.message_log import LeftOut


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the request, its tokens, and why it is in."""

    name: str
    tokens: int
    reason: str


@dataclass(frozen=True, slots=True)
class Omission:
    """Messages that stay out, their tokens as far as they are counted, and why."""

    reason: str
    messages: int
    tokens: int


@dataclass(frozen=True, slots=True)
class ContextReport:
    """The next request without the message that would open it."""

    place: Place
    budget: Budget
    view: View
    prompt: Prompt
    parts: tuple[Part, ...]
    omissions: tuple[Omission, ...]

    @property
    def meter(self) -> Meter:
        """How full the request is, in tokens as the provider is expected to count them."""
        return _metered(self.prompt, self.budget)

    def as_json(self) -> dict[str, object]:
        """Return the report in the shape that ``chorus context --json`` promises."""
        return {
            "persona": self.place.persona.slug,
            "thread": self.place.thread_id,
            "model": self.place.choice.model,
            "limit": self.budget.limit.tokens,
            "budget": self.budget.tokens,
            "tokens": self.meter.tokens,
            "parts": [{"name": part.name, "tokens": part.tokens, "reason": part.reason} for part in self.parts],
            "left_out": [
                {"reason": omission.reason, "messages": omission.messages, "tokens": omission.tokens}
                for omission in self.omissions
            ],
            "messages": [_as_json(message) for message in self.prompt.messages],
        }


async def context_report(context: Context, clock: Clock, place: Place) -> ContextReport:
    """Measure the context of ``place`` as it is now; nothing is sent and nothing changes."""
    view, prompt, allowed = await _measured(context, clock, place)
    folded = usable(view.folded)
    unreached = await context.left_out(place, view)
    omissions = [
        _unreached("before the boundary", unreached["boundary"]),
        _unreached("older than the window", unreached["age"]),
        _omission("taken back", view.taken_back),
        _omission("summarised", folded),
        _omission("no room in the budget", prompt.too_large),
        _omission("still being written", [row for row in view.messages if row.status is Status.STREAMING]),
    ]
    kept = tuple(omission for omission in omissions if omission.messages)
    return ContextReport(place, allowed, view, prompt, _parts(place, prompt, view), kept)


async def meter(context: Context, clock: Clock, place: Place) -> Meter:
    """Return how full the next request is."""
    _, prompt, allowed = await _measured(context, clock, place)
    return _metered(prompt, allowed)


def _metered(prompt: Prompt, allowed: Budget) -> Meter:
    return Meter(allowed.corrected(prompt.tokens), allowed.limit.tokens, allowed.tokens)


async def _measured(context: Context, clock: Clock, place: Place) -> tuple[View, Prompt, Budget]:
    view, operations = await context.standing(place, clock.now())
    foundation = (await context.foundation(place.persona)).with_summary(view.summary)
    allowed = await context.budget(place, operations)
    return view, await context.assembled(foundation, view.verbatim, allowed.room), allowed


def _parts(place: Place, prompt: Prompt, view: View) -> tuple[Part, ...]:
    documents = place.persona.documents
    hours = place.persona.settings.context_hours
    names = ", ".join(document.name for document in documents)
    since = " since the boundary" if view.base is not None else ""
    foundation = prompt.foundation
    parts = [
        Part("system prompt", foundation.system_prompt_tokens + TOKENS_PER_MESSAGE, "always sent"),
        Part("documents", foundation.document_tokens, names or f"no .md files in docs of {place.persona.slug}"),
    ]
    if view.summary is not None and foundation.summary_tokens:
        parts.append(Part("summary", foundation.summary_tokens, _stands_for(view, view.summary)))
    cut = f", {len(prompt.cut)} of them without the middle" if prompt.cut else ""
    parts.append(Part("messages", prompt.message_tokens, f"{len(prompt.sent)} in the {hours}h window{since}{cut}"))
    return tuple(parts)


def _stands_for(view: View, summary: Summary) -> str:
    number = len(usable(view.folded))
    return f"stands for the {number} messages before, as of operation {summary.operation_id}"


def _unreached(reason: str, left_out: LeftOut) -> Omission:
    return Omission(reason, left_out.messages, left_out.tokens + left_out.messages * TOKENS_PER_MESSAGE)


def _omission(reason: str, messages: Iterable[Message]) -> Omission:
    found: Sequence[Message] = list(messages)
    return Omission(reason, len(found), sum(map(tokens_of, found)))


def _as_json(message: PromptMessage) -> dict[str, object]:
    shown: dict[str, object] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        shown["tool_calls"] = json.loads(message.tool_calls)
    if message.tool_call_id:
        shown["tool_call_id"] = message.tool_call_id
    return shown
