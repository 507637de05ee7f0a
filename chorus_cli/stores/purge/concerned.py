"""Finds the rows that a purge concerns: the chosen messages, and rows that repeat them or were made from them."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from chorus_cli.attachments.files import attachments
from chorus_cli.attachments.rows import attachments_in, on_server
from chorus_cli.context.rows.thread_views import title_of_fork
from chorus_cli.context.rules.earlier import ids_in
from chorus_cli.context.rules.preamble import titles_in
from chorus_cli.core.errors import PurgeError
from chorus_cli.core.text.phrases import enumerated, shortened
from chorus_cli.log.rows import operation_rows, sqlite_words, thread_rows
from chorus_cli.log.rows.message_rows import THERE
from chorus_cli.log.rows.operation_rows import DETAIL
from chorus_cli.log.rules.acts import Fold, Fork
from chorus_cli.log.rules.attachments import Kind
from chorus_cli.log.rules.log_acts import NO_IDS, PurgedIds
from chorus_cli.log.rules.search_query import Term, Wanted, required_query
from chorus_cli.storage.port import Connection
from chorus_cli.storage.schema import UNSTEMMED
from chorus_cli.stores import listing
from chorus_cli.stores.listing import AMONG, RowStore
from chorus_cli.stores.rules.purging import Fingerprints, WantedPurge, is_part, plain, words_in_line

_BATCH_ROWS = 2_000
_MOST_BYTES = 100_000_000
_OF_PERSONA = "(:persona = '' OR persona = :persona)"


def selected(connection: Connection, asked: WantedPurge, persona: str, attached: Path) -> WantedPurge:
    """Look up the messages that the user asks to purge, and return the purge with their ids.

    ``persona`` is the slug of the purged persona, or of the persona that has the thread. Unless empty, it limits a
    span or a search. ``attached`` is the folder of attachments: a search also reads attached texts.
    """
    if asked.messages:
        return WantedPurge(_there(connection, asked.messages))
    if asked.thread:
        thread_id = thread_rows.had(connection, persona, asked.thread).id
        return WantedPurge(_ids(connection, "thread_id = :thread", thread=thread_id), threads=frozenset({thread_id}))
    if asked.personas:
        return WantedPurge(_ids(connection, "persona = :persona", persona=persona), personas=frozenset({persona}))
    wanted = asked._replace(persona=persona)
    if wanted.words:
        return wanted._replace(messages=selected_by_words(connection, wanted, (attached,)))
    if not wanted.since:
        return wanted
    condition = f"timestamp >= :since AND (:until = '' OR timestamp <= :until) AND {_OF_PERSONA}"
    found = _ids(connection, condition, since=wanted.since, until=wanted.until, persona=persona)
    return wanted._replace(messages=found)


def text_of(path: Path) -> str:
    """Return the text of a file; empty if it cannot be read, is a link or has over 100 MB."""
    with suppress(OSError):
        if path.is_file() and not path.is_symlink() and path.stat().st_size <= _MOST_BYTES:
            return path.read_text(encoding="utf-8", errors="replace")
    return ""


def selected_by_words(connection: Connection, wanted: WantedPurge, attached: Sequence[Path]) -> frozenset[int]:
    """Return the ids of the messages that a search for the words of a purge finds; none without words.

    ``attached`` are the folders that may have the attachments.
    """
    if not wanted.words:
        return frozenset()
    return _found(connection, wanted.words, wanted.persona) | _found_in_files(
        connection, wanted.words, wanted.persona, attached
    )


def matching(texts: Mapping[int, str], words: str) -> set[int]:
    """Return the keys of the texts that have all ``words`` as they are written; none without words."""
    if not words or not texts:
        return set()
    query = required_query(words)
    likely = _patterns(query.required)
    found = {
        key: text
        for key, text in texts.items()
        if all(literal in text for literal in query.literals) and all(each.search(text) for each in likely)
    }
    if not query.required or not found:
        return set(found)
    return sqlite_words.matching(found.items(), Wanted(query.required), UNSTEMMED)


def _patterns(terms: Iterable[Term]) -> list[re.Pattern[str]]:
    """Return patterns that rule out texts fast: each text with these terms matches them. An é matches any letter."""
    words = [word for term in terms if term.text.isascii() for word in re.findall("[A-Za-z0-9]+", term.text)]
    other = "\u0080-\U0010ffff"
    return [re.compile(f"[{other}]*".join(f"[{sign}{other}]" for sign in word), re.IGNORECASE) for word in words]


def in_calls(tool_calls: str) -> list[str]:
    """Return each call's name with its arguments, and every text among the arguments; return invalid JSON as it is."""
    texts: list[str] = []
    try:
        for call in json.loads(tool_calls or "[]"):
            name, arguments = call["function"]["name"], call["function"]["arguments"]
            texts.append(f"{name} {arguments}".replace("\\n", " "))
            with suppress(ValueError, RecursionError):
                texts += _texts_in(json.loads(arguments))
    except (ValueError, TypeError, KeyError, RecursionError):
        texts.append(tool_calls)
    return texts


