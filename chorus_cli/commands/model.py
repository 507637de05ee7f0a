"""``/model``: show and set the persona's model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from chorus_cli.commands.framework.arguments import TEXT, Candidate
from chorus_cli.commands.framework.command_context import CommandContext
from chorus_cli.commands.framework.registry import CommandGroup
from chorus_cli.commands.framework.replies import Text

GROUP: CommandGroup[CommandContext] = CommandGroup("")

_DEFAULT = frozenset({"default", "reset"})


def _offered(context: CommandContext, text: str) -> Sequence[Candidate]:
    return [Candidate(name) for name in context.models.offered(text)]


MODEL = replace(
    TEXT,
    name="model",
    help="a model by its litellm name, such as openai/gpt-5.4-mini, or chorus/eliza",
    complete=_offered,
)


@GROUP.command("model")
async def model(context: CommandContext, name: Annotated[str | None, MODEL] = None) -> Text:
    """Show the model in use and why, or set the persona's model from now on.

    The name is checked against litellm's list; a model too new for that list is accepted as typed. /model default
    removes the persona's own choice.

    Examples:
        /model
        /model chorus/eliza
        /model default
    """
    if name is None:
        return Text(in_force(context))
    if name.casefold() in _DEFAULT:
        await context.settings.unset(context.focus.slug, "model")
        context.focus.use_model(context.focus.slug, None)
        await context.focus.settle()
        return Text(in_force(context))
    doubt = await context.models.doubt(name)
    await context.settings.set(context.focus.slug, "model", name)
    context.focus.use_model(context.focus.slug, name)
    return Text("\n".join([in_force(context), *([doubt] if doubt else [])]))


def in_force(context: CommandContext) -> str:
    """Name the model in use and the reason for it."""
    choice = context.focus.target().choice
    return f"Model: {choice.model} ({choice.reason})"
