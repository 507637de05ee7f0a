"""The table of settings, and how files decide."""

from __future__ import annotations

import pytest

from chorus_cli.core.errors import SettingsError
from chorus_cli.core.json.jsonc import JsonValue, parse_object
from chorus_cli.core.time.timeline import MAXIMUM_CONTEXT_HOURS, MINIMUM_CONTEXT_HOURS
from chorus_cli.settings.rules.table import (
    DEFAULT_CONTEXT_HOURS,
    SETTINGS,
    Layer,
    Setting,
    Settings,
    misfits,
    resolve,
    setting_of,
)

BY_KEY = {setting.key: setting for setting in SETTINGS}


def layer(text: str, name: str = "system.jsonc") -> Layer:
    document = parse_object(text)
    return Layer(name, document.values, document.lines)


def test_every_field_has_a_row_in_the_same_order() -> None:
    assert [setting.key for setting in SETTINGS] == [*Settings._fields]


@pytest.mark.parametrize("setting", SETTINGS, ids=BY_KEY)
def test_every_row_takes_its_own_default_and_says_what_it_is_for(setting: Setting) -> None:
    assert setting.default is None or setting.accepts(setting.default)
    assert setting.help.endswith(".")
    assert setting.range_text
    assert setting.default_text


def test_no_file_gives_the_defaults() -> None:
    resolution = resolve([])
    assert resolution.settings == Settings()
    assert resolution.warnings == ()
    assert resolution.sources == dict.fromkeys(BY_KEY, "default")


def test_the_window_is_eight_hours_between_one_and_a_week() -> None:
    window = BY_KEY["context_hours"]
    assert (window.default, window.minimum, window.maximum) == (8, 1, 168)
    assert (DEFAULT_CONTEXT_HOURS, MINIMUM_CONTEXT_HOURS, MAXIMUM_CONTEXT_HOURS) == (8, 1, 168)


@pytest.mark.parametrize(
    ("key", "range_text", "default_text"),
    [
        ("name", "text", "the folder's name"),
        ("aliases", "a list of texts", "none"),
        ("model", "text", "detection"),
        ("temperature", "a number from 0 to 2", "the provider's"),
        ("max_output_tokens", "a whole number of at least 1", "the provider's"),
        ("context_hours", "a whole number from 1 to 168", "8"),
        ("context_token_limit", "a whole number of at least 1000", "the model's own"),
        ("context_usage_threshold", "a number from 0.1 to 0.95", "0.8"),
        ("idle_minutes", "a whole number from 1 to 1440", "30"),
        ("on_idle", '"save", "save+clear" or "off"', '"save"'),
        ("clock", "true or false", "true"),
    ],
)
def test_a_row_can_be_read_aloud(key: str, range_text: str, default_text: str) -> None:
    assert (BY_KEY[key].range_text, BY_KEY[key].default_text) == (range_text, default_text)


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        *(("context_hours", value, str(value)) for value in (500, 0, 8.5)),
        *(("context_hours", "8", '"8"'), ("context_hours", True, "true"), ("context_hours", None, "null")),
        *(("temperature", 2.1, "2.1"), ("temperature", False, "false"), ("temperature", float("nan"), "NaN")),
        *(("max_output_tokens", 0, "0"), ("clock", 1, "1"), ("name", ["a"], '["a"]')),
        *(("aliases", "a", '"a"'), ("aliases", ["a", 1], '["a", 1]')),
        *(("on_idle", "never", '"never"'), ("on_idle", "x" * 99, f'"{"x" * 58}…')),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_what_would(key: str, value: JsonValue, told: str) -> None:
    setting = setting_of(key)
    assert not setting.accepts(value)
    assert setting.misfit(value) == f"{key} is {told}; it must be {setting.range_text}"


