"""``/model``: show and set the persona's model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from chorus_cli.core.errors import CommandError
from chorus_cli.framework.arguments import TEXT, Candidate, flag
from chorus_cli.framework.registry import CommandGroup
from chorus_cli.framework.replies import Text
from chorus_cli.models.rules.choice import LOCAL, in_full
from chorus_cli.services import Services
from chorus_cli.storage import typed_paths

GROUP: CommandGroup[Services] = CommandGroup("")

_MODEL_FILES = frozenset({".gguf"})
_ONCE = "--once"
_DEFAULT = frozenset({"default", "reset"})


def _offered(services: Services, text: str) -> Sequence[Candidate]:
    path = text.removeprefix(LOCAL)
    files = typed_paths.offered(path, _MODEL_FILES) if path != text else []
    return [Candidate(name) for name in (*services.models.offered(text), *(LOCAL + file for file in files))]


MODEL = replace(
    TEXT,
    name="model",
    help="a model by its litellm name, such as openai/gpt-5.4-mini, local/FILE.gguf, or chorus/eliza",
    complete=_offered,
)


ONCE = flag("for this run only; no file is changed")


@GROUP.command("model")
async def model(services: Services, model: Annotated[str, MODEL] = "", *, once: Annotated[bool, ONCE] = False) -> Text:
    """Show the model in use and why, or set the persona's model from now on.

    The name is checked against litellm's list; a model too new for that list is accepted as typed. With --once it
    answers until the end of this run and no file is changed. /model default removes the persona's own choice.

    Examples:
        /model
        /model chorus/eliza
        /model chorus/eliza --once
        /model default
    """
    if once and not model:
        raise CommandError("/model --once needs a model, for example: /model chorus/eliza --once")
    if not model:
        return Text(await chosen_model(services))
    name = in_full(model)
    if once:
        return await for_this_run(services, name)
    if name.casefold() in _DEFAULT:
        await services.settings.unset(services.current.slug, "model")
        services.current.use_model(services.current.slug, None)
        await services.current.settle()
        return Text(await chosen_model(services))
    doubt = await services.models.doubt(name)
    await services.settings.set(services.current.slug, "model", name)
    services.current.use_model(services.current.slug, name)
    return Text("\n".join([await chosen_model(services), *([doubt] if doubt else [])]))


async def for_this_run(services: Services, name: str) -> Text:
    """Let a model answer for the persona in focus until the end of this run."""
    doubt = await services.models.doubt(name)
    services.current.use_model(services.current.slug, name, "for this run")
    return Text("\n".join([await chosen_model(services), *([doubt] if doubt else [])]))


async def chosen_model(services: Services) -> str:
    """Name the model in use and the reason for it, with a warning if its context length is assumed."""
    target = services.current.target()
    limit = await services.context.limit(target)
    in_force = f"Model: {target.choice.model} ({target.choice.reason})"
    if limit.relative:
        return f"{in_force}\nlitellm has no figures for this model; those of {limit.relative} are taken, as a guess."
    if not limit.is_assumed:
        return in_force
    return (
        f"{in_force}\nlitellm does not know this model, so a context of {limit.tokens:,} tokens is assumed "
        f"({limit.source}). /settings set context_token_limit N sets another."
    )
