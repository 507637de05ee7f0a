"""The table of settings, how files decide, values as they are typed, and the JSON Schema by another validator."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from chorus_cli.core.errors import SettingsError
from chorus_cli.core.json.jsonc import JsonValue, parse_object
from chorus_cli.core.time.timeline import MAXIMUM_CONTEXT_HOURS, MINIMUM_CONTEXT_HOURS
from chorus_cli.personas.rules.persona import LONGEST_NAME
from chorus_cli.settings.rules.schema import schema, template
from chorus_cli.settings.rules.table import (
    BY_KEY,
    DEFAULT_CONTEXT_HOURS,
    OF_INSTALLATION,
    SCHEMA_KEY,
    SETTINGS,
    Kind,
    Layer,
    Setting,
    Settings,
    misfits,
    resolve,
    setting_of,
)
from chorus_cli.settings.rules.typed import as_typed, read_value
from tests.amount import examples
from tests.documents import ROOT

FAR = 10**30


def accepted_values(setting: Setting) -> st.SearchStrategy[JsonValue]:
    """Every value that a setting takes and that JSON can hold."""
    text = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
    low, high = setting.minimum or 0, setting.maximum or FAR
    match setting.kind:
        case Kind.TEXT:
            return st.sampled_from(setting.choices) if setting.choices else text
        case Kind.TEXTS:
            return st.lists(text, max_size=4)
        case Kind.FLAG:
            return st.booleans()
        case Kind.WHOLE_NUMBER:
            return st.integers(int(low), int(high))
        case Kind.NUMBER:
            return st.floats(low, high, allow_nan=False)
        case Kind.OBJECT:
            if setting.key == "mcp_serve":
                return st.fixed_dictionaries({}, optional={"personas": st.none() | st.lists(text, max_size=3)})
            entries: st.SearchStrategy[JsonValue] = text.map(lambda word: {"command": f"c{word}", "own": word})
            names = st.from_regex("[a-z0-9_-]{1,9}", fullmatch=True)
            if setting.key == "mcp_allow":
                names, entries = names.map("server.{}".format), names
            return st.dictionaries(names, entries | st.none(), max_size=3)


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
    assert setting.misfit(value) == f"{key} cannot be {told}; it must be {setting.range_text}"


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
        ('{\n"context_hours": 500 }', "", 8, ["system.jsonc:2: context_hours cannot be 500"]),
        ('{\n"context_hours": 500 }', '{ "context_hours": 12 }', 12, ["system.jsonc:2: context_hours cannot be 500"]),
        (
            '{ "context_hours": "x" }',
            '{\n\n"context_hours": -1 }',
            8,
            ['system.jsonc:1: context_hours cannot be "x"', "config.jsonc:3: context_hours cannot be -1"],
        ),
        ('{ "context_hours": null }', '{ "context_hours": 12 }', 12, []),
        ('{ "context_hours": 2, "context_hours": 0 }', "", 8, ["system.jsonc:1: context_hours cannot be 0"]),
    ],
)
def test_a_value_that_does_not_fit_gives_way_with_a_warning(
    own: str, config: str, hours: int, warnings: list[str]
) -> None:
    resolution = resolve([layer(own), layer(config, "config.jsonc")])
    assert resolution.settings.context_hours == hours
    using = f'it must be a whole number from 1 to 168 or "all"; using {hours}'
    assert resolution.warnings == tuple(f"{warning}; {using}" for warning in warnings)


def test_a_default_without_a_value_is_named_in_words() -> None:
    resolution = resolve([layer('{ "temperature": "hot" }')])
    assert resolution.warnings == (
        'system.jsonc:1: temperature cannot be "hot"; it must be a number from 0 to 2; using the provider\'s',
    )


def test_unknown_keys_are_told_in_the_order_of_their_lines_and_the_schema_is_not() -> None:
    resolution = resolve([layer('{ "$schema": "x",\n"contxt_hours": 1,\n"clock": 1,\n"qqq": 2 }')])
    assert resolution.warnings == (
        'system.jsonc:2: unknown setting "contxt_hours" (did you mean "context_hours"?)',
        "system.jsonc:3: clock cannot be 1; it must be true or false; using true",
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
        "system.jsonc:1: tools cannot be 1; it must be true or false",
        'system.jsonc:3: context_hours cannot be 500; it must be a whole number from 1 to 168 or "all"',
    )
    assert misfits(layer('{ "tools": true, "mine": 5 }')) == ()


def test_a_place_without_a_line_is_the_file() -> None:
    assert Layer("system.jsonc").place("clock") == "system.jsonc"


READ: dict[str, dict[str, JsonValue]] = {
    "name": {"Frodo Baggins": "Frodo Baggins", '"Frodo"': '"Frodo"'},
    "system_prompt": {" It's 8, \\n literally ": " It's 8, \\n literally "},
    "description": {"true": "true"},
    "aliases": {"Strider,  Ranger , ": ["Strider", "Ranger"], "Strider": ["Strider"], "[]": []},
    "temperature": {"0.7": 0.7, "0,7": 0.7, ",7": 0.7, ".7": 0.7, "0,125": 0.125, "1": 1, "1e-3": 0.001},
    "max_output_tokens": {" 4096 ": 4096},
    "context_hours": {"024": 24, " ALL": "all"},
    "clock": {"Yes": True, "TRUE": True, "on": True, "no": False, "Off": False},
    "on_idle": {"SAVE+Clear": "save+clear", "off": "off"},
}


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("aliases", '["a, b", "c",]', ["a, b", "c"]),
        *((key, text, value) for key, typed in READ.items() for text, value in typed.items()),
    ],
)
def test_what_is_typed_is_read_by_the_kind_of_the_setting(key: str, text: str, value: JsonValue) -> None:
    read = read_value(setting_of(key), text)
    assert (read, type(read)) == (value, type(value))


COMMA = " Write the number without a comma, which may separate thousands or decimals."
PARTS = ' Separate them with commas, or write a JSON list such as ["one", "two"].'
OPEN = " /settings edit opens the file."
WITH_UNIT = " For a time with a unit, use /context {}."


@pytest.mark.parametrize(
    ("key", "text", "told", "hint"),
    [
        *(("context_hours", time, f'"{time}"', WITH_UNIT.format(time)) for time in ("24h", "2 days", "1.5h")),
        *(("context_hours", text, f'"{text}"', "") for text in ("8.5", "+8", "banana", "٨")),
        *(("context_hours", text, text, "") for text in ("-8", "500")),
        ("context_token_limit", "128,000", '"128,000"', COMMA),
        *(("budget", "0.00001", "1e-05", ""), ("temperature", "5", "5", ""), ("temperature", "nan", '"nan"', "")),
        *(("temperature", "1e999", "Infinity", ""), ("temperature", "1,500", '"1,500"', COMMA)),
        *(("clock", "maybe", '"maybe"', ""), ("clock", "1", '"1"', ""), ("on_idle", "never", '"never"', "")),
        *(("mcpServers", "time", '"time"', OPEN), ("mcp_allow", "{}", '"{}"', OPEN)),
        *(("aliases", '["a"', '"[\\"a\\""', PARTS), ("aliases", "[1]", "[1]", PARTS)),
    ],
)
def test_what_does_not_fit_is_refused_with_what_would(key: str, text: str, told: str, hint: str) -> None:
    setting = setting_of(key)
    with pytest.raises(SettingsError) as refusal:
        read_value(setting, text)
    assert str(refusal.value) == f"{key} cannot be {told}; it must be {setting.range_text}.{hint}"


@pytest.mark.parametrize("key", OF_INSTALLATION)
def test_what_is_for_all_personas_is_typed_for_none(key: str) -> None:
    with pytest.raises(SettingsError, match=f"^{key} is for all personas together. Write it into config.jsonc; chorus"):
        read_value(setting_of(key), "frodo")


@given(st.sampled_from([each for each in SETTINGS if each.key not in OF_INSTALLATION]), st.text())
def test_any_text_is_read_or_refused_with_a_sentence_that_names_the_key(setting: Setting, text: str) -> None:
    try:
        value = read_value(setting, text)
    except SettingsError as refusal:
        assert str(refusal).startswith(f"{setting.key} ")  # noqa: PT017 - most texts are refused, some are not
    else:
        assert setting.accepts(value)


TYPED = [each for each in SETTINGS if each.kind is not Kind.OBJECT and each.key not in OF_INSTALLATION]


@pytest.mark.parametrize("setting", TYPED, ids=lambda setting: setting.key)
@examples(60)
@given(st.data())
def test_a_value_typed_as_it_is_shown_is_the_same_value(setting: Setting, data: st.DataObject) -> None:
    value = data.draw(accepted_values(setting))
    assert read_value(setting, as_typed(value)) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((None, ""), ("a, b", "a, b"), (["a", "b"], "a, b"), (["a, b"], '["a, b"]'), ([" a"], '[" a"]')),
        *(({"time": {"env": {"KEY": "secret"}}, "b": None}, "time, b"), ({}, "")),
        *((["[x", "y"], '["[x", "y"]'), ([], "[]"), (["a", 1], '["a", 1]'), (False, "false"), (0.7, "0.7")),
    ],
)
def test_a_value_is_written_as_briefly_as_it_can_be_typed(value: JsonValue, text: str) -> None:
    assert as_typed(value) == text


SCHEMA = Draft202012Validator(schema())
# JSON Schema takes 24.0 for an integer; the table does not, and so such numbers are left out.
SCALARS: st.SearchStrategy[JsonValue] = (
    st.none()
    | st.booleans()
    | st.integers(-2000, 2000)
    | st.floats(-3, 3).filter(lambda number: not number.is_integer())
    | st.text(max_size=5)
    | st.sampled_from([choice for setting in SETTINGS for choice in setting.choices])
)
VALUES: st.SearchStrategy[JsonValue] = (
    SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(st.text(max_size=3), SCALARS, max_size=2)
)


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.key)
@examples(100)
@given(st.data())
def test_the_schema_allows_what_the_setting_accepts_and_null(setting: Setting, data: st.DataObject) -> None:
    value = data.draw(VALUES | accepted_values(setting))
    is_allowed, is_accepted = SCHEMA.is_valid({setting.key: value}), value is None or setting.accepts(value)
    # The schema does not look into objects.
    assert is_allowed == (is_accepted or (setting.kind is Kind.OBJECT and isinstance(value, dict)))


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.key)
def test_the_schema_says_what_a_setting_is_for_and_its_default(setting: Setting) -> None:
    rules = SCHEMA.schema["properties"][setting.key]
    assert rules["description"].startswith(setting.help)
    assert rules["default"] == setting.default
    assert SCHEMA.is_valid({setting.key: rules["default"]})


def test_a_mistake_in_what_other_programs_see_shows_them_nothing() -> None:
    written = Layer("config.jsonc", {"mcp_serve": {"personas": "frodo"}}, {"mcp_serve": 2})
    resolved = resolve([written])
    assert resolved.warnings == (
        'config.jsonc:2: "personas" in mcp_serve must be a list of names; other programs see nothing',
    )


def test_the_schema_keeps_unknown_keys_and_its_own_pointer() -> None:
    whole = schema()
    assert whole["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert (whole["type"], whole["additionalProperties"]) == ("object", True)
    assert SCHEMA.is_valid({SCHEMA_KEY: "../schema.json", "unknown": 1})
    assert json.loads(json.dumps(whole)) == whole


def test_the_comments_of_settings_files_fit_80_columns_and_their_examples_are_valid() -> None:
    shipped = [path.read_text(encoding="utf-8") for path in (ROOT / "personas").glob("*/system.jsonc")]
    assert len(shipped) == 3
    for text in (*shipped, template("M" * LONGEST_NAME)):
        lines = text.splitlines()
        assert [line for line in lines if line.lstrip().startswith("//") and len(line) > 76] == []
        written = parse_object("\n".join(re.sub(r'^  // "', '  "', line) for line in lines)).values
        refused = {key for key, value in written.items() if key in BY_KEY and not BY_KEY[key].accepts(value)}
        assert refused <= {key for key, value in written.items() if value == ""}
