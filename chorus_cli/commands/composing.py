"""``/editor``: a message that is written in the user's editor."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from chorus_cli.commands.framework.command_context import CommandContext
from chorus_cli.commands.framework.registry import CommandGroup
from chorus_cli.commands.framework.replies import Refill, Text
from chorus_cli.core.errors import ChorusError, CommandError
from chorus_cli.core.models.events import TurnEvent
from chorus_cli.services.editing.drafts import Edited

GROUP: CommandGroup[CommandContext] = CommandGroup("")


@GROUP.command("editor")
async def compose(context: CommandContext) -> Text | Refill | AsyncGenerator[TurnEvent, None]:
    """Write a message in your editor; it is sent when you save and close, and an empty one is not.

    Your text is kept in a draft until it is stored. If the editor ended with an error, it comes to the prompt instead.

    Examples:
        /editor
    """
    edited = await context.editing.edit("message.md", "")
    text = edited.text.strip("\r\n").rstrip()
    if edited.may_be_open and not edited.changed:
        # What is saved in that window later must have a place.
        return Text(f"{edited.doubt} Nothing was sent. The draft stays in {edited.path}.")
    if not text:
        context.editing.finish(edited)
        return Text(" ".join(filter(None, (edited.doubt, "Nothing was written, so nothing was sent."))))
    if edited.doubt:
        return Refill(f"{edited.doubt} Nothing was sent; your text is at the prompt and in {edited.path}.", text)
    return _sent(context, edited, text)


async def _sent(context: CommandContext, edited: Edited, text: str) -> AsyncGenerator[TurnEvent, None]:
    """Have the text answered, and delete the draft as soon as it is certain that the text is stored."""
    is_stored = False
    try:
        async with aclosing(context.conversation.answer(context.focus.target(), text)) as events:
            async for event in events:
                if not is_stored:
                    is_stored = True
                    context.editing.finish(edited)
                yield event
    except asyncio.CancelledError:
        # Whoever is stopped while answering has stored the message first.
        context.editing.finish(edited)
        raise
    except ChorusError as error:
        raise error if is_stored else CommandError(f"{error} Your text is kept in {edited.path}.") from error


async def edited_line(context: CommandContext, typed: str) -> Refill:
    """Have what is typed at the prompt edited, and return what comes back to it, with a sentence if there is a doubt.

    Raises:
        EditorError: no editor was started, or the draft cannot be read back.
    """
    edited = await context.editing.edit("message.md", typed)
    if edited.doubt:
        # What is saved in a window that is still open must have a place.
        return Refill(f"{edited.doubt} Your text is at the prompt and in {edited.path}.", edited.text.rstrip())
    context.editing.finish(edited)
    return Refill("", edited.text.rstrip())
