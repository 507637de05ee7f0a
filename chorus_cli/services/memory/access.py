"""Access to the memory in the database, with a full-text index that is made again when it is damaged."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from chorus_cli.core.errors import DatabaseDamagedError, StorageError
from chorus_cli.storage.sqlite.log import index_renewal
from chorus_cli.storage.sqlite.log.index_renewal import IndexDamagedError
from chorus_cli.storage.sqlite.memory import item_rows, item_words

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from chorus_cli.ports import Clock, TokenCounter
    from chorus_cli.storage.sqlite.store import Connection, Store

P = ParamSpec("P")
T = TypeVar("T")

_RENEWED = "The index of the memory was damaged and is made again; no memory item is concerned."


@dataclass(slots=True)
class MemoryAccess:
    """The store and the token counter of the memory; ``tell`` says that a damaged index was made again."""

    store: Store
    clock: Clock
    counter: TokenCounter
    tell: Callable[[str], None]
    _is_checked: bool = field(default=False, init=False)

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
        return await self._renewing(lambda: self.store.write(work, *args, **kwargs))

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
                await self.store.write(item_words.check)
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
        await self.store.read(index_renewal.require_sound_log)
        await self.store.write(item_words.make_again)
        # If it fails, the old pages only waste space.
        with suppress(StorageError):
            await self.store.compact()
        self.tell(_RENEWED)
