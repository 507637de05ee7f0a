"""What messages cost in a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.core.context.budget import TOKENS_PER_MESSAGE
from chorus_cli.core.log.messages import Message, Role

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_MARK_TOKENS = 8
LEAD_TOKENS = _MARK_TOKENS + TOKENS_PER_MESSAGE


def tokens_of(message: Message) -> int:
    """Return what a stored message costs in a request; its own count must be known."""
    mark = _MARK_TOKENS if message.status.broke_off else 0
    return (message.token_count or 0) + TOKENS_PER_MESSAGE + mark


def total_tokens(rows: Sequence[Message]) -> int:
    """Return what messages cost together, with the line that leads a view which no user begins."""
    return lead_tokens(rows) + sum(map(tokens_of, rows))


def text_tokens(message: Message, count: Callable[[str], int]) -> int:
    """Count everything that a message says."""
    return sum(map(count, filter(None, (message.preamble, message.content, message.tool_calls))))


def needs_lead(rows: Sequence[Message]) -> bool:
    """Return whether the first message is none of the user's, which some models require."""
    return bool(rows) and rows[0].role is not Role.USER


def lead_tokens(rows: Sequence[Message]) -> int:
    """Return what the line costs that leads a view which no user begins, if there is to be one."""
    return LEAD_TOKENS if needs_lead(rows) else 0
