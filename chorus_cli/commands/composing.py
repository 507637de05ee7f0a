"""``/editor``: a message written in the user's editor."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from chorus_cli.commands.framework.registry import CommandGroup
from chorus_cli.commands.framework.replies import Refill, Text
from chorus_cli.commands.framework.services import Services
from chorus_cli.core.errors import ChorusError, CommandError
from chorus_cli.core.models.events import TurnEvent
from chorus_cli.services.editing.drafts import Edited

GROUP: CommandGroup[Services] = CommandGroup("")


@GROUP.command("editor")
async def compose(services: Services) -> Text | Refill | AsyncGenerator[TurnEvent, None]:
    """Write a message in your editor; it is sent when you save and close, unless it is empty.

    Your text is kept as a draft until it is stored. If the editor fails, the text comes to the prompt instead.

    Examples:
        /editor
    """
    edited = await services.editing.drafts.edit("message.md", "")
    text = edited.text.strip("\r\n").rstrip()
    if edited.may_be_open and not edited.changed:
        # The draft is kept because the editor may still save to it.
        return Text(f"{edited.doubt} Nothing was sent. The draft stays in {edited.path}.")
    if not text:
        services.editing.drafts.finish(edited)
        return Text(" ".join(filter(None, (edited.doubt, "Nothing was sent: the message is empty."))))
    if edited.doubt:
        return Refill(f"{edited.doubt} Nothing was sent; your text is at the prompt and in {edited.path}.", text)
    return _sent(services, edited, text)


async def _sent(services: Services, edited: Edited, text: str) -> AsyncGenerator[TurnEvent, None]:
    """Send the text, and delete the draft as soon as the message is stored."""
    is_stored = False
    try:
        async with aclosing(services.conversation.answer(services.focus.target(), text)) as events:
            async for event in events:
                if not is_stored:
                    is_stored = True
                    services.editing.drafts.finish(edited)
                yield event
    except asyncio.CancelledError:
        # The message is stored before the reply begins, so a cancelled reply leaves it stored.
        services.editing.drafts.finish(edited)
        raise
    except ChorusError as error:
        raise error if is_stored else CommandError(f"{error} Your text is kept in {edited.path}.") from error


async def edited_line(services: Services, typed: str) -> Refill:
    """Edit the line typed at the prompt, and return the new line, with a warning if the editor failed.

    Raises:
        EditorError: the editor cannot be started, or the draft cannot be read back.
    """
    edited = await services.editing.drafts.edit("message.md", typed)
    if edited.doubt:
        # The draft is kept because the editor may still save to it.
        return Refill(f"{edited.doubt} Your text is at the prompt and in {edited.path}.", edited.text.rstrip())
    services.editing.drafts.finish(edited)
    return Refill("", edited.text.rstrip())
