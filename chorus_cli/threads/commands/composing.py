"""Commands that send a message: ``/editor``, ``/bg`` and the user's own commands."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from chorus_cli.attachments.rules.mentions import escaped
from chorus_cli.core import limits
from chorus_cli.core.errors import AttachmentError, CommandError, MessageNotStoredError
from chorus_cli.core.text.phrases import shortened
from chorus_cli.framework.arguments import TEXT, Documentation, declared_arguments
from chorus_cli.framework.command_line import ARGUMENTS, Template
from chorus_cli.framework.registry import Command, CommandGroup
from chorus_cli.framework.replies import Answer, Refill, Text
from chorus_cli.services import Services
from chorus_cli.threads.service.running_turn import RunningTurn, waiting_line

GROUP: CommandGroup[Services] = CommandGroup("", topic="chat", only_in_chat=True)


@GROUP.command("editor")
async def compose(services: Services) -> Text | Refill | RunningTurn:
    """Write a message in your editor; it is sent when you save and close.

    Chorus sends no empty text, and keeps your text until the message is stored. If the editor fails, the text goes to
    the prompt instead.

    Examples:
        /editor
    """
    edited = await services.drafts.edit("message.md", "")
    text = edited.text.strip("\r\n").rstrip()
    if edited.may_be_open and not edited.changed:
        # The draft is kept because the editor may still save to it.
        return Text(f"{edited.doubt} Nothing was sent. {edited.kept}")
    if not text:
        services.drafts.finish(edited)
        return Text(" ".join(filter(None, (edited.doubt, "Nothing was sent: the message is empty."))))
    if edited.doubt:
        return Refill(f"{edited.doubt} Nothing was sent; your text is at the prompt and in {edited.path}.", text)
    target = services.current.target()
    try:
        prepared = await services.attachments.prepared(escaped(text), target.choice.model)
        turn = await services.replies.send(target, prepared.text, prepared.attachments, is_kept=True)
    except (AttachmentError, MessageNotStoredError) as error:
        return Refill(f"{error} Your text is at the prompt and in {edited.path}.", text)
    services.drafts.finish(edited)
    return turn or Text(waiting_line(target))


async def edited_line(services: Services, typed: str) -> Refill:
    """Edit the line typed at the prompt, and return the new line, with a warning if the editor failed."""
    edited = await services.drafts.edit("message.md", typed)
    if edited.doubt:
        # The draft is kept because the editor may still save to it.
        return Refill(f"{edited.doubt} Your text is at the prompt and in {edited.path}.", edited.text.rstrip())
    text = edited.text.rstrip()
    if len(text) > limits.PASTE.most:
        told = f"The text has {len(text):,} characters; the prompt takes at most {limits.PASTE.most:,}."
        return Refill(f"{told} Your text is kept in {edited.path}.", typed)
    services.drafts.finish(edited)
    return Refill("", text)


MESSAGE = replace(TEXT, name="message", help="the message, as you would type it at the prompt")


@GROUP.command("bg")
async def background(services: Services, message: Annotated[str, MESSAGE]) -> Text:
    """Send a message in a new thread and have it answered in the background.

    Chorus tells you when the reply is done. Ctrl-B sends the reply on the screen to the background.

    Examples:
        /bg Write a long story about a lighthouse.
    """
    prepared = await services.attachments.prepared(message, services.current.target().choice.model)
    with services.attachments.lent(prepared.attachments):
        # The next run goes on in the thread in focus, even if nothing was said in it yet.
        await services.current.turn_to_thread(services.current.thread_id)
        target = await services.threads.new_aside()
        await services.replies.send_aside(target, prepared.text, prepared.attachments)
    return Text(f'Thread #{target.thread_number} answers "{shortened(prepared.text)}" in the background.')


TYPED = replace(TEXT, help=f"the text that replaces {ARGUMENTS} or follows a template without {ARGUMENTS}")


def command_of(template: Template) -> Command[Services]:
    """Return the command that sends the message of a template, with the text typed after its name."""

    async def send(services: Services, text: Annotated[str, TYPED] = "") -> Answer:
        target = services.current.target()
        prepared = await services.attachments.prepared(template.filled(text), target.choice.model)
        if not prepared.text.strip():
            raise CommandError(f"/{template.name} needs text: its template is empty without it.")
        with services.attachments.lent(prepared.attachments):
            turn = await services.replies.send(target, prepared.text, attachments=prepared.attachments)
        return turn if turn is not None else Text(waiting_line(target))

    example = f"/{template.name} TEXT" if ARGUMENTS in template.body else f"/{template.name}"
    documentation = Documentation(template.description, template.body, (example,))
    return Command("", (template.name,), send, *declared_arguments(send), documentation, topic="chat")
