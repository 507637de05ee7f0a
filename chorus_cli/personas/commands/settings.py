"""``/settings``, ``/set`` and ``/model``: a persona's settings, for good or until the end of this run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import PurePath
from typing import Annotated, Any

from chorus_cli.core.errors import ChorusError, CommandError, ModelNameError
from chorus_cli.core.json.jsonc import JsonValue
from chorus_cli.core.text.phrases import dollars, shortened
from chorus_cli.core.time.timespan import WindowChoice
from chorus_cli.core.time.timestamps import ALL
from chorus_cli.framework.arguments import TEXT, Candidate, Parameter, flag
from chorus_cli.framework.drafts import Refused, answered
from chorus_cli.framework.registry import CommandGroup
from chorus_cli.framework.replies import Question, Reply, Report, Table, Text, data_of
from chorus_cli.models.rules.choice import LOCAL, in_full
from chorus_cli.personas.rows import hours_in
from chorus_cli.personas.service.persona_admin import Change, OpenSettings, SettingState, state
from chorus_cli.services import Services
from chorus_cli.settings.rules.table import DEFAULT_SOURCE, SETTINGS, WINDOW_KEY, Kind, Setting, setting_of
from chorus_cli.settings.rules.typed import as_typed, read_value
from chorus_cli.storage import typed_paths

GROUP: CommandGroup[Services] = CommandGroup("settings", "The settings of a persona.")
TOP: CommandGroup[Services] = CommandGroup("", topic="settings")

_LONGEST_LINE = 100
_short = partial(shortened, longest=48)
_UNREADABLE = "Chorus ignores this file"
_PROJECT = "project"
_NAMES = frozenset({"user_name", "nickname"})
_MODELS = frozenset({"model", "summary_model"})
_EXAMPLES = "Try /set context_hours, /set temperature 0.7, /set temperature default, /settings edit."


_MODEL_FILES = frozenset({".gguf"})
DEFAULT_WORDS = frozenset({"default", "reset"})
"""The values that make a default apply again."""


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


ONCE = flag("until you quit; no file is changed")


def _values(services: Services, before: Sequence[str], text: str) -> Sequence[Candidate]:
    """Complete a value of the setting before it: choices or models, the default and the present value."""
    # A line that is still being typed may not name a setting yet.
    with suppress(ChorusError):
        setting = setting_of(before[-1])
        now = state(services.current.target().persona, setting)
        models = MODEL.complete(services, text) if setting.key in _MODELS else ()
        words = [Candidate(word) for word in (("true", "false") if setting.kind is Kind.FLAG else setting.choices)]
        meanings = {"the default": now.default, "now in effect": now.value}
        known = [Candidate(as_typed(value), meaning) for meaning, value in meanings.items()]
        offered = {candidate.text: candidate for candidate in (*models, *words, *known)}
        return [candidate for candidate in offered.values() if candidate.text and candidate.text.isprintable()]
    return ()


KEY = Parameter(
    "key",
    lambda text, _: setting_of(text.strip()),
    "a setting, such as temperature",
    lambda _services, _text: [Candidate(setting.key, setting.help) for setting in SETTINGS],
)
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
    states = [state(persona, setting) for setting in SETTINGS]
    rows = [
        (each.setting.key, _short(_text(each.setting, each.value)), PurePath(each.source).name, _short(_default(each)))
        for each in states
    ]
    return Report(
        (
            Text(f"Settings of {persona.name}: {services.personas.settings_path(persona.slug)}"),
            Table("", ("Setting", "Value", "From", "Default"), tuple(rows)),
            *map(Text, filter(None, (*persona.warnings, services.context.project.state(persona.settings.project)))),
            Text(_EXAMPLES),
        ),
        data_of([_facts(each) for each in states]),
    )


def _facts(shown: SettingState) -> dict[str, object]:
    # The entries of an object may have secrets, so only their names are returned.
    value, default = ([*each] if isinstance(each, dict) else each for each in (shown.value, shown.default))
    return {"key": shown.setting.key, "value": value, "source": shown.source, "default": default}


@GROUP.command("show", default=True)
async def show(services: Services, key: Annotated[Setting, KEY]) -> Text:
    """Show one setting: its value, source, default and accepted values.

    Examples:
        /settings context_hours
        /settings show system_prompt
    """
    persona = services.current.target().persona
    shown = state(persona, key)
    value = as_typed(shown.value) or _text(key, shown.value)
    is_long = len(value) > _LONGEST_LINE or "\n" in value
    # If the persona has no value of its own, the value shown is the default already.
    is_own = shown.source != shown.default_source or shown.source == DEFAULT_SOURCE
    lines = [
        f"{key.key}: {key.help}",
        *(() if is_long else (f"Value: {value}",)),
        f"From: {shown.source}{'' if is_own else ', for all personas'}",
        *((f"Default: {_default(shown)}",) if is_own else ()),
        f"Accepts: {key.range_text}",
        *(("", value) if is_long else ()),
        *(warning for warning in persona.warnings if f" {key.key} " in warning or _UNREADABLE in warning),
        *filter(None, [services.context.project.state(persona.settings.project) if key.key == _PROJECT else ""]),
    ]
    return Text("\n".join(lines), data_of(_facts(shown)))


@GROUP.command("set", listed="nowhere")
async def set_value(services: Services, key: Annotated[Setting, KEY], value: Annotated[str, VALUE]) -> Text | Question:
    """Change one setting in the persona's file. Type a text without quotes, and a list with commas.

    Examples:
        /settings set aliases Strider, Ranger
    """
    read = read_value(key, value)
    wanted = partial(_changed, services, key, read)
    return await (all_in_context(services, wanted) if key.key == WINDOW_KEY and read == ALL else wanted())


async def all_in_context(services: Services, wanted: Callable[[], Awaitable[Text]]) -> Text | Question:
    """Call ``wanted`` to set the window to all; ask first if the next request would exceed the day's budget."""
    target = services.current.target()
    budget = target.persona.settings.budget
    spending = await services.costs.spending(budget, target.choice.model)
    if budget is None or spending is None:
        return await wanted()
    _, price = await services.window.next_request(WindowChoice(ALL))
    if price is None or spending.spent + price <= budget:
        return await wanted()
    dear = f"{spending.sentence} With all in context the next request costs about {dollars(price)}."
    return Question(f"{dear} Set the window to all?", wanted, Text("The window is unchanged."))


