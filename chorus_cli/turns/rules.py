"""A conversation as text for a summary: an entry for each message, in slices that fit a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.core.text.phrases import cut_to_characters
from chorus_cli.log.rules.calls import calls_in_words
from chorus_cli.log.rules.messages import Role, words_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from chorus_cli.log.rules.messages import Message, MessageContent

_GAP = "\n\n"
_GAP_TOKENS = 2
_LONGEST_RESULT = 1_000


def entries_of(messages: Iterable[Message | MessageContent], name: str) -> list[str]:
    """Return an entry for each message, with its speaker; the persona is called ``name``."""
    speakers = {
        Role.USER: "Human",
        Role.ASSISTANT: name,
        Role.TOOL_USE: f"{name} calls a tool",
        Role.TOOL_RESULT: "The tool answers",
    }
    return [f"{speakers[message.role]}: {_said(message)}" for message in messages]


def _said(message: Message | MessageContent) -> str:
    """Return the words of a message with its calls of tools, without the middle of a tool's long result."""
    is_result = message.role is Role.TOOL_RESULT
    content = cut_to_characters(message.content, _LONGEST_RESULT) if is_result else words_of(message)
    calls = calls_in_words(message.tool_calls) if message.tool_calls else ""
    return " ".join(filter(None, (content, calls)))


def next_slice(entries: Sequence[str], room_tokens: int, count: Callable[[str], int]) -> tuple[str, list[str]]:
    """Return as many of the first entries as fit, joined to one text, and the rest.

    ``count`` returns the tokens of a text. An entry that is too large alone is split, so that there is always progress
    and nothing is left out.
    """
    rest = list(entries)
    taken: list[str] = []
    used = 0
    while rest:
        tokens = count(rest[0]) + _GAP_TOKENS
        if used + tokens <= room_tokens:
            used += tokens
            taken.append(rest.pop(0))
        elif taken or len(rest[0]) == 1:
            break
        else:
            rest[:1] = _halves(rest[0])
    return _GAP.join(taken or [rest.pop(0)]) if rest or taken else "", rest


def _halves(text: str) -> tuple[str, str]:
    """Split a text in the middle, at a blank if there is one near."""
    middle = len(text) // 2
    blank = text.rfind(" ", middle // 2, middle)
    split = middle if blank < 0 else blank + 1
    return text[:split], text[split:]
