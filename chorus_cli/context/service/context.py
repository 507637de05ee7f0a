"""The context of a thread as it is now: its snapshot, the plan of its next request, and the prefix of its requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType

from chorus_cli.context.files.project import Project
from chorus_cli.context.rows import snapshot_rows
from chorus_cli.context.rows.snapshot_rows import TokenCounts
from chorus_cli.context.rules.plan import RequestPlan, plan_bounded, plan_fitting, plan_whole, thought_tokens
from chorus_cli.context.rules.view import (
    ContextSnapshot,
    Echoed,
    RequestSettings,
    RequestStart,
    SystemPrompt,
    View,
    system_text,
)
from chorus_cli.core.errors import StorageError
from chorus_cli.core.time.timestamps import cutoff
from chorus_cli.log.rules.attachments import Kind
from chorus_cli.log.rules.journal import ThreadJournal
from chorus_cli.log.rules.messages import Status
from chorus_cli.machine.ports import TokenCounter
from chorus_cli.models.rules import budget
from chorus_cli.models.rules.budget import TOKENS_PER_MESSAGE, Budget, Limit, own_tokens
from chorus_cli.models.rules.declaration import ToolOffer
from chorus_cli.models.rules.request import Echo
from chorus_cli.personas.rules.macros import sent
from chorus_cli.personas.rules.persona import Document, Persona, Target
from chorus_cli.storage import meta_rows
from chorus_cli.storage.port import Connection
from chorus_cli.storage.store import Store

_COLD_AFTER = timedelta(minutes=5)
_LONGEST_HELD = timedelta(hours=1)
_SHARE_OF_WINDOW = 8
_NO_ECHOES: Mapping[int, Echoed] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class _Prefix:
    """The start of the last request, its target, its newest operation, and when its window was chosen and last used."""

    start: RequestStart
    target: Target
    operation_id: int
    made_at: datetime
    used_at: datetime


class Prefixes:
    """The prefixes of this process, by persona and thread; a prefix is the beginning that successive requests share."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], _Prefix] = {}

    def request_start(self, target: Target, now: datetime, operation_id: int) -> RequestStart:
        """Return the start of a request made at ``now``.

        The start of the window is renewed if an operation has broken the prefix, if the model, the window or the token
        limit has changed, and after a pause of five minutes. It is kept for an hour or an eighth of the window at most,
        whichever is shorter.
        """
        known, chosen = self._known.get((target.persona.slug, target.thread_id)), target.persona.settings
        if known is None:
            return RequestStart(cutoff(now, chosen.context_hours))
        before = known.target.persona.settings
        longest = min(_LONGEST_HELD, (now - cutoff(now, chosen.context_hours)) / _SHARE_OF_WINDOW)
        is_warm = (
            (before.context_hours, before.context_token_limit) == (chosen.context_hours, chosen.context_token_limit)
            and (known.target.choice.model, known.operation_id) == (target.choice.model, operation_id)
            and now - known.used_at <= _COLD_AFTER
            # If the clock is set back a little, the window stays, so that no message comes back into it.
            and abs(now - known.made_at) <= longest
        )
        if is_warm:
            return known.start
        return RequestStart(cutoff(now, chosen.context_hours), known.start.first_message_id)

    def last_window(self, target: Target) -> datetime | None:
        """Return the start of the window of the last request of this process; ``None`` if there was none."""
        known = self._known.get((target.persona.slug, target.thread_id))
        return known.start.window if known is not None else None

    def hold(self, plan: RequestPlan, now: datetime) -> None:
        """Make the next requests begin like the request of ``plan``, which is sent at ``now``.

        If each request left out one turn more, each would begin differently, and the provider's cache would not help.
        """
        snapshot, target = plan.snapshot, plan.snapshot.request_settings.target
        start = RequestStart(snapshot.view.cutoff, plan.begins_at, snapshot.hot, snapshot.view.summary)
        key = target.persona.slug, target.thread_id
        known = self._known.get(key)
        made_at = known.made_at if known is not None and known.start.window == start.window else now
        self._known[key] = _Prefix(start, target, snapshot.newest_operation_id, made_at, now)


_SHORT_CHARACTERS = 2_000  # counting a text of this length takes less time than starting a worker thread


