"""Finds a session's messages in the log: a restore adds only missing messages, and the session's row has all ids.

Messages are equal if they have the same role, time and content; their ids do not count, because the file may be from
another machine's log. Of several equal rows, a message gets a row of its own turn, else the first row left. A thread of
the file is the log's thread of the same id if that has any of the messages, else the log's thread that has the most.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby
from typing import NamedTuple

from chorus_cli.context.rules.earlier import without_earlier
from chorus_cli.context.rules.memory import repeats_items
from chorus_cli.log.rules.attachments import with_lines
from chorus_cli.log.rules.messages import Message, MessageContent, Role, Runs, content_of, expanded, runs
from chorus_cli.memory.rules.recall import items_in, without_items
from chorus_cli.sessions.rules.format import SavedThread, Session

_Key = tuple[Role, datetime, str]
Forks = Mapping[int, frozenset[int]]
"""Maps the id of a message to the ids of the threads whose fork has this message."""


_FOREIGN = "(The numbers are those of another log.)\n"


def known_threads(session: Session, rows: Iterable[Message], forks: Forks) -> dict[int, int]:
    """Map each thread of the session to the log's thread that has its messages; no two get the same thread."""
    standing_in: defaultdict[_Key, set[int]] = defaultdict(set)
    for row in rows:
        standing_in[_key(row)] |= {row.thread_id, *forks.get(row.id, ())}
    votes: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for message in session.messages:
        votes[message.thread_id].update(standing_in[_key(message)])
    found: dict[int, int] = {}
    for thread_id, counted in votes.items():
        free = [number for number in counted if number not in found.values()]
        if free:
            found[thread_id] = max(free, key=lambda number: (number == thread_id, counted[number], -number))
    return found


def members(
    session: Session, rows: Iterable[Message], thread_of: Mapping[int, int], forks: Forks
) -> tuple[int | MessageContent, ...]:
    """Return the session's messages in order: an id for each that the log has, and a new message for each other.

    ``thread_of`` maps the session's threads to the log's. If the log has only some messages of a turn, the new messages
    join that turn of the log.
    """
    candidates: defaultdict[tuple[int, _Key], list[Message]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row.introduced_by is not None, row.id)):
        for thread_id in (row.thread_id, *forks.get(row.id, ())):
            candidates[thread_id, _key(row)].append(row)
    matches = [_taken(candidates[thread_of[each.thread_id], _key(each)], each) for each in session.messages]
    turns = {
        (message.thread_id, message.turn_id): row.turn_id
        for message, row in zip(session.messages, matches, strict=True)
        if row is not None
    }
    return tuple(
        _new(message, thread_of, turns) if row is None else row.id
        for message, row in zip(session.messages, matches, strict=True)
    )


def _key(message: Message | MessageContent) -> _Key:
    return message.role, message.timestamp, with_lines(message.content.removeprefix(_FOREIGN), message.attachments)


def _taken(candidates: list[Message], message: MessageContent) -> Message | None:
    """Remove a candidate from the list and return it: the one of the same turn, or else the first."""
    if not candidates:
        return None
    chosen = next((row for row in candidates if row.turn_id == message.turn_id), candidates[0])
    candidates.remove(chosen)
    return chosen


def _new(
    message: MessageContent, thread_of: Mapping[int, int], turns: Mapping[tuple[int, int | None], int]
) -> MessageContent:
    turn_id = turns.get((message.thread_id, message.turn_id))
    # In this log, the numbers of memory items and earlier messages mean other items and messages.
    preamble = without_earlier(without_items(message.preamble, items_in(message.preamble)))
    new = message._replace(thread_id=thread_of[message.thread_id], turn_id=turn_id, preamble=preamble)
    return new._replace(content=_FOREIGN + new.content, token_count=None) if repeats_items(new) else new


class Contents(NamedTuple):
    """The threads and messages of a session, by their ids.

    ``threads`` are triples: a thread, the fold with its summary (0 for none), and the number of messages that the
    summary covers. ``messages`` pairs each thread with its messages, in the order of the session.
    """

    active_thread: int
    threads: tuple[tuple[int, int, int], ...]
    messages: tuple[tuple[int, Runs], ...]

    def as_text(self) -> str:
        """Return the JSON for the row of the session."""
        return json.dumps(self._asdict())

    @classmethod
    def from_text(cls, text: str) -> Contents:
        """Read the JSON from the row."""
        found = json.loads(text)
        threads = tuple((thread, fold, summarised) for thread, fold, summarised in found["threads"])
        said = tuple((thread, tuple((first, last) for first, last in ids)) for thread, ids in found["messages"])
        return cls(found["active_thread"], threads, said)

    @property
    def message_ids(self) -> set[int]:
        """The ids of all messages."""
        return {id_ for _, ids in self.messages for id_ in expanded(ids)}


def contents_of(
    session: Session, thread_of: Mapping[int, int], ids: Sequence[int], folds: Mapping[str, int]
) -> Contents:
    """Return the contents of a session whose messages are all in the log.

    ``thread_of`` maps the session's threads to the log's. ``ids`` are the session's messages in the log. ``folds`` maps
    texts of summaries to their folds.
    """
    said_in = [thread_of[message.thread_id] for message in session.messages]
    grouped = groupby(zip(said_in, ids, strict=True), key=lambda each: each[0])
    return Contents(
        thread_of.get(session.active_thread_id, session.active_thread_id),
        tuple(
            (thread_of.get(each.id, each.id), folds.get(each.summary, 0), each.summarised) for each in session.threads
        ),
        tuple((thread, runs(id_ for _, id_ in pairs)) for thread, pairs in grouped),
    )


def filled(
    session: Session,
    contents: Contents,
    rows: Mapping[int, Message],
    titles: Mapping[int, str],
    said: Mapping[int, str],
) -> Session:
    """Return a session with its threads and messages; ``said`` maps folds to the texts of their summaries.

    Purged messages, and the summaries of their threads, are left out.
    """
    whole = {thread for thread, ids in contents.messages if all(id_ in rows for id_ in expanded(ids))}
    threads = tuple(
        SavedThread(id_, titles.get(id_, ""), *((said[fold], number) if fold in said and id_ in whole else ("", 0)))
        for id_, fold, number in contents.threads
    )
    messages = tuple(
        content_of(rows[id_])._replace(thread_id=thread)
        for thread, ids in contents.messages
        for id_ in expanded(ids)
        if id_ in rows
    )
    return replace(session, active_thread_id=contents.active_thread, threads=threads, messages=messages)
