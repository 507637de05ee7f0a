"""Commands that send a message: ``/editor``, ``/bg``, prompts of servers and the user's own commands."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Annotated

from chorus_cli.attachments.rules.mentions import escaped, mentions
from chorus_cli.core import limits
from chorus_cli.core.errors import AttachmentError, CommandError, MessageNotStoredError
from chorus_cli.core.text.phrases import cut_to_characters, quoted, shortened
from chorus_cli.core.text.safe_text import safe_line
from chorus_cli.framework.arguments import TEXT, Candidate, Documentation, declared_arguments
from chorus_cli.framework.command_line import ARGUMENTS, Template
from chorus_cli.framework.registry import Command, CommandGroup
from chorus_cli.framework.replies import Answer, Refill, Text
from chorus_cli.log.rules.attachments import Attachment
from chorus_cli.log.rules.messages import of_server
from chorus_cli.machine.notifier import run_to_completion
from chorus_cli.mcp.rules.offers import Part, Prompt, joined
from chorus_cli.services import Services
from chorus_cli.threads.service.running_turn import RunningTurn, waiting_line

GROUP: CommandGroup[Services] = CommandGroup("", topic="chat", only_in_chat=True)
PROMPTS: CommandGroup[Services] = CommandGroup("mcp", topic="settings", only_in_chat=True)


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
        with services.attachments.lent(prepared.attachments):
            turn = await services.replies.send(target, prepared.text, prepared.attachments, is_kept=True)
    except (AttachmentError, MessageNotStoredError) as error:
        return Refill(f"{error} Your text is at the prompt and in {edited.path}.", text)
    services.drafts.finish(edited)
    return turn or Text(waiting_line(target))


async def edited_line(services: Services, typed: str) -> Refill:
    """Edit the line typed at the prompt, and return the new line, or the old one if the new is too long; say why."""
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


def _prompt_name(text: str, _now: datetime) -> str:
    server, _, prompt = text.partition(":")
    if not server or not prompt:
        raise CommandError(f"{quoted(text)} names no prompt: write a server and its prompt, such as docs:review.")
    return text


def _known(services: Services) -> dict[str, Prompt]:
    known = services.texts.known_prompts()
    return {f"{server}:{prompt.word}": prompt for server, prompt in known}


def _offered(services: Services, _text: str) -> Sequence[Candidate]:
    return [Candidate(name, safe_line(each.description)) for name, each in _known(services).items()]


def _names_offered(services: Services, before: Sequence[str], text: str) -> Sequence[Candidate]:
    found = _known(services).get(before[0])
    lead = text[: text.rfind(" ") + 1]
    left = [each for each in found.arguments if f"{each.name}=" not in lead] if found else []
    return [Candidate(f"{lead}{each.name}=", safe_line(each.description)) for each in left]


PROMPT = replace(TEXT, name="server:prompt", parse=_prompt_name, help="a server and its prompt", complete=_offered)
ARGUMENTS_OF_PROMPT = replace(
    TEXT, name="arguments", help="in the order of their declaration, or NAME=VALUE", complete_after=_names_offered
)


@PROMPTS.command("prompt", stoppable=True)
async def send_prompt(
    services: Services, name: Annotated[str, PROMPT], arguments: Annotated[str, ARGUMENTS_OF_PROMPT] = ""
) -> RunningTurn | Text:
    """Send a prompt of a server as your message; /server:prompt is the same.

    The last argument takes all words that are left. Chorus shows the text that it sends. The memory counts the text as
    the server's words, not yours. /tools lists the prompts. @server:uri in a message attaches a resource of a server.

    Examples:
        /docs:review main.py
        /mcp prompt docs:review file=main.py
    """
    target = services.current.target()
    # The input line puts a backslash before each pasted at sign; the server gets the signs without backslashes.
    typed = mentions(arguments, lambda _path: False).text
    model = target.choice.model
    said, attachments = await _parts(services, name, model, await services.texts.say(name, typed))
    if not said and not attachments:
        raise CommandError(f"/{name} says nothing, so nothing was sent.")
    prepared = await services.attachments.with_waiting(of_server(name, said), model, attachments)
    services.notifier.progress(cut_to_characters(prepared.text, limits.SHOWN_PROMPT.most))
    with services.attachments.lent(prepared.attachments):
        # Ctrl-C must not lose a message that is being stored.
        turn, _ = await run_to_completion(
            services.replies.send(target, prepared.text, attachments=prepared.attachments)
        )
    return turn if turn is not None else Text(waiting_line(target))


async def _parts(services: Services, name: str, model: str, parts: Sequence[Part]) -> tuple[str, list[Attachment]]:
    """Return what a prompt says, and its files that the model takes; the text names the others."""
    server = name.partition(":")[0]
    said: list[tuple[str, str]] = []
    attachments: list[Attachment] = []
    for part in parts:
        text = part.told
        if part.data:
            with suppress(AttachmentError):
                attachments.append(await services.attachments.of_bytes(part.file_name, part.data, model, server))
                text = ""
        said.append((part.speaker, text))
    return joined(said), attachments


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
