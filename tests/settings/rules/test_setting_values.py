"""Values as they are typed behind /settings set."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.errors import SettingsError
from chorus_cli.core.json.jsonc import JsonValue, parse_object, set_key
from chorus_cli.settings.rules.table import SETTINGS, Kind, Setting, as_typed, read_value, setting_of
from tests.amount import examples
from tests.settings.rules.setting_strategies import accepted_values

READ: dict[str, dict[str, JsonValue]] = {
    "name": {"Frodo Baggins": "Frodo Baggins", '"Frodo"': '"Frodo"'},
    "system_prompt": {" It's 8, \\n literally ": " It's 8, \\n literally "},
    "description": {"true": "true"},
    "aliases": {"Strider,  Ranger , ": ["Strider", "Ranger"], "Strider": ["Strider"], "[]": []},
    "temperature": {"0.7": 0.7, "0,7": 0.7, ",7": 0.7, ".7": 0.7, "0,125": 0.125, "1": 1, "1e-3": 0.001},
    "max_output_tokens": {" 4096 ": 4096},
    "context_hours": {"024": 24},
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
WITH_UNIT = " For a time with a unit, use /context {}."
RANGES = {
    "context_hours": "a whole number from 1 to 168",
    "context_token_limit": "a whole number of at least 1000",
    "budget": "a number from 0.01 to 100000",
    "temperature": "a number from 0 to 2",
    "clock": "true or false",
    "on_idle": '"save", "save+clear" or "off"',
    "aliases": "a list of texts",
}


@pytest.mark.parametrize(
    ("key", "text", "told", "hint"),
    [
        *(("context_hours", time, f'"{time}"', WITH_UNIT.format(time)) for time in ("24h", "2 days", "1.5h")),
        *(("context_hours", text, f'"{text}"', "") for text in ("8.5", "+8", "banana", "٨")),
        *(("context_hours", text, text, "") for text in ("-8", "500")),
        ("context_hours", "default", '"default"', " /settings unset context_hours restores the default."),
        ("context_token_limit", "128,000", '"128,000"', COMMA),
        ("budget", "0.0001", "0.0001", ""),
        ("temperature", "5", "5", ""),
        ("temperature", "nan", '"nan"', ""),
        ("temperature", "1e999", "Infinity", ""),
        ("temperature", "1,500", '"1,500"', COMMA),
        ("clock", "maybe", '"maybe"', ""),
        ("clock", "1", '"1"', ""),
        ("on_idle", "never", '"never"', ""),
        ("aliases", '["a"', '"[\\"a\\""', PARTS),
        ("aliases", "[1]", "[1]", PARTS),
    ],
)
def test_what_does_not_fit_is_refused_with_what_would(key: str, text: str, told: str, hint: str) -> None:
    with pytest.raises(SettingsError) as refusal:
        read_value(setting_of(key), text)
    assert str(refusal.value) == f"{key} cannot be {told}: it must be {RANGES[key]}.{hint}"


@given(st.sampled_from(SETTINGS), st.text())
def test_any_text_is_read_or_refused_with_a_sentence_that_names_the_key(setting: Setting, text: str) -> None:
    try:
        value = read_value(setting, text)
    except SettingsError as refusal:
        assert str(refusal).startswith(f"{setting.key} cannot be ")  # noqa: PT017 - most texts are refused, some are not
    else:
        assert setting.accepts(value)


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.key)
@examples(60)
@given(st.data())
def test_a_value_typed_as_it_is_shown_is_the_same_value(setting: Setting, data: st.DataObject) -> None:
    value = data.draw(accepted_values(setting))
    assert read_value(setting, as_typed(value)) == value


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.key)
@examples(60)
@given(st.data())
def test_a_value_that_is_set_is_read_again_and_every_other_byte_stays(setting: Setting, data: st.DataObject) -> None:
    before = f'// first\r\n{{\r\n  "mine": [1,], // mine\r\n  "{setting.key}" : '
    after = " , // why\r\n  /* last */ }\r\n"
    value = data.draw(accepted_values(setting))
    text = set_key(f"{before}null{after}", setting.key, read_value(setting, as_typed(value)))
    assert parse_object(text).values == {"mine": [1], setting.key: value}
    assert text == before + json.dumps(value, ensure_ascii=False) + after


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        ("a, b", "a, b"),
        (["a", "b"], "a, b"),
        (["a, b"], '["a, b"]'),
        ([" a"], '[" a"]'),
        (["[x", "y"], '["[x", "y"]'),
        ([], "[]"),
        (["a", 1], '["a", 1]'),
        (False, "false"),
        (0.7, "0.7"),
    ],
)
def test_a_value_is_written_as_briefly_as_it_can_be_typed(value: JsonValue, text: str) -> None:
    assert as_typed(value) == text


def test_every_kind_of_setting_is_among_the_examples() -> None:
    assert {setting.kind for setting in SETTINGS} == set(Kind)
