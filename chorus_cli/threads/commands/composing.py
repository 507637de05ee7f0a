"""``/editor``: a message written in the user's editor."""

from __future__ import annotations

from chorus_cli.attachments.rules.mentions import escaped
from chorus_cli.core import limits
from chorus_cli.core.errors import AttachmentError, MessageNotStoredError
from chorus_cli.framework.registry import CommandGroup
from chorus_cli.framework.replies import Refill, Text
from chorus_cli.services import Services
from chorus_cli.threads.service.running_turn import RunningTurn
from chorus_cli.threads.service.wording import waiting_line

GROUP: CommandGroup[Services] = CommandGroup("")


@GROUP.command("editor")
async def compose(services: Services) -> Text | Refill | RunningTurn:
    """Write a message in your editor; it is sent when you save and close, unless it is empty.

    Your text is kept until it is stored. If the editor fails, the text comes to the prompt instead.

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
    target = services.focus.target()
    try:
        prepared = await services.attachments.prepared(escaped(text), target.choice.model)
        turn = await services.replies.send(target, prepared.text, prepared.attachments, is_kept=True)
    except (AttachmentError, MessageNotStoredError) as error:
        return Refill(f"{error} Your text is at the prompt and in {edited.path}.", text)
    services.editing.drafts.finish(edited)
    return turn or Text(waiting_line(target))


async def edited_line(services: Services, typed: str) -> Refill:
    """Edit the line typed at the prompt, and return the new line, with a warning if the editor failed.

    Raises:
        EditorError: the editor cannot be started, or the draft cannot be read back.
    """
    edited = await services.editing.drafts.edit("message.md", typed)
    if edited.doubt:
        # The draft is kept because the editor may still save to it.
        return Refill(f"{edited.doubt} Your text is at the prompt and in {edited.path}.", edited.text.rstrip())
    text = edited.text.rstrip()
    if len(text) > limits.PASTE.most:
        told = f"The text has {len(text):,} characters; the prompt takes {limits.PASTE.most:,}."
        return Refill(f"{told} It stays in {edited.path}.", typed)
    services.editing.drafts.finish(edited)
    return Refill("", text)
