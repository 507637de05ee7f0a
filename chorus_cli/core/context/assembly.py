"""From what is in context to the request: the prompt, part by part.

One system message comes first (system prompt, documents, summary), then the view, word for word. A request that would
be too large leaves out whole turns from the oldest until it takes half of the model's limit, but keeps the last two;
those that follow it begin where it does until that has no room either, for a provider knows that beginning.
What is still too large is cut in the middle, the longest messages first; the newest user message stays whole.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from chorus_cli.core.context.budget import TOKENS_PER_MESSAGE
from chorus_cli.core.context.fitting import fitting
from chorus_cli.core.context.preamble import joined
from chorus_cli.core.context.summary import HEADING
from chorus_cli.core.context.tokens import needs_lead, tokens_of, total_tokens
from chorus_cli.core.log.messages import Message, Role, Status
from chorus_cli.core.models.exchange import PromptMessage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from chorus_cli.core.context.budget import Room
    from chorus_cli.core.context.summary import Summary
    from chorus_cli.core.personas.persona import Document

BROKEN_OFF = "[this reply broke off here]"
LEAD = "(The conversation goes on.)"
_TOOL_ROLES = frozenset({Role.TOOL_USE, Role.TOOL_RESULT})
_HEADING_TOKENS = 10


@dataclass(frozen=True, slots=True)
class Foundation:
    """What stands before the messages: the system message and its parts' tokens, and the summary if there is one."""

    text: str
    system_prompt_tokens: int
    document_tokens: int
    summary: Summary | None = None

    @property
    def summary_tokens(self) -> int:
        """What stands for the older part of the conversation."""
        return (self.summary.token_count or 0) + _HEADING_TOKENS if self.summary else 0

    @property
    def tokens(self) -> int:
        """The whole system message."""
        return self.system_prompt_tokens + self.document_tokens + self.summary_tokens + TOKENS_PER_MESSAGE

    def with_summary(self, summary: Summary | None) -> Foundation:
        """Return it with what stands for the older part of the conversation."""
        return replace(self, summary=summary)

    @property
    def system_message(self) -> str:
        """The system message with all its parts."""
        return f"{self.text}\n\n{HEADING}\n{self.summary.content}" if self.summary else self.text


@dataclass(frozen=True, slots=True)
class Prompt:
    """The messages of a request, the rows they come from, their tokens, and what was cut or left out."""

    messages: tuple[PromptMessage, ...]
    sent: tuple[Message, ...]
    too_large: tuple[Message, ...]
    foundation: Foundation
    message_tokens: int
    cut: tuple[Message, ...] = ()
    left_out_summary: Summary | None = None

    @property
    def tokens(self) -> int:
        """The estimate for the whole request."""
        return self.foundation.tokens + self.message_tokens


def system_text(system_prompt: str, documents: Iterable[Document]) -> str:
    """Return the system message: the prompt, then each document under its name."""
    return "\n\n".join([system_prompt, *(f"# {document.name}\n\n{document.content}" for document in documents)])


def assemble(
    foundation: Foundation,
    view: Sequence[Message],
    room: Room,
    count: Callable[[str], int],
    begins_at: int | None = None,
) -> Prompt:
    """Build the request from the view; every message of it must be counted, as ``count`` does.

    It fits ``room`` if the foundation and the newest user message do. ``begins_at`` is the message that the last
    request began with, if that left out what stood before.
    """
    rows = usable(view)
    newest_question = next((row for row in reversed(rows) if row.role is Role.USER), None)
    summary = foundation.summary
    if newest_question is not None and foundation.tokens + tokens_of(newest_question) > room.budget:
        foundation = foundation.with_summary(None)
    tokens = total_tokens(rows)
    fitted = rows
    too_large: tuple[Message, ...] = ()
    cut: tuple[Message, ...] = ()
    if foundation.tokens + tokens > room.budget:
        fitted = fitting(rows, room, foundation.tokens, count, begins_at)
        tokens = total_tokens(fitted)
        too_large, cut = _not_sent(rows, fitted)
    lead = [PromptMessage("user", LEAD)] if needs_lead(fitted) else []
    return Prompt(
        messages=(PromptMessage("system", foundation.system_message), *lead, *map(_as_sent, fitted)),
        sent=tuple(fitted),
        too_large=too_large,
        foundation=foundation,
        message_tokens=tokens,
        cut=cut,
        left_out_summary=None if foundation.summary else summary,
    )


def _not_sent(rows: Sequence[Message], fitted: Sequence[Message]) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """Return which rows were left out, and which were cut."""
    sent = {row.id: row for row in fitted}
    cut = (row for row in rows if row.id in sent and sent[row.id] is not row)
    return tuple(row for row in rows if row.id not in sent), tuple(cut)


def usable(view: Sequence[Message]) -> list[Message]:
    """Leave out what a model must not see: replies in progress, empty rows, and tool rows without their partner.

    A question that failed without a word and was said again, word for word, is sent once.
    """
    calls = {(row.turn_id, row.tool_call_id) for row in view if row.role is Role.TOOL_USE}
    results = {(row.turn_id, row.tool_call_id) for row in view if row.role is Role.TOOL_RESULT}
    paired = calls & results

    def is_usable(row: Message) -> bool:
        if row.role in _TOOL_ROLES:
            return (row.turn_id, row.tool_call_id) in paired
        return row.status is not Status.STREAMING and bool(row.content.strip())

    return _once([row for row in view if is_usable(row)], {row.turn_id for row in view if _failed(row)})


def _failed(row: Message) -> bool:
    return row.status.broke_off and not row.content.strip()


def _once(rows: list[Message], failed_turns: set[int]) -> list[Message]:
    """Leave out each question of a failed turn that the next message says again."""
    if not failed_turns:
        return rows

    def is_repeated(row: Message, following: Message) -> bool:
        return (
            row.turn_id in failed_turns
            and row.role is following.role is Role.USER
            and row.content.strip() == following.content.strip()
        )

    return [row for row, following in pairwise(rows) if not is_repeated(row, following)] + rows[-1:]


def _as_sent(message: Message) -> PromptMessage:
    match message.role:
        case Role.USER:
            return PromptMessage("user", joined(message.preamble, message.content))
        case Role.ASSISTANT:
            broken = f"{message.content}\n{BROKEN_OFF}" if message.status.broke_off else message.content
            return PromptMessage("assistant", broken)
        case Role.TOOL_USE:
            return PromptMessage("assistant", message.content, tool_calls=message.tool_calls)
        case Role.TOOL_RESULT:
            return PromptMessage("tool", message.content, tool_call_id=message.tool_call_id)
