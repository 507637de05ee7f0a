"""``/bg``: a message that is answered in the background."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from chorus_cli.core.text.phrases import shortened
from chorus_cli.framework.arguments import TEXT
from chorus_cli.framework.registry import CommandGroup
from chorus_cli.framework.replies import Text
from chorus_cli.services import Services

GROUP: CommandGroup[Services] = CommandGroup("")

MESSAGE = replace(TEXT, name="message", help="the message, as you would type it at the prompt")


@GROUP.command("bg")
async def background(services: Services, message: Annotated[str, MESSAGE]) -> Text:
    """Send a message in a new thread, whose reply is written in the background.

    A line says when it is done. Ctrl-B does the same with a reply that is being written on the screen.

    Examples:
        /bg Write a long story about a lighthouse.
    """
    prepared = await services.attachments.prepared(message, services.focus.target().choice.model)
    with services.attachments.lent(prepared.attachments):
        # The next run goes on where the user is, also if that thread was not talked in yet.
        await services.focus.turn_to_thread(services.focus.thread_id)
        target = await services.threads.new_aside()
        await services.replies.send_aside(target, prepared.text, prepared.attachments)
    return Text(f'Thread #{target.thread_number} answers "{shortened(prepared.text)}" in the background.')
