"""The memory of a persona: adds, corrects, pins, forgets, recalls and archives items.

If the index of the items' words is damaged, it is rebuilt from the items.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Concatenate, NamedTuple, ParamSpec, TypeVar

from chorus_cli.core.errors import MemoryItemError, StorageError
from chorus_cli.core.text.phrases import counted, shortened
from chorus_cli.log.rows.word_index import mending
from chorus_cli.log.rules.log_acts import ItemChange, ItemState, MemoryAct, MemoryChange
from chorus_cli.log.rules.messages import Message, Role, is_of_server
from chorus_cli.log.rules.operations import NewOperation, Operation
from chorus_cli.machine.ports import Clock, TokenCounter
from chorus_cli.memory.rows import inbox, item_changes, item_rows
from chorus_cli.memory.rows.inbox import Proposal, Version
from chorus_cli.memory.rows.item_changes import Added, Addition, NewItem
from chorus_cli.memory.rules.capture import capture_notice, captured, sections
from chorus_cli.memory.rules.items import (
    PROPOSED,
    WITHDRAWN,
    FlashReport,
    Item,
    ItemType,
    MemoryStatistics,
    Source,
    Tier,
    checked_content,
    content_hash,
)
from chorus_cli.memory.rules.recall import indented, keyed_as, named_in
from chorus_cli.personas.rules.persona import Persona
from chorus_cli.storage.port import Connection
from chorus_cli.storage.store import Store

P = ParamSpec("P")
T = TypeVar("T")

MOST_RECALLED = 20
_LONGEST_INLINE = 20_000
"""Characters of the longest text that is searched on the main thread; a longer search would delay the screen."""

_CAPTURE = "capture"
_RENEWED = "The index of the memory was damaged. Chorus has rebuilt it; no memory item is damaged."
_LOST = (
    "The index of the memory is damaged, and Chorus could not rebuild it; run chorus doctor. "
    "The items are not damaged; chorus memory list prints them."
)


class Author(NamedTuple):
    """Who adds an item: the user, or the model that answers ``question_id``; ``source`` is the item's source."""

    source: Source = Source.YOU
    question_id: int | None = None


THE_USER = Author()