@pytest.mark.parametrize(
    ("key", "meant"), [("contxt_hours", ' (did you mean "context_hours"?)'), ("zzz", ""), ("$schema", "")]
)
def test_a_key_that_is_no_setting_is_refused(key: str, meant: str) -> None:
    with pytest.raises(SettingsError) as refusal:
        setting_of(key)
    assert str(refusal.value) == f'There is no setting "{key}"{meant}. /settings lists them.'


def test_the_first_layer_with_a_value_wins() -> None:
    own = layer('{ "context_hours": 24, "aliases": ["f"] }')
    config = layer('{ "context_hours": 48, "model": "m", "clock": false }', "config.jsonc")
    resolution = resolve([own, config])
    assert resolution.settings == Settings(context_hours=24, aliases=("f",), model="m", clock=False)
    sources = {key: source for key, source in resolution.sources.items() if source != "default"}
    expected = {"context_hours": "system.jsonc:1", "aliases": "system.jsonc:1", "model": "config.jsonc:1"}
    assert sources == {**expected, "clock": "config.jsonc:1"}
    assert resolution.warnings == ()


@pytest.mark.parametrize(
    ("own", "config", "hours", "warnings"),
    [
        ('{\n"context_hours": 500 }', "", 8, ["system.jsonc:2: context_hours is 500"]),
        ('{\n"context_hours": 500 }', '{ "context_hours": 12 }', 12, ["system.jsonc:2: context_hours is 500"]),
        (
            '{ "context_hours": "x" }',
            '{\n\n"context_hours": -1 }',
            8,
            ['system.jsonc:1: context_hours is "x"', "config.jsonc:3: context_hours is -1"],
        ),
        ('{ "context_hours": null }', '{ "context_hours": 12 }', 12, []),
        ('{ "context_hours": 2, "context_hours": 0 }', "", 8, ["system.jsonc:1: context_hours is 0"]),
    ],
)
def test_a_value_that_does_not_fit_gives_way_with_a_warning(
    own: str, config: str, hours: int, warnings: list[str]
) -> None:
    resolution = resolve([layer(own), layer(config, "config.jsonc")])
    assert resolution.settings.context_hours == hours
    using = f"it must be a whole number from 1 to 168; using {hours}"
    assert resolution.warnings == tuple(f"{warning}; {using}" for warning in warnings)


def test_a_default_without_a_value_is_named_in_words() -> None:
    resolution = resolve([layer('{ "temperature": "hot" }')])
    assert resolution.warnings == (
        'system.jsonc:1: temperature is "hot"; it must be a number from 0 to 2; using the provider\'s',
    )


def test_unknown_keys_are_told_in_the_order_of_their_lines_and_the_schema_is_not() -> None:
    resolution = resolve([layer('{ "$schema": "x",\n"contxt_hours": 1,\n"clock": 1,\n"qqq": 2 }')])
    assert resolution.warnings == (
        'system.jsonc:2: unknown setting "contxt_hours" (did you mean "context_hours"?)',
        "system.jsonc:3: clock is 1; it must be true or false; using true",
        'system.jsonc:4: unknown setting "qqq"',
    )


@pytest.mark.parametrize("text", ['{ "model": "" }', '{ "model": null }', "{}"])
def test_an_empty_model_leaves_the_choice_to_the_next_layer(text: str) -> None:
    assert resolve([layer(text)]).settings.model is None
    assert resolve([layer(text), layer('{ "model": "m" }', "config.jsonc")]).settings.model == "m"
    assert resolve([layer(text)]).warnings == ()


def test_what_a_file_gets_wrong_is_told_in_its_order_with_its_lines() -> None:
    own = layer('{ "tools": 1,\n"mine": 5,\n"context_hours": 500, "clock": null, "model": "" }')
    assert misfits(own) == (
        "system.jsonc:1: tools is 1; it must be true or false",
        "system.jsonc:3: context_hours is 500; it must be a whole number from 1 to 168",
    )
    assert misfits(layer('{ "tools": true, "mine": 5 }')) == ()


def test_a_place_without_a_line_is_the_file() -> None:
    assert Layer("system.jsonc").place("clock") == "system.jsonc"
