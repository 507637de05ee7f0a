"""Searches the messages of the log, best first and with excerpts, and the thoughts before replies.

The score of a message includes shares of the scores of its neighbours in the thread, because an answer is often spread
over several messages.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from heapq import nlargest
from types import MappingProxyType
from typing import NamedTuple

from chorus_cli.core.time import timestamps
from chorus_cli.log.rows import message_rows, operation_rows
from chorus_cli.log.rows.sqlite_words import damage_told, expression, fill_memory
from chorus_cli.log.rows.word_index import having, index_of, marking, scores
from chorus_cli.log.rows.words import MESSAGES, Texts
from chorus_cli.log.rules.findings import BY_MEANING, BY_WORDS, Findings, Match, fused
from chorus_cli.log.rules.messages import Message, Role, words_of
from chorus_cli.log.rules.search_query import MARKS, SearchQuery, Term, Wanted, excerpt, marked_literals, without_words
from chorus_cli.storage.port import Connection

COUNTED = 1_000
_SHARES = (0.4, 0.2, 0.1)  # a message's shares of its neighbours' scores on each side, the nearest neighbour first
_MOST_COMPARED = 300  # only this number of the best messages get shares
_COMMON, _FEWEST = 0.05, 20  # a word is common if this share of the messages has it, and at least this number
_REACH = 60  # only this number of rows on each side of a message is searched for neighbours or replies
_EXCERPT_WORDS = 24
_THOUGHT_ROWS, _THOUGHT_CHARACTERS = 20_000, 1_000_000
_PIECE_CHARACTERS, _OVERLAP_CHARACTERS = 4_000, 500


class Scope(NamedTuple):
    """Limits of a search: the earliest and the latest time, the persona (``None``: all), and the number of results.

    Messages up to ``after_id`` are left out, and so are messages of the model ``without_model`` and questions that only
    it answered. Thoughts are searched only if ``with_thoughts`` is true. ``among`` limits a search in all personas to
    some: it maps their slugs to the ids of the messages after which their logs begin. If there are ``roles``, only
    messages with one of them are found. Results of tools that begin with ``without_results`` are left out.
    """

    since: datetime | None
    persona: str | None
    limit: int
    after_id: int = 0
    with_thoughts: bool = False
    until: datetime | None = None
    without_model: str = ""
    among: Mapping[str, int] | None = None
    roles: tuple[Role, ...] = ()
    without_results: str = ""


class Ranking(NamedTuple):
    """The ids of the best messages, best first, and the ids of all messages found by words and found by meaning."""

    best: Sequence[int]
    by_words: Collection[int] = ()
    by_meaning: Collection[int] = ()


def ranking(
    connection: Connection, query: SearchQuery, scope: Scope, near: Mapping[int, float] = MappingProxyType({})
) -> Ranking:
    """Return the indexed messages that a query finds, best first, and the newest first if they are equally good.

    ``near`` has, by id, the scores of messages that were found by their meaning. A query of literals alone reads the
    whole log, newest first.
    """
    condition, values = may_be_found(connection, query, scope)
    if not query.terms:
        rows = connection.execute(
            f"SELECT id FROM messages WHERE {condition} ORDER BY id DESC LIMIT :rows",
            {**values, "rows": scope.limit + COUNTED + 1},
        )
        ids = [id_ for (id_,) in rows]
        return Ranking(without_turns_of(connection, ids, scope.without_model)[: scope.limit], ids)
    words, most = "content || ' ' || COALESCE(attachments, '')", scope.limit + COUNTED + 1
    scored = scores(
        connection, Texts(MESSAGES, "messages", condition, values, _number(connection, scope), most, words), query
    )
    ids = _best_first(connection, scored, scope.limit, is_alone=len(query.terms) == 1)
    if near:
        # Some messages may have been purged since their meaning was compared.
        still = f"SELECT id FROM messages WHERE id IN (SELECT value FROM json_each(:near)) AND {condition}"
        there = connection.execute(still, {**values, "near": json.dumps([*near])}).fetchall()
        near = {id_: near[id_] for (id_,) in there}
        ids = fused((ids, _best_first(connection, near, scope.limit, is_alone=False)))
    return Ranking(without_turns_of(connection, ids, scope.without_model)[: scope.limit], scored, near)


def find(
    connection: Connection, query: SearchQuery, scope: Scope, near: Mapping[int, float] = MappingProxyType({})
) -> Findings:
    """Return the messages of a `ranking` with excerpts."""
    best, by_words, by_meaning = ranking(connection, query, scope, near)
    messages = {message.id: message for message in message_rows.rows(connection, best)}
    shown = [messages[id_] for id_ in best if id_ in messages]
    found = excerpts({each.id: words_of(each) for each in shown}, query)

    def match(message: Message) -> Match:
        names = tuple(name for name, ids in ((BY_WORDS, by_words), (BY_MEANING, by_meaning)) if message.id in ids)
        return Match(message, found[message.id], found_by=names)

    return Findings(tuple(map(match, shown)), max(0, len({*by_words, *by_meaning}) - scope.limit))


def distinctive(connection: Connection, query: SearchQuery, scope: Scope) -> str:
    """Return the question of a query without the words that many of the messages have."""
    most = max(_FEWEST, math.ceil(_COMMON * _number(connection, scope)))
    condition, values = may_be_found(connection, SearchQuery(), Scope(None, scope.persona, 0))
    texts = Texts(MESSAGES, "messages", condition, values)
    with damage_told():
        numbers = [*index_of(connection, MESSAGES).counts(query.words, most, texts)]
    common = [word for word, number in zip(query.words, numbers, strict=True) if number >= most]
    return without_words(query.question, common)


def rare(connection: Connection, words: Sequence[Term], most: int, is_late: Callable[[], bool]) -> list[Term]:
    """Return the words that at least one and at most ``most`` messages of the log have; none once it ``is_late``."""
    found: list[Term] = []
    with damage_told():
        for word, number in zip(words, index_of(connection, MESSAGES).counts(words, most + 1), strict=True):
            if is_late():
                return []
            if 0 < number <= most:
                found.append(word)
    return found


def beside(connection: Connection, ids: Sequence[int], number: int) -> dict[int, tuple[list[int], list[int]]]:
    """Return, by message id, the ids of up to ``number`` neighbours before the message and after it in its thread."""
    nearest = (
        "(SELECT json_group_array(id) FROM (SELECT id FROM messages AS near NOT INDEXED WHERE {} "
        "AND near.thread_id = said.thread_id AND near.persona = said.persona AND near.role IN ('user', 'assistant') "
        "AND near.content <> '' AND near.status <> 'streaming' ORDER BY near.id {} LIMIT :number) AS nearest)"
    )
    before = nearest.format(f"near.id < said.id AND near.id >= said.id - {_REACH}", "DESC")
    after = nearest.format(f"near.id > said.id AND near.id <= said.id + {_REACH}", "")
    found = connection.execute(
        f"SELECT id, {before}, {after} FROM messages AS said WHERE id IN (SELECT value FROM json_each(:ids))",
        {"ids": json.dumps([*ids]), "number": number},
    ).fetchall()
    return {id_: (json.loads(earlier), json.loads(later)) for id_, earlier, later in found}


def without_turns_of(connection: Connection, ids: Sequence[int], model: str) -> list[int]:
    """Return ``ids`` without the messages of ``model`` and without the questions that only it answered."""
    if not model:
        return [*ids]
    of_turn = (
        f"SELECT 1 FROM messages AS reply NOT INDEXED WHERE reply.id > said.id AND reply.id <= said.id + {_REACH} "
    )
    of_turn += "AND reply.turn_id = said.turn_id AND reply.role = 'assistant'"
    alone = connection.execute(
        "SELECT said.id FROM messages AS said WHERE said.id IN (SELECT value FROM json_each(:ids)) AND ("
        "said.model = :model OR said.role = 'user' "
        f"AND EXISTS ({of_turn} AND model = :model) AND NOT EXISTS ({of_turn} AND model IS NOT :model))",
        {"ids": json.dumps([*ids]), "model": model},
    ).fetchall()
    left_out = {id_ for (id_,) in alone}
    return [id_ for id_ in ids if id_ not in left_out]


def _best_first(connection: Connection, scored: Mapping[int, float], limit: int, *, is_alone: bool) -> list[int]:
    """Return the ids of the best messages, best first; for a single term (``is_alone``), neighbours add nothing."""
    best = nlargest(max(limit, _MOST_COMPARED), scored, key=lambda id_: (scored[id_], id_))
    if is_alone:
        return best
    compared = best[:_MOST_COMPARED]
    with_shares = {
        id_: scored[id_]
        + sum(share * scored.get(each, 0) for side in sides for share, each in zip(_SHARES, side, strict=False))
        for id_, sides in beside(connection, compared, len(_SHARES)).items()
    }
    compared.sort(key=lambda id_: (round(with_shares.get(id_, 0), 6), id_), reverse=True)
    return [*compared, *best[_MOST_COMPARED:]]


def _number(connection: Connection, scope: Scope) -> int:
    """Return the number of a persona's messages, or about the number of all messages."""
    if scope.persona is None:
        return message_rows.newest_id(connection)
    (number,) = connection.execute("SELECT COUNT(*) FROM messages WHERE persona = ?", (scope.persona,)).fetchone()
    return int(number)


