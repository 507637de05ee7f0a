"""From what is in context to the request: the prompt, part by part.

One system message comes first (system prompt, documents), then the view, word for word. Whole turns are left out from
the oldest when the request would be too large; the newest turn always stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chorus_cli.core.budget import TOKENS_PER_MESSAGE
from chorus_cli.core.exchange import PromptMessage
from chorus_cli.core.messages import Message, Role, Status, turns
from chorus_cli.core.preamble import joined

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from chorus_cli.core.persona import Document

BROKEN_OFF = "[this reply broke off here]"
LEAD = "(The conversation goes on.)"
_MARK_TOKENS = 8


@dataclass(frozen=True, slots=True)
class Foundation:
    """What stands before the messages: the system message's text, and the tokens of each of its parts."""

    text: str
    system_prompt_tokens: int
    document_tokens: int

    @property
    def tokens(self) -> int:
        """The whole system message."""
        return self.system_prompt_tokens + self.document_tokens + TOKENS_PER_MESSAGE


@dataclass(frozen=True, slots=True)
class Prompt:
    """The messages of a request, the rows they come from, the rows that had to stay out, and their tokens."""

    messages: tuple[PromptMessage, ...]
    sent: tuple[Message, ...]
    too_large: tuple[Message, ...]
    foundation: Foundation
    message_tokens: int

    @property
    def tokens(self) -> int:
        """The estimate for the whole request."""
        return self.foundation.tokens + self.message_tokens


def system_text(system_prompt: str, documents: Iterable[Document]) -> str:
    """Return the system message: the prompt, then each document under its name."""
    return "\n\n".join([system_prompt, *(f"# {document.name}\n\n{document.content}" for document in documents)])


def assemble(foundation: Foundation, view: Sequence[Message], budget_tokens: int) -> Prompt:
    """Build the request from the view, leaving out whole turns from the oldest until it fits the budget."""
    usable = _usable(view)
    groups = turns(usable)
    sizes = [sum(tokens_of(message) for message in group) for group in groups]
    total = sum(sizes)
    first = 0
    while first < len(groups) - 1 and foundation.tokens + total > budget_tokens:
        total -= sizes[first]
        first += 1
    sent = [message for group in groups[first:] for message in group]
    lead = [PromptMessage("user", LEAD)] if sent and sent[0].role is not Role.USER else []
    return Prompt(
        messages=(PromptMessage("system", foundation.text), *lead, *map(_as_sent, sent)),
        sent=tuple(sent),
        too_large=tuple(message for group in groups[:first] for message in group),
        foundation=foundation,
        message_tokens=total + (_MARK_TOKENS + TOKENS_PER_MESSAGE if lead else 0),
    )


def tokens_of(message: Message) -> int:
    """Return what a stored message costs in a request; its own count must be known."""
    mark = _MARK_TOKENS if message.status.broke_off else 0
    return (message.token_count or 0) + TOKENS_PER_MESSAGE + mark


def _usable(view: Sequence[Message]) -> list[Message]:
    """Leave out what a model must not see: replies in progress, empty rows, and tool rows without their partner."""
    calls = {(row.turn_id, row.tool_call_id) for row in view if row.role is Role.TOOL_USE}
    results = {(row.turn_id, row.tool_call_id) for row in view if row.role is Role.TOOL_RESULT}
    paired = calls & results

    def usable(row: Message) -> bool:
        if row.role in {Role.TOOL_USE, Role.TOOL_RESULT}:
            return (row.turn_id, row.tool_call_id) in paired
        return row.status is not Status.STREAMING and bool(row.content.strip())

    return [row for row in view if usable(row)]


def _as_sent(message: Message) -> PromptMessage:
    match message.role:
        case Role.USER:
            return PromptMessage("user", joined(message.preamble, message.content))
        case Role.TOOL_USE:
            return PromptMessage("assistant", message.content, tool_calls=message.tool_calls)
        case Role.TOOL_RESULT:
            return PromptMessage("tool", message.content, tool_call_id=message.tool_call_id)
        case Role.ASSISTANT:
            broken = f"{message.content}\n{BROKEN_OFF}" if message.status.broke_off else message.content
            return PromptMessage("assistant", broken)
