"""Thoughts of models that a search asks for: they are in no index, and are read from the newest on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.time import timestamps
from chorus_cli.log.rows import operation_rows, search_index

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping

    from chorus_cli.log.rows.search_index import Scope
    from chorus_cli.log.rules.search_query import SearchQuery

_PAGE_ROWS = 20_000
_PAGE_CHARACTERS = 1_000_000


class Page(NamedTuple):
    """Thoughts by the ids of their messages; the next page has those ``before`` an id, and there is none before 1."""

    texts: Mapping[int, str]
    before: int


def page(connection: sqlite3.Connection, scope: Scope, before: int) -> Page:
    """Return the thoughts before an id: few enough that neither the store nor the memory is held up."""
    first = max(before - _PAGE_ROWS, scope.after_id + 1)
    cursor = connection.execute(
        "SELECT id, reasoning FROM messages NOT INDEXED WHERE id >= :first AND id < :before AND reasoning IS NOT NULL "
        "AND status <> 'streaming' AND timestamp > :since AND (:persona IS NULL OR persona = :persona) "
        "AND COALESCE(introduced_by, 0) NOT IN (SELECT value FROM json_each(:withdrawn)) ORDER BY id DESC",
        {
            "first": first,
            "before": before,
            "since": timestamps.to_text(scope.since) if scope.since else "",
            "persona": scope.persona,
            "withdrawn": json.dumps([*operation_rows.undone_imports(connection)]),
        },
    )
    texts: dict[int, str] = {}
    characters = 0
    for id_, text in cursor:
        texts[id_] = text
        characters += len(text)
        if characters >= _PAGE_CHARACTERS:
            cursor.close()
            return Page(texts, id_)
    return Page(texts, first if first > scope.after_id + 1 else 0)


def excerpts(texts: Mapping[int, str], query: SearchQuery) -> Mapping[int, str]:
    """Return an excerpt of each of the texts that contains all words and literals of the query, by id."""
    possible = {id_: text for id_, text in texts.items() if all(literal in text for literal in query.literals)}
    return search_index.excerpts(possible, query) if possible else {}