def in_parts(thought_parts: str) -> list[str]:
    """Return every text in the JSON of a provider's parts of thoughts; return invalid JSON as it is."""
    try:
        return _texts_in(json.loads(thought_parts)) if thought_parts else []
    except (ValueError, RecursionError):
        return [thought_parts]


def words_in_parts(thought_parts: str) -> list[str]:
    """Return the texts in a provider's parts of thoughts, except ASCII without blanks, such as names and signatures."""
    return [text for text in in_parts(thought_parts) if " " in text or not text.isascii()]


def _texts_in(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for each in inner for text in _texts_in(each)]


def _found(connection: Connection, words: str, persona: str) -> frozenset[int]:
    """Return the messages with the words in their text, their thoughts, their calls or the names of attachments."""
    rows = connection.execute(
        "SELECT id, content, COALESCE(reasoning, ''), COALESCE(thought_parts, ''), COALESCE(tool_calls, ''), "
        f"COALESCE(attachments, '') FROM messages WHERE {THERE} AND {_OF_PERSONA}",
        {"persona": persona},
    )
    found, left = set[int](), iter(rows)
    while batch := [*islice(left, _BATCH_ROWS)]:
        texts = (
            (id_, (content, reasoning, *in_parts(parts), *in_calls(calls), attached))
            for id_, content, reasoning, parts, calls, attached in batch
        )
        found |= matching({id_: "\n".join(filter(None, each)) for id_, each in texts}, words)
    return frozenset(found)


def _found_in_files(connection: Connection, words: str, persona: str, folders: Sequence[Path]) -> frozenset[int]:
    """Return the messages with the words in an attached text. A text that several messages attach is read once."""
    naming: dict[str, set[int]] = {}
    rows = connection.execute(
        f"SELECT id, attachments FROM messages WHERE attachments IS NOT NULL AND {THERE} AND {_OF_PERSONA}",
        {"persona": persona},
    )
    for id_, text in rows:
        for each in attachments_in(text):
            if each.kind is Kind.TEXT:
                naming.setdefault(each.sha256, set()).add(id_)
    found: set[int] = set()
    for digest, ids in naming.items():
        text = next(filter(None, (text_of(attachments.path_of(folder, digest)) for folder in folders)), "")
        text = text or (on_server(connection, digest) or b"").decode(errors="replace")
        found |= ids if matching({1: text}, words) else set()
    return frozenset(found)


def _there(connection: Connection, ids: Collection[int]) -> frozenset[int]:
    found = _ids(connection, f"id {AMONG}", ids=json.dumps([*ids]))
    if unknown := sorted(set(ids) - found):
        named = enumerated([f"#{id_}" for id_ in unknown], "or")
        raise PurgeError(f"There is no message {named}, or it is purged already. /search shows the numbers.")
    return found


def _ids(connection: Connection, condition: str, **values: object) -> frozenset[int]:
    found = connection.execute(f"SELECT id FROM messages WHERE {condition} AND {THERE}", values).fetchall()
    return frozenset(id_ for (id_,) in found)


_TITLE_CHARACTERS = 40
"""The most characters of a title that a preamble shows. A title can be the beginning of a thread's first message."""

_SAYS = "(content <> '' OR tool_calls <> '' OR attachments <> '' OR reasoning <> '' OR thought_parts <> '')"
"""The SQL condition that a message is not empty. A reply that only calls tools is empty; other rows have the calls."""


class _SummaryRow(NamedTuple):
    id: int
    operation_id: int
    persona: str
    base: tuple[int, int | None]
    content: str
    covered: frozenset[int]


@dataclass(frozen=True, slots=True)
class Concerned:
    """The ids of the rows of a purge, and the fingerprints that recognise the texts of these rows elsewhere."""

    ids: PurgedIds
    wanted: WantedPurge
    texts: Fingerprints

    def repeats(self, text: str, persona: str) -> bool:
        """Return whether a text of a persona repeats purged texts, or has the words of the search."""
        return self.texts.are_in(text) or self.has_words(text, persona)

    def takes(self, text: str, persona: str) -> bool:
        """Return whether the purge takes a text of a persona: it repeats purged texts, or the persona is purged."""
        return persona in self.wanted.personas or self.repeats(text, persona)

    def has_words(self, text: str, persona: str) -> bool:
        """Return whether a text has the words of the search, and the search is not limited to another persona."""
        return _is_of(self.wanted, persona) and bool(matching({1: text}, self.wanted.words))


