"""Prints the log of a persona."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.log.rules.messages import Message, is_reply_of_calls
from chorus_cli.log.rules.operations import NO_NUMBERS, Numbers
from chorus_cli.log.rules.wording import log_entry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from chorus_cli.log.rules.journal import LogMarks
    from chorus_cli.log.rules.operations import Operation
    from chorus_cli.terminal.screen.output import Screen


async def show_transcript(
    entries: AsyncIterator[Message | Operation],
    marks: LogMarks,
    persona: str,
    screen: Screen,
    numbers: Numbers = NO_NUMBERS,
    thoughts: Callable[[Message], Awaitable[str]] | None = None,
) -> None:
    """Print each entry after its local time.

    ``numbers`` are those of the persona's threads. ``thoughts`` reads the ones before a message, to be shown with it.
    """
    async for entry in entries:
        if not isinstance(entry, Message):
            screen.line(f"{log_entry(entry, marks, persona, numbers)}\n")
        elif not is_reply_of_calls(entry):
            text = await thoughts(entry) if thoughts else ""
            screen.line(f"{log_entry(entry, marks, persona, numbers, text)}\n")
