"""The process that has answered, or is answering, a message of the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.log.rows import message_rows
from chorus_cli.log.rules.messages import Status, is_filled

if TYPE_CHECKING:
    from chorus_cli.log.rules.messages import Message
    from chorus_cli.turns.service.conversation import Conversation

_SENT_ELSEWHERE = "The newest message here was sent from another Chorus."
_WRITTEN_ELSEWHERE = f"{_SENT_ELSEWHERE[:-1]}, where it is being answered now."


async def made_elsewhere(conversation: Conversation, question: Message) -> str:
    """Return a sentence if another process made the turn of ``question`` while this one runs, or is writing it now."""
    replies = [row for row in await _replies(conversation, question) if row.run is not None]
    if not replies or any(row.run == conversation.run for row in replies):
        return ""
    is_alive = conversation.answering.outside.is_alive
    if any(row.status is Status.STREAMING and is_alive(row.run or "") for row in replies):
        return _WRITTEN_ELSEWHERE
    return _SENT_ELSEWHERE if question.timestamp >= conversation.began_at else ""


async def is_answering(conversation: Conversation, question: Message) -> bool:
    """Return whether this process is writing a reply to ``question``."""
    rows = await _replies(conversation, question)
    return any(row.status is Status.STREAMING and row.run == conversation.run for row in rows)


async def is_answered(conversation: Conversation, question: Message) -> bool:
    """Return whether ``question`` has a reply with words or calls, or one in progress."""
    rows = await _replies(conversation, question)
    return any(is_filled(row) or row.tool_calls or row.status is Status.STREAMING for row in rows)


async def _replies(conversation: Conversation, question: Message) -> list[Message]:
    return await conversation.context.store.read(message_rows.replies, question)