def concerned(connection: Connection, wanted: WantedPurge, also: PurgedIds = NO_IDS) -> Concerned:
    """Return all rows that a purge concerns, with ``also``. Raise `PurgeError` if one of them is being written."""
    ids = _with_copies(connection, wanted.messages | also.messages)
    if unfinished := _ids(connection, f"id {AMONG} AND status = 'streaming'", ids=json.dumps([*ids])):
        told = f"Message #{min(unfinished)} is still being written. Wait for it or stop it; nothing was purged."
        raise PurgeError(told)
    texts = Fingerprints(_texts(connection, ids))
    quoting = _quoting(connection, Concerned(PurgedIds(ids), wanted, texts))
    texts.add(_texts(connection, quoting))
    found = Concerned(also.united(PurgedIds(ids | quoting)), wanted, texts)
    for store in listing.ROWS[1:]:
        taken = _taken(found, store.texts(connection))
        taken |= _made_of(connection, found, store, taken)
        found = Concerned(found.ids.united(PurgedIds(**{store.name: taken})), wanted, texts)
        if store is listing.ITEMS:
            texts.add(content for id_, _, content, _ in store.texts(connection) if id_ in found.ids.items)
    # A purged message loses its preamble with its text.
    others = found.ids.preambles - found.ids.messages
    return Concerned(found.ids._replace(preambles=others), wanted, texts)


def _taken(found: Concerned, rows: Sequence[tuple[int, str, str, str | None]]) -> frozenset[int]:
    """Return the ids of the rows that a purge takes by text, persona or time. A row is id, persona, text and time."""
    said = {place: text for place, (_, persona, text, _) in enumerate(rows) if _is_of(found.wanted, persona)}
    matches = matching(said, found.wanted.words)
    return frozenset(
        id_
        for place, (id_, persona, text, moment) in enumerate(rows)
        if place in matches
        or persona in found.wanted.personas
        or (moment and _is_in_span(found.wanted, persona, moment))
        or found.texts.are_in(text)
    )


def _with_copies(connection: Connection, chosen: frozenset[int]) -> frozenset[int]:
    """Return messages with their other wordings, and with the copies that were made when a session was restored."""
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
    return _ids(connection, f"id {AMONG}", ids=json.dumps([*ids]))


def _copies(connection: Connection, ids: set[int]) -> set[int]:
    """Return the messages that share persona, time, role and text with one of ``ids``."""
    among = {"ids": json.dumps([*ids])}
    columns = "persona, timestamp, role, content"
    said = connection.execute(f"SELECT {columns} FROM messages WHERE id {AMONG} AND content <> ''", among)
    known = {hash(row) for row in said}
    others = connection.execute(
        f"SELECT id, {columns} FROM (SELECT DISTINCT persona, timestamp FROM messages WHERE id {AMONG}) AS chosen "
        "JOIN messages INDEXED BY messages_of_persona USING (persona, timestamp)",
        among,
    )
    return {id_ for id_, *row in others if hash(tuple(row)) in known}


def _texts(connection: Connection, ids: frozenset[int]) -> Iterator[str]:
    cursor = connection.execute(
        "SELECT content, COALESCE(reasoning, ''), COALESCE(thought_parts, ''), COALESCE(tool_calls, '') FROM messages "
        f"WHERE id {AMONG}",
        {"ids": json.dumps([*ids])},
    )
    for content, reasoning, parts, calls in cursor:
        yield from (content, reasoning, *words_in_parts(parts), *in_calls(calls))


def _quoting(connection: Connection, found: Concerned) -> frozenset[int]:
    """Return tool calls and results if they are in purged turns or replies, repeat purged texts or have the words."""
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


def _summaries(connection: Connection, found: Concerned, taken: frozenset[int]) -> frozenset[int]:
    """Return the ``taken`` summaries and those of purged messages, with their copies in forks and later versions."""
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


def _summary_rows(connection: Connection) -> list[_SummaryRow]:
    found = connection.execute(
        "SELECT summaries.id, operation_id, summaries.persona, summaries.thread_id, base_operation_id, content, kind, "
        f"{DETAIL} FROM summaries JOIN operations ON operations.id = operation_id WHERE content <> ''"
    ).fetchall()
    rows = []
    for id_, operation_id, persona, thread_id, base, content, kind, detail in found:
        act = operation_rows.act_of(kind, json.loads(detail or "{}"))
        covered = act.folded if isinstance(act, Fold | Fork) else ()
        ids = frozenset(number for first, last in covered for number in range(first, last + 1))
        rows.append(_SummaryRow(id_, operation_id, persona, (thread_id, base), content, ids))
    return rows


