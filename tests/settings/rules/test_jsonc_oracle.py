"""Any document of JSON with comments is read, edited and refused as another reader understands it."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, replace

import jsonyx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.errors import JsoncError
from chorus_cli.core.json import jsonc
from chorus_cli.core.json.jsonc import JsonValue
from tests.amount import examples

WHITE = st.sampled_from(["", "", " ", "  ", "\t", "\n", "\n  ", "\n\n\t"])
COMMENTS = st.sampled_from(["//\n", "// é, }\n", '// "k": 1\n', "/**/", "/* , */", '/* "\n * // \n */'])
GAP = st.lists(st.one_of(WHITE, WHITE, WHITE, COMMENTS), max_size=3).map("".join)
TEXT = st.one_of(
    st.sampled_from(["", "//", "/*", "*/", "}", '"', "\\"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
)
KEYS = st.one_of(st.sampled_from(["k", "a", "b", "é", ""]), TEXT)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXT)
VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=5,
)


@dataclass(frozen=True)
class Specimen:
    """A document in pieces: the text before and after, and per member its lead, key, colon, value and tail."""

    head: str
    members: tuple[tuple[str, str, str, str, str], ...]
    trailing: str
    foot: str
    line_end: str

    def text(self) -> str:
        joined = self.head + ",".join("".join(member) for member in self.members) + self.trailing + self.foot
        return joined.replace("\n", self.line_end)

    def key(self, index: int) -> str:
        return str(json.loads(self.members[index][1]))

    def body(self, index: int) -> str:
        return "".join(self.members[index][1:4]).replace("\n", self.line_end)

    def value(self) -> dict[str, JsonValue]:
        return read_by_oracle(self.text())

    def comments(self, *, without_values_of: str) -> list[str]:
        shown = tuple(
            (*member[:3], "0" if self.key(index) == without_values_of else member[3], member[4])
            for index, member in enumerate(self.members)
        )
        return comments(replace(self, members=shown).text())


@st.composite
def scribbled(draw: st.DrawFn, value: JsonValue) -> str:
    """Write a value as JSONC with gaps anywhere."""
    if isinstance(value, (dict, list)):
        opening, closing = "{}" if isinstance(value, dict) else "[]"
        parts = value.items() if isinstance(value, dict) else [(None, item) for item in value]
        written = [
            ("" if key is None else json.dumps(key) + draw(GAP) + ":" + draw(GAP)) + draw(scribbled(item)) + draw(GAP)
            for key, item in parts
        ]
        trailing = "," + draw(GAP) if draw(st.booleans()) and written else ""
        return opening + draw(GAP) + ("," + draw(GAP)).join(written) + trailing + closing
    return json.dumps(value, ensure_ascii=draw(st.booleans()))


@st.composite
def specimens(draw: st.DrawFn) -> Specimen:
    head = draw(st.sampled_from(["", "\ufeff"])) + draw(GAP) + "{"
    members = tuple(
        (
            draw(GAP),
            json.dumps(key, ensure_ascii=draw(st.booleans())),
            draw(GAP) + ":" + draw(GAP),
            draw(scribbled(value)),
            draw(GAP),
        )
        for key, value in draw(st.lists(st.tuples(KEYS, VALUES), max_size=4))
    )
    trailing = draw(st.sampled_from(["", ","])) + draw(GAP) if members else draw(GAP)
    return Specimen(head, members, trailing, "}" + draw(GAP), draw(st.sampled_from(["\n", "\r\n"])))


def read_by_oracle(text: str) -> dict[str, JsonValue]:
    allowed = jsonyx.allow.COMMENTS | jsonyx.allow.TRAILING_COMMA
    value: dict[str, JsonValue] = jsonyx.loads(text.removeprefix("\ufeff"), allow=allowed)
    return value


def infinities_of_oracle(text: str) -> list[float]:
    """Return the numbers that the oracle takes for infinity, also in members overridden by a later one."""
    numbers: list[float] = []

    def number(digits: str) -> float:
        numbers.append(float(digits))
        return numbers[-1]

    jsonyx.loads(text, allow=jsonyx.allow.COMMENTS | jsonyx.allow.TRAILING_COMMA, hooks={"float": number})
    return [each for each in numbers if math.isinf(each)]


def comments(text: str) -> list[str]:
    found = re.findall(r'"(?:\\.|[^"\\])*"|//[^\r\n]*|/\*.*?\*/', text, re.DOTALL)
    return [piece for piece in found if piece.startswith("/")]


def contains_in_order(text: str, pieces: list[str]) -> bool:
    offset = 0
    for piece in pieces:
        offset = text.find(piece, offset) + len(piece)
        if offset < len(piece):
            return False
    return True


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
