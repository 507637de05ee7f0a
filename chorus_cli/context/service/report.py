"""Reports on a context: the parts of the next request, the messages left out with the reasons, and the window."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from chorus_cli.attachments.rules.tokens import attachment_tokens
from chorus_cli.context.rows import thread_views
from chorus_cli.context.rules.earlier import EarlierUse, earlier_in
from chorus_cli.context.rules.memory import MemoryUse, block_tokens, uses
from chorus_cli.context.rules.plan import RequestPlan, reply_of, summary_tokens
from chorus_cli.context.rules.view import ContextSnapshot, Reason, View, usable, without_eliza
from chorus_cli.core.text.phrases import counted, dollars
from chorus_cli.core.time import timespan
from chorus_cli.core.time.timespan import WindowChoice
from chorus_cli.core.time.timestamps import ALL, BEGINNING, WindowHours, cutoff, in_hours
from chorus_cli.log.rows import operation_rows
from chorus_cli.log.rules.attachments import as_json
from chorus_cli.log.rules.messages import is_written
from chorus_cli.log.rules.wording import reach, start
from chorus_cli.memory.rows import item_rows
from chorus_cli.memory.rules.recall import sent_items, tokens_in_request
from chorus_cli.models.rules.budget import TOKENS_PER_MESSAGE, tokens_of
from chorus_cli.settings.rules.table import WINDOW_KEY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from chorus_cli.context.rows.thread_views import Outside
    from chorus_cli.context.service.context import Context
    from chorus_cli.context.service.current import Current
    from chorus_cli.core.time.timespan import Span
    from chorus_cli.log.rules.operations import Operation
    from chorus_cli.machine.ports import Clock
    from chorus_cli.memory.rules.items import Item
    from chorus_cli.models.rules.request import PromptMessage
    from chorus_cli.personas.rules.persona import Target
    from chorus_cli.personas.service.persona_admin import PersonaAdmin
    from chorus_cli.storage.port import Connection

_UNCHANGED = "left the context window as it was, so there is nothing to undo in it."


class Part(NamedTuple):
    """A part of the request, the tokens that the provider is expected to count for it, and why it is sent."""

    name: str
    tokens: int
    reason: str


class Omission(NamedTuple):
    """The reason why messages are left out, their number, and their expected tokens as far as they are counted."""

    reason: str
    messages: int
    tokens: int


class ContextReport(NamedTuple):
    """The plan of the next request, its parts, omissions and memory items, and the times of messages in the window."""

    plan: RequestPlan
    parts: tuple[Part, ...]
    omissions: tuple[Omission, ...]
    memory: tuple[MemoryUse, ...]
    moments: tuple[datetime, ...]
    earlier: tuple[EarlierUse, ...]

    def as_json(self) -> dict[str, object]:
        """Return the report in the shape that ``chorus context --json`` promises."""
        target, budget = self.plan.snapshot.request_settings.target, self.plan.snapshot.budget
        return {
            "persona": target.persona.slug,
            "thread": target.thread_number,
            "model": target.choice.model,
            "limit": budget.limit.tokens,
            "budget": budget.tokens,
            "tokens": self.plan.meter.tokens,
            "parts": [part._asdict() for part in self.parts],
            "left_out": [omission._asdict() for omission in self.omissions],
            "messages": [_as_json(message) for message in self.plan.request.messages],
            "memory": [
                {
                    "id": use.item.id,
                    "type": use.item.item_type,
                    "tier": use.item.tier,
                    "tokens": tokens_in_request(use.item),
                    "sent": use.sent,
                    "reason": use.reason,
                }
                for use in self.memory
            ],
            "earlier": [{"id": use.id, "by": use.by, "reason": use.reason} for use in self.earlier],
        }


async def context_report(context: Context, target: Target, now: datetime) -> ContextReport:
    """Measure the next request of ``target`` and the messages that it leaves out; nothing is sent."""

    def read(connection: Connection) -> tuple[ContextSnapshot, Outside, Sequence[Item]]:
        # All three are read in one transaction, so that they show the same moment.
        snapshot, slug = context.read(connection, request_settings, now), target.persona.slug
        outside = thread_views.count_outside(connection, slug, target.thread_id, snapshot.view)
        return snapshot, outside, sent_items(target.persona, item_rows.listing(connection, slug))

    request_settings = await context.request_settings(target)
    snapshot, outside, items = await context.store.read(read)
    plan = await context.plan(await context.counted(snapshot))
    memory = uses(items, plan.snapshot.hot, plan.sent, plan.snapshot.budget) if items else ()
    earlier, moments = tuple(earlier_in(plan.sent)), _moments(snapshot.view, outside)
    return ContextReport(plan, _parts(plan), _omissions(plan, outside), tuple(memory), moments, earlier)


def _moments(view: View, outside: Outside) -> tuple[datetime, ...]:
    """Return the times of messages in the window; without a cutoff, hidden ones count only since the boundary."""
    since = view.boundary.created_at if view.boundary and view.cutoff == BEGINNING else view.cutoff
    hidden = (moment for moment in outside.moments if moment > since)
    return (*hidden, *(row.timestamp for row in view.messages if is_written(row) and row.timestamp > view.cutoff))


def _omissions(plan: RequestPlan, outside: Outside) -> tuple[Omission, ...]:
    messages, tokens, _ = outside
    for reason, row in plan.left_out():
        if is_written(row):
            messages[reason] += 1
            tokens[reason] += tokens_of(row)
    corrected = plan.snapshot.budget.corrected
    found_reasons = (reason for reason in Reason if messages[reason])
    return tuple(Omission(reason, messages[reason], corrected(tokens[reason])) for reason in found_reasons)


def _parts(plan: RequestPlan) -> tuple[Part, ...]:
    parts = list(_estimated_parts(plan))
    expected = plan.snapshot.budget.corrected_parts([tokens for _, tokens, _ in parts])
    return tuple(Part(name, tokens, why) for (name, _, why), tokens in zip(parts, expected, strict=True))


def _estimated_parts(plan: RequestPlan) -> Iterator[tuple[str, int, str]]:
    persona, view = plan.snapshot.request_settings.target.persona, plan.snapshot.view
    measured = plan.snapshot.request_settings.system_prompt
    yield "system prompt", measured.prompt_tokens + TOKENS_PER_MESSAGE, "always sent"
    names = ", ".join(document.name for document in persona.documents)
    yield "documents", measured.document_tokens, names or "no .md files in this persona's docs folder"
    if measured.project:
        yield "project", measured.project_tokens, f"{measured.project}; /set project off leaves it out"
    if measured.note:
        depth = persona.settings.note_depth
        place = f"at most {counted(depth, 'message')} before the end" if depth else "at the end of your newest message"
        yield "note", measured.note_tokens, place
    offer = plan.snapshot.request_settings.offer
    for server, tools, tokens in offer.by_server():
        yield f"tools of {server}" if server else "tools", tokens, f"offered to the model: {', '.join(tools)}"
    if offer.left_out:
        without_room = ", ".join(tool.origin.label for tool in offer.left_out if tool.origin)
        yield "tools left out", 0, f"no room for {without_room}; /tools off NAME makes room"
    if plan.summary is not None:
        stands_for = f"replaces the {counted(len(without_eliza(usable(view.folded))), 'oldest message')}"
        yield "summary", summary_tokens(plan.summary), f"{stands_for} (operation {plan.summary.number})"
    if hot := plan.snapshot.hot:
        yield "memory", block_tokens(hot), f"HOT items {', '.join(f'#{item.id}' for item in hot)}"
    model, replies = plan.snapshot.request_settings.target.choice.model, set(map(reply_of, plan.sent))
    measured_files = (attachment_tokens(row.attachments, model) for row in plan.sent if row.attachments)
    attached = min(plan.message_tokens, sum(measured_files))
    repeated = [echoed for id_, echoed in plan.snapshot.echoed.items() if id_ in replies]
    thought = min(plan.message_tokens - attached, sum(each.tokens or 0 for each in repeated))
    yield "messages", plan.message_tokens - attached - thought, _why_sent(plan)
    if repeated:
        number = counted(len(repeated), "reply", "replies")
        yield "thoughts", thought, f"before {number}, sent back to the model that had them"
    accepted = plan.snapshot.request_settings.accepted
    files = {each: None for row in plan.sent for each in row.attachments}
    # An attachment is listed once; if the model does not take its kind, only the name is sent.
    labels = [each.label if each.kind in accepted else f"{each.label} (only its name)" for each in files]
    if labels:
        yield "attachments", attached, ", ".join(labels)


def _why_sent(plan: RequestPlan) -> str:
    """Say how many messages are sent for each reason: their age, the boundary, a later operation."""
    view = plan.snapshot.view
    number, pinned = (sum(row.id in ids for row in plan.sent) for ids in (view.kept, view.pinned))
    boundary, target = view.boundary, plan.snapshot.request_settings.target
    members = set(boundary.members_in(target.thread_id)) - view.kept if boundary else set()
    old = sum(row.id in members and row.timestamp <= view.cutoff for row in plan.sent)
    window = target.persona.settings.context_hours
    if boundary and boundary.created_at >= view.cutoff:
        reached = f"since {start(boundary)}"
    else:
        reached = "of any age" if window == ALL else f"in the {in_hours(window)} window"
    if window == ALL:
        number, old = pinned, 0
    parts = [f"{len(plan.sent) - number - old} {reached}"]
    parts += [f"{old} kept by your {boundary.act.kind}"] if boundary and old else []
    parts += [f"{number - pinned} kept at any age"] if number > pinned else []
    parts += [f"{pinned} pinned"] if pinned else []
    parts += [f"{len(plan.cut)} of these cut in the middle"] if plan.cut else []
    parts += ["earlier turns as plain text"] if plan.snapshot.is_plain else []
    return ", ".join(parts)


def _as_json(message: PromptMessage) -> dict[str, object]:
    shown: dict[str, object] = {"role": message.role, "content": message.content}
    if message.attachments:
        shown["attachments"] = [as_json(each) for each in message.attachments]
    if message.tool_calls:
        shown["tool_calls"] = json.loads(message.tool_calls)
    if message.thoughts and message.thoughts.text:
        shown["thoughts"] = message.thoughts.text
    if message.tool_call_id:
        shown["tool_call_id"] = message.tool_call_id
    return shown


class WindowState(NamedTuple):
    """The window in force, when it begins, a warning, the newest boundary, and the next request's size for ``all``."""

    hours: WindowHours
    since: datetime
    warning: str | None
    boundary: Operation | None
    meaning: str
    is_default: bool
    is_changed: bool = True

    def confirmation(self) -> str:
        """Confirm a new window, or say that nothing changed; add any warning, the start and the next request's size."""
        hours = in_hours(self.hours)
        change = f"Context window reset to default ({hours})" if self.is_default else f"Context window set to {hours}"
        if not self.is_changed:
            kept = f"The context window is {hours} already; nothing was changed."
            change = f"{change}; it was the default already." if self.is_default else kept
        return "\n".join(filter(None, [self.warning, change, reach(self.since, self.boundary), self.meaning]))


