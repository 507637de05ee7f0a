"""What would be sent now, part by part with the reason for each, and what would stay out and why."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from chorus_cli.core.context.assembly import usable
from chorus_cli.core.context.budget import TOKENS_PER_MESSAGE
from chorus_cli.core.context.meter import Meter
from chorus_cli.core.context.tokens import tokens_of
from chorus_cli.core.log.messages import Role, Status
from chorus_cli.storage.sqlite.context.left_out_rows import left_out
from chorus_cli.storage.sqlite.context.rows import view_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from chorus_cli.core.context.assembly import Prompt
    from chorus_cli.core.context.budget import Budget
    from chorus_cli.core.context.snapshot import Target
    from chorus_cli.core.context.summary import Summary
    from chorus_cli.core.context.view import View
    from chorus_cli.core.log.messages import Message
    from chorus_cli.core.log.operations import Operation
    from chorus_cli.core.models.exchange import PromptMessage
    from chorus_cli.ports import Clock
    from chorus_cli.services.context.context import Context
    from chorus_cli.storage.sqlite.context.left_out_rows import LeftOut
    from chorus_cli.storage.sqlite.context.rows import ContextRows
    from chorus_cli.storage.sqlite.store import Connection


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the request, its tokens as the provider is expected to count them, and why it is in."""

    name: str
    tokens: int
    reason: str


@dataclass(frozen=True, slots=True)
class Omission:
    """Messages that stay out, the tokens expected of them as far as they are counted, and why."""

    reason: str
    messages: int
    tokens: int


@dataclass(frozen=True, slots=True)
class ContextReport:
    """The next request without the message that would open it."""

    target: Target
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
            "persona": self.target.persona.slug,
            "thread": self.target.thread_id,
            "model": self.target.choice.model,
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


async def context_report(context: Context, clock: Clock, target: Target) -> ContextReport:
    """Measure the context of ``place`` as it is now; nothing is sent and nothing changes."""
    rows, unreached = await context.store.read(_read, context, target, clock.now())
    view = await context.view(target, rows)
    prompt, allowed = await _measured(context, target, view, rows.operations)
    parts = _parts(target, prompt, view)
    expected = allowed.corrected_parts([part.tokens for part in parts])
    parts = tuple(replace(part, tokens=tokens) for part, tokens in zip(parts, expected, strict=True))
    omissions = tuple(
        replace(omission, tokens=allowed.corrected(omission.tokens)) for omission in _omissions(view, prompt, unreached)
    )
    return ContextReport(target, allowed, view, prompt, parts, omissions)


async def meter(context: Context, clock: Clock, target: Target) -> Meter:
    """Return how full the next request is."""
    view, operations = await context.standing(target, clock.now())
    return _metered(*await _measured(context, target, view, operations))


def _metered(prompt: Prompt, allowed: Budget) -> Meter:
    return Meter(allowed.corrected(prompt.tokens), allowed.limit.tokens, allowed.tokens)


def _read(
    connection: Connection, context: Context, target: Target, now: datetime
) -> tuple[ContextRows, Mapping[str, LeftOut]]:
    """Read what is in context and count the rest of the thread in one go, so that nothing falls between the two."""
    rows = context.rows(connection, target, now)
    rest = left_out(connection, target.persona.slug, target.thread_id, view_of(rows, target.thread_id))
    return rows, rest


async def _measured(
    context: Context, target: Target, view: View, operations: Sequence[Operation]
) -> tuple[Prompt, Budget]:
    foundation = (await context.foundation(target.persona)).with_summary(view.summary)
    allowed = await context.budget(target, operations)
    return await context.assembled(target, foundation, view.verbatim, allowed.room), allowed


def _omissions(view: View, prompt: Prompt, unreached: Mapping[str, LeftOut]) -> tuple[Omission, ...]:
    """Return what is not sent, each message of the thread under one reason."""
    folded = usable(view.folded)
    accounted = {row.id for row in (*prompt.sent, *prompt.too_large, *folded)}
    others = [row for row in view.messages if row.id not in accounted]
    running = [row for row in others if row.status is Status.STREAMING]
    unusable = [row for row in others if row.status is not Status.STREAMING and _says_something(row)]
    repeated = [row for row in unusable if row.role is Role.USER and row.content.strip()]
    blank = [row for row in unusable if row not in repeated]
    found = [
        _unreached("before the boundary", unreached.get("boundary")),
        _unreached("older than the window", unreached.get("age")),
        _together(
            _omission("taken back", filter(_says_something, view.taken_back)),
            _unreached("taken back", unreached.get("taken back")),
        ),
        _unreached("put in by what was undone", unreached.get("withdrawn")),
        _omission("summarised", folded),
        _omission("no room in the budget", prompt.too_large),
        _omission("still being written", running),
        _omission("failed, and said again", repeated),
        _omission("blank, or half of a tool's call", blank),
    ]
    return tuple(omission for omission in found if omission.messages)


def _says_something(row: Message) -> bool:
    """Return whether a row is more than the empty place of a reply that never came."""
    return bool(row.content or row.tool_calls)


def _parts(target: Target, prompt: Prompt, view: View) -> tuple[Part, ...]:
    documents = target.persona.documents
    hours = target.persona.settings.context_hours
    names = ", ".join(document.name for document in documents)
    since = " since the boundary" if view.base is not None else ""
    foundation = prompt.foundation
    parts = [
        Part("system prompt", foundation.system_prompt_tokens + TOKENS_PER_MESSAGE, "always sent"),
        Part("documents", foundation.document_tokens, names or f"no .md files in docs of {target.persona.slug}"),
    ]
    if view.summary is not None and foundation.summary_tokens:
        parts.append(Part("summary", foundation.summary_tokens, _stands_for(view, view.summary)))
    cut = f", {len(prompt.cut)} of them without the middle" if prompt.cut else ""
    parts.append(Part("messages", prompt.message_tokens, f"{len(prompt.sent)} in the {hours}h window{since}{cut}"))
    return tuple(parts)


def _stands_for(view: View, summary: Summary) -> str:
    number = len(usable(view.folded))
    return f"stands for the {number} messages before, as of operation {summary.operation_id}"


def _unreached(reason: str, found: LeftOut | None) -> Omission:
    messages, tokens = (found.messages, found.tokens) if found else (0, 0)
    return Omission(reason, messages, tokens + messages * TOKENS_PER_MESSAGE)


def _together(one: Omission, other: Omission) -> Omission:
    return Omission(one.reason, one.messages + other.messages, one.tokens + other.tokens)


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
