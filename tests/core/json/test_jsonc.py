"""JSON with comments: reading, and editing one value, also of any document, as another reader understands it."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, replace

import jsonyx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.errors import JsoncError, SettingsError
from chorus_cli.core.json import jsonc
from chorus_cli.core.json.jsonc import JsonValue
from tests.amount import examples

CORPUS: dict[str, tuple[str, JsonValue]] = {
    "plain": ('{"k": 1}', {"k": 1}),
    "spread": ('{\n  "a": "x",\n  "k": [1, 2.5, -3e2]\n}\n', {"a": "x", "k": [1, 2.5, -300.0]}),
    "line comments": ('// top\n{\n  // own\n  "k": 1 // behind\n}\n// end', {"k": 1}),
    "block comments": ('/* t */{/* a */"k"/* b */:/* c */1/* d */}/* e */', {"k": 1}),
    "block comment of several lines": ('/*\n * top\n */\n{ "k": 1 }', {"k": 1}),
    "comment marks in a text": ('{"k": "http://x /* no */"}', {"k": "http://x /* no */"}),
    "stars in a comment": ('{/***/"k": 1/* ** / */}', {"k": 1}),
    "trailing comma": ('{"k": 1,}', {"k": 1}),
    "trailing comma and comment": ('{\n  "k": 1, // last\n}\n', {"k": 1}),
    "trailing comma in a list": ('{"k": [1, 2, ], }', {"k": [1, 2]}),
    "CRLF": ('{\r\n  // c\r\n  "k": 1\r\n}\r\n', {"k": 1}),
    "CR alone": ('{\r// c\r"k": 1\r}', {"k": 1}),
    "byte order mark": ('\ufeff{"k": 1}', {"k": 1}),
    "byte order mark and comment": ('\ufeff// c\n{"k": 1}', {"k": 1}),
    "unicode": ('{"k": "żółć 😀 \u2028"}', {"k": "żółć 😀 \u2028"}),
    "escapes": (r'{"k": "\"\\\/\b\f\n\r\tA\ud83d\ude00"}', {"k": '"\\/\b\f\n\r\tA😀'}),
    "escaped key": (r'{"\u006b": 1}', {"k": 1}),
    "duplicates": ('{"k": 1, "a": 2, "k": 3}', {"k": 3, "a": 2}),
    "tabs": ('{\n\t"k":\t1\n}', {"k": 1}),
    "comma first": ('{ "a": 1\n, "k": 2\n, "b": 3\n}', {"a": 1, "k": 2, "b": 3}),
    "one line": ('{ "a": 1, "k": 2 }', {"a": 1, "k": 2}),
    "nested": ('{"k": {"k": {"k": [{}, []]}}}', {"k": {"k": {"k": [{}, []]}}}),
    "constants": ('{"a": true, "b": false, "k": null}', {"a": True, "b": False, "k": None}),
    "an empty key": ('{"": 0, "k": 1}', {"": 0, "k": 1}),
}


@pytest.mark.parametrize(("text", "value"), CORPUS.values(), ids=CORPUS)
def test_a_document_is_read(text: str, value: JsonValue) -> None:
    assert jsonc.parse(text) == value
    assert jsonc.parse_object(text).values == value


@pytest.mark.parametrize("text", [text for text, _ in CORPUS.values()], ids=CORPUS)
def test_an_added_key_can_be_removed_with_a_blank_as_the_only_trace(text: str) -> None:
    added = jsonc.set_key(text, "added", [True])
    assert jsonc.parse_object(added).values == {**jsonc.parse_object(text).values, "added": [True]}
    assert jsonc.remove_key(added, "added").replace(" }", "}") == text.replace(" }", "}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(("", '{\n  "n": 1\n}\n'), ("\ufeff", '\ufeff{\n  "n": 1\n}\n')),
        ("// only this", '// only this\n{\n  "n": 1\n}\n'),
        ("/* only */\r\n\r\n", '/* only */\r\n\r\n{\r\n  "n": 1\r\n}\r\n'),
        *(("{}", '{"n": 1}'), ("{ }", '{ "n": 1 }'), ("{\n}", '{\n  "n": 1\n}'), ("{ /* c */ }", '{ /* c */ "n": 1 }')),
        *(("{ // c\n}", '{ // c\n  "n": 1\n}'), ('{"a": 0}', '{"a": 0, "n": 1}')),
        ('{ "a": 0, }', '{ "a": 0, "n": 1, }'),
        ('{"a": 0 // c\n}', '{"a": 0, // c\n  "n": 1\n}'),
        ('{"a": 0 /* c */ }', '{"a": 0, /* c */ "n": 1 }'),
        ('{\n\t"a": 0\n}', '{\n\t"a": 0,\n\t"n": 1\n}'),
        ('{\r\n    "a": 0,\r\n}\r\n', '{\r\n    "a": 0,\r\n    "n": 1,\r\n}\r\n'),
        ('{\n  "a": 0 // c\n}', '{\n  "a": 0, // c\n  "n": 1\n}'),
        ('{\n  "a": 0\n\n  // "b": 2,\n}', '{\n  "a": 0,\n\n  // "b": 2,\n  "n": 1\n}'),
    ],
)
def test_a_new_key_comes_last_in_the_layout_of_its_neighbours(text: str, expected: str) -> None:
    assert jsonc.set_key(text, "n", 1) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", '{\n  "a": {\n    "b": {\n      "n": 1\n    }\n  }\n}\n'),
        ('{\n  "a": null // c\n}', '{\n  "a": {\n    "b": {\n      "n": 1\n    }\n  } // c\n}'),
        ('{"a": {"b": {"n": 0, "m": 2}}, "n": 5}', '{"a": {"b": {"n": 1, "m": 2}}, "n": 5}'),
        (
            '{\n"a": {"b": {}},\n"a": {\n"b": {"m": 2} // c\n}\n}',
            '{\n"a": {"b": {}},\n"a": {\n"b": {"m": 2, "n": 1} // c\n}\n}',
        ),
    ],
)
def test_a_key_is_set_and_removed_in_an_object_of_an_object(text: str, expected: str) -> None:
    assert jsonc.set_key(text, "n", 1, "a", "b") == expected
    removed = jsonc.parse_object(jsonc.remove_key(expected, "n", "a", "b"))
    assert "n" not in removed.sections["a"].sections["b"].values
    assert jsonc.remove_key(expected, "n", "a", "elsewhere") == expected


def test_what_is_no_object_is_not_replaced_by_one() -> None:
    with pytest.raises(JsoncError, match=r'^2:6: expected an object under "b"$'):
        jsonc.set_key('{"a": {\n"b": ["mine"]}}', "n", 1, "a", "b")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(('{"k": 8}', "{}"), ('{ "k": 8 }', "{ }"), ('{ "k": 8, }', "{ }"), ('{\n  "k": 8\n}', "{\n}")),
        *(('{ "a": 1, "k": 8 }', '{ "a": 1 }'), ('{ "k": 8, "a": 1 }', '{ "a": 1 }')),
        ('{ "a": 1, "k": 8, "b": 2, }', '{ "a": 1, "b": 2, }'),
        ('{\n  "a": 1,\n\n  // c\n  "k": 8\n}', '{\n  "a": 1\n\n  // c\n}'),
        ('{\n  "a": 1, // a\n  "k": 8 // k\n}', '{\n  "a": 1 // a\n  // k\n}'),
        ('{\n  "k": [\n    1\n  ], // k\n  "b": 2\n}', '{\n  // k\n  "b": 2\n}'),
        ('{\r\n  "a": 1,\r\n  "k": 8,\r\n}\r\n', '{\r\n  "a": 1,\r\n}\r\n'),
        ('{"k"/*1*/:/*2*/8/*3*/,/*4*/"b": 2}', '{/*1*//*2*//*3*//*4*/"b": 2}'),
        ('{"k" // 1\n : 8}', "{ // 1\n }"),
        ('{ "a": 1, /* c */ "k": 8 }', '{ "a": 1 /* c */ }'),
        ('{"k": 1, "a": 2, "k": 3}', '{"a": 2}'),
        ('{"k": {"k": 1}, "a": {"k": 2}}', '{"a": {"k": 2}}'),
        *(('{"a": 1}', '{"a": 1}'), ("// nothing", "// nothing")),
    ],
)
def test_a_removed_key_takes_its_line_and_leaves_the_comments(text: str, expected: str) -> None:
    assert jsonc.remove_key(text, "k") == expected


def test_lines_are_those_of_the_keys_that_count() -> None:
    document = jsonc.parse_object('\ufeff{ "a": 1,\r\n"b": {\r"c":\n2 },\n\n"a":\n3 }')
    assert document.lines == {"a": 6, "b": 2}
    assert document.sections["b"].lines == {"c": 3}
    assert document.sections.keys() == {"b"}


@pytest.mark.parametrize("text", ["", " \n", "\ufeff", "// nothing\n/* at all */"])
def test_a_text_of_comments_is_an_empty_object(text: str) -> None:
    assert jsonc.parse_object(text) == jsonc.Document()
    assert jsonc.remove_key(text, "k") == text


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{\n  "a": 1\n  "b": 2\n}', "3:3: expected ',' or '}', found '\"'"),
        ('{"a" 1}', "1:6: expected ':', found '1'"),
        (
            '{"a": }',
            "1:7: expected a value: a text in double quotes, a number, true, false, null, '[' or '{', found '}'",
        ),
        ('{"a": 1', "1:8: expected ',' or '}', found the end of the file"),
        ('\ufeff{"a": 1]', "1:8: expected ',' or '}', found ']'"),
        ('{"a": [1 2]}', "1:10: expected ',' or ']', found '2'"),
        ('{"a": 1} x', "1:10: expected the end of the file, found 'x'"),
        ("{a: 1}", "1:2: expected a key in double quotes or '}', found 'a'"),
        ("{,}", "1:2: expected a key in double quotes or '}', found ','"),
        ('{"a": 1,,}', "1:9: expected a key in double quotes or '}', found ','"),
        ("[]", "1:1: expected '{', found '['"),
        ("// c\r\n 1", "2:2: expected '{', found '1'"),
        ("{ /* c\n", "1:3: expected a comment that ends with */, found '/'"),
        ('{"a": "x\n"}', "1:9: expected '\"' at the end of the text, found the end of the line"),
        ('{"a": "x', "1:9: expected '\"' at the end of the text, found the end of the file"),
        ('{"a": "x\ty"}', "1:9: expected the character written as \\t, found '\\t'"),
        ('{"a": "\x1b"}', "1:8: expected the character written as \\u001b, found '\\x1b'"),
        (
            '{"a": "\\x41"}',
            '1:8: expected an escape: \\" \\\\ \\/ \\b \\f \\n \\r \\t or \\u with four hexadecimal digits, ',
        ),
        ('{"a": "\\u00_1"}', "1:8: expected an escape: "),
        ('{"a": "\\ud800"}', "1:7: expected both halves of a surrogate pair such as "),
        ('{"a": "\\ude00\\ud83d"}', "1:7: expected both halves of a surrogate pair such as "),
        ('{"a": "\ud800"}', "1:8: expected the character written as "),
        ('{"a": 1e999}', "1:7: expected a number below 1.8e308, found '1e999'"),
        ('{"a": -1e999}', "1:7: expected a number below 1.8e308, found '-1e999'"),
        ('{"a": ' + "9" * 5000 + "}", "1:7: expected a number below 1.8e308, found '99999999999999999999'"),
        ("{" + '"a":{' * 200, "1:501: expected at most 100 levels of nesting, found '{'"),
        ('{"a": ' + "[" * 100000, "1:106: expected at most 100 levels of nesting, found '['"),
    ],
)
def test_what_is_no_document_is_refused_with_its_place(text: str, sentence: str) -> None:
    for attempt in (
        jsonc.parse_object,
        lambda text: jsonc.set_key(text, "k", 1),
        lambda text: jsonc.remove_key(text, "k"),
    ):
        with pytest.raises(JsoncError, match=f"^{re.escape(sentence)}"):
            attempt(text)


@pytest.mark.parametrize(
    "word", ["NaN", "Infinity", "-Infinity", "01", "1.", ".5", "+1", "0x10", "1e", "True", "'x'", "\u0661"]
)
def test_what_looks_like_a_value_is_refused(word: str) -> None:
    with pytest.raises(JsoncError, match=r"^1:2: expected a value: "):
        jsonc.parse(f"[{word}]")


def deep(levels: int) -> JsonValue:
    value: JsonValue = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), 10**400, 10**5000, "\ud800", ["a\udcff"], {"\udcff": 1}, deep(100), deep(20_000)],
    ids=["NaN", "infinity", "large", "huge", "surrogate", "inner", "key", "deep", "abyss"],
)
def test_a_value_that_could_not_be_read_again_is_not_written(value: JsonValue) -> None:
    with pytest.raises(SettingsError, match=r"^The value cannot be written as JSON: .+\.$"):
        jsonc.set_key("{}", "k", value)


def test_the_deepest_value_is_written_and_read() -> None:
    assert jsonc.parse(jsonc.set_key("{}", "k", deep(99))) == {"k": deep(99)}
    assert jsonc.parse(jsonc.set_key("{}", "k", deep(98), "in")) == {"in": {"k": deep(98)}}
    with pytest.raises(SettingsError, match="nested too deep"):
        jsonc.set_key("{}", "k", deep(99), "in")


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


@examples(2_000)
@given(specimens(), KEYS, VALUES)
def test_any_document_is_read_and_edited_as_another_reader_understands_it(
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


@examples(2_000)
@given(specimens(), st.integers(0, 500), st.integers(0, 2), DAMAGE)
def test_a_damaged_document_is_refused_where_another_reader_refuses_it(
    specimen: Specimen, cut: int, length: int, put: str
) -> None:
    check_damaged(specimen, cut, length, put)
