"""``/settings`` and ``/set``: a persona's settings, for good or until the end of this run."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated

from chorus_cli.core.errors import ChorusError, CommandError, ModelNameError
from chorus_cli.core.text.phrases import shortened
from chorus_cli.framework.arguments import TEXT, Candidate, Parameter
from chorus_cli.framework.drafts import Refused, answered
from chorus_cli.framework.registry import CommandGroup
from chorus_cli.framework.replies import Reply, Report, Table, Text, data_of
from chorus_cli.personas.commands.model import MODEL, chosen_model, for_this_run
from chorus_cli.personas.service.settings import Change, OpenSettings, SettingState, flaw, state, states
from chorus_cli.services import Services
from chorus_cli.settings.rules import table as setting_values
from chorus_cli.settings.rules import table as settings
from chorus_cli.settings.rules.layers import DEFAULT_SOURCE
from chorus_cli.settings.rules.table import SETTINGS, Kind, Setting, as_typed, read_value

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from chorus_cli.core.json.jsonc import JsonValue

GROUP: CommandGroup[Services] = CommandGroup("settings", "The settings of a persona.")

_LONGEST_LINE = 100
_short = partial(shortened, longest=48)
_UNREADABLE = "nothing in this file counts"
_WINDOW = "context_hours"
_MODELS = frozenset({"model", "summary_model"})
_EXAMPLES = "Try /settings context_hours, /settings set temperature 0.7, /settings unset temperature, /settings edit."


def _setting(text: str, _now: datetime) -> Setting:
    return settings.setting_of(text.strip().casefold())


def _keys(_services: object, _text: str) -> Sequence[Candidate]:
    return [Candidate(setting.key, setting.help) for setting in SETTINGS]


def _values(services: Services, before: Sequence[str], text: str) -> Sequence[Candidate]:
    """Complete a value for the setting before it: its choices or models, its default and its present value."""
    # A line that is still being typed may not name a setting yet.
    with suppress(ChorusError):
        setting = settings.setting_of(before[-1].casefold())
        now = state(services.current.target().persona, setting)
        models = MODEL.complete(services, text) if setting.key in _MODELS else ()
        words = [Candidate(word) for word in (("true", "false") if setting.kind is Kind.FLAG else setting.choices)]
        known = [_candidate(now.default, "the default"), _candidate(now.value, "now in effect")]
        offered = {candidate.text: candidate for candidate in (*models, *words, *known)}
        return [candidate for candidate in offered.values() if candidate.text and candidate.text.isprintable()]
    return ()


def _candidate(value: JsonValue, meaning: str) -> Candidate:
    return Candidate(setting_values.as_typed(value), meaning)


KEY = Parameter("key", _setting, "a setting, such as temperature", _keys)
VALUE = replace(
    TEXT,
    name="value",
    help="the rest of the line: a text, a number, true or false, or a list with commas",
    complete_after=_values,
)


@GROUP.command("", "list")
async def listing(services: Services) -> Report:
    """List the persona's settings, each with its value, source and default.

    Examples:
        /settings
    """
    persona = services.current.target().persona
    rows = [
        (each.setting.key, _short(_text(each.setting, each.value)), _file_and_line(each.source), _short(_default(each)))
        for each in states(persona)
    ]
    return Report(
        (
            Text(f"Settings of {persona.name}: {services.personas.settings_path(persona.slug)}"),
            Table("", ("Setting", "Value", "From", "Default"), tuple(rows)),
            *(Text(warning) for warning in persona.warnings),
            Text(_EXAMPLES),
        ),
        data_of([_facts(each) for each in states(persona)]),
    )


def _facts(shown: SettingState) -> dict[str, object]:
    return {"key": shown.setting.key, "value": shown.value, "source": shown.source, "default": shown.default}


@GROUP.command("show", default=True)
async def show(services: Services, key: Annotated[Setting, KEY]) -> Text:
    """Show one setting in full: its value, source, default and accepted values.

    Examples:
        /settings context_hours
        /settings show system_prompt
    """
    persona = services.current.target().persona
    shown = state(persona, key)
    value = setting_values.as_typed(shown.value) or _text(key, shown.value)
    is_long = len(value) > _LONGEST_LINE or "\n" in value
    lines = [
        f"{key.key}: {key.help}",
        *(() if is_long else (f"Value: {value}",)),
        f"From: {shown.source}",
        f"Default: {_default(shown)}",
        f"Accepts: {key.range_text}",
        *(("", value) if is_long else ()),
        *(warning for warning in persona.warnings if f" {key.key} " in warning or _UNREADABLE in warning),
    ]
    return Text("\n".join(lines), data_of(_facts(shown)))


@GROUP.command("set")
async def set_value(services: Services, key: Annotated[Setting, KEY], value: Annotated[str, VALUE]) -> Text:
    """Change one setting in the persona's file; the rest of the file stays as it is.

    A text is taken as typed, the items of a list are separated by commas. A change of context_hours is an operation,
    which /context undo reverts.

    Examples:
        /settings set context_hours 24
        /settings set aliases Strider, Ranger
        /settings set on_idle off
    """
    slug = services.current.slug
    doubt = await services.models.doubt(value) if key.key in _MODELS else None
    change = await services.settings.set(slug, key.key, setting_values.read_value(key, value))
    path = services.personas.settings_path(slug)
    after = _short(_written(change.after))
    if change.changed:
        lines = [f"{key.key} is now {after} ({_formerly(change)}), in {path}."]
    else:
        lines = [f"{key.key} is already {after}, in {path}. Nothing was changed."]
    lines += await _consequences(services, slug, [change])
    return Text("\n".join([*lines, *([doubt] if doubt else [])]))


@GROUP.command("unset")
async def unset(services: Services, key: Annotated[Setting, KEY]) -> Text:
    """Remove one setting from the persona's file, so that its default applies.

    Examples:
        /settings unset temperature
    """
    slug = services.current.slug
    change = await services.settings.unset(slug, key.key)
    path = services.personas.settings_path(slug)
    lead = (
        f"{key.key} is no longer set in {path} ({_formerly(change)})"
        if change.changed
        else f"{key.key} is not set in {path}"
    )
    held = _held(state(services.current.target().persona, key))
    return Text("\n".join([f"{lead}. Now in effect: {held}.", *await _consequences(services, slug, [change])]))


@GROUP.command("edit")
async def edit(services: Services) -> Reply:
    """Edit the persona's settings in your editor; they are checked when you save.

    The editor is the one in VISUAL or EDITOR. The previous text is kept in system.jsonc.bak.

    Examples:
        /settings edit
    """
    return await edit_settings(services, services.current.slug)


async def edit_settings(services: Services, slug: str) -> Reply:
    """Open the settings of the persona ``slug`` in the user's editor."""
    opened = await services.settings.open(slug)

    async def store(draft: str) -> Reply | Refused:
        changes = await services.settings.save(opened, draft)
        if changes is None:
            return Refused(f"{opened.path} was changed by another program in the meantime and was not overwritten.")
        return await _saved(services, opened, changes)

    edited = await services.drafts.edit(opened.path.name, opened.draft)
    reply = await answered(services.drafts, edited, store, str(opened.path))
    if isinstance(reply, Text) and not edited.changed and (error := flaw(opened)):
        return Text(f"{reply.text} The file still has an error: {error}")
    return reply


