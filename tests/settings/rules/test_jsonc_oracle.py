"""Any document of JSON with comments is read, edited and refused as another reader understands it."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import jsonyx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.errors import JsoncError
from chorus_cli.core.json import jsonc
from chorus_cli.core.json.jsonc import JsonValue
from tests.amount import examples
from tests.settings.rules.jsonc_documents import (
    KEYS,
    VALUES,
    Specimen,
    comments,
    contains_in_order,
    infinities_of_oracle,
    read_by_oracle,
    specimens,
)


def check_reading(specimen: Specimen) -> None:
    text = specimen.text()
    assert repr(jsonc.parse(text)) == repr(read_by_oracle(text))
    document = jsonc.parse_object(text)
    for index in range(len(specimen.members)):
        line = re.split(r"\r\n|\r|\n", text)[document.lines[specimen.key(index)] - 1]
        assert json.dumps(specimen.key(index)) in line or specimen.key(index) in line or "\\" in line


def check_setting(specimen: Specimen, key: str, value: JsonValue) -> None:
    text = specimen.text()
    changed = jsonc.set_key(text, key, value)
    assert read_by_oracle(changed) == {**specimen.value(), key: value}
    assert jsonc.set_key(changed, key, value) == changed
    assert changed.startswith("\ufeff") == text.startswith("\ufeff")
    assert specimen.line_end == "\n" or not re.search(r"(?<!\r)\n", changed)
    places = [index for index in range(len(specimen.members)) if specimen.key(index) == key]
    if not places:
        assert comments(changed) == comments(text) or comments(json.dumps(value))
        assert contains_in_order(changed, list(text))
        return
    last = places[-1]
    members = list(specimen.members)
    members[last] = (*members[last][:3], "\0", members[last][4])
    written = json.dumps(value, ensure_ascii=False)
    assert changed == replace(specimen, members=tuple(members)).text().replace("\0", written)


def check_removing(specimen: Specimen, key: str) -> None:
    text = specimen.text()
    changed = jsonc.remove_key(text, key)
    assert read_by_oracle(changed) == {other: value for other, value in specimen.value().items() if other != key}
    assert comments(changed) == specimen.comments(without_values_of=key)
    kept = [specimen.body(index) for index in range(len(specimen.members)) if specimen.key(index) != key]
    assert contains_in_order(changed, kept)
    assert contains_in_order(text, list(changed))
    assert (changed == text) == (key not in specimen.value())


@examples(150)
@given(specimens(), KEYS, VALUES)
def test_any_document_is_read_and_edited_as_another_reader_understands_it(
    specimen: Specimen, key: str, value: JsonValue
) -> None:
    check_reading(specimen)
    check_setting(specimen, key, value)
    check_removing(specimen, key)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@examples(10_000)
@given(specimens(), KEYS, VALUES)
def test_very_many_documents_are_read_and_edited_as_another_reader_understands_them(
    specimen: Specimen, key: str, value: JsonValue
) -> None:
    check_reading(specimen)
    check_setting(specimen, key, value)
    check_removing(specimen, key)


def check_damaged(specimen: Specimen, cut: int, length: int, put: str) -> None:
    text = specimen.text().removeprefix("\ufeff")
    offset = cut % (len(text) + 1)
    damaged = text[:offset] + put + text[offset + length :]
    try:
        expected = read_by_oracle(damaged)
    except jsonyx.JSONSyntaxError:
        with pytest.raises(JsoncError):
            jsonc.parse(damaged)
        return
    try:
        assert repr(jsonc.parse(damaged)) == repr(expected)
    except JsoncError as error:
        # The other reader takes a number that is too large for infinity.
        assert "1.8e308" in str(error)  # noqa: PT017 - both outcomes are right, each for its documents
        assert infinities_of_oracle(damaged)


DAMAGE = st.text('{}[]:,"\\/*\n 019.e-tnu', max_size=2)


def test_a_number_that_is_too_large_is_refused_although_a_later_one_stands_for_it() -> None:
    text = '{"a": 1e999, "a": 2}'
    assert infinities_of_oracle(text)
    with pytest.raises(JsoncError):
        jsonc.parse(text)


@examples(150)
@given(specimens(), st.integers(0, 500), st.integers(0, 2), DAMAGE)
def test_a_damaged_document_is_refused_where_another_reader_refuses_it(
    specimen: Specimen, cut: int, length: int, put: str
) -> None:
    check_damaged(specimen, cut, length, put)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@examples(10_000)
@given(specimens(), st.integers(0, 500), st.integers(0, 2), DAMAGE)
def test_very_many_damaged_documents_are_refused_where_another_reader_refuses_them(
    specimen: Specimen, cut: int, length: int, put: str
) -> None:
    check_damaged(specimen, cut, length, put)
