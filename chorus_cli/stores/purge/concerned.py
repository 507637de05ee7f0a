"""The rows that a purge concerns: messages with their copies, and all rows that repeat them or were made of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.context.rules.preamble import titles_in
from chorus_cli.core.errors import PurgeError
from chorus_cli.core.text.phrases import shortened
from chorus_cli.log.rows.message_rows import THERE
from chorus_cli.log.rules.acts import ACTS, Fold, Fork
from chorus_cli.log.rules.log_acts import NO_IDS, PurgedIds
from chorus_cli.stores.purge.selection import AMONG, in_lines, in_words, matching, words_in_parts
from chorus_cli.stores.rules.traces import UNWATCHED, Traces, is_part, words_in_line

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator

    from chorus_cli.stores.rules.purging import WantedPurge
    from chorus_cli.stores.rules.traces import Watch

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
    """The rows of a purge by their ids, and the traces by which files that repeat them are recognised."""

    ids: PurgedIds
    wanted: WantedPurge
    traces: Traces

    def repeats(self, text: str, persona: str) -> bool:
        """Return whether a text of a persona repeats purged texts, or has the words of the search."""
        return self.traces.are_in(text) or self.has_words(text, persona)

    def takes(self, text: str, persona: str, moment: str = "") -> bool:
        """Return whether a text of a persona goes: it repeats purged texts, or its persona or time goes."""
        is_meant = persona in self.wanted.personas or _is_in_span(self.wanted, persona, moment)
        return is_meant or self.repeats(text, persona)

    def has_words(self, text: str, persona: str) -> bool:
        """Return whether a text has the words of the search, and that is not limited to another persona."""
        return _is_of(self.wanted, persona) and bool(matching({1: text}, self.wanted.words))


def concerned(
    connection: sqlite3.Connection, wanted: WantedPurge, also: PurgedIds = NO_IDS, watch: Watch = UNWATCHED
) -> Concerned:
    """Return all rows that a purge concerns; those of ``also`` are known already.

    Raises:
        PurgeError: one of the messages is still being written.
    """
    ids = _with_copies(connection, wanted.messages | also.messages)
    _refuse_unfinished(connection, ids)
    traces = Traces(watch.over(_texts(connection, ids)))
    quoting = _quoting(connection, wanted, ids, traces)
    traces.add(watch.over(_texts(connection, quoting)))
    ids |= quoting
    items = {**_items(connection, wanted, ids, traces), **_contents(connection, also.items)}
    traces.add(items.values())
    texts = PurgedIds(
        messages=ids,
        items=frozenset(items),
        summaries=also.summaries | _summaries(connection, wanted, ids, traces),
        inputs=also.inputs | _inputs(connection, wanted, traces),
        titles=also.titles | _titles(connection, wanted, ids, traces),
        preambles=also.preambles | _preambles(connection, wanted, ids, traces, watch),
    )
    return Concerned(texts, wanted, traces)


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
        yield from (content, reasoning, *words_in_parts(parts), in_words(calls) if calls else "")


def _quoting(
    connection: sqlite3.Connection, wanted: WantedPurge, ids: frozenset[int], traces: Traces
) -> frozenset[int]:
    """Return the calls and results of tools that quote purged texts, as those of the search in the log do."""
    found = connection.execute(
        "SELECT id, persona, CASE role WHEN 'tool_use' THEN tool_calls ELSE content END FROM messages "
        f"WHERE role IN ('tool_use', 'tool_result') AND {THERE} AND id > :first AND id NOT {AMONG}",
        {"ids": json.dumps([*ids]), "first": min(ids, default=0)},
    ).fetchall()
    texts = {id_: in_lines(text) for id_, _, text in found if text}
    said = {id_: texts[id_] for id_, persona, text in found if text and _is_of(wanted, persona)}
    return frozenset(matching(said, wanted.words).union(id_ for id_, text in texts.items() if traces.are_in(text)))


def _items(connection: sqlite3.Connection, wanted: WantedPurge, ids: frozenset[int], traces: Traces) -> dict[int, str]:
    """Return the contents of the memory items that come from purged texts, or repeat them, by their ids."""
    found = connection.execute(
        "SELECT id, persona, content, source_message_id, created_at FROM context_items WHERE purged_by IS NULL"
    ).fetchall()
    matches = matching({row[0]: row[2] for row in found if _is_of(wanted, row[1])}, wanted.words)
    return {
        id_: content
        for id_, persona, content, source, created_at in found
        if id_ in matches
        or source in ids
        or persona in wanted.personas
        or _is_in_span(wanted, persona, created_at)
        or traces.are_in(content)
    }


def _contents(connection: sqlite3.Connection, ids: Iterable[int]) -> dict[int, str]:
    found = connection.execute(
        f"SELECT id, content FROM context_items WHERE id {AMONG} AND purged_by IS NULL", {"ids": json.dumps([*ids])}
    )
    return dict(found.fetchall())


def _summaries(
    connection: sqlite3.Connection, wanted: WantedPurge, ids: frozenset[int], traces: Traces
) -> frozenset[int]:
    """Return the summaries of purged texts, those that later ones were made of, and their copies in forks."""
    rows = _summary_rows(connection)
    matches = matching({row.id: row.content for row in rows if _is_of(wanted, row.persona)}, wanted.words)
    gone = {
        row
        for row in rows
        if row.id in matches
        or row.persona in wanted.personas
        or not ids.isdisjoint(row.covered)
        or traces.are_in(row.content)
    }
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
        "detail FROM summaries JOIN operations ON operations.id = operation_id WHERE content <> ''"
    ).fetchall()
    rows = []
    for id_, operation_id, persona, thread_id, base, content, kind, detail in found:
        members = connection.execute(
            "SELECT message_id FROM operation_members WHERE operation_id = ? ORDER BY position", (operation_id,)
        ).fetchall()
        act = ACTS[kind].from_detail(json.loads(detail), tuple(member for (member,) in members))
        covered = act.folded if isinstance(act, Fold | Fork) else ()
        ids = frozenset(number for first, last in covered for number in range(first, last + 1))
        rows.append(_SummaryRow(id_, operation_id, persona, (thread_id, base), content, ids))
    return rows


def _inputs(connection: sqlite3.Connection, wanted: WantedPurge, traces: Traces) -> frozenset[int]:
    found = connection.execute("SELECT id, persona, content, created_at FROM input_history").fetchall()
    matches = matching({row[0]: row[2] for row in found if _is_of(wanted, row[1])}, wanted.words)
    return frozenset(
        id_
        for id_, persona, content, created_at in found
        if id_ in matches
        or persona in wanted.personas
        or _is_in_span(wanted, persona, created_at)
        or traces.are_in(content)
    )


def _titles(connection: sqlite3.Connection, wanted: WantedPurge, ids: frozenset[int], traces: Traces) -> frozenset[int]:
    """Return the threads whose titles repeat purged texts, or are words of them, and those that have nothing left."""
    found = connection.execute("SELECT id, persona, title FROM threads WHERE title <> ''").fetchall()
    titles = {id_: title for id_, _, title in found}
    matches = matching({id_: title for id_, persona, title in found if _is_of(wanted, persona)}, wanted.words)
    said = connection.execute(
        f"SELECT DISTINCT thread_id, content FROM messages WHERE id {AMONG}", {"ids": json.dumps([*ids])}
    ).fetchall()
    made_of = {id_ for id_, content in said if id_ in titles and is_part(titles[id_], words_in_line([content]))}
    left = connection.execute(
        f"SELECT DISTINCT thread_id FROM messages WHERE {THERE} AND {_SAYS} AND id NOT {AMONG}",
        {"ids": json.dumps([*ids])},
    ).fetchall()
    emptied = {id_ for id_, _ in said} - {id_ for (id_,) in left}
    named = {id_ for id_, persona, title in found if persona in wanted.personas or traces.are_in(title)}
    return frozenset(matches | made_of | named | ((wanted.threads | emptied) & titles.keys()))


def _preambles(
    connection: sqlite3.Connection, wanted: WantedPurge, ids: frozenset[int], traces: Traces, watch: Watch
) -> frozenset[int]:
    """Return other messages whose preambles repeat purged texts; one may name a thread by its first words."""
    found = connection.execute(
        f"SELECT id, persona, preamble FROM messages WHERE preamble <> '' AND {THERE} AND id NOT {AMONG}",
        {"ids": json.dumps([*ids])},
    ).fetchall()
    preambles = {id_: text for id_, _, text in found}
    said = {id_: text for id_, persona, text in found if _is_of(wanted, persona)}
    repeating = {id_ for id_, text in watch.over(preambles.items()) if traces.are_in(text)}
    names = _names(connection, ids)
    repeating |= {id_ for id_, persona, text in found if persona in names and _is_named_in(text, names[persona])}
    return frozenset(repeating | matching(said, wanted.words))


def _names(connection: sqlite3.Connection, ids: frozenset[int]) -> dict[str, Traces]:
    """Return the beginnings of messages by which preambles may name threads, by persona."""
    firsts = connection.execute(
        f"SELECT persona, substr(content, 1, 400) FROM messages WHERE id {AMONG} AND role = 'user'",
        {"ids": json.dumps([*ids])},
    )
    names: dict[str, Traces] = {}
    for persona, content in firsts:
        names.setdefault(persona, Traces()).add([shortened(content, _TITLE_CHARACTERS).rstrip("…")])
    return names


def _is_named_in(preamble: str, names: Traces) -> bool:
    return any(names.are_in(title.rstrip("…")) for title in titles_in(preamble))


def _is_of(wanted: WantedPurge, persona: str) -> bool:
    return wanted.persona in {"", persona}


def _is_in_span(wanted: WantedPurge, persona: str, moment: str) -> bool:
    if not wanted.since or not _is_of(wanted, persona):
        return False
    return wanted.since <= moment and (not wanted.until or moment <= wanted.until)
