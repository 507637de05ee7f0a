"""``/model``: show and set the persona's model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from chorus_cli.commands.framework.arguments import TEXT, Candidate
from chorus_cli.commands.framework.registry import CommandGroup
from chorus_cli.commands.framework.replies import Text
from chorus_cli.commands.framework.services import Services
from chorus_cli.core.models.choice import LOCAL
from chorus_cli.storage.files import export_files

GROUP: CommandGroup[Services] = CommandGroup("")

_MODEL_FILES = frozenset({".gguf"})
_DEFAULT = frozenset({"default", "reset"})


def _offered(services: Services, text: str) -> Sequence[Candidate]:
    path = text.removeprefix(LOCAL)
    files = export_files.offered(path, _MODEL_FILES) if path != text else []
    return [Candidate(name) for name in (*services.personas.models.offered(text), *(LOCAL + file for file in files))]


MODEL = replace(
    TEXT,
    name="model",
    help="a model by its litellm name, such as openai/gpt-5.4-mini, local/FILE.gguf, or chorus/eliza",
    complete=_offered,
)


@GROUP.command("model")
async def model(services: Services, name: Annotated[str | None, MODEL] = None) -> Text:
    """Show the model in use and why, or set the persona's model from now on.

    The name is checked against litellm's list; a model too new for that list is accepted as typed. /model default
    removes the persona's own choice.

    Examples:
        /model
        /model chorus/eliza
        /model default
    """
    if name is None:
        return Text(in_force(services))
    if name.casefold() in _DEFAULT:
        await services.personas.settings.unset(services.focus.slug, "model")
        services.focus.use_model(services.focus.slug, None)
        await services.focus.settle()
        return Text(in_force(services))
    doubt = await services.personas.models.doubt(name)
    await services.personas.settings.set(services.focus.slug, "model", name)
    services.focus.use_model(services.focus.slug, name)
    return Text("\n".join([in_force(services), *([doubt] if doubt else [])]))


def in_force(services: Services) -> str:
    """Name the model in use and the reason for it."""
    choice = services.focus.target().choice
    return f"Model: {choice.model} ({choice.reason})"
