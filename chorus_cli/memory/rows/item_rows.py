"""The rows of memory items, the renewal of their scores and tiers, and the full-text index of their words.

An item is hidden if its row names an operation as ``forgotten_by``. A hidden item is closed if another item has
replaced it, else forgotten, dropped or only proposed. Only visible items are listed and counted. Best first means:
pinned items first, then by score, then by the time of the last access.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from heapq import nlargest
from typing import Any

from chorus_cli.core.errors import DatabaseDamagedError
from chorus_cli.core.time import timestamps
from chorus_cli.log.rows.sqlite_words import damage_told
from chorus_cli.log.rows.word_index import index_of, scores
from chorus_cli.log.rows.words import ITEMS, Texts
from chorus_cli.log.rules.search_query import MOST_WORDS, SearchQuery, Term, Wanted, search_query
from chorus_cli.memory.rules import items as rules
from chorus_cli.memory.rules import recall
from chorus_cli.memory.rules.items import Item, ItemType, Source, Tier, TierTotal, accessed, content_hash, renewed
from chorus_cli.storage import meta_rows
from chorus_cli.storage.port import Connection, Rows


def index_words(connection: Connection, item_id: int, content: str) -> None:
    """Put the words of an item into the index in place of its former words."""
    with damage_told():
        index_of(connection, ITEMS).put([(item_id, content)])


def check_words(connection: Connection) -> None:
    """Raise an ``IndexDamagedError`` if the index is inconsistent or lacks an item; the check takes a write lock."""
    with damage_told():
        index_of(connection, ITEMS).check("SELECT id FROM context_items WHERE content_hash IS NOT NULL", {})


def remove_words(connection: Connection) -> None:
    """Remove from the index every item that has no row or an empty content."""
    with damage_told():
        index_of(connection, ITEMS).keep("SELECT id FROM context_items WHERE content <> ''")


def renew_words(connection: Connection) -> None:
    """Rebuild the index from the items."""
    index_of(connection, ITEMS).make_again()
    with closing(connection.execute("SELECT id, content FROM context_items")) as items:
        index_of(connection, ITEMS).put(items)


RENEWED_EVERY = timedelta(minutes=5)
COLUMNS = ", ".join(Item._fields)
_VISIBLE = "persona = :persona AND forgotten_by IS NULL"
_IN_REQUESTS = f"{_VISIBLE} AND tier IN ('HOT', 'WARM')"
_NOT_ADOPTED = f"FROM context_items WHERE {_VISIBLE} AND content_hash IS NULL"
_BEST_FIRST = "ORDER BY pinned DESC, importance_score DESC, last_accessed DESC, id DESC"
_AMONG = "id IN (SELECT value FROM json_each(:ids))"
_SAME_SCORE = 1e-6
_LONGEST_COMPARED = 2_000
"""Characters of the longest text that is compared with others."""

_MOST_COMPARED = 50
"""A text is compared with this many items at most, the best matches of its words."""


def item_of(row: Sequence[Any]) -> Item:
    """Return the item of a row of ``COLUMNS``, or raise a ``DatabaseDamagedError``."""
    id_, persona, item_type, content, score, tier, created_at, last_accessed, pinned, count, *rest = row
    source_message_id, tokens, source, *others = rest
    try:
        created, last = timestamps.from_text(created_at), timestamps.from_text(last_accessed)
    except ValueError as error:
        raise DatabaseDamagedError(f"Memory item {id_} cannot be read ({error}).") from error
    return Item(
        *(id_, persona, ItemType(item_type), content, score, Tier(tier), created, last, bool(pinned), count or 0),
        *(source_message_id, tokens, Source(source), *others),
    )


def hidden(connection: Connection, persona: str, item_id: int) -> Item | None:
    """Return a hidden item; ``None`` if the item is visible or purged, or if ``hide_all`` hid it."""
    row = connection.execute(
        f"SELECT {COLUMNS} FROM context_items WHERE persona = ? AND id = ? AND forgotten_by IS NOT NULL "
        "AND content <> '' AND (content_hash IS NOT NULL OR replaced_by > 0)",
        (persona, item_id),
    ).fetchone()
    return item_of(row) if row else None


def nearest(connection: Connection, persona: str, content: str) -> int:
    """Return the id of the item whose words are nearest to those of a content, 0 if none has nearly the same words."""
    if len(content) > _LONGEST_COMPARED:
        return 0
    similar = f"{_VISIBLE} AND length(context_items.content) BETWEEN {len(content) // 2} AND {2 * len(content)}"
    words = tuple(map(Term, rules.words_of(content)))[:MOST_WORDS]
    best = _best(connection, persona, SearchQuery(words), _MOST_COMPARED, similar) if words else []
    return rules.nearest(content, ((item.id, item.content) for item in best))


def of_ids(connection: Connection, persona: str, ids: Collection[int]) -> list[Item]:
    """Return the visible items of a persona that have one of the ids, in order of id."""
    return _items(connection, persona, f"AND {_AMONG} ORDER BY id", ids=json.dumps([*ids]))


def listing(
    connection: Connection, persona: str, tier: Tier | None = None, types: Collection[ItemType] = ()
) -> list[Item]:
    """Return the items of a persona, or only those of a tier or of some types, best first."""
    of_types = "AND item_type IN (SELECT atom FROM json_each(:types)) " if types else ""
    conditions = ("AND tier = :tier " if tier else "") + of_types
    return _items(connection, persona, f"{conditions}{_BEST_FIRST}", tier=tier, types=json.dumps([*types]))


def hot(connection: Connection, persona: str, limit: int) -> list[Item]:
    """Return at most ``limit`` HOT items of a persona, best first."""
    return _items(connection, persona, f"AND tier = 'HOT' {_BEST_FIRST} LIMIT :limit", limit=limit)


def newest_heads(connection: Connection, persona: str) -> list[tuple[int, str]]:
    """Return id and first 80 characters of the newest 300 items of a persona, newest first."""
    return connection.execute(
        f"SELECT id, substr(content, 1, 80) FROM context_items WHERE {_VISIBLE} ORDER BY id DESC LIMIT 300",
        {"persona": persona},
    ).fetchall()


def found(connection: Connection, persona: str, query: str, limit: int) -> list[Item]:
    """Return the items of any tier that a query names by number, then those with its words, best match first."""
    named = of_ids(connection, persona, recall.references(query))
    known = {item.id for item in named}
    words = recall.without_references(query)
    by_words = _best(connection, persona, search_query(words), limit) if words else []
    return [*named, *(item for item in by_words if item.id not in known)][:limit]


def referred_to(connection: Connection, persona: str, text: str, limit: int, *, by_words: bool = True) -> list[Item]:
    """Return the HOT and WARM items that a text names by number, then those with its rare words, best match first."""
    ids, words = recall.references(text), recall.meaningful_words(text) if by_words else {}
    items = number(connection, persona) if words else 0
    # A word in more items than this is not rare.
    most = items // 10 + 5
    terms = [*map(Term, words.values())] if items else []
    with damage_told():
        counts = index_of(connection, ITEMS).counts(terms, most, _texts(persona))
        frequency = dict(zip(terms, counts, strict=True))
    rare = tuple(recall.rare(frequency, items))
    with_words = _best(connection, persona, SearchQuery(rare), limit, _IN_REQUESTS) if rare else []
    named = [item for item in of_ids(connection, persona, ids) if item.tier in {Tier.HOT, Tier.WARM}]
    return [*named, *(item for item in with_words if item.id not in ids)][:limit]


def keyed(connection: Connection, persona: str) -> list[tuple[Item, recall.Keys]]:
    """Return the items of any tier that have keys, each with its keys, in order of id."""
    with damage_told():
        wanted = Wanted([Term(recall.FIRST_WORD, is_first=True)])
        (ids,) = index_of(connection, ITEMS).ids([wanted], _texts(persona))
    items = of_ids(connection, persona, ids) if ids else []
    return [(item, keys) for item in items if (keys := recall.keys_of(item.content)) is not None]


def number(connection: Connection, persona: str) -> int:
    """Return the number of items of a persona."""
    (found,) = connection.execute(
        f"SELECT COUNT(*) FROM context_items WHERE {_VISIBLE}", {"persona": persona}
    ).fetchone()
    return int(found)


def totals(connection: Connection, persona: str) -> Mapping[Tier, TierTotal]:
    """Return the totals of a persona's items by tier; items without a token count add no tokens."""
    found = connection.execute(
        "SELECT tier, COUNT(*), CAST(COALESCE(SUM(token_count), 0) AS BIGINT) FROM context_items "
        f"WHERE {_VISIBLE} GROUP BY tier",
        {"persona": persona},
    ).fetchall()
    return {Tier(tier): TierTotal(items, tokens) for tier, items, tokens in found}