@dataclass(frozen=True, slots=True)
class Context:
    """Reads snapshots, counts tokens and plans requests; the fields ``offer`` to ``project`` say what a model gets."""

    store: Store
    counter: TokenCounter
    limit_of: Callable[[str], Limit]
    dollars_per_input_token: Callable[[str], float | None]
    offer: Callable[[Target, Limit], Awaitable[ToolOffer]]
    accepted_by: Callable[[str], frozenset[Kind]]
    echo_of: Callable[[str], Echo]
    project: Project = field(default_factory=Project)
    prefixes: Prefixes = field(default_factory=Prefixes)
    _system_prompts: dict[tuple[str, str, tuple[Document, ...]], SystemPrompt] = field(
        default_factory=dict, init=False, repr=False
    )

    async def snapshot(self, target: Target, now: datetime) -> ContextSnapshot:
        """Return the context as a request made at ``now`` would have it."""
        request_settings = await self.request_settings(target)
        return await self.counted(await self.store.read(self.read, request_settings, now))

    async def request_settings(self, target: Target, *, exact: bool = True) -> RequestSettings:
        """Return the part of a snapshot that is not in the database; unless ``exact``, tokens may be upper bounds."""
        if exact and not self.counter.is_ready:
            await asyncio.to_thread(self.counter.load)
        is_exact = self.counter.is_ready
        model = target.choice.model
        setting = target.persona.settings.project
        limit, accepted, echo, project = await asyncio.to_thread(
            lambda: (self._limit(target), self.accepted_by(model), self.echo_of(model), self.project.document(setting))
        )
        prompt = await self._system_prompt(target.persona, project)
        return RequestSettings(target, prompt, limit, await self.offer(target, limit), is_exact, accepted, echo)

    async def offered_anew(self, snapshot: ContextSnapshot) -> ContextSnapshot:
        """Return the snapshot with the tools that can be offered now."""
        settings = snapshot.request_settings
        offer = await self.offer(settings.target, settings.limit)
        return replace(snapshot, request_settings=replace(settings, offer=offer))

    async def limit(self, target: Target) -> Limit:
        """Return the limit that the user set, else the model's context length, which may take half a second to find."""
        return await asyncio.to_thread(self._limit, target)

    def _limit(self, target: Target) -> Limit:
        chosen = target.persona.settings.context_token_limit
        return self.limit_of(target.choice.model) if chosen is None else Limit(chosen, "context_token_limit")

    async def measured(self, target: Target, text: str, beside_tokens: int) -> tuple[RequestSettings, int]:
        """Return the settings and the tokens of ``text``, or an upper bound if that fits beside ``beside_tokens``."""
        request_settings = await self.request_settings(target, exact=False)
        if request_settings.is_exact:
            is_short = len(text) <= _SHORT_CHARACTERS
            return request_settings, self.counter.count(text) if is_short else await asyncio.to_thread(
                self.counter.count, text
            )
        most = self.counter.at_most(text)
        if request_settings.surely_takes(most + beside_tokens + TOKENS_PER_MESSAGE):
            return request_settings, most
        return await self.request_settings(target), await asyncio.to_thread(self.counter.count, text)

    def read(
        self, connection: Connection, request_settings: RequestSettings, when: datetime | RequestStart
    ) -> ContextSnapshot:
        """Read the snapshot of a request; ``when`` is its time or its start. Token counts may be missing."""
        target = request_settings.target
        journal = snapshot_rows.thread_journal(connection, target.persona.slug, target.thread_id)
        if not isinstance(when, RequestStart):
            when = self.prefixes.request_start(target, when, journal.newest_id)
        return snapshot_rows.read_snapshot(connection, request_settings, journal, when)

    def read_view(self, connection: Connection, target: Target, now: datetime) -> View:
        """Read the view of a request made at ``now``; token counts may be missing."""
        journal = snapshot_rows.thread_journal(connection, target.persona.slug, target.thread_id)
        return snapshot_rows.read_view(connection, journal, self.prefixes.request_start(target, now, journal.newest_id))

    def window_start(self, target: Target, journal: ThreadJournal, now: datetime) -> datetime:
        """Return when the window begins for a request made at ``now`` in the thread of ``journal``."""
        there = target._replace(thread_id=journal.thread_id)
        return self.prefixes.request_start(there, now, journal.newest_id).window

    async def plan(self, snapshot: ContextSnapshot) -> RequestPlan:
        """Plan the request of a snapshot with token counts; if it does not fit whole, a worker thread plans it."""
        plan = plan_whole(snapshot)
        return plan if plan is not None else await asyncio.to_thread(plan_fitting, snapshot, self.counter.count)

    async def plan_turn(self, snapshot: ContextSnapshot) -> RequestPlan:
        """Plan the request of a turn; until the vocabulary is loaded, upper bounds are used if they fit the budget."""
        if not self.counter.is_ready:
            plan = plan_bounded(snapshot, self.counter.at_most)
            if plan is not None:
                return plan
        if not snapshot.request_settings.is_exact:
            snapshot = replace(snapshot, request_settings=await self.request_settings(snapshot.request_settings.target))
        return await self.plan(await self.counted(snapshot))

    async def planned(self, target: Target, now: datetime) -> RequestPlan:
        """Return the plan of a request made at ``now``."""
        return await self.plan(await self.snapshot(target, now))

    async def past(self, target: Target, moment: datetime) -> ContextSnapshot:
        """Return the context as it was at an earlier moment, with today's system prompt."""
        request_settings = await self.request_settings(target)
        return await self.counted(await self.store.read(snapshot_rows.read_past_snapshot, request_settings, moment))

    async def budget(self, target: Target) -> Budget:
        """Return the budget of a request to the target's model that belongs to no turn."""
        learned = await self.store.read(meta_rows.value, meta_rows.CALIBRATION + target.choice.model)
        limit, calibration = await self.limit(target), budget.read_calibration(learned)
        chosen = target.persona.settings
        return budget.budget(limit, chosen.context_usage_threshold, chosen.max_output_tokens, calibration)

    async def counted(self, snapshot: ContextSnapshot) -> ContextSnapshot:
        """Count the messages, thoughts and summary of a snapshot that have no count, and store the counts."""
        model = snapshot.request_settings.target.choice.model
        view, echoed = await self.counted_view(snapshot.view, model, snapshot.echoed)
        return snapshot if view is snapshot.view else replace(snapshot, view=view, echoed=echoed)

    async def counted_view(
        self, view: View, model: str, echoed: Mapping[int, Echoed] = _NO_ECHOES
    ) -> tuple[View, Mapping[int, Echoed]]:
        """Count the messages, the summary and the thoughts that have no count, and store the counts."""
        # A reply in progress is not sent, and counting it each time that it grows would take long.
        rows = [row for row in view.messages if row.token_count is None and row.status is not Status.STREAMING]
        thoughts = {id_: each.thoughts for id_, each in echoed.items() if each.tokens is None}
        summary = view.summary if view.summary is not None and view.summary.token_count is None else None
        if not rows and not thoughts and summary is None:
            return view, echoed
        count = self.counter.count
        counts = await asyncio.to_thread(
            lambda: TokenCounts(
                {row.id: own_tokens(row, count, model) for row in rows},
                {id_: thought_tokens(each, count) for id_, each in thoughts.items()},
                {summary.operation_id: count(summary.content)} if summary else {},
            )
        )
        # Storing only saves counting again, so a view must not fail if storing fails.
        with suppress(StorageError):
            await self.store.write(snapshot_rows.store_token_counts, counts)
        messages = tuple(
            row._replace(token_count=counts.messages.get(row.id, row.token_count)) for row in view.messages
        )
        if summary is not None:
            summary = replace(summary, token_count=counts.summaries[summary.operation_id])
        counted = {id_: each._replace(tokens=counts.thoughts.get(id_, each.tokens)) for id_, each in echoed.items()}
        return replace(view, messages=messages, summary=summary or view.summary), counted

    async def learn(self, model: str, estimated_tokens: int, reported_tokens: int) -> None:
        """Correct future estimates for a model by the tokens that the provider has reported for a request."""
        key = meta_rows.CALIBRATION + model
        # If storing fails, the next report corrects the estimates.
        with suppress(StorageError):
            await self.store.write(_learn, key, estimated_tokens, reported_tokens)

    async def remember_refusal(self, snapshot: ContextSnapshot) -> None:
        """Remember that the model takes the turns since the boundary only as plain text."""
        target = snapshot.request_settings.target
        key = meta_rows.plain_history(target.thread_id, target.choice.model)
        # If storing fails, the next request finds it out again.
        with suppress(StorageError):
            await self.store.write(meta_rows.store, key, str(snapshot.view.boundary_id or 0))

    async def _system_prompt(self, persona: Persona, project: Document | None) -> SystemPrompt:
        """Measure the system prompt of a persona; keep the last exact result, because counting may take long."""
        prompt, note, documents = persona.settings.system_prompt, persona.settings.note.strip(), persona.documents
        if persona.has_card:
            prompt, note = sent(persona, prompt), sent(persona, note)
            documents = tuple(each._replace(content=sent(persona, each.content)) for each in documents)
        note = note and f"[Note: {note}]"
        every = documents if project is None else (*documents, project)
        known = self._system_prompts.get((prompt, note, every))
        if known is not None:
            return known
        text, without_project = system_text(prompt, every), system_text(prompt, documents)

        def measured(count: Callable[[str], int]) -> SystemPrompt:
            prompt_tokens, all_tokens = count(prompt), count(text)
            project_tokens = max(0, all_tokens - count(without_project)) if project else 0
            beside = max(0, all_tokens - prompt_tokens - project_tokens)
            path = project.name if project else ""
            return SystemPrompt(text, prompt_tokens, beside, note, count(note), path, project_tokens)

        if not self.counter.is_ready:
            return measured(self.counter.at_most)
        exact = await asyncio.to_thread(measured, self.counter.count)
        self._system_prompts.clear()
        self._system_prompts[prompt, note, every] = exact
        return exact


def _learn(connection: Connection, key: str, estimated_tokens: int, reported_tokens: int) -> None:
    before = budget.read_calibration(meta_rows.value(connection, key))
    after = budget.learned_calibration(before, estimated_tokens, reported_tokens)
    if budget.calibrations_differ(before, after):
        meta_rows.store(connection, key, budget.written_calibration(after))
