"""What a turn is made of, from the moment that its question is stored until the model is asked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from chorus_cli.core.context.summary import standing
from chorus_cli.core.models.exchange import ModelRequest

if TYPE_CHECKING:
    from datetime import datetime

    from chorus_cli.core.context.assembly import Foundation, Prompt
    from chorus_cli.core.context.budget import Budget
    from chorus_cli.core.context.snapshot import Target
    from chorus_cli.core.context.summary import Summary
    from chorus_cli.core.log.messages import Message
    from chorus_cli.storage.sqlite.context.rows import ContextRows
    from chorus_cli.storage.sqlite.log.message_rows import OpenedTurn


@dataclass(frozen=True, slots=True)
class Opened:
    """What the opening transaction read and wrote, and where the window of the request before began, if any was."""

    rows: ContextRows
    turn: OpenedTurn
    limits: Limits
    since_before: datetime | None


@dataclass(frozen=True, slots=True)
class Seen:
    """What a request is made of: the view with the question at its end, and what stands for its first messages.

    ``since`` is where its window begins.
    """

    messages: tuple[Message, ...]
    base_operation_id: int | None
    since: datetime
    summary: Summary | None = None
    folded_number: int = 0

    def with_summary(self, summary: Summary | None) -> Seen:
        """Return it with another summary, if that stands for the beginning of these very messages."""
        ids = [row.id for row in self.messages]
        found, number = standing([summary] if summary else [], self.base_operation_id, ids)
        return replace(self, summary=found, folded_number=number) if found else self


@dataclass(frozen=True, slots=True)
class Ready:
    """A stored question's empty reply, the request to send, the budget, and what the user should know of it."""

    reply: Message
    seen: Seen
    prompt: Prompt
    allowed: Budget
    notices: tuple[str, ...] = ()

    @property
    def is_crowded(self) -> bool:
        """Whether something of the context has no room in the request."""
        return bool(self.prompt.too_large or self.prompt.cut or self.prompt.left_out_summary)


@dataclass(frozen=True, slots=True)
class Limits:
    """The system message and the budget of a request."""

    foundation: Foundation
    allowed: Budget


@dataclass(frozen=True, slots=True)
class Reopened:
    """What stays of the context when a reply is asked for once more, what it may take, and the empty reply."""

    seen: Seen
    limits: Limits
    reply: Message


def request(target: Target, ready: Ready) -> ModelRequest:
    """Return what the model is asked."""
    chosen = target.persona.settings
    return ModelRequest(
        target.choice.model,
        ready.prompt.messages,
        chosen.temperature,
        chosen.max_output_tokens,
        context_tokens=ready.allowed.limit.tokens,
        prompt_tokens=ready.allowed.corrected(ready.prompt.tokens),
    )
