"""``/undo``, ``/redo``, ``/retry``: second thoughts about what was said and done."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from chorus_cli.commands.command_context import CommandContext
from chorus_cli.commands.registry import CommandGroup
from chorus_cli.commands.replies import Message, Refill
from chorus_cli.commands.wording import deed, turn
from chorus_cli.core.events import TurnEvent
from chorus_cli.core.operations import Operation

GROUP: CommandGroup[CommandContext] = CommandGroup("")


@GROUP.command("undo")
async def undo(context: CommandContext) -> Message | Refill:
    """Take back the newest thing you did: a message with its reply, or an operation on the context.

    Again goes further back. A message comes back to the input line, where a slash takes its place; it leaves the
    context, not the log.

    Examples:
        /undo
    """
    undone = await context.journal.undo_newest(context.focus.place())
    if isinstance(undone, Operation):
        return Message(f"Undone: {deed(undone)}")
    return Refill(f"Undone: {turn(undone)}", undone.content, gives_way=True)


@GROUP.command("redo")
async def redo(context: CommandContext) -> Message:
    """Put back what the last undo took back, as long as nothing has followed it.

    Examples:
        /redo
    """
    redone = await context.journal.redo(context.focus.place())
    return Message(f"Redone: {deed(redone) if isinstance(redone, Operation) else turn(redone)}")


@GROUP.command("retry")
async def retry(context: CommandContext) -> AsyncGenerator[TurnEvent, None]:
    """Have the last message answered once more.

    The old reply leaves the context, not the log; /undo brings it back.

    Examples:
        /retry
    """
    return context.conversation.retry(context.focus.place())