@dataclass(slots=True)
class Memory:
    """The memories of all personas, each by the persona's slug; ``tell`` reports a damaged index to the user."""

    store: Store
    clock: Clock
    counter: TokenCounter
    tell: Callable[[str], None]
    _offers: tuple[str, Sequence[tuple[int, str]]] = field(default=("", ()), init=False)
    _reading: asyncio.Task[None] | None = field(default=None, init=False)

    async def remember(self, slug: str, item_type: ItemType, content: str, author: Author = THE_USER) -> Added:
        """Add an item and count an access; equal content is stored once.

        A known item gets the age zero; a forgotten or archived item comes back. Raise a `MemoryItemError` if a model
        adds a forgotten item.
        """
        new = await self._written(slug, item_type, content, author)
        return await self._add(Addition(slug, [new], "add", self._now, automatic=author is not THE_USER))

    async def replace(
        self, slug: str, item_id: int, content: str, item_type: ItemType | None = None, author: Author = THE_USER
    ) -> Item:
        """Close an item, store a successor with this content, and return the successor.

        The successor has the type of the item unless ``item_type`` is given, and its keys unless ``content`` has keys.
        It is pinned if the item is. `why_kept` says what a model must not replace. An undo reopens the item.
        """
        old = await self.item(slug, item_id)
        new = await self._written(slug, item_type or old.item_type, keyed_as(old.content, content.strip()), author)
        addition = Addition(slug, await self._counted([new]), "replace", self._now)
        return await self._write(inbox.replace, addition, item_id)

    async def _written(self, slug: str, item_type: ItemType, content: str, author: Author) -> NewItem:
        new = NewItem(item_type, checked_content(content), author.source, source_message_id=author.question_id)
        if author is not THE_USER and await self.store.read(item_changes.is_forgotten, slug, new.content):
            raise MemoryItemError("The user has asked to forget this.")
        return new

    async def versions(self, slug: str, item_id: int) -> Sequence[Version]:
        """Return an open or closed item with all items that it replaced or that replaced it, oldest first."""
        await self.renew_if_due(slug)
        await self._count_missing(slug)
        hidden = await self.store.read(item_rows.hidden, slug, item_id)
        if hidden is None or not hidden.replaced_by:
            await self.item(slug, item_id)
        return await self.store.read(inbox.versions, slug, item_id)

    async def propose(
        self, slug: str, facts: Sequence[NewItem], title: str, distilled: Collection[int]
    ) -> Sequence[Proposal]:
        """Put facts into the inbox and return the new ones; a model found them in the messages ``distilled``.

        ``title`` names the place that the messages are from.
        """
        addition = Addition(slug, await self._counted(facts), "propose", self._now, title)
        return await self._write(inbox.propose, addition, distilled)

    async def proposals(self, slug: str) -> Sequence[Proposal]:
        """Return the proposals of the inbox."""
        return await self.store.read(inbox.proposals, slug)

    async def settle(self, slug: str, item_id: int | None, *, accepts: bool) -> Operation:
        """Accept or drop the proposal of an item, or all proposals in one operation."""
        return await self._write(inbox.settle, slug, item_id, self._now, accepts=accepts)

    async def import_sections(self, slug: str, markdown: str, title: str) -> Added:
        """Add the sections of a document as PRD_SECTION items; ``title`` names the document to the user."""
        contents = await asyncio.to_thread(sections, markdown)
        if not contents:
            raise MemoryItemError(f"{title} holds no text, so nothing was imported.")
        items = [NewItem(ItemType.PRD_SECTION, checked_content(content), Source.FILE) for content in contents]
        return await self._add(Addition(slug, items, "import", self._now, title))

    async def capture_output(self, persona: Persona, command: str, output: str, *, has_failed: bool = False) -> str:
        """Capture items from the output of a command in place of those from its earlier outputs; return the notice.

        If the command has failed and its output has no items, the earlier items stay.
        """
        title = f"the output of {shortened(command)}"
        addition = Addition(persona.slug, (), _CAPTURE, self._now, title, content_hash(command), automatic=True)

        def search() -> list[NewItem]:
            return [NewItem(each.item_type, each.content, Source.TOOL) for each in captured(output, is_output=True)]

        return await self._captured(persona, addition, search, len(output), is_news=not has_failed)

    async def capture_turn(self, persona: Persona, messages: Sequence[Message]) -> str:
        """Capture items from the last message, and from earlier replies the code that it names; return the notice.

        Attached files are not searched.
        """
        *before, question = messages
        texts = {message.id: message.content for message in before}
        replies = [message.id for message in before if message.role is Role.ASSISTANT]

        def search() -> list[NewItem]:
            source = Source.TOOL if is_of_server(question.content) else Source.YOU
            said = [(question.id, source, each) for each in captured(question.content)]
            named = [(id_, Source.MODEL, each) for id_, each in named_in(question.content, texts, replies)]
            return [
                NewItem(each.item_type, each.content, source, source_message_id=id_)
                for id_, source, each in (*said, *named)
            ]

        addition = Addition(persona.slug, (), _CAPTURE, self._now, f"message #{question.id}", automatic=True)
        return await self._captured(persona, addition, search, sum(map(len, texts.values()), len(question.content)))

    async def _captured(
        self,
        persona: Persona,
        addition: Addition,
        search: Callable[[], list[NewItem]],
        characters: int,
        *,
        is_news: bool = False,
    ) -> str:
        """Add the items that ``search`` finds in a text of ``characters``, and return the notice.

        If ``is_news``, even an empty result drops earlier items. For a persona with a card, nothing is captured.
        """
        # The searched text is stored already, so an error of the memory must not fail the caller.
        with suppress(StorageError):
            if persona.settings.auto_memory and not persona.has_card:
                items = search() if characters <= _LONGEST_INLINE else await asyncio.to_thread(search)
                if items or is_news:
                    return capture_notice((await self._add(addition._replace(items=items))).new)
        return ""

    async def listing(self, slug: str, tier: Tier | None = None, types: Collection[ItemType] = ()) -> Sequence[Item]:
        """Return the items of a persona, or only those of a tier or of some types, best first."""
        await self.renew_if_due(slug)
        await self._count_missing(slug)
        return await self.store.read(item_rows.listing, slug, tier, types)

    async def statistics(self, slug: str) -> MemoryStatistics:
        """Return the items and tokens of each tier, and the time of the last access or renewal."""
        await self.renew_if_due(slug)
        await self._count_missing(slug)
        totals = await self.store.read(item_rows.totals, slug)
        updated = await self.store.read(item_rows.updated_at, slug)
        return MemoryStatistics(slug, totals, updated or self._now)

    async def item(self, slug: str, item_id: int) -> Item:
        """Return a visible item without counting an access; raise a `MemoryItemError` if the id has none."""
        found = await self.store.read(item_rows.of_ids, slug, (item_id,))
        if found:
            return found[0]
        hidden = await self.store.read(item_rows.hidden, slug, item_id)
        if hidden is not None and hidden.replaced_by:
            successor = f"#{hidden.replaced_by}"
            raise MemoryItemError(
                f"{successor} has replaced memory item #{item_id}; /memory show {item_id} shows both."
            )
        if hidden is not None and hidden.may_replace == PROPOSED:
            raise MemoryItemError(f"Memory item #{item_id} is only proposed; /memory inbox accept {item_id} keeps it.")
        if hidden is not None and hidden.may_replace != WITHDRAWN:
            raise MemoryItemError(
                f"Memory item #{item_id} is forgotten. /context ops has the number of the operation that hid it; "
                "/context undo or redo with that number brings the item back."
            )
        raise MemoryItemError(f"There is no memory item #{item_id} here. /memory list shows the items.")

    async def edit(self, item: Item, content: str) -> Operation | None:
        """Reword ``item`` and count an access; ``None`` means equal content. Raise `JournalError` if it has changed."""
        checked = checked_content(content)
        if checked == item.content:
            return None
        state = ItemChange(item.id, ItemState(content=item.content), ItemState(content=checked))
        operation = await self._change(item.persona, MemoryChange("edit", (state,), shortened(checked)))
        await self.count_access(item.persona, (item.id,))
        await self._count_missing(item.persona)
        return operation

    async def pin(self, slug: str, item_id: int) -> Operation:
        """Keep an item HOT whatever its score; an archived item becomes active."""
        item = await self.item(slug, item_id)
        if item.pinned:
            raise MemoryItemError(f"Memory item #{item_id} is pinned already.")
        archived = True if item.tier is Tier.ARCHIVED else None
        before = ItemState(archived=archived, pinned=False)
        after = ItemState(archived=False if archived else None, pinned=True)
        return await self._change(slug, _of_one("pin", item, before, after))

    async def unpin(self, slug: str, item_id: int) -> Operation:
        """Let the score of an item decide its tier again."""
        item = await self.item(slug, item_id)
        if not item.pinned:
            raise MemoryItemError(f"Memory item #{item_id} is not pinned.")
        return await self._change(slug, _of_one("unpin", item, ItemState(pinned=True), ItemState(pinned=False)))

    async def forget(self, slug: str, item_id: int) -> Operation:
        """Hide an item from every request, list and restore; an undo brings it back."""
        item = await self.item(slug, item_id)
        return await self._change(slug, _of_one("forget", item, ItemState(visible=True), ItemState(visible=False)))

    async def put_back(self, act: MemoryAct, reversal: NewOperation) -> None:
        """Apply ``act`` to its items, and store ``reversal``, the undo or redo that makes this change."""
        await self._write(item_changes.put_back, act, reversal)

    async def flash(self, slug: str, tokens: int, mark: int, *, force: bool = False) -> FlashReport:
        """Archive the COLD items of a persona under a checkpoint, and return the figures.

        Unless ``force``, raise a `MemoryItemError` if the next request has fewer ``tokens`` than ``mark``.
        """
        if tokens < mark and not force:
            raise MemoryItemError(
                f"The next request has {counted(tokens, 'token')}; Chorus archives memory only if it has {mark:,} or "
                "more. Nothing was changed; /memory flash --force archives COLD items anyway."
            )
        saved = await self._flash(slug, automatic=False)
        if saved is None:
            raise MemoryItemError("The memory has no active items, so there is nothing to save.")
        return saved

    async def flash_automatically(self, slug: str) -> FlashReport | None:
        """Archive the COLD items of a persona and return the figures; without COLD items, return ``None``."""
        await self.renew_if_due(slug)
        totals = await self.store.read(item_rows.totals, slug)
        return await self._flash(slug, automatic=True) if Tier.COLD in totals else None

    async def checkpoints(self, slug: str) -> Sequence[FlashReport]:
        """Return the last checkpoints of a persona, newest first."""
        return await self.store.read(item_changes.checkpoints, slug)

    async def restore(self, slug: str, checkpoint_id: int) -> Operation | None:
        """Bring the archived items of a checkpoint back; return ``None`` if none of its items is archived."""
        return await self._write(item_changes.restore, slug, checkpoint_id, self._now)

    async def recall(self, slug: str, text: str, limit: int = MOST_RECALLED) -> Sequence[Item]:
        """Return the items of any tier that a query names by number, then those with its words, best match first."""
        await self.renew_if_due(slug)
        return await self.renewing(lambda: self.store.read(item_rows.found, slug, text, limit))

    async def count_access(self, slug: str, ids: Collection[int]) -> None:
        """Count one more access of some items, and renew their scores and tiers."""
        if ids:
            await self.store.write(item_rows.count_access, slug, ids, self._now)

    async def renew_if_due(self, slug: str) -> None:
        """Renew the scores and tiers of a persona's items if the last renewal is five minutes old."""
        if await self.store.read(item_rows.is_renewal_due, slug, self._now):
            await self._write(item_rows.renew, slug, self._now)

    async def count(self, contents: Iterable[str]) -> Mapping[str, int]:
        """Return the number of tokens of each content in a request."""
        return await asyncio.to_thread(lambda: {each: self.counter.count(indented(each)) for each in contents})

    def offers(self, slug: str) -> Sequence[tuple[int, str]]:
        """Return the newest items for completion, as they were read last; they are read again in the background."""
        if self._reading is None or self._reading.done():
            self._reading = asyncio.ensure_future(self._read_offers(slug))
        known, heads = self._offers
        return heads if known == slug else ()

    async def renewing(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Return the result of ``attempt``; if it finds the index damaged, rebuild the index and try once more."""
        return await mending(attempt, self.store, item_rows.renew_words, self.tell, (_RENEWED, _LOST))

    async def _write(self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.renewing(lambda: self.store.write(work, *args, **kwargs))

    async def _read_offers(self, slug: str) -> None:
        # Another process may hold the store, or the chat may be closing it; the next key tries again.
        with suppress(StorageError, RuntimeError):
            self._offers = slug, await self.store.read(item_rows.newest_heads, slug)

    async def _count_missing(self, slug: str) -> None:
        contents = await self.store.read(item_rows.uncounted, slug)
        if not contents:
            return
        tokens = await self.count(contents.values())
        counts = {id_: tokens[content] for id_, content in contents.items()}
        # If the counts cannot be stored now, the tokens are counted again next time.
        with suppress(StorageError):
            await self.store.write(item_rows.store_token_counts, contents, counts)

    async def _add(self, addition: Addition) -> Added:
        added = await self._write(item_changes.add, addition._replace(items=await self._counted(addition.items)))
        if addition.command:
            # An item that was captured before may have new content, which has no count yet.
            await self._count_missing(addition.persona)
        await self._read_offers(addition.persona)
        return added

    async def _counted(self, items: Sequence[NewItem]) -> list[NewItem]:
        tokens = await self.count(item.content for item in items)
        return [item._replace(token_count=tokens[item.content]) for item in items]

    async def _change(self, slug: str, change: MemoryChange) -> Operation:
        operation = await self._write(item_changes.change, slug, change, self._now)
        await self._read_offers(slug)
        return operation

    async def _flash(self, slug: str, *, automatic: bool) -> FlashReport | None:
        await self._count_missing(slug)
        return await self._write(item_changes.flash, slug, self._now, automatic=automatic)

    @property
    def _now(self) -> datetime:
        return self.clock.now()


def _of_one(change: str, item: Item, before: ItemState, after: ItemState) -> MemoryChange:
    return MemoryChange(change, (ItemChange(item.id, before, after),), shortened(item.content))
