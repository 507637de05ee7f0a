"""Writes the rows of replies in progress: every half second while words arrive, and once more at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from chorus_cli.core.errors import StorageError
from chorus_cli.core.text.code_points import has_surrogates, join_surrogates
from chorus_cli.log.rows import message_rows
from chorus_cli.log.rules.messages import Message, Status, Thought, Thoughts
from chorus_cli.machine.ports import Clock, TokenCounter
from chorus_cli.models.rules.costs import THOUGHT
from chorus_cli.models.rules.events import ReplyEnd
from chorus_cli.storage.port import Connection
from chorus_cli.storage.store import Store

CHECKPOINT_SECONDS = 0.5

_LONG_REPLY = 20_000
"""A reply with more characters is written without a token count: counting megabytes takes seconds, in which the user
waits for the prompt. The toolbar or the next request counts the reply."""


class WrittenReply(NamedTuple):
    """A reply as it is written to the log: its row, and its thoughts."""

    row: Message
    thoughts: Thoughts


class ReplyRows:
    """Writes checkpoints of all replies of this process, so that a crash loses about half a second of each reply.

    A task writes the ``growing`` replies in one transaction. A locked database delays the task and not the streams.
    """

    def __init__(self, store: Store, counter: TokenCounter, clock: Clock) -> None:
        self.store = store
        self.counter = counter
        self.clock = clock
        self.growing: dict[int, ReplyWriter] = {}
        self._checkpoint: asyncio.Task[None] | None = None

    def grown(self, writer: ReplyWriter) -> None:
        """Note that a reply has grown; if its last checkpoint is half a second old, write one of all grown replies."""
        self.growing[writer.reply.id] = writer
        if self._checkpoint is not None and not self._checkpoint.done():
            return
        now = self.clock.monotonic()
        if now - writer.written_at >= CHECKPOINT_SECONDS:
            writers, self.growing = tuple(self.growing.values()), {}
            self._checkpoint = asyncio.create_task(self._save(writers))
            for each in writers:
                each.written_at, each.checkpoint = now, self._checkpoint

    async def _save(self, writers: Sequence[ReplyWriter]) -> None:
        # The next checkpoint or the final write tries again; only the final one has to succeed.
        with suppress(StorageError):
            await self.store.write(_update, [writer.progress() for writer in writers])


@dataclass(slots=True)
class ReplyWriter:
    """Collects the pieces and thoughts of a reply; ``asked_at`` and ``written_at`` are times of the monotonic clock.

    If /continue extends a reply, the text of that reply comes before the pieces. The time from ``asked_at`` to the
    first word counts as thinking.
    """

    rows: ReplyRows
    reply: Message
    asked_at: float
    written_at: float
    checkpoint: asyncio.Task[None] | None = None
    pieces: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    _thought_seconds: float = 0.0
    _has_surrogates: bool = False
    _began_at: datetime | None = None

    @property
    def text(self) -> str:
        """The text that has arrived, without unpaired surrogates, which cannot be stored."""
        added = "".join(self.pieces)
        # If /continue brought no new words, the row would only repeat the words of the reply before.
        text = self.reply.content + added if not self.reply.content or added.strip() else ""
        # Searching megabytes for surrogates takes longer than joining the pieces.
        return join_surrogates(text) if self._has_surrogates else text

    def add(self, text: str) -> None:
        """Add the next piece of the text."""
        self.pieces.append(text)
        self._has_surrogates = self._has_surrogates or has_surrogates(text)
        self._begin()
        self.rows.grown(self)

    def think(self, text: str) -> None:
        """Add the next piece of the thoughts."""
        self.thoughts.append(text)
        self.rows.grown(self)

    def _begin(self) -> None:
        """Note when the first word or the end of the reply came."""
        if self._began_at is None:
            self._began_at = self.rows.clock.now()
            self._thought_seconds = self.rows.clock.monotonic() - self.asked_at

    def progress(self) -> WrittenReply:
        """Return the reply as far as it has come."""
        row = self._row(self.text, Status.STREAMING, None)
        return WrittenReply(row, Thoughts(join_surrogates("".join(self.thoughts))))

    async def finished(self, status: Status, end: ReplyEnd) -> WrittenReply:
        """Return the whole reply with its final status; the caller writes it, and no checkpoint follows."""
        self.rows.growing.pop(self.reply.id, None)
        if self.checkpoint is not None:
            await asyncio.wait({self.checkpoint})
        self._begin()
        text = self.text
        thoughts = Thoughts(join_surrogates("".join(self.thoughts)) if self.thoughts else "", end.thought_parts)
        tokens, thought_tokens = await asyncio.to_thread(lambda: tuple(map(self._count, (text, thoughts.text))))
        thought_tokens = end.usage.get(THOUGHT) or thought_tokens
        has_thought = self.thoughts or thought_tokens
        thought = Thought(round(self._thought_seconds, 1), thought_tokens) if has_thought else None
        return WrittenReply(self._row(text, status, tokens)._replace(usage=end.usage, thought=thought), thoughts)

    def _count(self, text: str) -> int | None:
        """Count a text; return ``None`` if counting would delay the end of the reply."""
        counter = self.rows.counter
        return counter.count(text) if counter.is_ready and len(text) <= _LONG_REPLY else None

    def _row(self, text: str, status: Status, tokens: int | None) -> Message:
        # A reply is not dated before its question, even if the clock was set back.
        began_at = max(self.reply.timestamp, self._began_at or self.reply.timestamp)
        return self.reply._replace(content=text, status=status, token_count=tokens, timestamp=began_at)


def _update(connection: Connection, replies: Sequence[WrittenReply]) -> None:
    for reply in replies:
        message_rows.update_reply(connection, *reply)
