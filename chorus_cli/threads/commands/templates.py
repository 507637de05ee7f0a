"""Commands that send a message: those that the user has written as templates."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from chorus_cli.core.errors import CommandError
from chorus_cli.core.text.templates import ARGUMENTS
from chorus_cli.framework.arguments import TEXT, declared_arguments
from chorus_cli.framework.documentation import Documentation
from chorus_cli.framework.registry import Command
from chorus_cli.framework.replies import Answer, Text
from chorus_cli.services import Services
from chorus_cli.threads.service.wording import waiting_line

if TYPE_CHECKING:
    from chorus_cli.core.text.templates import Template

TYPED = replace(TEXT, help=f"the text in place of {ARGUMENTS}, or at the end")


def command_of(template: Template) -> Command[Services]:
    """Return the command that sends the message of a template, with the text typed after its name."""

    async def send(services: Services, text: Annotated[str, TYPED] = "") -> Answer:
        target = services.focus.target()
        prepared = await services.attachments.prepared(template.filled(text), target.choice.model)
        if not prepared.text.strip():
            raise CommandError(f"/{template.name} needs text. Its template has nothing else.")
        with services.attachments.lent(prepared.attachments):
            turn = await services.replies.send(target, prepared.text, attachments=prepared.attachments)
        return turn if turn is not None else Text(waiting_line(target))

    example = f"/{template.name} TEXT" if ARGUMENTS in template.body else f"/{template.name}"
    documentation = Documentation(template.description, template.body, (example,))
    return Command("", (template.name,), send, declared_arguments(send), documentation)
