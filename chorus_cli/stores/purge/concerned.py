"""The rows that a purge finds: messages with their copies, and all rows that repeat them or were made of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.context.rules.preamble import titles_in
from chorus_cli.core.errors import PurgeError
from chorus_cli.core.text.phrases import shortened
from chorus_cli.log.rows import operation_rows
from chorus_cli.log.rows.message_rows import THERE
from chorus_cli.log.rules.acts import Fold, Fork
from chorus_cli.log.rules.log_acts import NO_IDS, PurgedIds
from chorus_cli.stores import listing
from chorus_cli.stores.listing import AMONG
from chorus_cli.stores.purge.selection import in_calls, matching, words_in_parts
from chorus_cli.stores.rules.purging import Fingerprints, is_part, plain, words_in_line

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence

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
    quoting = _quoting(connection, Concerned(PurgedIds(ids), wanted, texts))
    texts.add(_texts(connection, quoting))
    found = Concerned(also.united(PurgedIds(ids | quoting)), wanted, texts)
    for store in listing.ROWS[1:]:
        taken = _taken(found, store.texts(connection))
        if made_of := _MADE_OF.get(store):
            taken |= made_of(connection, found, taken)
        found = Concerned(found.ids.united(PurgedIds(**{store.name: taken})), wanted, texts)
        if store is listing.ITEMS:
            texts.add(content for id_, _, content, _ in store.texts(connection) if id_ in found.ids.items)
    # A message that goes loses its preamble with its text.
    others = found.ids.preambles - found.ids.messages
    return Concerned(found.ids._replace(preambles=others), wanted, texts)


def _taken(found: Concerned, rows: Sequence[tuple[int, str, str, str | None]]) -> frozenset[int]:
    """Return the rows, of an id, persona, text and time each, that go: for their text, their persona or their time."""
    matches = matching(
        {id_: text for id_, persona, text, _ in rows if _is_of(found.wanted, persona)}, found.wanted.words
    )
    return frozenset(
        id_
        for id_, persona, text, moment in rows
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


def _items(connection: sqlite3.Connection, found: Concerned, _taken: frozenset[int]) -> frozenset[int]:
    """Return the memory items that come from purged texts."""
    made = connection.execute(
        f"SELECT id FROM context_items WHERE purged_by IS NULL AND source_message_id {AMONG}",
        {"ids": json.dumps([*found.ids.messages])},
    )
    return frozenset(id_ for (id_,) in made)


def _summaries(connection: sqlite3.Connection, found: Concerned, taken: frozenset[int]) -> frozenset[int]:
    """Return the summaries of purged texts, those that were made of them or of ``taken`` ones, and copies in forks."""
    rows = _summary_rows(connection)
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


def _titles(connection: sqlite3.Connection, found: Concerned, _taken: frozenset[int]) -> frozenset[int]:
    """Return the threads whose titles are words of purged texts, and those that have nothing left."""
    among = {"ids": json.dumps([*found.ids.messages])}
    titles = dict(connection.execute("SELECT id, title FROM threads WHERE title <> ''").fetchall())
    said = connection.execute(f"SELECT DISTINCT thread_id, content FROM messages WHERE id {AMONG}", among).fetchall()
    made_of = {id_ for id_, content in said if id_ in titles and is_part(titles[id_], words_in_line([content]))}
    left = connection.execute(
        f"SELECT DISTINCT thread_id FROM messages WHERE {THERE} AND {_SAYS} AND id NOT {AMONG}", among
    ).fetchall()
    emptied = {id_ for id_, _ in said} - {id_ for (id_,) in left}
    return frozenset(made_of | ((found.wanted.threads | emptied) & titles.keys()))


def _preambles(connection: sqlite3.Connection, found: Concerned, _taken: frozenset[int]) -> frozenset[int]:
    """Return messages whose preambles name a thread by the first words of a purged one."""
    firsts = connection.execute(
        f"SELECT persona, substr(content, 1, 400) FROM messages WHERE id {AMONG} AND role = 'user'",
        {"ids": json.dumps([*found.ids.messages])},
    )
    names = {(persona, _name(shortened(content, _TITLE_CHARACTERS))) for persona, content in firsts}
    return frozenset(
        id_
        for id_, persona, preamble, _ in listing.PREAMBLES.texts(connection)
        if not names.isdisjoint((persona, _name(title)) for title in titles_in(preamble))
    )


def _name(title: str) -> str:
    return plain(title.rstrip("…"))


_MADE_OF = {
    listing.ITEMS: _items,
    listing.SUMMARIES: _summaries,
    listing.TITLES: _titles,
    listing.PREAMBLES: _preambles,
}
"""How the rows of a store are found that were made of purged ones."""


def repeating(connection: sqlite3.Connection, found: Concerned) -> list[int]:
    """Return other messages that repeat purged texts, in what was said or thought; they stay."""
    cursor = connection.execute(
        "SELECT id, content, COALESCE(reasoning, ''), COALESCE(thought_parts, '') FROM messages "
        f"WHERE {THERE} AND id NOT {AMONG} ORDER BY id",
        {"ids": json.dumps([*found.ids.messages])},
    )
    return [id_ for id_, *said, parts in cursor if any(map(found.texts.are_in, (*said, *words_in_parts(parts))))]


def _is_of(wanted: WantedPurge, persona: str) -> bool:
    return wanted.persona in {"", persona}


def _is_in_span(wanted: WantedPurge, persona: str, moment: str) -> bool:
    if not wanted.since or not _is_of(wanted, persona):
        return False
    return wanted.since <= moment and (not wanted.until or moment <= wanted.until)
