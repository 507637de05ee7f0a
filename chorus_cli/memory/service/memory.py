"""The memory of a persona: items that are remembered, corrected, pinned, forgotten, recalled and archived.

An index of their words that is found damaged is made again from the items.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Concatenate, NamedTuple, ParamSpec, TypeVar

from chorus_cli.core.errors import DatabaseDamagedError, MemoryItemError, StorageError
from chorus_cli.core.text.phrases import counted, shortened
from chorus_cli.log.rows import search_index
from chorus_cli.log.rows.search_index import IndexDamagedError
from chorus_cli.log.rules.log_acts import ItemChange, ItemState, MemoryAct, MemoryChange
from chorus_cli.log.rules.operations import NewOperation, Operation
from chorus_cli.machine.ports import Clock, TokenCounter
from chorus_cli.memory.rows import item_changes, item_rows
from chorus_cli.memory.rows.item_changes import Added, Addition, NewItem
from chorus_cli.memory.rules.capture import Captured, captured, sections
from chorus_cli.memory.rules.items import FlashReport, Item, ItemType, MemoryStatistics, Tier, checked_content
from chorus_cli.personas.rules.persona import Persona
from chorus_cli.storage.store import Connection, Store

P = ParamSpec("P")
T = TypeVar("T")

MOST_RECALLED = 20
_LONGEST_INLINE = 20_000
"""A text of more characters takes longer than a frame of the screen, so that it is looked through in a thread."""

_RENEWED = "The index of the memory was damaged and is made again; no memory item is concerned."


class Remembered(NamedTuple):
    """An item that was added by hand; without an operation it was known, and was only accessed."""

    item: Item
    operation: Operation | None
    was_known: bool


@dataclass(slots=True)
class Memory:
    """The memories of all personas, each by the persona's slug; ``tell`` says that a damaged index was made again."""

    store: Store
    clock: Clock
    counter: TokenCounter
    tell: Callable[[str], None]
    _offers: tuple[str, Sequence[tuple[int, str, str]]] = field(default=("", ()), init=False)
    _reading: asyncio.Task[None] | None = field(default=None, init=False)

    async def remember(
        self,
        slug: str,
        item_type: ItemType,
        content: str,
        source_message_id: int | None = None,
        *,
        revives: bool = True,
    ) -> Remembered:
        """Add an item by hand, which is its first access; equal content is stored once.

        A known item is accessed and made young; a forgotten or archived one comes back. Without ``revives``, as for a
        model, a forgotten one is refused.
        """
        new = NewItem(item_type, checked_content(content), None, source_message_id)
        if not revives and await self.store.read(item_rows.is_forgotten, slug, content=new.content):
            raise MemoryItemError("The user has asked to forget this.")
        added = await self._add(Addition(slug, [new], "add", self._now))
        (item,) = added.items
        return Remembered(item, added.operation, item.id in added.known_ids)

    async def import_sections(self, slug: str, markdown: str, source: str) -> Added:
        """Add the sections of a document as PRD_SECTION items; ``source`` names the document to the user."""
        contents = await asyncio.to_thread(sections, markdown)
        if not contents:
            raise MemoryItemError(f"{source} holds no text, so nothing was imported.")
        items = [NewItem(ItemType.PRD_SECTION, checked_content(content)) for content in contents]
        return await self._add(Addition(slug, items, "import", self._now, title=source))

    async def capture(
        self, persona: Persona, text: str, source_message_id: int | None, *, is_output: bool = False, title: str = ""
    ) -> Added:
        """Add the code, errors and results in a message or an output, if the setting allows it; known items stay."""
        found: Sequence[Captured] = ()
        if persona.settings.auto_memory and len(text) <= _LONGEST_INLINE:
            found = captured(text, is_output=is_output)
        elif persona.settings.auto_memory:
            found = await asyncio.to_thread(captured, text, is_output=is_output)
        if not found:
            return Added((), frozenset(), None)
        items = [NewItem(each.item_type, each.content, None, source_message_id) for each in found]
        source = title or f"message #{source_message_id}"
        return await self._add(Addition(persona.slug, items, "capture", self._now, by_hand=False, title=source))

    async def listing(self, slug: str, tier: Tier | None = None, item_type: ItemType | None = None) -> Sequence[Item]:
        """Return the items of a persona, of one tier or type if that is given, best first."""
        await self.renew_if_due(slug)
        await self._count_missing(slug)
        return await self.store.read(item_rows.listing, slug, tier, item_type)

    async def statistics(self, slug: str) -> MemoryStatistics:
        """Return items and tokens by tier; the last update is the newest access or renewal."""
        await self.renew_if_due(slug)
        await self._count_missing(slug)
        totals = await self.store.read(item_rows.totals, slug)
        updated = await self.store.read(item_rows.updated_at, slug)
        return MemoryStatistics(slug, totals, updated or self._now)

    async def item(self, slug: str, item_id: int) -> Item:
        """Return an item without counting an access; refuse one that is forgotten, or is not there."""
        found = await self.store.read(item_rows.of_ids, slug, (item_id,))
        if found:
            return found[0]
        if await self.store.read(item_rows.is_forgotten, slug, item_id):
            raise MemoryItemError(
                f"Memory item #{item_id} is forgotten. /context ops lists the operation, and undoing it brings it back."
            )
        raise MemoryItemError(f"There is no memory item #{item_id} here. /memory list shows those there are.")

    async def show(self, slug: str, item_id: int) -> Item:
        """Return an item and count an access."""
        await self.item(slug, item_id)
        await self.count_access(slug, (item_id,))
        await self._count_missing(slug)
        return await self.item(slug, item_id)

    async def origins(self, slug: str, items: Iterable[Item]) -> Mapping[int, str]:
        """Return the change that brought in each item without a source message: add, import or capture, by its id."""
        without_message = [item.id for item in items if item.source_message_id is None]
        return await self.store.read(item_changes.origins, slug, without_message) if without_message else {}

    async def edit(self, item: Item, content: str) -> Operation | None:
        """Replace the content of an item as it was read, and count an access; ``None`` if the content is the same."""
        checked = checked_content(content)
        if checked == item.content:
            return None
        state = ItemChange(item.id, ItemState(content=item.content), ItemState(content=checked))
        operation = await self._change(item.persona, MemoryChange("edit", (state,), shortened(checked)))
        await self.count_access(item.persona, (item.id,))
        await self._count_missing(item.persona)
        return operation

    async def pin(self, slug: str, item_id: int) -> Operation:
        """Keep an item HOT whatever its score; an archived one comes back."""
        item = await self.item(slug, item_id)
        if item.pinned:
            raise MemoryItemError(f"Memory item #{item_id} is pinned already.")
        archived = True if item.tier is Tier.ARCHIVED else None
        before = ItemState(archived=archived, pinned=False)
        after = ItemState(archived=False if archived else None, pinned=True)
        return await self._change(slug, _of_one("pin", item, before, after))

    async def unpin(self, slug: str, item_id: int) -> Operation:
        """Let an item have the tier of its score again."""
        item = await self.item(slug, item_id)
        if not item.pinned:
            raise MemoryItemError(f"Memory item #{item_id} is not pinned.")
        return await self._change(slug, _of_one("unpin", item, ItemState(pinned=True), ItemState(pinned=False)))

    async def forget(self, slug: str, item_id: int) -> Operation:
        """Hide an item from every prompt, list and restore; an undo brings it back."""
        item = await self.item(slug, item_id)
        return await self._change(slug, _of_one("forget", item, ItemState(visible=True), ItemState(visible=False)))

    async def put_back(self, act: MemoryAct, reversal: NewOperation) -> None:
        """Change items by ``act``, the inverse of an undone one or the repeated one, and store the undo or redo."""
        await self._write(item_changes.put_back, act, reversal)
        await self._read_offers(reversal.persona)

    async def flash(self, slug: str, tokens: int, mark: int, *, force: bool = False) -> FlashReport:
        """Archive the COLD items of a persona under a checkpoint, and report it.

        The next request, of so many ``tokens``, needs no force from the ``mark`` on.
        """
        if tokens < mark and not force:
            raise MemoryItemError(
                f"The next request has {counted(tokens, 'token')}, below the {mark:,} from which on "
                "memory is archived. Nothing was changed; /memory flash --force archives COLD items anyway."
            )
        saved = await self._flash(slug, automatic=False)
        if saved is None:
            raise MemoryItemError("The memory has no active items, so there is nothing to save.")
        return saved

    async def flash_automatically(self, slug: str) -> FlashReport | None:
        """Archive the COLD items of a persona, if there are any; scores are not renewed for it, unless they are due."""
        await self.renew_if_due(slug)
        totals = await self.store.read(item_rows.totals, slug)
        return await self._flash(slug, automatic=True) if Tier.COLD in totals else None

    async def checkpoints(self, slug: str) -> Sequence[FlashReport]:
        """Return the last checkpoints of a persona, newest first."""
        return await self.store.read(item_changes.checkpoints, slug)

    async def restore(self, slug: str, checkpoint_id: int) -> Operation | None:
        """Bring the archived items of a checkpoint back; ``None`` if none of them is archived."""
        return await self._write(item_changes.restore, slug, checkpoint_id, self._now)

    async def recall(self, slug: str, text: str, limit: int = MOST_RECALLED) -> Sequence[Item]:
        """Return the HOT and WARM items that a query names or has words of, best match first."""
        await self.renew_if_due(slug)
        return await self.renewing(lambda: self.store.read(item_rows.found, slug, text, limit))

    async def count_access(self, slug: str, ids: Collection[int]) -> None:
        """Count one more access of some items, and renew their scores and tiers."""
        if ids:
            await self.store.write(item_rows.count_access, slug, ids, self._now)

    async def renew_if_due(self, slug: str) -> None:
        """Renew the scores and tiers of a persona's items, at most every five minutes; else they are only read."""
        if await self.store.read(item_rows.is_renewal_due, slug, self._now):
            await self._write(item_rows.renew, slug, self._now)

    async def count(self, contents: Iterable[str]) -> Mapping[str, int]:
        """Count the tokens of contents."""
        return await asyncio.to_thread(lambda: {content: self.counter.count(content) for content in contents})

    def offers(self, slug: str) -> Sequence[tuple[int, str, str]]:
        """Return the newest items for completion, as they were read last; they are read again in the background."""
        if self._reading is None or self._reading.done():
            self._reading = asyncio.ensure_future(self._read_offers(slug))
        known, heads = self._offers
        return heads if known == slug else ()

    async def renewing(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Use the index of the items' words; if it is damaged, make it again from the items and try once more."""
        try:
            return await attempt()
        except IndexDamagedError:
            await self.store.read(search_index.require_sound_log)
            await self.store.write(item_rows.renew_words)
            # If it fails, the old pages only waste space.
            with suppress(StorageError):
                await self.store.compact()
            self.tell(_RENEWED)
        try:
            return await attempt()
        except IndexDamagedError as error:
            raise DatabaseDamagedError(
                "The index of the memory is damaged and cannot be made again. The items are not concerned; "
                "chorus memory prints them."
            ) from error

    async def _write(self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.renewing(lambda: self.store.write(work, *args, **kwargs))

    async def _read_offers(self, slug: str) -> None:
        # The store may be busy, or closed under a chat that ends; the next key tries again.
        with suppress(StorageError, RuntimeError):
            self._offers = slug, await self.store.read(item_rows.newest_heads, slug)

    async def _count_missing(self, slug: str) -> None:
        """Count the items of a persona that were put in without a count, and store the counts."""
        contents = await self.store.read(item_rows.uncounted, slug)
        if not contents:
            return
        tokens = await self.count(contents.values())
        counts = {id_: tokens[content] for id_, content in contents.items()}
        # The figures of an item that cannot be stored now are counted again next time.
        with suppress(StorageError):
            await self.store.write(item_rows.store_token_counts, contents, counts)

    async def _add(self, addition: Addition) -> Added:
        tokens = await self.count(item.content for item in addition.items)
        items = [item._replace(token_count=tokens[item.content]) for item in addition.items]
        added = await self._write(item_changes.add, addition._replace(items=items))
        await self._read_offers(addition.persona)
        return added

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