async def _changed(services: Services, key: Setting, value: JsonValue) -> Text:
    """Change a setting in the persona's file, or remove it with ``None``; return sentences about the change."""
    slug = services.current.slug
    doubt = await services.models.doubt(value) if key.key in _MODELS and isinstance(value, str) else None
    change = await services.persona_admin.set(slug, key.key, value)
    path = services.personas.settings_path(slug)
    after = _short(_written(value))
    now = f"is now {after} ({_formerly(services, slug, change)}), in {path}."
    already = "" if value is None else "already "
    told = now if change.changed else f"is {already}{after}, in {path}. The file is unchanged."
    consequences = await _consequences(services, slug, [change])
    if value is None:
        held = state(services.current.target().persona, key)
        source = "" if held.source == DEFAULT_SOURCE else f" ({PurePath(held.source).name})"
        told += f" Now in effect: {_short(_text(key, held.value))}{source}."
    return _lines(f"{key.key} {told}", *consequences, doubt)


@GROUP.command("unset", listed="nowhere")
async def unset(services: Services, key: Annotated[Setting, KEY]) -> Text:
    """Remove one setting from the persona's file; its default applies.

    Examples:
        /settings unset temperature
    """
    return await _changed(services, key, None)


@GROUP.command("edit", listed="nowhere")
async def edit(services: Services) -> Reply:
    """Edit the settings in your editor; they are checked when you save.

    The editor is the one in VISUAL or EDITOR. The previous text is kept in system.jsonc.bak.

    Examples:
        /settings edit
    """
    return await edit_settings(services, services.current.slug)