class Preview(NamedTuple):
    """The present request, the request with another window, and the price of an input token if it is known."""

    present: RequestPlan
    then: RequestPlan
    dollars_per_token: float | None


@dataclass(frozen=True, slots=True)
class ContextWindow:
    """Changes ``context_hours`` of the persona in focus; every change is an operation of the journal."""

    persona_admin: PersonaAdmin
    clock: Clock
    current: Current
    context: Context

    async def set(self, span: Span) -> WindowState:
        """Set the window to ``span``, rounded to whole hours and clamped to the bounds."""
        return await self._chosen(timespan.window_hours(span))

    async def shift(self, span: Span, sign: Literal[1, -1]) -> WindowState:
        """Widen the window by ``span`` if ``sign`` is 1, or narrow it if ``sign`` is -1."""
        present = self.current.target().persona.settings.context_hours
        return await self._chosen(timespan.shifted(present, span, sign), present)

    async def _chosen(self, choice: WindowChoice, present: WindowHours | None = None) -> WindowState:
        is_changed = await self._change(choice.hours, present)
        return (await self.begun(choice.hours, choice.warning))._replace(is_changed=is_changed)

    async def _change(self, hours: WindowHours | None, present: WindowHours | None = None) -> bool:
        """Set the window unless it is ``present``; ``None`` removes the setting. Return whether the file changed."""
        slug, is_new = self.current.slug, hours is None or hours != present
        if is_new and (await self.persona_admin.set(slug, WINDOW_KEY, hours)).changed:
            return True
        # No operation is stored, but /undo must not pass over the command that was typed.
        self.persona_admin.unrecorded.add(slug, _UNCHANGED, self.clock.now())
        return False

    async def reset(self) -> WindowState:
        """Remove the persona's setting, so that the default applies."""
        is_changed = await self._change(None)
        return (await self.begun(None))._replace(is_changed=is_changed)

    async def begun(self, chosen: WindowHours | None, warning: str | None = None) -> WindowState:
        """Return the state of the window that is in force from now on: ``chosen``, or else the default."""
        current = self.current
        hours = chosen or current.target().persona.settings.context_hours
        since = cutoff(self.clock.now(), hours)
        boundary = await self.context.store.read(operation_rows.boundary, current.slug, current.thread_id)
        meaning = ""
        if hours == ALL:
            tokens, price = await self.next_request(WindowChoice(hours))
            meaning = f"The next request has ~{tokens:,} tokens{f' and costs about {dollars(price)}' if price else ''}."
        return WindowState(hours, since, warning, boundary, meaning, is_default=chosen is None)

    async def next_request(self, choice: WindowChoice) -> tuple[int, float | None]:
        """Return the tokens of the next request with the window ``choice``, and their price in USD if it is known."""
        preview = await self.preview(choice)
        tokens, price = preview.then.meter.tokens, preview.dollars_per_token
        return tokens, None if price is None else tokens * price

    async def preview(self, choice: WindowChoice) -> Preview:
        """Return the effect of the window ``choice``; nothing is changed."""
        target = self.current.target()
        settings = target.persona.settings._replace(context_hours=choice.hours)
        other = target._replace(persona=target.persona._replace(settings=settings))
        request_settings, now = await self.context.request_settings(target), self.clock.now()

        def read_both(connection: Connection) -> tuple[ContextSnapshot, ContextSnapshot]:
            changed = replace(request_settings, target=other)
            return self.context.read(connection, request_settings, now), self.context.read(connection, changed, now)

        present, then = await self.context.store.read(read_both)
        price = await asyncio.to_thread(self.context.dollars_per_input_token, target.choice.model)
        plan, counted = self.context.plan, self.context.counted
        return Preview(await plan(await counted(present)), await plan(await counted(then)), price)
