"""The rows of replies in progress, written every half second while the words arrive and once more at the end."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.errors import StorageError
from chorus_cli.core.text.code_points import has_surrogates, join_surrogates
from chorus_cli.log.rows import message_rows
from chorus_cli.log.rules.messages import Status, Thought, Thoughts
from chorus_cli.models.rules.costs import THOUGHT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from chorus_cli.log.rules.messages import Message
    from chorus_cli.machine.ports import Clock, TokenCounter
    from chorus_cli.models.rules.events import ReplyEnd
    from chorus_cli.storage.store import Connection, Store


CHECKPOINT_SECONDS = 0.5

_LONG_REPLY = 20_000
"""Characters of a reply that are not counted before the reply is written: counting megabytes takes seconds, and the
user waits for the prompt. The next request counts them, or the toolbar before it."""


class WrittenReply(NamedTuple):
    """A reply as it is written to the log: its row, and its thoughts."""

    row: Message
    thoughts: Thoughts


class ReplyRows:
    """Writes checkpoints of all replies of this process, so that a crash costs half a second of each at most.

    Those ``growing`` are written in one transaction: however many there are, the end of a reply waits for one.
    Checkpoints run beside the streams: a database that another process keeps locked delays them, never a reply.
    """

    def __init__(self, store: Store, counter: TokenCounter, clock: Clock) -> None:
        self.store = store
        self.counter = counter
        self.clock = clock
        self.growing: dict[int, ReplyWriter] = {}
        self._checkpoint: asyncio.Task[None] | None = None

    def grown(self, writer: ReplyWriter) -> None:
        """Write a checkpoint if the last one of ``writer`` is half a second old, with all replies that have grown."""
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
        grown = [writer.progress() for writer in writers]
        replies = await asyncio.to_thread(lambda: [self._counted(*each) for each in grown])
        for writer, reply in zip(writers, replies, strict=True):
            writer.tokens = reply.row.token_count
        # The next checkpoint or the final write tries again; only the final one has to succeed.
        with suppress(StorageError):
            await self.store.write(_update, replies)

    def _counted(self, reply: WrittenReply, uncounted: str) -> WrittenReply:
        """Return a reply with the tokens of its whole text, some more than exactly; the end of a reply is exact."""
        fresh_tokens = self.count(uncounted)
        tokens = None if fresh_tokens is None else (reply.row.token_count or 0) + fresh_tokens
        return reply._replace(row=reply.row._replace(token_count=tokens))

    def count(self, text: str) -> int | None:
        """Count a text, unless that would keep the end of a reply waiting."""
        return self.counter.count(text) if self.counter.is_ready and len(text) <= _LONG_REPLY else None


@dataclass(slots=True)
class _Thinking:
    """The thoughts of a reply while they arrive, and the seconds that they take, by monotonic times.

    A model whose thoughts are hidden is silent while it thinks, from ``asked_at`` to its first word.
    """

    asked_at: float
    pieces: list[str] = field(default_factory=list)
    _seconds: float = 0.0
    _since: float | None = None
    _first_word_at: float | None = None

    def add(self, text: str, now: float) -> None:
        self.pieces.append(text)
        self._since = now if self._since is None else self._since

    def pause(self, now: float) -> None:
        """Stop the clock, for words have come, or the end."""
        if self._since is not None:
            self._seconds, self._since = self._seconds + now - self._since, None
        if self._first_word_at is None:
            self._first_word_at = now

    @property
    def text(self) -> str:
        return join_surrogates("".join(self.pieces))

    def measured(self, tokens: int | None) -> Thought | None:
        """Return how long it took, after `pause`; ``None`` without a thought."""
        if self.pieces:
            return Thought(round(self._seconds, 1), tokens)
        silent = (self._first_word_at or self.asked_at) - self.asked_at
        return Thought(round(silent, 1), tokens) if tokens else None


@dataclass(slots=True)
class ReplyWriter:
    """Takes one reply while it arrives, in ``pieces``.

    ``checkpoint`` is the newest one, ``written_at`` its monotonic time, at first that of now. ``tokens`` are those up
    to there, ``None`` if they could not be counted yet.
    """

    rows: ReplyRows
    reply: Message
    written_at: float
    checkpoint: asyncio.Task[None] | None = None
    tokens: int | None = 0
    pieces: list[str] = field(default_factory=list)
    _thinking: _Thinking = field(init=False)
    _counted_pieces: int = 0
    _has_surrogates: bool = False
    _began_at: datetime | None = None

    def __post_init__(self) -> None:
        self._thinking = _Thinking(self.written_at)

    @property
    def text(self) -> str:
        """All that has arrived; half a character that a model may send could not be stored."""
        text = "".join(self.pieces)
        # To look for them in megabytes takes longer than to join the pieces.
        return join_surrogates(text) if self._has_surrogates else text

    def add(self, text: str) -> None:
        """Take the next piece."""
        self.pieces.append(text)
        self._has_surrogates = self._has_surrogates or has_surrogates(text)
        if self._began_at is None:
            self._began_at = self.rows.clock.now()
        self._thinking.pause(self.rows.clock.monotonic())
        self.rows.grown(self)

    def think(self, text: str) -> None:
        """Take the next piece of the thoughts."""
        self._thinking.add(text, self.rows.clock.monotonic())
        self.rows.grown(self)

    def progress(self) -> tuple[WrittenReply, str]:
        """Return the reply as far as it has come, and its text since the last checkpoint, which is not counted yet."""
        if self.tokens is None:
            self._counted_pieces = 0
        uncounted = "".join(self.pieces[self._counted_pieces :])
        self._counted_pieces = len(self.pieces)
        row = self._row(self.text, Status.STREAMING, self.tokens)
        return WrittenReply(row, Thoughts(self._thinking.text)), uncounted

    async def finish(self, status: Status, end: ReplyEnd) -> WrittenReply:
        """Write the whole reply with its final status, and return it; an empty one has the time of its end."""
        reply = await self.finished(status, end)
        await self.rows.store.write(message_rows.update_reply, *reply)
        return reply

    async def finished(self, status: Status, end: ReplyEnd) -> WrittenReply:
        """Return the whole reply with its final status, to be written; no checkpoint comes after that."""
        self.rows.growing.pop(self.reply.id, None)
        if self.checkpoint is not None:
            await asyncio.wait({self.checkpoint})
        if self._began_at is None:
            self._began_at = self.rows.clock.now()
        self._thinking.pause(self.rows.clock.monotonic())
        text, thoughts = self.text, Thoughts(self._thinking.text, end.thought_parts)
        tokens, thought_tokens = await asyncio.to_thread(lambda: tuple(map(self.rows.count, (text, thoughts.text))))
        thought = self._thinking.measured(end.usage.get(THOUGHT) or thought_tokens)
        return WrittenReply(self._row(text, status, tokens)._replace(usage=end.usage, thought=thought), thoughts)

    def _row(self, text: str, status: Status, tokens: int | None) -> Message:
        # Never before the question, even if the clock was set back.
        began_at = max(self.reply.timestamp, self._began_at or self.reply.timestamp)
        return self.reply._replace(content=text, status=status, token_count=tokens, timestamp=began_at)


def _update(connection: Connection, replies: Sequence[WrittenReply]) -> None:
    for reply in replies:
        message_rows.update_reply(connection, *reply)
