"""Values of foreign JSON: every type that is not the expected one reads as empty."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.json import values
from tests.imports.rules.exports import ANYTHING

BERLIN = timezone(timedelta(hours=1))


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (1700000000, "2023-11-14T22:13:20+00:00"),
        (1700000000.5, "2023-11-14T22:13:20.500000+00:00"),
        (1700000000500, "2023-11-14T22:13:20.500000+00:00"),
        (1700000000500000, "2023-11-14T22:13:20.500000+00:00"),
        ("1700000000", "2023-11-14T22:13:20+00:00"),
        ("2023-11-14T22:13:20.123456Z", "2023-11-14T22:13:20.123456+00:00"),
        ("2023-11-14 22:13:20+02:00", "2023-11-14T20:13:20+00:00"),
        ("2023-11-14T22:13:20", "2023-11-14T21:13:20+00:00"),
        (0, None),
        (-5, None),
        (True, None),
        (float("nan"), None),
        (10**400, None),
        (1e300, None),
        ("yesterday", None),
        ("0001-01-01T00:00:00+14:00", None),
        ("9" * 5000, None),
        (None, None),
    ],
)
def test_a_time_is_read_in_each_of_its_forms(written: object, expected: str | None) -> None:
    found = values.moment(written, BERLIN)
    assert (found and found.isoformat()) == expected


@given(ANYTHING)
def test_no_value_is_refused_by_any_reader(value: object) -> None:
    values.json_text(value).encode()
    if not isinstance(value, str):
        assert (values.text(value), values.line(value), values.decoded(value)) == ("", "", None)
        assert values.from_data_url(value) is None
        if not isinstance(value, int | float) or isinstance(value, bool):
            assert (values.identifier(value), values.whole_number(value), values.moment(value)) == ("", 0, None)
    values.identifier(value).encode()
    assert values.whole_number(value) >= 0
    assert values.record(value) == (value if isinstance(value, dict) else {})
    listed = value if isinstance(value, list) else []
    assert values.records(value) == [each for each in listed if isinstance(each, dict)]


@given(st.text(st.characters()))
def test_any_text_can_be_stored_and_shown_in_a_line(text: str) -> None:
    assert not {"\0", "\r"} & set(values.text(text))
    values.text(text).encode()
    line = values.line(text)
    line.encode()
    assert not [sign for sign in line if unicodedata.category(sign) == "Cc"]
    assert line == values.line(line)


def test_a_text_can_be_stored() -> None:
    assert values.text("a\ud83d\ude00b\ud83dc\0d\r\ne") == "a😀b\ufffdc\u2400d\ne"
    long = values.text("x" * (values.LONGEST_TEXT + 1500))
    assert long.endswith("x\n[1,500 more characters were not imported]")


def test_a_title_is_one_line_without_control_sequences() -> None:
    assert values.line(" Tea\x1b]0;owned\x07 \u009b2J\nand\tcake ") == "Tea ]0;owned 2J and cake"
    assert values.line("y" * 300) == "y" * 199 + "…"


def test_json_is_written_once() -> None:
    assert values.json_text({"a": [1, "ä"]}) == '{"a": [1, "ä"]}'
    assert values.json_text('{"a": 1}') == '{"a": 1}'
    deep: object = []
    for _ in range(100_000):
        deep = [deep]
    assert values.json_text(deep) == "{}"


def test_a_data_url_is_its_media_type_and_its_bytes() -> None:
    assert values.from_data_url("data:image/PNG;base64,aGk=") == ("image/png", b"hi")
    assert values.from_data_url("data:text/plain;charset=utf-8;base64,aGk=") == ("text/plain", b"hi")
    assert values.from_data_url("data:;base64,aGk=") == ("", b"hi")
    assert values.from_data_url("data:image/png;base64,a?") is None
    assert values.from_data_url("https://example.org/a.png") is None


def test_equal_messages_have_keys_of_their_own() -> None:
    first, second = values.ContentKeys(), values.ContentKeys()
    keys = [first.of("user", "hi"), first.of("user", "hi"), first.of("userh", "i")]
    assert len(set(keys)) == 3
    assert keys[:2] == [second.of("user", "hi"), second.of("user", "hi")]


def test_an_id_may_be_a_number() -> None:
    assert [values.identifier(each) for each in ("a", 7, 7.5, True, None)] == ["a", "7", "", "", ""]
    assert values.moment(datetime(2023, 1, 1, tzinfo=UTC)) is None
