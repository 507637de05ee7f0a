"""The thoughts of replies, which are read only where they are sent again or shown."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from chorus_cli.context.rules.rounds import Echoed
from chorus_cli.log.rules.messages import Role, Thoughts

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping, Sequence

    from chorus_cli.log.rules.messages import Message

_HAS_THOUGHTS = "(reasoning IS NOT NULL OR thought_tokens IS NOT NULL OR thought_seconds IS NOT NULL)"


def echoed(
    connection: sqlite3.Connection, rows: Sequence[Message], model: str, *, calls_only: bool
) -> dict[int, Echoed]:
    """Return the thoughts that ``model`` itself had before its replies, by their ids; imported ones are left out.

    With ``calls_only`` they are those that led to calls of tools among ``rows``. The thoughts of words that an edit has
    changed or taken out are not returned.
    """
    wanted = {row.reply_id for row in rows if row.reply_id is not None}
    if not calls_only:
        wanted |= {row.id for row in rows if row.thought is not None and row.role is Role.ASSISTANT}
    if not wanted:
        return {}
    cursor = connection.execute(
        "SELECT id, content, reasoning, thought_parts, thought_tokens FROM messages "
        "WHERE id IN (SELECT value FROM json_each(?)) AND model = ? AND run IS NOT NULL "
        "AND (reasoning IS NOT NULL OR thought_parts IS NOT NULL)",
        (json.dumps(sorted(wanted)), model),
    )
    there = {row.id for row in rows}
    return {
        id_: Echoed(Thoughts(text or "", parts or ""), tokens)
        for id_, content, text, parts, tokens in cursor
        if id_ in there or not content.strip()
    }


def of_replies(connection: sqlite3.Connection, ids: Iterable[int]) -> dict[int, Thoughts]:
    """Return the thoughts before the replies of these ids, as far as there are any."""
    cursor = connection.execute(
        "SELECT id, reasoning, thought_parts FROM messages WHERE id IN (SELECT value FROM json_each(?)) "
        "AND (reasoning IS NOT NULL OR thought_parts IS NOT NULL)",
        (json.dumps(list(ids)),),
    )
    return {id_: Thoughts(text or "", parts or "") for id_, text, parts in cursor}


def has_any(connection: sqlite3.Connection, thread_id: int, after: int, others: Iterable[int]) -> bool:
    """Return whether a message of a thread ``after`` one, or one of the ``others``, has thoughts."""
    (found,) = connection.execute(
        f"SELECT EXISTS (SELECT 1 FROM messages WHERE thread_id = ? AND id > ? AND {_HAS_THOUGHTS}) OR EXISTS "
        f"(SELECT 1 FROM messages WHERE id IN (SELECT value FROM json_each(?)) AND {_HAS_THOUGHTS})",
        (thread_id, after, json.dumps([*others])),
    ).fetchone()
    return bool(found)


def store_token_counts(connection: sqlite3.Connection, counts: Mapping[int, int]) -> None:
    """Remember the tokens of thoughts that were stored without them."""
    connection.executemany(
        "UPDATE messages SET thought_tokens = ? WHERE id = ?", [(count, id_) for id_, count in counts.items()]
    )
