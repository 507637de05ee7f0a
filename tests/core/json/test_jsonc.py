"""JSON with comments: reading, and editing one value."""

from __future__ import annotations

import re

import pytest

from chorus_cli.core.errors import JsoncError, SettingsError
from chorus_cli.core.json import jsonc
from chorus_cli.core.json.jsonc import JsonValue

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
        ("", '{\n  "n": 1\n}\n'),
        ("\ufeff", '\ufeff{\n  "n": 1\n}\n'),
        ("// only this", '// only this\n{\n  "n": 1\n}\n'),
        ("/* only */\r\n\r\n", '/* only */\r\n\r\n{\r\n  "n": 1\r\n}\r\n'),
        ("{}", '{"n": 1}'),
        ("{ }", '{ "n": 1 }'),
        ("{\n}", '{\n  "n": 1\n}'),
        ("{ /* c */ }", '{ /* c */ "n": 1 }'),
        ("{ // c\n}", '{ // c\n  "n": 1\n}'),
        ('{"a": 0}', '{"a": 0, "n": 1}'),
        ('{ "a": 0, }', '{ "a": 0, "n": 1, }'),
        ('{"a": 0 // c\n}', '{"a": 0, // c\n  "n": 1\n}'),
        ('{"a": 0 /* c */ }', '{"a": 0, /* c */ "n": 1 }'),
        ('{\n\t"a": 0\n}', '{\n\t"a": 0,\n\t"n": 1\n}'),
        ('{\r\n    "a": 0,\r\n}\r\n', '{\r\n    "a": 0,\r\n    "n": 1,\r\n}\r\n'),
        ('{\n  "a": 0 // c\n}', '{\n  "a": 0, // c\n  "n": 1\n}'),
        ('{\n  "a": 0\n\n  // "b": 2,\n}', '{\n  "a": 0,\n\n  // "b": 2,\n  "n": 1\n}'),
        ('{ "a": 0\n, "b": 0 // c\n}', '{ "a": 0\n, "b": 0 // c\n, "n": 1\n}'),
        ('{ "a": 0\n, "b": 0,\n}', '{ "a": 0\n, "b": 0,\n  "n": 1,\n}'),
    ],
)
def test_a_new_key_comes_last_in_the_layout_of_its_neighbours(text: str, expected: str) -> None:
    assert jsonc.set_key(text, "n", 1) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"k": 8}', "{}"),
        ('{ "k": 8 }', "{ }"),
        ('{ "k": 8, }', "{ }"),
        ('{\n  "k": 8\n}', "{\n}"),
        ('{ "a": 1, "k": 8 }', '{ "a": 1 }'),
        ('{ "k": 8, "a": 1 }', '{ "a": 1 }'),
        ('{ "a": 1, "k": 8, "b": 2, }', '{ "a": 1, "b": 2, }'),
        ('{\n  "a": 1,\n\n  // c\n  "k": 8\n}', '{\n  "a": 1\n\n  // c\n}'),
        ('{\n  "a": 1, // a\n  "k": 8 // k\n}', '{\n  "a": 1 // a\n  // k\n}'),
        ('{\n  "k": [\n    1\n  ], // k\n  "b": 2\n}', '{\n  // k\n  "b": 2\n}'),
        ('{\r\n  "a": 1,\r\n  "k": 8,\r\n}\r\n', '{\r\n  "a": 1,\r\n}\r\n'),
        ('{ "a": 1\n, "k": 8\n, "b": 2\n}', '{ "a": 1\n, "b": 2\n}'),
        ('{ "a": 1\n, "k": 8 // k\n, "b": 2\n}', '{ "a": 1\n// k\n, "b": 2\n}'),
        ('{ "k": 8\n, "b": 2\n}', '{ "b": 2\n}'),
        ('{"k"/*1*/:/*2*/8/*3*/,/*4*/"b": 2}', '{/*1*//*2*//*3*//*4*/"b": 2}'),
        ('{"k" // 1\n : 8}', "{ // 1\n }"),
        ('{ "a": 1, /* c */ "k": 8 }', '{ "a": 1 /* c */ }'),
        ('{"k": 1, "a": 2, "k": 3}', '{"a": 2}'),
        ('{"k": {"k": 1}, "a": {"k": 2}}', '{"a": {"k": 2}}'),
        ('{"a": 1}', '{"a": 1}'),
        ("// nothing", "// nothing"),
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
