"""``/set``: settings until the end of this run."""

from __future__ import annotations

from typing import Annotated

from chorus_cli.core.errors import CommandError
from chorus_cli.core.text.phrases import shortened
from chorus_cli.framework.registry import CommandGroup
from chorus_cli.framework.replies import Text
from chorus_cli.personas.commands.model import for_this_run
from chorus_cli.personas.commands.settings import KEY, VALUE
from chorus_cli.services import Services
from chorus_cli.settings.rules.table import Setting
from chorus_cli.settings.rules.values import as_typed, read_value

GROUP: CommandGroup[Services] = CommandGroup("")

_DEFAULT = "default"
_OTHERWISE = {
    "context_hours": "A window is an operation that /undo reverts: /context 24h sets it.",
    "name": "A name is kept in the persona's file: /settings set name NAME.",
    "aliases": "Aliases are kept in the persona's file: /settings set aliases NAMES.",
}
"""Sentences about the settings that a run cannot have of its own."""


@GROUP.command("set", guesses=("effort",))
async def set_for_this_run(
    services: Services, key: Annotated[Setting | None, KEY] = None, value: Annotated[str, VALUE] = ""
) -> Text:
    """Change a setting of the persona until the end of this run, or list those that were changed so.

    No file is changed; /settings set changes the file. "default" ends it sooner.

    Examples:
        /set temperature 0.2
        /set temperature default
        /set
    """
    if key is None:
        return Text(_listed(services))
    if key.key in _OTHERWISE:
        raise CommandError(f"{key.key} cannot be set for this run. {_OTHERWISE[key.key]}")
    if not value:
        raise CommandError(f"/set {key.key} needs a value; it must be {key.range_text}.")
    is_default = value.strip().casefold() == _DEFAULT
    if key.key == "model" and not is_default:
        return await for_this_run(services, value)
    return await _changed(services, key, None if is_default else value)


async def _changed(services: Services, key: Setting, value: str | None) -> Text:
    slug, files = services.focus.slug, services.personas.files
    doubt = await services.personas.models.doubt(value) if value and key.key == "summary_model" else None
    files.set_for_this_run(slug, key.key, None if value is None else read_value(key, value))
    if key.key == "model":
        services.focus.use_model(slug, None)
        await services.focus.settle()
    persona = files.load(slug)
    held = shortened(as_typed(key.value_in(persona.settings))) or key.default_text
    told = f"{key.key} is {held} again." if value is None else f"{key.key} is {held} until the end of this run."
    return Text("\n".join([told, *([doubt] if doubt else [])]))


def _listed(services: Services) -> str:
    changed = services.personas.files.set_in_this_run(services.focus.slug)
    if not changed:
        return "No setting was changed for this run. For example: /set temperature 0.2"
    return "\n".join(f"{key}: {shortened(as_typed(value))} (this run)" for key, value in changed.items())
