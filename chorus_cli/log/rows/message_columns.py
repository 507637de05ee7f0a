"""The columns of a message, and the message that they make."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

from chorus_cli.core.errors import DatabaseDamagedError
from chorus_cli.core.time import timestamps
from chorus_cli.log.rules import attachments
from chorus_cli.log.rules.messages import Message, Role, Status, Thought

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

COLUMNS = (
    "id, persona, thread_id, COALESCE(turn_id, id), role, content, timestamp, preamble, tool_calls, tool_call_id, "
    "status, run, model, token_count, introduced_by, revises, usage, attachments, superseded, reply_id, "
    "reasoning IS NOT NULL OR thought_tokens IS NOT NULL, thought_seconds, thought_tokens"
)

# An enum takes several times as long as a cache to look a member up, and a long view has a thousand rows.
_role, _status = cache(Role), cache(Status)


def messages(cursor: Iterable[tuple[Any, ...]]) -> list[Message]:
    """Return the messages of rows of ``COLUMNS``.

    Raises:
        DatabaseDamagedError: a row cannot be read.
    """
    return [_message(row) for row in list(cursor)]


def _message(row: tuple[Any, ...]) -> Message:
    # By position, in the order of the columns: by name, making the rows of a large request takes a third longer.
    id_, persona, thread_id, turn_id, role, content, timestamp, preamble, calls, call_id, status, *rest = row
    run, model, token_count, introduced_by, revises, usage, attached, superseded, reply_id, *thought = rest
    try:
        return Message(
            id_,
            persona,
            thread_id,
            turn_id,
            _role(role),
            content,
            stored_moment(timestamp, id_, persona),
            preamble,
            calls,
            call_id,
            _status(status),
            run,
            model,
            token_count,
            introduced_by,
            revises,
            dict(json.loads(usage)) if usage else {},
            attachments.from_text(attached) if attached else (),
            bool(superseded),
            reply_id,
            Thought(*thought[1:]) if thought[0] else None,
        )
    except (ValueError, TypeError) as error:
        raise DatabaseDamagedError(f"Message {id_} of {persona} cannot be read: {error}.") from error


def stored_moment(text: str, id_: int, persona: str) -> datetime:
    """Return the time of a message.

    Raises:
        DatabaseDamagedError: it cannot be read.
    """
    try:
        return timestamps.from_text(text)
    except ValueError as error:
        raise DatabaseDamagedError(
            f"Message {id_} of {persona} has the time {text!r}, which cannot be read. "
            "Times are UTC text such as 2026-01-31T08:15:00.000000Z."
        ) from error


def counted_moment(text: str | None) -> datetime | None:
    """Return the time of a message that is only counted, ``None`` if it cannot be read: its display reports that."""
    try:
        return timestamps.from_text(text) if text else None
    except ValueError:
        return None