async def edit_settings(services: Services, slug: str) -> Reply:
    """Open the settings of the persona ``slug`` in the user's editor."""
    opened = await services.persona_admin.open(slug)

    async def store(draft: str) -> Reply | Refused:
        changes = await services.persona_admin.save(opened, draft)
        if changes is None:
            return Refused(f"Another program changed {opened.path} in the meantime, so Chorus did not overwrite it.")
        return await _saved(services, opened, changes)

    edited = await services.drafts.edit(opened.path.name, opened.draft)
    return await answered(services.drafts, edited, store, str(opened.path))


async def _saved(services: Services, opened: OpenSettings, changes: Sequence[Change]) -> Text:
    lines: list[str | None] = [f"Saved {opened.path}{'' if changes else '; no setting changed'}."]
    for change in changes:
        before, after = _short(_written(change.before)), _short(_written(change.after))
        difference = f"{before} → {after}" if before != after else f"begins as before ({after}) and differs further on"
        lines.append(f"{change.setting.key}: {difference}")
    lines += services.personas.load(opened.slug).warnings
    for change in changes:
        if change.setting.key in _MODELS and isinstance(change.after, str):
            try:
                lines.append(await services.models.doubt(change.after))
            except ModelNameError as error:
                lines.append(str(error))
    return _lines(*lines, *await _consequences(services, opened.slug, changes))


def _lines(*lines: str | None) -> Text:
    return Text("\n".join(filter(None, lines)))


async def _consequences(services: Services, slug: str, changes: Sequence[Change]) -> list[str]:
    """Drop values that changed settings had for this run, apply a new model, and report the new window and model."""
    lines: list[str] = []
    for change in changes:
        services.personas.set_for_this_run(slug, change.setting.key, None)
        if change.setting.key == _PROJECT:
            # A new setting replaces the user's earlier answer.
            services.context.project.forget()
        if change.setting.key == "model":
            services.current.use_model(slug, change.after if isinstance(change.after, str) else None)
            await services.current.settle()
        if slug != services.current.slug:
            continue
        if change.setting.key == WINDOW_KEY and change.changed:
            lines.append((await services.window.begun(hours_in(change.after))).confirmation())
        if change.setting.key == "model":
            lines.append(await chosen_model(services))
    renamed = [change for change in changes if change.setting.key in _NAMES and change.changed]
    if renamed and await _greeted_anew(services, slug, renamed):
        lines.append("The greeting that you have not answered has the new name.")
    return lines


async def _greeted_anew(services: Services, slug: str, changes: Sequence[Change]) -> bool:
    """Put changed names into unanswered greetings; return whether there were any."""
    target = await services.current.target_of(slug)
    persona = target.persona
    names: dict[str, Any] = {
        each.setting.key: each.setting.value_in(persona.defaults) if each.before is None else each.before
        for each in changes
    }
    before = persona._replace(settings=persona.settings._replace(**names))
    return await services.cards.greet_anew(target._replace(persona=before), target)


def _text(setting: Setting, value: JsonValue) -> str:
    """Format a value for display; for a default, use the words of the table of settings, if the table has any."""
    is_worded = value == setting.default and (setting.default_words or not value)
    return setting.default_text if is_worded else _written(value)


def _default(shown: SettingState) -> str:
    """Format the value that holds without the persona's own setting, with the file and line that it comes from."""
    text = _text(shown.setting, shown.default)
    return text if shown.default_source == DEFAULT_SOURCE else f"{text} ({PurePath(shown.default_source).name})"


def _formerly(services: Services, slug: str, change: Change) -> str:
    if change.before is not None:
        return f"it was {_short(_written(change.before))}"
    shown = state(services.personas.load(slug), change.setting)
    if shown.default_source == DEFAULT_SOURCE:
        return "it was not set"
    return f"it was {_short(_text(shown.setting, shown.default))}, from {PurePath(shown.default_source).name}"