def updated_at(connection: Connection, persona: str) -> datetime | None:
    """Return the time of the last access or renewal of a persona's items, ``None`` if there was neither."""
    (accessed_at,) = connection.execute(
        f"SELECT MAX(last_accessed) FROM context_items WHERE {_VISIBLE}", {"persona": persona}
    ).fetchone()
    moments = [renewed_at(connection, persona), timestamps.from_text(accessed_at) if accessed_at else None]
    return max((moment for moment in moments if moment), default=None)


def forgotten_among(connection: Connection, ids: Iterable[int]) -> set[int]:
    """Return the ids of hidden items among ``ids``."""
    found = connection.execute(
        f"SELECT id FROM context_items WHERE {_AMONG} AND forgotten_by IS NOT NULL", {"ids": json.dumps([*ids])}
    ).fetchall()
    return {id_ for (id_,) in found}


def purged_among(connection: Connection, ids: Iterable[int]) -> set[int]:
    """Return the ids of purged items among ``ids``."""
    found = connection.execute(
        f"SELECT id FROM context_items WHERE {_AMONG} AND purged_by IS NOT NULL", {"ids": json.dumps([*ids])}
    ).fetchall()
    return {id_ for (id_,) in found}


def forgettings(connection: Connection, persona: str) -> Rows:
    """Return a row with the id of the newest operation that now hides an item of a persona, 0 if there is none."""
    return connection.execute(
        "SELECT COALESCE(MAX(forgotten_by), 0) FROM context_items WHERE persona = ? AND forgotten_by IS NOT NULL",
        (persona,),
    )


