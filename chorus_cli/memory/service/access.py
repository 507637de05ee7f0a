"""Access to the memory in the database: finding items, and an index that is made again when it is damaged."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Concatenate, NamedTuple, ParamSpec, TypeVar

from chorus_cli.core.errors import DatabaseDamagedError, StorageError
from chorus_cli.log.rows import search_index
from chorus_cli.log.rows.search_index import IndexDamagedError
from chorus_cli.memory.rows import item_rows
from chorus_cli.memory.rules.items import Item, Tier
from chorus_cli.memory.rules.recall import (
    FIRST_WORD,
    Keys,
    index_terms,
    keys_of,
    match_query,
    meaningful_words,
    rare_words,
    references,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from chorus_cli.machine.ports import Clock, TokenCounter
    from chorus_cli.memory.rows.item_rows import ItemHead
    from chorus_cli.storage.store import Connection, Store

_MOST_LOOKED_THROUGH = 20_000
"""The characters at the end of a message that keys are looked for in."""


def renew_if_due(connection: Connection, persona: str, now: datetime) -> bool:
    """Renew scores and tiers, at most every five minutes; return whether there are any items."""
    if not item_rows.number(connection, persona):
        return False
    if item_rows.is_renewal_due(connection, persona, now):
        item_rows.renew(connection, persona, now)
    return True


def keyed_items(connection: Connection, persona: str) -> list[tuple[Item, Keys]]:
    """Return the items that have keys, of any tier.

    Raises:
        IndexDamagedError: the index of the items' words cannot be read.
    """
    ids = item_rows.ids_beginning_with(connection, persona, FIRST_WORD)
    found = item_rows.of_ids(connection, persona, ids) if ids else []
    return [(item, keys) for item in found if (keys := keys_of(item.content)) is not None]


def called_by(text: str, keyed: Iterable[tuple[Item, Keys]]) -> list[Item]:
    """Return the items whose keys occur in the last part of a text."""
    folded = text[-_MOST_LOOKED_THROUGH:].casefold()
    return [item for item, keys in keyed if keys.call(folded)]


def found(connection: Connection, persona: str, query: str, limit: int) -> list[Item]:
    """Return the HOT and WARM items that a query names, then those that have any of its words, best match first.

    Raises:
        IndexDamagedError: the index of the items' words cannot be read.
    """
    named = referred_to(connection, persona, query, limit)
    words, known = meaningful_words(query), {item.id for item in named}
    by_words = item_rows.matching(connection, persona, match_query(words), limit) if words else []
    return [*named, *(item for item in by_words if item.id not in known)][:limit]


def referred_to(connection: Connection, persona: str, text: str, limit: int) -> list[Item]:
    """Return the HOT and WARM items that a text refers to: by number, then by rare words, best match first.

    Raises:
        IndexDamagedError: the index of the items' words cannot be read.
    """
    ids, words = references(text), meaningful_words(text)
    number = item_rows.number(connection, persona) if words else 0
    # A word that more items have than this is not rare.
    frequency = item_rows.word_frequencies(connection, persona, index_terms(words), number // 10 + 5) if number else {}
    rare = rare_words(words, frequency, number)
    by_words = item_rows.matching(connection, persona, match_query(rare), limit) if rare else []
    named = [item for item in item_rows.of_ids(connection, persona, ids) if item.tier in {Tier.HOT, Tier.WARM}]
    return [*named, *(item for item in by_words if item.id not in ids)][:limit]


P = ParamSpec("P")
T = TypeVar("T")

_RENEWED = "The index of the memory was damaged and is made again; no memory item is concerned."
_HEADS_READ_EVERY = timedelta(seconds=10)


class _Heads(NamedTuple):
    """Items for completion, and the number of writes of this program before they were read."""

    slug: str
    heads: Sequence[ItemHead]
    writes: int
    read_at: datetime


@dataclass(slots=True)
class MemoryAccess:
    """The store and the token counter of the memory; ``tell`` says that a damaged index was made again."""

    store: Store
    clock: Clock
    counter: TokenCounter
    tell: Callable[[str], None]
    _is_checked: bool = field(default=False, init=False)
    _writes: int = field(default=0, init=False)
    _heads: _Heads | None = field(default=None, init=False)
    _reading: asyncio.Task[None] | None = field(default=None, init=False)

    async def read(self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Read in one transaction.

        Raises:
            StorageError: the database cannot be read.
        """
        return await self._renewing(lambda: self.store.read(work, *args, **kwargs))

    async def write(self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Write in one transaction: all of it, or nothing.

        Raises:
            StorageError: the database cannot be written.
        """
        try:
            return await self._renewing(lambda: self.store.write(work, *args, **kwargs))
        finally:
            self._writes += 1

    async def write_in_steps(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Write in transactions that ``work`` makes itself, as `Store.write_in_steps`.

        Raises:
            StorageError: the database cannot be written.
        """
        try:
            return await self._renewing(lambda: self.store.write_in_steps(work, *args, **kwargs))
        finally:
            self._writes += 1

    async def renew_if_due(self, slug: str) -> None:
        """Renew the scores and tiers of a persona's items, at most every five minutes; else they are only read.

        Raises:
            StorageError: the database cannot be read or written.
        """
        if await self.read(item_rows.is_renewal_due, slug, self.clock.now()):
            await self.write(renew_if_due, slug, self.clock.now())

    async def check_index(self) -> None:
        """Check the index, once in a process, because an empty result may mean that it has lost its words.

        Raises:
            StorageError: it is damaged and cannot be made again.
        """
        if self._is_checked:
            return
        self._is_checked = True
        try:
            # It cannot be checked while another program writes.
            with suppress(StorageError):
                await self.store.write(item_rows.check_words)
        except IndexDamagedError:
            await self._make_again()

    async def count(self, contents: Iterable[str]) -> Mapping[str, int]:
        """Count the tokens of contents."""
        return await asyncio.to_thread(lambda: {content: self.counter.count(content) for content in contents})

    async def count_missing(self, slug: str) -> None:
        """Count the items of a persona that were put in without a count, and store the counts.

        Raises:
            StorageError: the database cannot be read.
        """
        contents = await self.store.read(item_rows.uncounted, slug)
        if not contents:
            return
        tokens = await self.count(contents.values())
        counts = {id_: tokens[content] for id_, content in contents.items()}
        # The figures of an item that cannot be stored now are counted again next time.
        with suppress(StorageError):
            await self.store.write(item_rows.store_token_counts, contents, counts)

    def heads(self, slug: str) -> Sequence[ItemHead]:
        """Return the newest items of a persona as they were read last, for completion at each key.

        They are read again in the background after a change of the memory, or ten seconds after they were read: another
        program may have changed it.
        """
        known = self._heads if self._heads and self._heads.slug == slug else None
        is_new = (
            known is not None
            and known.writes == self._writes
            and timedelta() <= self.clock.now() - known.read_at < _HEADS_READ_EVERY
        )
        if not is_new and (self._reading is None or self._reading.done()):
            self._reading = asyncio.ensure_future(self.read_heads(slug))
        return known.heads if known else ()

    async def read_heads(self, slug: str) -> None:
        """Read the newest items for the completions that follow."""
        writes, read_at = self._writes, self.clock.now()
        # The store may be busy, or closed under a chat that ends; the next key tries again.
        with suppress(StorageError, RuntimeError):
            self._heads = _Heads(slug, await self.read(item_rows.newest_heads, slug), writes, read_at)

    async def _renewing(self, attempt: Callable[[], Awaitable[T]]) -> T:
        try:
            return await attempt()
        except IndexDamagedError:
            await self._make_again()
        try:
            return await attempt()
        except IndexDamagedError as error:
            raise DatabaseDamagedError(
                "The index of the memory is damaged and cannot be made again. The items are not concerned; "
                "chorus memory prints them."
            ) from error

    async def _make_again(self) -> None:
        await self.store.read(search_index.require_sound_log)
        await self.store.write(item_rows.renew_words)
        # If it fails, the old pages only waste space.
        with suppress(StorageError):
            await self.store.compact()
        self.tell(_RENEWED)
