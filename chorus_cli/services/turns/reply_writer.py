"""Writes a reply into the log while it arrives, so that a crash costs half a second of it at most."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from chorus_cli.core.errors import StorageError
from chorus_cli.core.log.messages import Status
from chorus_cli.core.text.safe_text import join_surrogates
from chorus_cli.storage.sqlite.log import message_rows
from chorus_cli.storage.sqlite.log.message_rows import ReplyState

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from chorus_cli.core.log.messages import Message
    from chorus_cli.ports import Clock, TokenCounter
    from chorus_cli.storage.sqlite.store import Store

CHECKPOINT_SECONDS = 0.5


class ReplyWriter:
    """The reply of one turn: what has arrived, and what of it is on disk.

    Checkpoints run beside the stream: a database that another process keeps locked delays them, never the reply.
    """

    def __init__(self, store: Store, counter: TokenCounter, clock: Clock, reply: Message) -> None:
        self._store = store
        self._counter = counter
        self._clock = clock
        self._reply = reply
        self._pieces: list[str] = []
        self._checkpoint: asyncio.Task[None] | None = None
        self._written_at = clock.monotonic()
        self._began_at: datetime | None = None

    @property
    def text(self) -> str:
        """All that has arrived; half a character that a model may send could not be stored."""
        return join_surrogates("".join(self._pieces))

    def add(self, text: str) -> None:
        """Take the next piece, and write a checkpoint if the last one is half a second old."""
        self._pieces.append(text)
        if self._began_at is None:
            self._began_at = self._clock.now()
        idle = self._checkpoint is None or self._checkpoint.done()
        if idle and self._clock.monotonic() - self._written_at >= CHECKPOINT_SECONDS:
            self._written_at = self._clock.monotonic()
            self._checkpoint = asyncio.create_task(self._save_progress())

    async def finish(self, status: Status, usage: Mapping[str, int]) -> None:
        """Write the whole reply with its final status; one of which nothing came has the time of its end.

        Raises:
            StorageError: the database would not take it.
        """
        if self._checkpoint is not None:
            await asyncio.wait({self._checkpoint})
        if self._began_at is None:
            self._began_at = self._clock.now()
        await self._write(status, usage)

    async def _save_progress(self) -> None:
        try:
            await self._write(Status.STREAMING, {})
        except StorageError:
            # The next checkpoint or the final write tries again; only the final one has to succeed.
            return

    async def _write(self, status: Status, usage: Mapping[str, int]) -> None:
        text = self.text
        count = await asyncio.to_thread(self._counter.count, text)
        state = ReplyState(text, status, count, usage, self._began_at)
        await self._store.write(message_rows.update_reply, self._reply, state)