def uncounted(connection: Connection, persona: str) -> Mapping[int, str]:
    """Return the contents whose tokens are not counted yet, by id."""
    found = connection.execute(
        f"SELECT id, content FROM context_items WHERE {_VISIBLE} AND token_count IS NULL", {"persona": persona}
    ).fetchall()
    return dict(found)


def store_token_counts(connection: Connection, contents: Mapping[int, str], counts: Mapping[int, int]) -> None:
    """Store the token counts of items by id, but not for an item whose content now differs from ``contents``."""
    connection.executemany(
        "UPDATE context_items SET token_count = ? WHERE id = ? AND content = ?",
        [(counts[id_], id_, content) for id_, content in contents.items()],
    )


def count_access(connection: Connection, persona: str, ids: Collection[int], now: datetime) -> None:
    """Count one more access of some items at ``now``, and renew their scores and tiers."""
    store_scores(connection, [accessed(item, now) for item in of_ids(connection, persona, ids)])


def is_renewal_due(connection: Connection, persona: str, now: datetime) -> bool:
    """Return whether a persona has items, and no renewal has reached all of them in the last five minutes."""
    if not number(connection, persona):
        return False
    last = renewed_at(connection, persona)
    if last is None or not timedelta() <= now - last < RENEWED_EVERY:
        return True
    return connection.execute(f"SELECT 1 {_NOT_ADOPTED} LIMIT 1", {"persona": persona}).fetchone() is not None