def _titles(connection: Connection, found: Concerned, _taken: frozenset[int]) -> frozenset[int]:
    """Return purged threads, threads and forks with a title from a purged message, and threads that become empty."""
    among = {"ids": json.dumps([*found.ids.messages])}
    threads = connection.execute("SELECT id, persona, title FROM threads WHERE title <> ''").fetchall()
    titles = {id_: title for id_, _, title in threads}
    said = connection.execute(f"SELECT DISTINCT thread_id, content FROM messages WHERE id {AMONG}", among).fetchall()
    made_of = {id_ for id_, content in said if id_ in titles and is_part(titles[id_], words_in_line([content]))}
    left = connection.execute(
        f"SELECT DISTINCT thread_id FROM messages WHERE {THERE} AND {_SAYS} AND id NOT {AMONG}", among
    ).fetchall()
    emptied = {id_ for id_, _ in said} - {id_ for (id_,) in left}
    gone = made_of | ((found.wanted.threads | emptied) & titles.keys())
    named = {*_firsts(connection, found), *((persona, title) for id_, persona, title in threads if id_ in gone)}
    forks = {(persona, title_of_fork(name)) for persona, name in named}
    return frozenset(gone | {id_ for id_, persona, title in threads if (persona, title) in forks})


def _preambles(connection: Connection, found: Concerned, _taken: frozenset[int]) -> frozenset[int]:
    """Return the messages whose preambles quote a purged message, or have its first words as the title of a thread."""
    names = {
        (persona, _name(shortened(name, _TITLE_CHARACTERS)))
        for persona, first in _firsts(connection, found)
        for name in (first, title_of_fork(first))
    }
    return frozenset(
        id_
        for id_, persona, preamble, _ in listing.PREAMBLES.texts(connection)
        if not found.ids.messages.isdisjoint(ids_in(preamble))
        or not names.isdisjoint((persona, _name(title)) for title in titles_in(preamble))
    )


def _firsts(connection: Connection, found: Concerned) -> list[tuple[str, str]]:
    """Return persona and beginning of the user's purged messages; the first message names a thread without a title."""
    return connection.execute(
        f"SELECT persona, substr(content, 1, 400) FROM messages WHERE id {AMONG} AND role = 'user' AND content <> ''",
        {"ids": json.dumps([*found.ids.messages])},
    ).fetchall()


def _name(title: str) -> str:
    return plain(title.rstrip("…"))


def _has_text_of_act(detail: str, items: Collection[int]) -> bool:
    """Return whether one of ``items`` is an act's only item, or the first of a replacement: the act has its text."""
    with suppress(ValueError, LookupError, TypeError, AttributeError, RecursionError):
        act = json.loads(detail)
        return (len(act["items"]) == 1 or act["change"] == "replace") and act["items"][0]["id"] in items
    return False


def _has_text_of_checkpoint(data: str, items: Collection[int]) -> bool:
    """Return whether a checkpoint has texts of ``items``; true for invalid JSON, which cannot be restored anyway."""
    held = listing.values_in(data, {"id"})
    return held is None or any(each in items for each in held if isinstance(each, int))


_OF_ITEMS = {listing.ACTS: _has_text_of_act, listing.CHECKPOINTS: _has_text_of_checkpoint}
"""The functions that return whether the JSON of an act or a checkpoint has texts of purged items."""
_FURTHER = {listing.SUMMARIES: _summaries, listing.TITLES: _titles, listing.PREAMBLES: _preambles}


def _made_of(connection: Connection, found: Concerned, store: RowStore, taken: frozenset[int]) -> frozenset[int]:
    """Return the rows of a store that were made from purged rows or from the rows ``taken``."""
    if further := _FURTHER.get(store):
        return further(connection, found, taken)
    if store is listing.ITEMS:
        query = f"SELECT id FROM context_items WHERE purged_by IS NULL AND source_message_id {AMONG}"
        rows = connection.execute(query, {"ids": json.dumps([*found.ids.messages])})
        return frozenset(id_ for (id_,) in rows)
    has_text, items = _OF_ITEMS.get(store), found.ids.items
    if has_text is None or not items:
        return frozenset()
    stored = connection.execute(f"SELECT id, {store.columns[0]} FROM {store.table} WHERE {store.is_there}")
    return frozenset(id_ for id_, text in stored if has_text(text, items))


def earlier_texts(connection: Connection, found: Concerned) -> int:
    """Return the number of acts and checkpoints that have purged texts, but no purged item."""
    acts, checkpoints = (_made_of(connection, found, store, frozenset()) for store in _OF_ITEMS)
    return len(found.ids.acts - acts) + len(found.ids.checkpoints - checkpoints)


def repeating(connection: Connection, found: Concerned) -> list[int]:
    """Return the other messages whose text or thoughts repeat purged texts. These messages stay."""
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
