"""The token counts that providers reported for replies and other requests. SQL sums them and reads no message text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from chorus_cli.core.time.timestamps import from_text
from chorus_cli.core.time.timestamps import to_text as text_of
from chorus_cli.models.rules.costs import ModelUse, OtherRequest, TokenUse
from chorus_cli.storage.port import Connection

_COUNTS = ", ".join(
    f"CAST(COALESCE(SUM(CAST(json_extract(usage, '$.{name}') AS BIGINT)), 0) AS BIGINT)"
    for name in ("prompt_tokens", "completion_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens")
)
_HAS_USAGE = "usage IS NOT NULL AND json_valid(usage)"
_MINUTE, _SECONDS = "substr(timestamp, 1, 16)", ":00.000000Z"
_OF_SPAN = "(:persona IS NULL OR persona = :persona) AND timestamp > :since"


def store(connection: Connection, requests: Iterable[OtherRequest]) -> None:
    """Store the usage of requests whose answer is not a message."""
    connection.executemany(
        "INSERT INTO other_requests(persona, thread_id, purpose, model, usage, timestamp) VALUES (?, ?, ?, ?, ?, ?)",
        [
            (each.persona, each.thread_id, each.purpose, each.model, json.dumps(dict(each.usage)), text_of(each.at))
            for each in requests
        ],
    )


def uses(connection: Connection, since: datetime | None = None, persona: str | None = None) -> list[ModelUse]:
    """Return the usage by persona, thread, model and minute: after ``since`` if given, and of ``persona`` if given."""
    span = {"persona": persona, "since": text_of(since) if since else ""}
    index = "NOT INDEXED" if since is None else "INDEXED BY messages_of_persona"
    replies = f"messages {index} WHERE persona IN (SELECT DISTINCT persona FROM threads)"
    return [
        *_uses(connection, f"{replies} AND {_OF_SPAN}", span),
        *_uses(connection, f"other_requests WHERE {_OF_SPAN}", span, is_of_replies=False),
    ]


def uses_of_last_turn(connection: Connection, thread_id: int) -> list[ModelUse]:
    """Return the usage of all rounds in a thread's newest turn that has usage, by model and minute."""
    of_thread = f"FROM messages WHERE {_HAS_USAGE} AND thread_id = :thread ORDER BY timestamp DESC LIMIT 1"
    newest = f"messages WHERE thread_id = :thread AND turn_id = (SELECT turn_id {of_thread})"
    return [*_uses(connection, newest, {"thread": thread_id})]


def _uses(
    connection: Connection, rows: str, values: Mapping[str, object], *, is_of_replies: bool = True
) -> Iterator[ModelUse]:
    grouped = connection.execute(
        f"SELECT persona, thread_id, COALESCE(model, ''), {_MINUTE} AS minute, COUNT(*), {_COUNTS} FROM {rows} "
        f"AND {_HAS_USAGE} GROUP BY persona, thread_id, model, minute ORDER BY minute",
        values,
    )
    for slug, thread_id, model, minute, number, *counts in grouped:
        replies, summaries = (number, 0) if is_of_replies else (0, number)
        yield ModelUse(slug, thread_id, model, from_text(minute + _SECONDS), replies, TokenUse(*counts), summaries)
