"""/settings: lines in, answers out, on real files."""

from __future__ import annotations

import pytest

from chorus_cli.core.errors import ChorusError, CommandError, PersonaError, SettingsError
from chorus_cli.log.rules.acts import Window
from chorus_cli.settings.rules.table import SETTINGS
from tests.personas.commands.settings_desk import TEXT, Desk
from tests.world import MODEL


async def test_the_list_has_every_setting_with_its_place_and_its_default(desk: Desk) -> None:
    desk.world.configure(TEXT.replace("}", '  "context_hors": 5,\n}'))
    (desk.world.folder / "config.jsonc").write_text('{"defaults": {"idle_minutes": 5}}', encoding="utf-8")
    lines = (await desk.text("/settings")).splitlines()
    assert lines[0] == f"Settings of chorus: {desk.path}"
    rows = {line.split()[0]: line.split(None, 1)[1] for line in lines if line[:1].islower()}
    assert [key for key in rows if key in {setting.key for setting in SETTINGS}] == [each.key for each in SETTINGS]
    assert " ".join(rows["temperature"].split()) == "0.2 system.jsonc:3 the provider's"
    assert " ".join(rows["aliases"].split()) == "a, b system.jsonc:4 none"
    assert " ".join(rows["idle_minutes"].split()) == "5 config.jsonc:1 5 (config.jsonc:1)"
    assert " ".join(rows["context_hours"].split()) == "8 default 8"
    assert " ".join(rows["on_idle"].split()) == "save default save"
    assert f'{desk.path}:5: unknown setting "context_hors" (did you mean "context_hours"?)' in lines


async def test_a_long_text_is_shortened_in_the_list_and_whole_on_its_own(desk: Desk) -> None:
    prompt = "Be kind.\n" * 20
    await desk.services.settings.set("chorus", "system_prompt", prompt)
    listing = await desk.text("/settings")
    assert prompt not in listing
    assert "Be kind. Be kind. Be kind. Be kind. Be kind. Be…" in listing
    assert (await desk.text("/settings system_prompt")).endswith(f"\n\n{prompt}")


@pytest.mark.parametrize("line", ["/settings temperature", "/settings show temperature", "/SETTINGS Temperature"])
async def test_one_setting_is_shown_with_all_there_is_to_say(desk: Desk, line: str) -> None:
    assert (await desk.text(line)).splitlines() == [
        "temperature: How freely the model words things.",
        "Value: 0.2",
        f"From: {desk.path}:3",
        "Default: the provider's",
        "Accepts: a number from 0 to 2",
    ]


@pytest.mark.parametrize(
    ("line", "reply", "before", "after"),
    [
        ("set temperature 0,7", "temperature is now 0.7 (it was 0.2), in {path}.", "0.2", "0.7"),
        ("set temperature 0.2", "temperature is already 0.2, in {path}. Nothing was changed.", "", ""),
        ("set Clock No", "clock is now false (it was not set), in {path}.", '"b"],', '"b"],\n  "clock": false,'),
        ("set aliases c", "aliases is now c (it was a, b), in {path}.", '["a", "b"]', '["c"]'),
        ("set aliases []", "aliases is now [] (it was a, b), in {path}.", '["a", "b"]', "[]"),
        (
            'set description don\'t, "ever"',
            'description is now don\'t, "ever" (it was not set), in {path}.',
            '"b"],',
            '"b"],\n  "description": "don\'t, \\"ever\\"",',
        ),
        (
            "unset temperature",
            "temperature is no longer set in {path} (it was 0.2). Now in effect: the provider's (default).",
            '  "temperature": 0.2, // calm\n',
            "  // calm\n",
        ),
        ("unset tools", "tools is not set in {path}. Now in effect: true (default).", "", ""),
    ],
)
async def test_a_setting_is_changed_by_one_line_and_every_other_byte_stays(
    desk: Desk, line: str, reply: str, before: str, after: str
) -> None:
    assert await desk.text(f"/settings {line}") == reply.format(path=desk.path)
    assert desk.world.settings_text() == TEXT.replace(before, after)


@pytest.mark.parametrize(
    ("line", "error", "sentence"),
    [
        ("set", CommandError, "/settings set needs <key>."),
        ("set temperature", CommandError, "/settings set needs <value>."),
        ("set temperature hot", SettingsError, 'temperature cannot be "hot": it must be a number from 0 to 2.'),
        ("set temprature 1", SettingsError, 'There is no setting "temprature" (did you mean "temperature"?).'),
        ("temprature", SettingsError, 'There is no setting "temprature" (did you mean "temperature"?).'),
        ("unset", CommandError, "/settings unset needs <key>."),
        ("unset mine", SettingsError, 'There is no setting "mine"'),
        ("set context_hours 24h", SettingsError, "For a time with a unit, use /context 24h."),
        ("set name new", PersonaError, "A persona cannot be called 'new'"),
        ("set aliases x, Human", PersonaError, "A persona cannot be called 'Human'"),
    ],
)
async def test_what_cannot_be_done_is_one_sentence_and_changes_nothing(
    desk: Desk, line: str, error: type[ChorusError], sentence: str
) -> None:
    with pytest.raises(error) as refusal:
        await desk.type(f"/settings {line}")
    assert sentence in str(refusal.value)
    assert desk.world.settings_text() == TEXT


async def test_unset_says_what_holds_by_the_settings_of_all_personas(desk: Desk) -> None:
    config = desk.world.folder / "config.jsonc"
    config.write_text('{"defaults": {"temperature": 0.5}}', encoding="utf-8")
    assert (await desk.text("/settings unset temperature")).endswith(f"Now in effect: 0.5, from {config}:1.")


async def test_the_window_is_confirmed_as_by_context_and_undone_by_it(desk: Desk) -> None:
    reply = await desk.text("/settings set context_hours 24")
    assert reply.startswith(f"context_hours is now 24 (it was not set), in {desk.path}.\nContext window set to 24h\n")
    assert "are in context." in reply
    reply = await desk.text("/settings unset context_hours")
    assert "Now in effect: 8 (default).\nContext window reset to default (8h)\nMessages since" in reply
    assert await desk.windows() == [Window(None, 24), Window(24, None)]
    await desk.world.journal.undo(desk.world.current.target(), None)
    assert '"context_hours": 24' in desk.world.settings_text()


async def test_a_model_that_is_set_answers_at_once_also_against_the_command_line(desk: Desk) -> None:
    assert desk.world.current.target().choice.model == MODEL
    assert "Model: chorus/eliza (set by /model)" in await desk.text("/settings set model chorus/eliza")
    assert desk.world.current.target().choice.model == "chorus/eliza"


async def test_the_line_is_completed_by_keys_then_by_what_the_key_takes(desk: Desk) -> None:
    keys = {setting.key: setting.help for setting in SETTINGS}
    assert desk.offers("/settings unset ") == keys
    assert desk.offers("/settings set context_") == {key: keys[key] for key in keys if key.startswith("context_")}
    assert set(desk.offers("/settings ")) == {"list", "set", "unset", "edit", "show", *keys}
    assert desk.offers("/settings set clock ") == {"true": "now in effect", "false": ""}
    assert desk.offers("/settings set on_idle s") == {"save": "now in effect", "save+clear": ""}
    assert desk.offers("/settings set temperature ") == {"0.2": "now in effect"}
    assert desk.offers("/settings set Aliases ") == {"a, b": "now in effect", "[]": "the default"}
    assert desk.offers("/settings set banana ") == {}
    await desk.services.settings.set("chorus", "context_hours", 24)
    assert desk.offers("/settings set context_hours ") == {"8": "the default", "24": "now in effect"}