def _written(value: JsonValue) -> str:
    return "not set" if value is None else as_typed(value) or '""'


_NOT_FOR_A_RUN = frozenset({WINDOW_KEY, "name", "aliases"})


@TOP.command("set", guesses=("effort",), listed="everyday")
async def set_or_show(
    services: Services,
    key: Annotated[Setting | None, KEY] = None,
    value: Annotated[str, VALUE] = "",
    *,
    once: Annotated[bool, ONCE] = False,
) -> Text | Report | Question:
    """Change or show a setting; /settings lists all.

    The change is written to the persona's file. With --once it ends when you quit, and no file is changed. The value
    "default" makes the default apply again.

    Examples:
        /set temperature 0.2
        /set temperature 0.2 --once
        /set temperature default
        /set temperature
    """
    if once:
        return await _set_for_this_run(services, key, value)
    if key is None:
        return await listing(services)
    if not value:
        return await show(services, key)
    is_default = value.strip().casefold() in DEFAULT_WORDS
    return await (unset(services, key) if is_default else set_value(services, key, value))


async def _set_for_this_run(services: Services, key: Setting | None, value: str) -> Text:
    slug, files = services.current.slug, services.personas
    if key is None or not value:
        raise CommandError("/set --once needs a setting and a value, for example: /set temperature 0.2 --once")
    if key.key in _NOT_FOR_A_RUN:
        raise CommandError(f"{key.key} cannot be set for this run alone. Leave out --once.")
    is_default = value.strip().casefold() in DEFAULT_WORDS
    if key.key == "model" and not is_default:
        return await for_this_run(services, value)
    doubt = await services.models.doubt(value) if key.key == "summary_model" and not is_default else None
    files.set_for_this_run(slug, key.key, None if is_default else read_value(key, value))
    if key.key == "model":
        services.current.use_model(slug, None)
        await services.current.settle()
        return Text(await chosen_model(services))
    held = shortened(as_typed(key.value_in(files.load(slug).settings))) or key.default_text
    return _lines(f"{key.key} is {held} {'again' if is_default else 'until you quit'}.", doubt)


@TOP.command("model", listed="everyday")
async def model(services: Services, model: Annotated[str, MODEL] = "", *, once: Annotated[bool, ONCE] = False) -> Text:
    """Show or choose the model that answers.

    Chorus checks the name against litellm's list, and accepts a newer model as typed. With --once the model answers
    until you quit, and no file is changed. /model default removes the persona's own choice.

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
        return await _set_for_this_run(services, setting_of("model"), name)
    return await _changed(services, setting_of("model"), None if name.casefold() in DEFAULT_WORDS else name)


async def for_this_run(services: Services, name: str) -> Text:
    """Let a model answer for the persona in focus until the end of this run."""
    doubt = await services.models.doubt(name)
    services.current.use_model(services.current.slug, name, "for this run")
    return _lines(await chosen_model(services), doubt)


async def chosen_model(services: Services) -> str:
    """Say which model is in use and why, how many messages are withheld from it, and whether its limit is assumed."""
    target = services.current.target()
    limit = await services.context.limit(target)
    withheld = (await services.context.snapshot(target, services.clock.now())).withheld_notice
    in_force = "\n".join(filter(None, (f"Model: {target.choice.model} ({target.choice.reason})", withheld)))
    if limit.relative:
        return (
            f"{in_force}\nlitellm's list has no limits for this model, "
            f"so Chorus assumes the limits and abilities of {limit.relative}."
        )
    if not limit.is_assumed:
        return in_force
    return (
        f"{in_force}\nThe context size of this model is not known, so Chorus assumes {limit.tokens:,} tokens "
        f"({limit.source}). /set context_token_limit N sets another."
    )
