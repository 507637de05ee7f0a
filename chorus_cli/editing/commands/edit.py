"""``/context edit`` and ``/edit``: the context, or one message of it, in the user's editor."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from chorus_cli.core.text.code_points import cleaned_input
from chorus_cli.core.text.phrases import counted
from chorus_cli.core.time.timespan import Span
from chorus_cli.editing.rules.format import alone, read_alone, with_line_feeds
from chorus_cli.editing.service.context import OpenContext, OpenMessage, OvertakenError
from chorus_cli.framework.arguments import TIME
from chorus_cli.framework.drafts import Refused, answered
from chorus_cli.framework.registry import CommandGroup
from chorus_cli.framework.replies import Reply, Report, Said, Text
from chorus_cli.log.rules.messages import Role
from chorus_cli.services import Services
from chorus_cli.turns.commands import MESSAGE, OVERTAKEN

GROUP: CommandGroup[Services] = CommandGroup("context")
TOP: CommandGroup[Services] = CommandGroup("", topic="chat")

_UNCHANGED = "Nothing was changed: the context is the same as before."
_EMPTIED = "Nothing was changed: the text has no messages left. /new empties the context."


@GROUP.command("edit")
async def edit(services: Services, time: Annotated[Span | None, TIME] = None) -> Reply:
    """Delete, reword, move or add messages in your editor.

    A line in the text marks where the context starts; move it up to include older messages. With a time, only messages
    after it are shown, and older ones stay as they are. Nothing is deleted from the log; /undo reverts the edit.

    Examples:
        /context edit
        /context edit 24h
    """
    shown_since = None if time is None else time.before(services.clock.now())
    opened = await services.context_editing.open(services.current.target(), shown_since)
    edited = await services.drafts.edit("context.md", opened.sheet.text, opened.line)
    return await answered(services.drafts, edited, partial(_stored, services, opened), "The context")


async def _stored(services: Services, opened: OpenContext, text: str) -> Reply | Refused:
    try:
        edited = await services.context_editing.save(opened, text)
    except OvertakenError:
        return OVERTAKEN
    if edited is None:
        return Text(_UNCHANGED)
    if not edited.all:
        return Text(_EMPTIED)
    kinds = ((edited.reworded, "reworded"), (edited.left_out, "left out"), (edited.added, "added"))
    changes = ", ".join(f"{number:,} {kind}" for number, kind in kinds if number)
    messages = counted(edited.all, "message")
    return Text(f"Context edited: {messages}{f' ({changes})' if changes else ''}. /undo reverts.")


@TOP.command("edit", listed="everyday")
async def edit_message(services: Services, message: Annotated[int | None, MESSAGE] = None) -> Reply:
    """Edit the last reply, or message N, in your editor.

    From then on the model gets your wording. The old one stays in the log; /undo brings it back.

    Examples:
        /edit
        /edit 12
    """
    opened = await services.context_editing.open_message(services.current.target(), message)
    edited = await services.drafts.edit("message.md", alone(opened.row.content))
    return await answered(services.drafts, edited, partial(_worded, services, opened), "The message")


async def _worded(services: Services, opened: OpenMessage, text: str) -> Reply | Refused:
    words = cleaned_input(read_alone(text))[0]
    if words == with_line_feeds(opened.row.content):
        return Text("Nothing was changed.")
    try:
        await services.context_editing.reword(opened, words)
    except OvertakenError:
        return OVERTAKEN
    kept = counted(len(opened.scope.settled), "message")
    after = (
        f" As after /context edit, the context is now exactly {kept}, without a summary and without pinned messages."
    )
    fixed = "" if opened.is_last else after
    told, persona = Text(f"Message edited.{fixed} /undo reverts."), services.current.target().persona
    is_reply = opened.row.role is Role.ASSISTANT
    return Report((told, Said(words, persona.name if persona.has_card else "") if is_reply else Text(words)))
