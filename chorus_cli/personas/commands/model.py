"""``/model``: show and set the persona's model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated

from chorus_cli.core.errors import CommandError
from chorus_cli.framework.arguments import TEXT, Candidate, Parameter
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
    return [Candidate(name) for name in (*services.personas.models.offered(text), *(LOCAL + file for file in files))]


MODEL = replace(
    TEXT,
    name="model",
    help="a model by its litellm name, such as openai/gpt-5.4-mini, local/FILE.gguf, or chorus/eliza",
    complete=_offered,
)


@dataclass(frozen=True, slots=True)
class AskedModel:
    """A model as typed, and whether it is meant for this run only."""

    name: str
    once: bool = False


def _asked_model(text: str, _now: datetime) -> AskedModel:
    *before, last = text.split()
    return AskedModel(" ".join(before), once=True) if last == _ONCE else AskedModel(text)


def _offered_once(services: Services, text: str) -> Sequence[Candidate]:
    name, blank, _ = text.partition(" ")
    return [Candidate(f"{name} {_ONCE}", "until the end of this run")] if blank else _offered(services, text)


CHOICE = Parameter(
    f"model [{_ONCE}]", _asked_model, f"{MODEL.help}; at the end {_ONCE} to choose it for this run only", _offered_once
)


@GROUP.command("model")
async def model(services: Services, choice: Annotated[AskedModel | None, CHOICE] = None) -> Text:
    """Show the model in use and why, or set the persona's model from now on.

    The name is checked against litellm's list; a model too new for that list is accepted as typed. With --once it
    answers until the end of this run and no file is changed. /model default removes the persona's own choice.

    Examples:
        /model
        /model chorus/eliza
        /model chorus/eliza --once
        /model default
    """
    if choice is None:
        return Text(await chosen_model(services))
    name = in_full(choice.name)
    if not name:
        raise CommandError(f"/model {_ONCE} needs a model, for example: /model chorus/eliza {_ONCE}")
    if choice.once:
        return await for_this_run(services, name)
    if name.casefold() in _DEFAULT:
        await services.personas.settings.unset(services.current.slug, "model")
        services.current.use_model(services.current.slug, None)
        await services.current.settle()
        return Text(await chosen_model(services))
    doubt = await services.personas.models.doubt(name)
    await services.personas.settings.set(services.current.slug, "model", name)
    services.current.use_model(services.current.slug, name)
    return Text("\n".join([await chosen_model(services), *([doubt] if doubt else [])]))


async def for_this_run(services: Services, name: str) -> Text:
    """Let a model answer for the persona in focus until the end of this run."""
    doubt = await services.personas.models.doubt(name)
    services.current.use_model(services.current.slug, name, "for this run")
    return Text("\n".join([await chosen_model(services), *([doubt] if doubt else [])]))


async def chosen_model(services: Services) -> str:
    """Name the model in use and the reason for it, with a warning if its context length is assumed."""
    target = services.current.target()
    limit = await services.context.planner.limit(target)
    in_force = f"Model: {target.choice.model} ({target.choice.reason})"
    if limit.relative:
        return f"{in_force}\nlitellm has no figures for this model; those of {limit.relative} are taken, as a guess."
    if not limit.is_assumed:
        return in_force
    return (
        f"{in_force}\nlitellm does not know this model, so a context of {limit.tokens:,} tokens is assumed "
        f"({limit.source}). /settings set context_token_limit N sets another."
    )
