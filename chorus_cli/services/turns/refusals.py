"""Why a message is not taken, and what of a conversation had to stay out of a request, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.core.context.budget import TOKENS_PER_MESSAGE
from chorus_cli.core.errors import MessageRefusedError

if TYPE_CHECKING:
    from chorus_cli.core.context.assembly import Foundation, Prompt
    from chorus_cli.core.context.budget import Budget
    from chorus_cli.core.context.snapshot import Target
    from chorus_cli.services.turns.opened_turn import Limits

LARGEST_MESSAGE_BYTES = 8_000_000


def refuse_unreadable(content: str) -> None:
    """Refuse a message that is empty or larger than anything is made for.

    Raises:
        MessageRefusedError: it is.
    """
    if not content.strip():
        raise MessageRefusedError("The message is empty, so there is nothing to send.")
    size = len(content.encode())
    if size > LARGEST_MESSAGE_BYTES:
        raise MessageRefusedError(
            f"The message has {size / 1e6:.1f} MB; the largest that is taken has {LARGEST_MESSAGE_BYTES / 1e6:g} MB. "
            "It was not stored. Put it in a file and send the part that matters."
        )


def refuse_unfitting(target: Target, message_tokens: int, limits: Limits, *, preamble_tokens: int = 0) -> None:
    """Refuse a message that does not fit the model, even alone; the sentence has all sizes.

    Raises:
        MessageRefusedError: it does not.
    """
    needed_tokens = limits.foundation.tokens + preamble_tokens + message_tokens + TOKENS_PER_MESSAGE
    if needed_tokens > limits.allowed.room.budget:
        raise _unfitting(target, message_tokens, limits.foundation, limits.allowed)


def _unfitting(target: Target, message_tokens: int, foundation: Foundation, allowed: Budget) -> MessageRefusedError:
    may_have = f"a request to {target.choice.model} may have {allowed.tokens:,}"
    if allowed.corrected(foundation.tokens) >= allowed.tokens:
        return MessageRefusedError(
            f"{target.persona.name} leaves no room for a message: the system prompt has "
            f"~{allowed.corrected(foundation.system_prompt_tokens):,} tokens and the documents "
            f"{allowed.corrected(foundation.document_tokens):,}, but {may_have}. "
            "The message was not stored; shorten them, or choose a model with a larger limit."
        )
    return MessageRefusedError(
        f"The message is too large for {target.choice.model}: it has ~{allowed.corrected(message_tokens):,} tokens and "
        f"the system prompt and documents {allowed.corrected(foundation.tokens):,}, but a request may have "
        f"{allowed.tokens:,} of the model's {allowed.limit.tokens:,}. It was not stored; shorten it or choose a model "
        "with a larger limit."
    )


def shortfalls(target: Target, prompt: Prompt) -> dict[str, str]:
    """Say what of the context is not, or not whole, in a request; each sentence under what it speaks of."""
    found: dict[str, str] = {}
    if number := len(prompt.too_large):
        found["left out"] = (
            f"The oldest {_counted(number)} in the window did not fit {target.choice.model} and stayed out of this "
            "request. They are still in the log."
        )
    if prompt.left_out_summary is not None:
        found["summary"] = (
            "The summary of the earlier conversation did not fit beside your message and stayed out of this request."
        )
    if number := len(prompt.cut):
        found["cut"] = (
            f"{_counted(number).capitalize()} did not fit {target.choice.model} whole and went without the middle. "
            "The log has all of it."
        )
    return found


def _counted(number: int) -> str:
    return f"{number:,} message{'s' if number != 1 else ''}"