def renewed_at(connection: Connection, persona: str) -> datetime | None:
    """Return the time of the last renewal, ``None`` if there was none."""
    text = meta_rows.value(connection, meta_rows.MEMORY_RENEWED + persona)
    return timestamps.from_text(text) if text else None


def renew(connection: Connection, persona: str, now: datetime) -> int:
    """Call `adopt`, renew the scores and tiers of active items, and return how many items changed."""
    adopt(connection, persona)
    items = _items(connection, persona, "AND tier <> 'ARCHIVED'")
    pairs = [(old, renewed(old, now)) for old in items]
    changed = [
        new
        for old, new in pairs
        if old.tier is not new.tier or abs(old.importance_score - new.importance_score) > _SAME_SCORE
    ]
    store_scores(connection, changed)
    meta_rows.store(connection, meta_rows.MEMORY_RENEWED + persona, timestamps.to_text(now))
    return len(changed)


def adopt(connection: Connection, persona: str) -> None:
    """Hash and index items that plain SQL put in or changed; a copy of another item gets a mark instead of the hash."""
    found = connection.execute(f"SELECT id, content {_NOT_ADOPTED}", {"persona": persona}).fetchall()
    for id_, content in found:
        for mark in (f"copy {id_}", content_hash(content)):
            connection.execute(
                "UPDATE context_items SET content_hash = :mark WHERE id = :id AND NOT EXISTS ("
                "SELECT 1 FROM context_items WHERE persona = :persona AND content_hash = :mark AND replaced_by = 0)",
                {"mark": mark, "id": id_, "persona": persona},
            )
        index_words(connection, id_, content)


def store_scores(connection: Connection, items: Iterable[Item]) -> None:
    """Store the scores, tiers, numbers of accesses and times of items."""
    connection.executemany(
        "UPDATE context_items SET importance_score = ?, tier = ?, access_count = ?, last_accessed = ?, created_at = ? "
        "WHERE id = ?",
        [
            (
                *(item.importance_score, item.tier, item.access_count, timestamps.to_text(item.last_accessed)),
                *(timestamps.to_text(item.created_at), item.id),
            )
            for item in items
        ],
    )


def hide_all(connection: Connection, persona: str, operation_id: int) -> None:
    """Hide all items of a persona for good; an item added later with the same content is a new one."""
    connection.execute(
        "UPDATE context_items SET forgotten_by = COALESCE(forgotten_by, ?), replaced_by = 0, may_replace = 0, "
        "content_hash = NULL "
        "WHERE persona = ?",
        (operation_id, persona),
    )


def _best(
    connection: Connection, persona: str, query: SearchQuery, limit: int, condition: str = _VISIBLE
) -> list[Item]:
    """Return the items that a query finds, best match first; of equal matches, the newer one first."""
    texts = _texts(persona)._replace(condition=condition, number=number(connection, persona), most=limit)
    scored = scores(connection, texts, query)
    ids = nlargest(limit, scored, key=lambda id_: (round(scored[id_], 6), id_))
    items = {item.id: item for item in of_ids(connection, persona, ids)}
    return [items[id_] for id_ in ids if id_ in items]


def _texts(persona: str) -> Texts:
    return Texts(ITEMS, "context_items", _VISIBLE, {"persona": persona})


def _items(connection: Connection, persona: str, rest: str, **values: object) -> list[Item]:
    found = connection.execute(
        f"SELECT {COLUMNS} FROM context_items WHERE {_VISIBLE} {rest}", {"persona": persona, **values}
    ).fetchall()
    return [item_of(row) for row in found]
