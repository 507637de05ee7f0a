"""The JSON Schema agrees with the table, judged by a small validator that knows nothing of the table."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.json.jsonc import JsonValue
from chorus_cli.settings.rules.schema import schema
from chorus_cli.settings.rules.table import SCHEMA_KEY, SETTINGS, Setting
from tests.amount import examples
from tests.settings.rules.setting_strategies import accepted_values

PROPERTIES = schema()["properties"]
IS_OF: Mapping[str, Callable[[JsonValue], bool]] = {
    "null": lambda value: value is None,
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
}


def described(key: str) -> Mapping[str, JsonValue]:
    assert isinstance(PROPERTIES, dict)
    found = PROPERTIES[key]
    assert isinstance(found, dict)
    return found


def allows(rules: Mapping[str, JsonValue], value: JsonValue) -> bool:
    """Judge a value by the words of JSON Schema that are used here."""
    types, items, choices = rules["type"], rules.get("items"), rules.get("enum")
    names = types if isinstance(types, list) else [types]
    if not any(IS_OF[str(name)](value) for name in names):
        return False
    if isinstance(choices, list) and value not in choices:
        return False
    if isinstance(value, list) and isinstance(items, dict):
        return all(allows(items, item) for item in value)
    if isinstance(value, (int, float)):
        low, high = rules.get("minimum", value), rules.get("maximum", value)
        assert isinstance(low, (int, float))
        assert isinstance(high, (int, float))
        return low <= value <= high
    return True


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
    rules = described(setting.key)
    value = data.draw(VALUES | accepted_values(setting))
    assert allows(rules, value) == (value is None or setting.accepts(value))


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.key)
def test_the_schema_says_what_a_setting_is_for_and_its_default(setting: Setting) -> None:
    rules = described(setting.key)
    assert str(rules["description"]).startswith(setting.help)
    assert rules["default"] == setting.default
    assert allows(rules, rules["default"])


def test_the_schema_keeps_unknown_keys_and_its_own_pointer() -> None:
    whole = schema()
    assert whole["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert (whole["type"], whole["additionalProperties"]) == ("object", True)
    assert allows(described(SCHEMA_KEY), "../schema.json")
    assert json.loads(json.dumps(whole)) == whole
