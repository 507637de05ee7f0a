"""Distils messages: a model proposes facts from them, which wait in the memory's inbox until the user accepts them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from chorus_cli.context.rules.view import usable, without_eliza
from chorus_cli.context.service.context import Context
from chorus_cli.context.service.transcript import Selection, operations_of, transcript
from chorus_cli.core.errors import CommandError, ModelError
from chorus_cli.core.text.phrases import counted
from chorus_cli.log.rows import operation_rows
from chorus_cli.log.rules import journal
from chorus_cli.log.rules.log_acts import MemoryChange
from chorus_cli.log.rules.messages import TOOL_ROLES, Message, expanded
from chorus_cli.log.rules.operations import Operation
from chorus_cli.machine.notifier import run_to_completion
from chorus_cli.machine.ports import Clock
from chorus_cli.memory.rows import inbox
from chorus_cli.memory.rows.inbox import Proposal
from chorus_cli.memory.rows.item_changes import NewItem
from chorus_cli.memory.rules import distilling
from chorus_cli.memory.rules.items import ItemType, Source
from chorus_cli.memory.service.memory import Memory
from chorus_cli.models.rules.budget import TOKENS_PER_MESSAGE, Budget
from chorus_cli.models.rules.choice import ELIZA
from chorus_cli.models.rules.costs import TokenUse
from chorus_cli.models.rules.events import ModelClient
from chorus_cli.models.rules.request import ModelRequest, PromptMessage
from chorus_cli.models.service.costs import Costs
from chorus_cli.personas.rules.persona import Target
from chorus_cli.tools.service import source_in_turn
from chorus_cli.turns.service.folding import Summarizer, can_summarize, model_of, too_small

_PATIENCE_SECONDS = 120.0
_GAP = "\n"
_GAP_TOKENS = 1


class Stretch(NamedTuple):
    """Messages to distil: those of one thread, or of all threads if ``thread_id`` is ``None``; ``place`` names them.

    If ``in_context``, they are only the messages in the context of the target's thread.
    """

    place: str
    thread_id: int | None = None
    since: datetime | None = None
    in_context: bool = False


class Prepared(NamedTuple):
    """A request that distils ``messages``; ``cost`` is expected in USD, ``None`` if unknown.

    ``left_out`` counts messages that were distilled before, that were said with ELIZA, or that have no room in the
    request: the oldest and the very long ones.
    """

    target: Target
    stretch: Stretch
    messages: Sequence[Message]
    request: ModelRequest
    cost: float | None
    left_out: int


@dataclass(frozen=True, slots=True)
class Distilling:
    """Asks a model for facts: the model that also writes the summaries."""

    model: ModelClient
    context: Context
    memory: Memory
    costs: Costs
    clock: Clock

    async def prepared(self, target: Target, stretch: Stretch) -> Prepared:
        """Return the request that distils a stretch; raise an error if there is nothing new, or the model is ELIZA."""
        if not can_summarize(target):
            raise CommandError(
                f"{ELIZA} cannot propose facts. /model NAME chooses a model for the conversation, and "
                "/set summary_model NAME one for summaries and facts."
            )
        operations = await operations_of(self.context.store, Selection(target.persona.slug, stretch.thread_id))
        said = [row for row in await self._said(target, stretch, operations) if row.role not in TOOL_ROLES]
        known = _distilled(operations)
        heard = without_eliza([row for row in said if row.id not in known])
        if not heard:
            raise CommandError(f"There is nothing new to distil in {stretch.place}.")
        allowed = await self._summarizer.budget(target)
        taken, tokens = await asyncio.to_thread(self._newest, target, heard, allowed)
        if not taken:
            raise too_small(model_of(target), allowed.tokens)
        text = _GAP.join(distilling.written(row, target.persona.speakers) for row in taken)
        messages = (PromptMessage("system", distilling.TASK), PromptMessage("user", text))
        request = ModelRequest(
            model_of(target), messages, context_tokens=allowed.limit.tokens, prompt_tokens=allowed.corrected(tokens)
        )
        use = TokenUse(request.prompt_tokens or 0, distilling.ANSWER_TOKENS)
        cost = await self.costs.expected(request.model, use)
        return Prepared(target, stretch, taken, request, cost, len(said) - len(taken))

    async def carried_out(self, prepared: Prepared) -> tuple[Sequence[Proposal], int]:
        """Ask the model and put its facts into the inbox; a cancellation before the answer leaves all as it was.

        Return the facts that were put in, and how many parts of the answer were dropped.
        """
        rows = {row.id: row for row in prepared.messages}
        await self.context.store.read(inbox.refuse_purged, rows)
        answer = await self._summarizer.reply(prepared.target, prepared.request)
        read = distilling.read(answer, rows)
        if read is None:
            raise ModelError(f"The answer of {prepared.request.model} is not a list of facts, so nothing was proposed.")
        slug, store = prepared.target.persona.slug, self.context.store
        imports = {each.id for each in await store.read(operation_rows.imports_of, slug)}
        found, dropped = read
        facts = [await self._item(text, rows[id_], imports) for text, id_ in found.items()]
        proposing = self.memory.propose(slug, facts, prepared.stretch.place, rows)
        # If the user stops the request too late, the facts are in the inbox, and the command says so.
        proposals, _ = await run_to_completion(proposing)
        return proposals, dropped + len(facts) - len(proposals)

    @property
    def _summarizer(self) -> Summarizer:
        return Summarizer(self.model, self.context, self.clock, _PATIENCE_SECONDS, "list of facts")

    async def _said(self, target: Target, stretch: Stretch, operations: Sequence[Operation]) -> list[Message]:
        """Return the messages of a stretch in their order, without those that were undone or have another wording."""
        if stretch.in_context:
            return usable((await self.context.snapshot(target, self.clock.now())).view.messages)
        store, slug = self.context.store, target.persona.slug
        after = await store.read(operation_rows.beginning, slug)
        selection = Selection(slug, stretch.thread_id, stretch.since, after)
        marks = journal.log_marks(operations, stretch.thread_id)
        entries = [entry async for entry in transcript(store, selection, operations)]
        rows = [entry for entry in entries if isinstance(entry, Message) and not marks.is_out(entry)]
        reworded = {row.revises for row in rows}
        return usable([row for row in rows if row.id not in reworded])

    def _newest(self, target: Target, rows: Sequence[Message], allowed: Budget) -> tuple[list[Message], int]:
        """Return the newest messages for which a request has room, and the tokens of the request."""
        count = self.context.counter.count
        used = count(distilling.TASK) + 2 * TOKENS_PER_MESSAGE
        room = min(allowed.tokens, allowed.limit.tokens - distilling.ANSWER_TOKENS) / allowed.calibration.factor
        taken: list[Message] = []
        for row in reversed(rows):
            tokens = count(distilling.written(row, target.persona.speakers)) + _GAP_TOKENS
            if used + tokens <= room:
                used += tokens
                taken.append(row)
            # If the newest messages are too long for any request, older messages are taken all the same.
            elif taken:
                break
        return taken[::-1], used

    async def _item(self, text: str, row: Message, imports: Collection[int]) -> NewItem:
        """Return a fact as an item; its source is an import if the message was imported, else the turn's source."""
        is_imported = row.introduced_by in imports
        source = Source.IMPORT if is_imported else await source_in_turn(self.context.store, row.turn_id)
        return NewItem(ItemType.PRD_SECTION, text, source, source_message_id=row.id)


def told(prepared: Prepared, price: str) -> str:
    """Say which messages are sent and left out; ``price`` names the price of the request."""
    request = prepared.request
    sent = (
        f"{counted(len(prepared.messages), 'message')} of {prepared.stretch.place} to {request.model}: "
        f"~{request.prompt_tokens or 0:,} tokens, {price}."
    )
    why = f"distilled before, said with {ELIZA}, or without room in this request"
    return f"{sent}\nLeft out: {counted(prepared.left_out, 'message')} {why}." if prepared.left_out else sent


def _distilled(operations: Sequence[Operation]) -> set[int]:
    """Return the messages that were distilled before, unless that was undone."""
    acts = (each.act for each in journal.effective(journal.own(operations)))
    return {id_ for act in acts if isinstance(act, MemoryChange) for id_ in expanded(act.distilled)}
