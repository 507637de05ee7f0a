"""What a session has, by the ids of the log, so that the log can give back a session without its file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from chorus_cli.log.rules.messages import Message, Runs, content_of, expanded, runs
from chorus_cli.sessions.rules.format import SavedThread, Session


class Contents(NamedTuple):
    """The threads and messages of a session, by their ids.

    ``threads`` are triples: a thread, the fold with its summary (0 for none), and the number of messages for which the
    summary stands. ``messages`` pairs each thread with its messages, in the order of the session.
    """

    active_thread: int
    threads: tuple[tuple[int, int, int], ...]
    messages: tuple[tuple[int, Runs], ...]

    def as_text(self) -> str:
        """Return the JSON that the row of the session has."""
        return json.dumps(self._asdict())

    @classmethod
    def from_text(cls, text: str) -> Contents:
        """Read the JSON."""
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
    """Return what a session has in the log.

    ``thread_of`` maps threads of the session to those of the log, ``ids`` are its messages there, and ``folds`` maps
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

    Messages that were purged are left out, and with them the summary of their thread.
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
