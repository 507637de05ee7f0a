"""Token usage of replies, as their providers reported it, summed without reading the replies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.core.models.costs import ModelUse, TokenUse
from chorus_cli.core.time import timestamps

if TYPE_CHECKING:
    import sqlite3
    from datetime import datetime

_COUNTS = ", ".join(
    f"CAST(COALESCE(SUM(json_extract(usage, '$.{name}')), 0) AS INTEGER)"
    for name in ("prompt_tokens", "completion_tokens", "cached_tokens", "cache_write_tokens")
)
_HAS_USAGE = "usage IS NOT NULL AND json_valid(usage)"
_MINUTE = "substr(timestamp, 1, 16)"
_SECONDS = ":00.000000Z"


def uses(connection: sqlite3.Connection, since: datetime | None = None, persona: str | None = None) -> list[ModelUse]:
    """Return the usage of replies by persona, thread, model and minute, of all personas or of one.

    With ``since`` the cost follows the time, never the log.
    """
    index = "NOT INDEXED" if since is None else "INDEXED BY messages_of_persona"
    found = connection.execute(
        f"SELECT persona, thread_id, COALESCE(model, ''), {_MINUTE} AS minute, COUNT(*), {_COUNTS} "
        f"FROM messages {index} WHERE {_HAS_USAGE} AND persona IN (SELECT DISTINCT persona FROM threads) "
        "AND (:persona IS NULL OR persona = :persona) AND timestamp > :since "
        "GROUP BY persona, thread_id, model, minute ORDER BY minute",
        {"persona": persona, "since": timestamps.to_text(since) if since else ""},
    )
    return [
        ModelUse(slug, thread_id, model, timestamps.from_text(minute + _SECONDS), replies, TokenUse(*counts))
        for slug, thread_id, model, minute, replies, *counts in found
    ]


def uses_of_last_turn(connection: sqlite3.Connection, thread_id: int) -> list[ModelUse]:
    """Return the usage of the newest turn of a thread that has any, by model; a turn has a reply for each round."""
    found = connection.execute(
        f"SELECT persona, COALESCE(model, ''), {_MINUTE}, COUNT(*), {_COUNTS} FROM messages "
        f"WHERE {_HAS_USAGE} AND thread_id = :thread AND turn_id = ("
        f"SELECT turn_id FROM messages WHERE thread_id = :thread AND {_HAS_USAGE} ORDER BY timestamp DESC LIMIT 1"
        ") GROUP BY persona, model",
        {"thread": thread_id},
    )
    return [
        ModelUse(slug, thread_id, model, timestamps.from_text(minute + _SECONDS), replies, TokenUse(*counts))
        for slug, model, minute, replies, *counts in found
    ]
