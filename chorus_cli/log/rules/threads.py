"""Threads of a persona: their states, their titles, and finding one by number or title."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from chorus_cli.core.text.phrases import shortened
from chorus_cli.log.rules.messages import Message, Role, Status, is_filled, words_of

_NUMBER = re.compile(r"#?\s*([0-9]{1,18})")


class ThreadState(StrEnum):
    """The state of a thread, derived from its rows and from the messages that wait for it."""

    RUNNING = "running"
    WAITING = "waiting"
    INTERRUPTED = "interrupted"
    IDLE = "idle"
    EMPTY = "empty"
    CLOSED = "closed"


class Thread(NamedTuple):
    """One conversation with a persona; the user knows it by its ``number``.

    Without a ``title``, its ``first_words`` name it; both may be empty. ``messages`` does not count rows that are
    purged, off the live branch, or from an undone import. ``last_spoken`` is the newest row's time, if readable.
    """

    id: int
    number: int
    title: str
    first_words: str
    created_at: datetime
    closed_at: datetime | None
    messages: int
    last_spoken: datetime | None

    @property
    def name(self) -> str:
        """The title or else the first words, in one short line."""
        return shortened(self.title) or shortened(self.first_words)

    @property
    def label(self) -> str:
        """The number, and the name if there is one: ``#3: The trip to Rome``."""
        return f"#{self.number}: {self.name}" if self.name else f"#{self.number}"

    @property
    def last_active(self) -> datetime:
        """The time of the newest message, or else the time at which the thread was opened."""
        return self.last_spoken or self.created_at


class TitledThread(NamedTuple):
    """A thread whose title was found; ``excerpt`` is the title with the matches marked."""

    id: int
    persona: str
    number: int
    is_closed: bool
    excerpt: str


class Exchange(NamedTuple):
    """The last turn in a context. ``question`` and ``reply`` may be empty; without a reply, ``status`` is ``None``.

    ``model`` wrote the reply that ends the turn, if any. ``place`` says where a turn of another run happened.
    """

    at: datetime
    question: str
    reply: str
    status: Status | None
    model: str | None = None
    place: str = ""


def state_of(thread: Thread, *, is_running: bool, waiting: int, newest_reply: Status | None) -> ThreadState:
    """Return a thread's state; ``waiting`` messages wait for it, and its last reply has the status ``newest_reply``."""
    if thread.closed_at is not None:
        return ThreadState.CLOSED
    if is_running:
        return ThreadState.RUNNING
    if waiting:
        return ThreadState.WAITING
    # No process writes in the thread, so a reply that is still marked as in progress is interrupted too.
    if newest_reply not in {None, Status.COMPLETE}:
        return ThreadState.INTERRUPTED
    return ThreadState.IDLE if thread.messages else ThreadState.EMPTY


def newest_reply(messages: Iterable[Message]) -> Message | None:
    """Return the last message that is not the user's: a reply, a call or a result; ``None`` if there is none."""
    return next((row for row in reversed([*messages]) if row.role is not Role.USER), None)


def last_exchange(messages: Sequence[Message]) -> Exchange | None:
    """Return the last turn of the messages in context, without its tool calls; ``None`` if there is none."""
    if not messages:
        return None
    turn = [row for row in messages if row.turn_id == messages[-1].turn_id]
    question = "\n\n".join(words_of(row) for row in turn if row.role is Role.USER)
    reply = "\n\n".join(words_of(row) for row in turn if row.role is Role.ASSISTANT and is_filled(row))
    newest = newest_reply(turn)
    model = newest.model if newest and newest.role is Role.ASSISTANT and is_filled(newest) else None
    return Exchange(turn[0].timestamp, question, reply, newest.status if newest else None, model)


def with_newest_closed(threads: Sequence[Thread], most: int) -> list[Thread]:
    """Return, in their order, the open threads and the ``most`` closed threads that were active last."""
    closed = sorted((each for each in threads if each.closed_at is not None), key=lambda each: each.last_active)
    listed = {each.id for each in closed[-most:]}
    return [each for each in threads if each.closed_at is None or each.id in listed]


def number_in(typed: str) -> int | None:
    """Return the number in a text such as ``3`` or ``#3``; ``None`` for any other text."""
    match = _NUMBER.fullmatch(typed.strip())
    return int(match[1]) if match else None


def named(threads: Iterable[Thread], typed: str) -> list[Thread]:
    """Return the threads named ``typed``, or else those whose names begin with it; a name is a title or first words.

    Case and the number of blanks do not matter. Closed threads are returned only if no open thread fits.
    """
    wanted = _folded(typed)
    known = [(_folded(thread.title or thread.first_words), thread) for thread in threads]
    for is_closed in (False, True):
        group = [(title, thread) for title, thread in known if (thread.closed_at is not None) is is_closed]
        found = [thread for title, thread in group if title == wanted]
        found = found or [thread for title, thread in group if wanted and title.startswith(wanted)]
        if found:
            return found
    return []


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