async def _saved(services: Services, opened: OpenSettings, changes: Sequence[Change]) -> Text:
    lines = [f"Saved {opened.path}." if changes else f"Saved {opened.path}; no setting was changed."]
    lines += [f"{change.setting.key}: {_difference(change)}" for change in changes]
    lines += services.personas.load(opened.slug).warnings
    named = [change.after for change in changes if change.setting.key in _MODELS and isinstance(change.after, str)]
    lines += [await _doubt(services, name) for name in named]
    lines += await _consequences(services, opened.slug, changes)
    return Text("\n".join(line for line in lines if line))


async def _doubt(services: Services, name: str) -> str:
    """Return a warning about the name of a model in a saved file, ``""`` if there is none."""
    try:
        return await services.models.doubt(name) or ""
    except ModelNameError as error:
        return str(error)


async def _consequences(services: Services, slug: str, changes: Sequence[Change]) -> list[str]:
    """Apply changes of the model, and report the new window and model."""
    lines: list[str] = []
    for change in changes:
        services.personas.set_for_this_run(slug, change.setting.key, None)
        if change.setting.key == "model":
            services.current.use_model(slug, change.after if isinstance(change.after, str) else None)
        if slug != services.current.slug:
            continue
        if change.setting.key == _WINDOW and change.changed:
            hours = change.after if isinstance(change.after, int) else None
            window = await (services.window.begun(hours) if hours else services.window.state())
            lines.append(window.confirmation() if hours else window.reset_confirmation())
        if change.setting.key == "model":
            lines.append(await chosen_model(services))
    return lines


def _text(setting: Setting, value: JsonValue) -> str:
    """Format a value for display; a default that needs explaining is described as in the table of settings."""
    if setting.default_words and value == setting.default:
        return setting.default_words
    return _written(value)


def _default(shown: SettingState) -> str:
    """Format the value without the persona's own setting, with the file and line that it comes from, if any."""
    text = _text(shown.setting, shown.default)
    return text if shown.default_source == DEFAULT_SOURCE else f"{text} ({_file_and_line(shown.default_source)})"


def _held(shown: SettingState) -> str:
    text = _short(_text(shown.setting, shown.value))
    return f"{text} (default)" if shown.source == DEFAULT_SOURCE else f"{text}, from {shown.source}"


def _formerly(change: Change) -> str:
    return "it was not set" if change.before is None else f"it was {_short(_written(change.before))}"


def _written(value: JsonValue) -> str:
    return "not set" if value is None else setting_values.as_typed(value) or '""'


def _difference(change: Change) -> str:
    before, after = _short(_written(change.before)), _short(_written(change.after))
    return f"{before} → {after}" if before != after else f"changed further on: {after}"


def _file_and_line(source: str) -> str:
    return PurePath(source).name


TOP: CommandGroup[Services] = CommandGroup("", only_in_chat=True)

_DEFAULT = "default"
_OTHERWISE = {
    "context_hours": "A window is an operation that /undo reverts: /context 24h sets it.",
    "name": "A name is kept in the persona's file: /settings set name NAME.",
    "aliases": "Aliases are kept in the persona's file: /settings set aliases NAMES.",
}
"""Sentences about the settings that a run cannot have of its own."""


@TOP.command("set", guesses=("effort",))
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
    slug, files = services.current.slug, services.personas
    doubt = await services.models.doubt(value) if value and key.key == "summary_model" else None
    files.set_for_this_run(slug, key.key, None if value is None else read_value(key, value))
    if key.key == "model":
        services.current.use_model(slug, None)
        await services.current.settle()
    persona = files.load(slug)
    held = shortened(as_typed(key.value_in(persona.settings))) or key.default_text
    told = f"{key.key} is {held} again." if value is None else f"{key.key} is {held} until the end of this run."
    return Text("\n".join([told, *([doubt] if doubt else [])]))


def _listed(services: Services) -> str:
    changed = services.personas.set_in_this_run(services.current.slug)
    if not changed:
        return "No setting was changed for this run. For example: /set temperature 0.2"
    return "\n".join(f"{key}: {shortened(as_typed(value))} (this run)" for key, value in changed.items())