def may_be_found(connection: Connection, query: SearchQuery, scope: Scope) -> tuple[str, Mapping[str, object]]:
    """Return the SQL condition that a message may be found, and its values."""
    withdrawn = [*operation_rows.undone_imports(connection)]
    conditions = [
        # The plus sign keeps SQLite from asking the index for a range of rows, which takes longer.
        "+messages.id > :after",
        "messages.status <> 'streaming'",
        "messages.timestamp > :since" if scope.since else "",
        "messages.timestamp <= :until" if scope.until else "",
        "messages.persona = :persona" if scope.persona is not None else "",
        "messages.persona IN (SELECT key FROM json_each(:among))" if scope.among is not None else "",
        "messages.id > (SELECT value FROM json_each(:among) WHERE key = messages.persona)"
        if any((scope.among or {}).values())
        else "",
        "messages.role IN (SELECT atom FROM json_each(:roles))" if query.roles else "",
        "messages.role IN (SELECT atom FROM json_each(:roles_in_scope))" if scope.roles else "",
        "(messages.role <> 'tool_result' "
        f"OR substr(messages.content, 1, {len(scope.without_results)}) <> :without_results)"
        if scope.without_results
        else "",
        # This is one condition on a list, because SQLite limits the length of a chain of conditions.
        "NOT EXISTS (SELECT 1 FROM json_each(:literals) WHERE instr(messages.content, atom) = 0 "
        "AND COALESCE(instr(messages.attachments, atom), 0) = 0)"
        if query.literals
        else "",
        "NOT EXISTS (SELECT 1 FROM json_each(:excluded_literals) WHERE instr(messages.content, atom) > 0 "
        "OR instr(messages.attachments, atom) > 0)"
        if query.excluded_literals
        else "",
        "COALESCE(introduced_by, 0) NOT IN (SELECT value FROM json_each(:withdrawn))" if withdrawn else "",
    ]
    values = {
        "after": scope.after_id,
        "since": timestamps.to_text(scope.since) if scope.since else "",
        "until": timestamps.to_text(scope.until) if scope.until else "",
        "persona": scope.persona,
        "among": json.dumps(scope.among),
        "roles": json.dumps(query.roles),
        "roles_in_scope": json.dumps(scope.roles),
        "without_results": scope.without_results,
        "literals": json.dumps(query.literals),
        "excluded_literals": json.dumps(query.excluded_literals),
        "withdrawn": json.dumps(withdrawn),
    }
    return " AND ".join(filter(None, conditions)), values


