"""Divides a log into parts, which a copy stores one after the other: with each of them it is the log up to a moment."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Collection, Iterator, Mapping

from chorus_cli.log.rules.log_acts import Import
from chorus_cli.storage.port import Connection
from chorus_cli.stores.copying.matching import CONVERSATION_THREADS, Rows
from chorus_cli.stores.copying.tables import CONVERSATIONS
from chorus_cli.stores.rules.references import ITEMS, MESSAGES, OPERATIONS, SUMMARIES, THREADS, newest_named

Newest = Mapping[str, int]
"""The newest row of each table that a part has; a table that is missing here has none before the last part."""

_BEGINNINGS = f"""
    SELECT messages.id FROM messages LEFT JOIN operations ON operations.id = introduced_by
    WHERE role = 'user' AND (introduced_by IS NULL OR kind = '{Import.kind}') ORDER BY messages.id"""
"""The messages before which a part may end: what an operation puts into the log comes with it, but for an import."""

_FOLLOWING = {
    OPERATIONS: "SELECT id, after_message_id FROM operations ORDER BY id",
    **{name: f"SELECT id, operation_id FROM {name} ORDER BY id" for name in (SUMMARIES, CONVERSATIONS)},
}


def ends(source: Connection, here: Rows, missing: Collection[int], most: int) -> Iterator[Newest]:
    """Yield the end of each part but the last, which has all rows; a part has about ``most`` of the missing messages.

    A row is in the part of the operation that it follows, or that first names it.
    """
    beginnings = [id_ for (id_,) in source.execute(_BEGINNINGS).fetchall()]
    places = (bisect_left(beginnings, id_) for id_ in sorted(missing)[most::most])
    acts = {
        id_: found for id_, *found in source.execute("SELECT id, thread_id, kind, detail FROM operations").fetchall()
    }
    replaced = source.execute(f"SELECT id, replaced_by FROM {ITEMS} WHERE replaced_by > 0 ORDER BY id").fetchall()
    following = {name: deque(source.execute(sql).fetchall()) for name, sql in _FOLLOWING.items()}
    brought = here.threads(CONVERSATION_THREADS)
    said, newest = deque(sorted(here.threads().items())), defaultdict[str, int](int)
    for place in sorted({each for each in places if each < len(beginnings)}):
        newest[MESSAGES] = beginnings[place] - 1
        for _, thread in _up_to(newest[MESSAGES], said, 0):
            newest[THREADS] = max(newest[THREADS], thread)
        for id_, _ in _up_to(newest[MESSAGES], following[OPERATIONS], 1):
            newest[OPERATIONS] = id_
            thread, kind, detail = acts[id_]
            for table, named in {**newest_named(kind, detail), THREADS: thread or 0}.items():
                if table not in {MESSAGES, OPERATIONS}:
                    newest[table] = max(newest[table], named)
        for name in (SUMMARIES, CONVERSATIONS):
            for id_, _ in _up_to(newest[OPERATIONS], following[name], 1):
                newest[name] = id_
                newest[THREADS] = max(newest[THREADS], brought.get(id_, 0) if name == CONVERSATIONS else 0)
        for id_, successor in replaced:
            if id_ <= newest[ITEMS]:
                newest[ITEMS] = max(newest[ITEMS], successor)
        yield dict(newest)


def _up_to(newest: int, rows: deque[tuple[int, int]], column: int) -> Iterator[tuple[int, int]]:
    """Take rows from the beginning of ``rows``, as long as their number in a column is at most ``newest``."""
    while rows and rows[0][column] <= newest:
        yield rows.popleft()
