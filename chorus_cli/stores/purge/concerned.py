"""The rows that a purge finds: messages with their copies, and all rows that repeat them or were made of them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.context.rules.preamble import titles_in
from chorus_cli.core.errors import PurgeError
from chorus_cli.core.text.phrases import shortened
from chorus_cli.log.rows import operation_rows, search_index
from chorus_cli.log.rows.message_rows import THERE
from chorus_cli.log.rules.acts import Fold, Fork
from chorus_cli.log.rules.log_acts import NO_IDS, PurgedIds
from chorus_cli.log.rules.search_query import set_apart
from chorus_cli.stores.listing import AMONG
from chorus_cli.stores.purge.selection import in_calls, matching, words_in_parts
from chorus_cli.stores.rules.fingerprints import Fingerprints, is_part, plain, words_in_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from chorus_cli.stores.rules.purging import WantedPurge

_TITLE_CHARACTERS = 40
"""The beginning of a first message that other programs may have been told as the title of its thread."""

_SAYS = "(content <> '' OR tool_calls <> '' OR attachments <> '' OR reasoning <> '' OR thought_parts <> '')"
"""The condition for a message with something in it; the row of a reply that only calls tools is empty."""


class _SummaryRow(NamedTuple):
    id: int
    operation_id: int
    persona: str
    base: tuple[int, int | None]
    content: str
    covered: frozenset[int]


@dataclass(frozen=True, slots=True)
class Concerned:
    """The rows of a purge by their ids, and the fingerprints by which files that repeat them are recognised."""

    ids: PurgedIds
    wanted: WantedPurge
    texts: Fingerprints

    def repeats(self, text: str, persona: str) -> bool:
        """Return whether a text of a persona repeats purged texts, or has the words of the search."""
        return self.texts.are_in(text) or self.has_words(text, persona)

    def takes(self, text: str, persona: str) -> bool:
        """Return whether a text of a persona goes: it repeats purged texts, or all of the persona goes."""
        return persona in self.wanted.personas or self.repeats(text, persona)

    def has_words(self, text: str, persona: str) -> bool:
        """Return whether a text has the words of the search, and that is not limited to another persona."""
        return _is_of(self.wanted, persona) and bool(matching({1: text}, self.wanted.words))


def concerned(connection: sqlite3.Connection, wanted: WantedPurge, also: PurgedIds = NO_IDS) -> Concerned:
    """Return all rows that a purge concerns; those of ``also`` are known already."""
    ids = _with_copies(connection, wanted.messages | also.messages)
    _refuse_unfinished(connection, ids)
    texts = Fingerprints(_texts(connection, ids))
    found = Concerned(PurgedIds(ids), wanted, texts)
    quoting = _quoting(connection, found)
    texts.add(_texts(connection, quoting))
    ids |= quoting
    found = Concerned(PurgedIds(ids), wanted, texts)
    items = also.items | _items(connection, found)
    texts.add(_contents(connection, items))
    rows = PurgedIds(
        messages=ids,
        items=items,
        summaries=also.summaries | _summaries(connection, found),
        inputs=also.inputs | _taken(connection, found, _INPUTS),
        unsaid=also.unsaid | _taken(connection, found, _UNSAID),
        titles=also.titles | _titles(connection, found),
        preambles=also.preambles | _preambles(connection, found),
    )
    return Concerned(rows, wanted, texts)


_INPUTS = "id, persona, content, created_at FROM input_history"
_UNSAID = "id, persona, content, created_at FROM outbox"


def _taken(connection: sqlite3.Connection, found: Concerned, rows: str) -> frozenset[int]:
    """Return the rows, of an id, persona, text and time each, that go: for their text, their persona or their time."""
    read = connection.execute(f"SELECT {rows}").fetchall()
    matches = matching(
        {id_: text for id_, persona, text, _ in read if _is_of(found.wanted, persona)}, found.wanted.words
    )
    return frozenset(
        id_
        for id_, persona, text, moment in read
        if id_ in matches
        or persona in found.wanted.personas
        or (moment and _is_in_span(found.wanted, persona, moment))
        or found.texts.are_in(text)
    )


def _with_copies(connection: sqlite3.Connection, chosen: frozenset[int]) -> frozenset[int]:
    """Return messages with their wordings, and with rows of the same words and time, as a restore puts in."""
    ids = set(chosen)
    wordings = connection.execute("SELECT id, revises FROM messages WHERE revises IS NOT NULL ORDER BY id").fetchall()
    for _ in range(2):
        before = 0
        while before != len(ids):
            before = len(ids)
            ids |= {id_ for pair in wordings if ids.intersection(pair) for id_ in pair}
        copies = _copies(connection, ids)
        if copies <= ids:
            break
        ids |= copies
    there = connection.execute(
        f"SELECT id FROM messages WHERE id {AMONG} AND {THERE}", {"ids": json.dumps([*ids])}
    ).fetchall()
    return frozenset(id_ for (id_,) in there)


def _copies(connection: sqlite3.Connection, ids: set[int]) -> set[int]:
    """Return the messages of the same words, role and time as others; a whole import may have one time."""
    among = {"ids": json.dumps([*ids])}
    columns = "persona, timestamp, role, content"
    said = connection.execute(f"SELECT {columns} FROM messages WHERE id {AMONG} AND content <> ''", among)
    known = {hash(row) for row in said}
    others = connection.execute(
        f"SELECT id, {columns} FROM (SELECT DISTINCT persona, timestamp FROM messages WHERE id {AMONG}) "
        "JOIN messages INDEXED BY messages_of_persona USING (persona, timestamp)",
        among,
    )
    return {id_ for id_, *row in others if hash(tuple(row)) in known}


def _refuse_unfinished(connection: sqlite3.Connection, ids: frozenset[int]) -> None:
    row = connection.execute(
        f"SELECT id FROM messages WHERE id {AMONG} AND status = 'streaming'", {"ids": json.dumps([*ids])}
    ).fetchone()
    if row is not None:
        raise PurgeError(f"Message #{row[0]} is still being written. Wait for its end, or stop it; nothing was purged.")


def _texts(connection: sqlite3.Connection, ids: frozenset[int]) -> Iterator[str]:
    """Yield the texts of messages: their contents, thoughts, and arguments of tools."""
    cursor = connection.execute(
        "SELECT content, COALESCE(reasoning, ''), COALESCE(thought_parts, ''), COALESCE(tool_calls, '') FROM messages "
        f"WHERE id {AMONG}",
        {"ids": json.dumps([*ids])},
    )
    for content, reasoning, parts, calls in cursor:
        yield from (content, reasoning, *words_in_parts(parts), *in_calls(calls))


def _quoting(connection: sqlite3.Connection, found: Concerned) -> frozenset[int]:
    """Return the calls and results of tools for purged questions and replies, and those that repeat purged texts."""
    ids = found.ids.messages
    read = connection.execute(
        "SELECT id, persona, role, CASE role WHEN 'tool_use' THEN tool_calls ELSE content END, "
        f"turn_id {AMONG} OR COALESCE(reply_id {AMONG}, FALSE) FROM messages "
        f"WHERE role IN ('tool_use', 'tool_result') AND {THERE} AND id > :first AND id NOT {AMONG}",
        {"ids": json.dumps([*ids]), "first": min(ids, default=0)},
    ).fetchall()
    texts = {id_: "\n".join(in_calls(text) if role == "tool_use" else [text]) for id_, _, role, text, _ in read if text}
    said = {id_: texts[id_] for id_, persona, _, text, _ in read if text and _is_of(found.wanted, persona)}
    made = {id_ for id_, *_, is_made in read if is_made}
    repeating = {id_ for id_, text in texts.items() if found.texts.are_in(text)}
    return frozenset(matching(said, found.wanted.words) | made | repeating)


def _items(connection: sqlite3.Connection, found: Concerned) -> frozenset[int]:
    """Return the memory items that come from purged texts, or repeat them."""
    made = connection.execute(
        f"SELECT id FROM context_items WHERE purged_by IS NULL AND source_message_id {AMONG}",
        {"ids": json.dumps([*found.ids.messages])},
    ).fetchall()
    there = "id, persona, content, created_at FROM context_items WHERE purged_by IS NULL"
    return frozenset(id_ for (id_,) in made) | _taken(connection, found, there)


def _contents(connection: sqlite3.Connection, items: frozenset[int]) -> Iterator[str]:
    for (content,) in connection.execute(
        f"SELECT content FROM context_items WHERE id {AMONG}", {"ids": json.dumps([*items])}
    ):
        yield content


def _summaries(connection: sqlite3.Connection, found: Concerned) -> frozenset[int]:
    """Return the summaries of purged texts, those that later ones were made of, and their copies in forks."""
    rows = _summary_rows(connection)
    taken = _taken(connection, found, "id, persona, content, NULL FROM summaries WHERE content <> ''")
    gone = {row for row in rows if row.id in taken or not found.ids.messages.isdisjoint(row.covered)}
    before = -1
    while before != len(gone):
        before = len(gone)
        contents = {row.content for row in gone}
        oldest: dict[tuple[int, int | None], int] = {}
        for row in gone:
            oldest[row.base] = min(oldest.get(row.base, row.operation_id), row.operation_id)
        gone |= {
            row for row in rows if row.content in contents or row.operation_id > oldest.get(row.base, row.operation_id)
        }
    return frozenset(row.id for row in gone)


def _summary_rows(connection: sqlite3.Connection) -> list[_SummaryRow]:
    found = connection.execute(
        "SELECT summaries.id, operation_id, summaries.persona, summaries.thread_id, base_operation_id, content, kind, "
        f"{operation_rows.DETAIL} FROM summaries JOIN operations ON operations.id = operation_id WHERE content <> ''"
    ).fetchall()
    rows = []
    for id_, operation_id, persona, thread_id, base, content, kind, detail in found:
        act = operation_rows.act_of(connection, operation_id, kind, json.loads(detail or "{}"))
        covered = act.folded if isinstance(act, Fold | Fork) else ()
        ids = frozenset(number for first, last in covered for number in range(first, last + 1))
        rows.append(_SummaryRow(id_, operation_id, persona, (thread_id, base), content, ids))
    return rows


def _titles(connection: sqlite3.Connection, found: Concerned) -> frozenset[int]:
    """Return the threads whose titles repeat purged texts, or are words of them, and those that have nothing left."""
    among = {"ids": json.dumps([*found.ids.messages])}
    titles = dict(connection.execute("SELECT id, title FROM threads WHERE title <> ''").fetchall())
    said = connection.execute(f"SELECT DISTINCT thread_id, content FROM messages WHERE id {AMONG}", among).fetchall()
    made_of = {id_ for id_, content in said if id_ in titles and is_part(titles[id_], words_in_line([content]))}
    left = connection.execute(
        f"SELECT DISTINCT thread_id FROM messages WHERE {THERE} AND {_SAYS} AND id NOT {AMONG}", among
    ).fetchall()
    emptied = {id_ for id_, _ in said} - {id_ for (id_,) in left}
    taken = _taken(connection, found, "id, persona, title, NULL FROM threads WHERE title <> ''")
    return frozenset(taken | made_of | ((found.wanted.threads | emptied) & titles.keys()))


def _preambles(connection: sqlite3.Connection, found: Concerned) -> frozenset[int]:
    """Return other messages whose preambles repeat purged texts; one may name a thread by its first words."""
    among = {"ids": json.dumps([*found.ids.messages])}
    rows = f"id, persona, preamble, NULL FROM messages WHERE preamble <> '' AND {THERE}"
    firsts = connection.execute(
        f"SELECT persona, substr(content, 1, 400) FROM messages WHERE id {AMONG} AND role = 'user'", among
    )
    names = {(persona, _name(shortened(content, _TITLE_CHARACTERS))) for persona, content in firsts}
    naming = {
        id_
        for id_, persona, preamble, _ in connection.execute(f"SELECT {rows}")
        if not names.isdisjoint((persona, _name(title)) for title in titles_in(preamble))
    }
    return _taken(connection, found, rows).union(naming) - found.ids.messages


def _name(title: str) -> str:
    return plain(title.rstrip("…"))


def repeating(connection: sqlite3.Connection, found: Concerned) -> list[int]:
    """Return other messages that repeat purged texts, in what was said or thought; they stay.

    The index of the search is asked for a few texts; for more, or without it, all other messages are read.
    """
    condition, ids = f"{THERE} AND id NOT {AMONG}", {*found.ids.messages}
    if search_index.progress(connection).is_whole and found.texts.beginnings:
        with suppress(sqlite3.DatabaseError):
            condition, ids = f"{THERE} AND id {AMONG}", _hits(connection, found.texts.beginnings) - ids
    cursor = connection.execute(
        "SELECT id, content, COALESCE(reasoning, ''), COALESCE(thought_parts, '') FROM messages "
        f"WHERE {condition} ORDER BY id",
        {"ids": json.dumps([*ids])},
    )
    return [id_ for id_, *said, parts in cursor if any(map(found.texts.are_in, (*said, *words_in_parts(parts))))]


def _hits(connection: sqlite3.Connection, beginnings: Iterable[str]) -> set[int]:
    """Return the messages in which one of the beginnings may be, and those with thoughts, which no index has."""
    thinking = connection.execute("SELECT id FROM messages WHERE reasoning <> '' OR thought_parts <> ''")
    found = {id_ for (id_,) in thinking}
    for each in beginnings:
        phrase = f'"{set_apart(each)}"'
        found |= {
            id_
            for (id_,) in connection.execute("SELECT rowid FROM message_words WHERE message_words MATCH ?", (phrase,))
        }
    return found


def _is_of(wanted: WantedPurge, persona: str) -> bool:
    return wanted.persona in {"", persona}


def _is_in_span(wanted: WantedPurge, persona: str, moment: str) -> bool:
    if not wanted.since or not _is_of(wanted, persona):
        return False
    return wanted.since <= moment and (not wanted.until or moment <= wanted.until)