def excerpts(contents: Mapping[int, str], query: SearchQuery) -> Mapping[int, str]:
    """Return, by id, an excerpt of each text around its best match; without a match, the beginning of the text."""
    if not query.terms:
        return {id_: excerpt(marked_literals(content, query.literals)) for id_, content in contents.items()}
    found: dict[int, str] = {}
    for tokenizer, wanted in marking(query):
        found |= _marked({id_: text for id_, text in contents.items() if id_ not in found}, tokenizer, wanted)
    return {id_: found.get(id_) or excerpt(text[:_PIECE_CHARACTERS]) for id_, text in contents.items()}


def _marked(contents: Mapping[int, str], tokenizer: str, wanted: Wanted) -> Mapping[int, str]:
    """Return, by id, an excerpt of each text that meets the condition ``wanted``, by means of an index in memory."""
    pieces = [(id_, piece) for id_, text in contents.items() for piece in _pieces(text)]
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as memory:
        fill_memory(memory, enumerate(piece for _, piece in pieces), tokenizer)
        matched = expression(wanted)
        ranked = memory.execute("SELECT rowid FROM shown WHERE shown MATCH ? ORDER BY rank, rowid", (matched,))
        best: dict[int, int] = {}
        for (number,) in ranked.fetchall():
            best.setdefault(pieces[number][0], number)
        marked = memory.execute(
            "SELECT rowid, snippet(shown, 0, ?, ?, '…', ?) FROM shown WHERE shown MATCH ? "
            "AND rowid IN (SELECT value FROM json_each(?))",
            (*MARKS, _EXCERPT_WORDS, matched, json.dumps([*best.values()])),
        ).fetchall()
    return {pieces[number][0]: excerpt(text) for number, text in marked}


def _pieces(text: str) -> Iterator[str]:
    """Yield overlapping pieces of a text, because the time for an excerpt grows with the square of the matches."""
    for start in range(0, max(1, len(text) - _OVERLAP_CHARACTERS), _PIECE_CHARACTERS - _OVERLAP_CHARACTERS):
        yield text[start : start + _PIECE_CHARACTERS]


def page_of_thoughts(
    connection: Connection, scope: Scope, before: int, roles: tuple[Role, ...] = ()
) -> tuple[Mapping[int, str], int]:
    """Return a page of thoughts before an id, by message id, and ``before`` for the next page, 0 if it was the last.

    A page is small, so that it neither blocks the store nor fills the memory. If there are ``roles``, only messages
    with one of these roles count.
    """
    first = max(before - _THOUGHT_ROWS, scope.after_id + 1)
    condition, values = may_be_found(connection, SearchQuery(roles=roles), scope)
    cursor = connection.execute(
        "SELECT id, reasoning FROM messages NOT INDEXED WHERE id >= :first AND id < :before AND reasoning IS NOT NULL "
        f"AND {condition} ORDER BY id DESC",
        {**values, "first": first, "before": before},
    )
    texts: dict[int, str] = {}
    characters = 0
    for id_, text in cursor:
        texts[id_] = text
        characters += len(text)
        if characters >= _THOUGHT_CHARACTERS:
            cursor.close()
            return texts, id_
    return texts, first if first > scope.after_id + 1 else 0


def found_in(texts: Mapping[int, str], query: SearchQuery) -> Mapping[int, str]:
    """Return, by id, an excerpt of each text that the query finds."""
    ids = having(texts, query)
    return excerpts({id_: texts[id_] for id_ in ids}, query) if ids else {}
