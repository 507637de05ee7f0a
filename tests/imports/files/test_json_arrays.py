"""JSON arrays: every item is read once, broken ones are skipped alone, and memory holds one item."""

from __future__ import annotations

import io
import json
import tracemalloc
from typing import IO, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.errors import ImportFormatError
from chorus_cli.imports.files.source import json_items
from chorus_cli.imports.rules.conversation import Skipped
from tests.imports.rules.exports import ANYTHING

MEGABYTE = 1_000_000


class Endless(io.RawIOBase):
    """A file of repeated pieces, made while it is read."""

    def __init__(self, beginning: bytes, piece: bytes, pieces: int, end: bytes) -> None:
        self._left = pieces
        self._piece = piece
        self._end = end
        self._held = beginning

    def read(self, size: int = -1) -> bytes:
        while self._left and len(self._held) < size:
            self._held += self._piece
            self._left -= 1
        if not self._left:
            self._held, self._end = self._held + self._end, b""
        found, self._held = self._held[:size], self._held[size:]
        return found


def read(text: str | bytes, largest: int = MEGABYTE) -> list[object]:
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return list(json_items(io.BytesIO(data), largest))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[]", []),
        (' [ {"a": 1} , {"b": [2]} ] \n', [{"a": 1}, {"b": [2]}]),
        ("\ufeff[1, 23]", [1, 23]),
        ('{"a": 1}', [{"a": 1}]),
        ('["tab\there"]', ["tab\there"]),
        ("[NaN]", None),
        (b'["\xff"]', ["\ufffd"]),
        ('["\\ud83d"]', ["\ud83d"]),
    ],
)
def test_items_are_read(text: str | bytes, expected: list[object] | None) -> None:
    found = read(text)
    assert found == expected or expected is None


BROKEN, CUT = "no valid JSON, and all after it in its file", "file that ends before its end"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[{"a": 1}, {"b" 2}, {"c": 3}]', [{"a": 1}, BROKEN]),
        ("[oops, 7]", [BROKEN]),
        ("[[" * 50_000 + "]" * 100_000, [BROKEN]),
        ("[7, " + '{"a":' * 50_000 + "1" + "}" * 50_000 + ", 7]", [7, BROKEN]),
        (f'[{"9" * 5000}, 7]', [BROKEN]),
        ('[{"a": 1}, {"b": "cut of', [{"a": 1}, BROKEN]),
        ('[{"a": 1}', [{"a": 1}, CUT]),
        (f'[{{"a": "{"x" * 3 * MEGABYTE}"}}, 7]', ["of more than 1,000,000 characters, and all after it in its file"]),
    ],
)  # fmt: skip
def test_what_is_read_ends_at_an_item_that_cannot_be_read(text: str, expected: list[object]) -> None:
    found = read(text)
    assert len(found) == len(expected)
    for item, wanted in zip(found, expected, strict=True):
        assert wanted == item or (isinstance(item, Skipped) and item.reason.endswith(str(wanted)))


def test_a_file_that_is_one_value_is_not_read_on_beyond_the_limit() -> None:
    file = Endless(b'{"a": "', b"x" * 100_000, 1_000, b'"}')
    (found,) = json_items(cast("IO[bytes]", file), MEGABYTE)
    assert isinstance(found, Skipped)
    assert len(file.read(MEGABYTE)) == MEGABYTE


@pytest.mark.parametrize("text", ["", "  ", "hello", '"text"', "\x00", b"\xff\xfe[\x00"])
def test_other_files_are_no_json(text: str | bytes) -> None:
    with pytest.raises(ImportFormatError):
        read(text)


@given(st.text('[]{}",\\: 1a\n', max_size=60))
def test_any_text_comes_to_an_end(text: str) -> None:
    assert len(read("[" + text)) <= 2 * len(text) + 2


@given(st.lists(ANYTHING), st.none() | st.integers(0, 3))
def test_items_are_those_of_the_parser(items: list[Any], indent: int | None) -> None:
    text = json.dumps(items, indent=indent)
    assert repr(read(text)) == repr(json.loads(text))


def test_items_of_any_length_are_found_across_the_pieces_that_are_read() -> None:
    items = [{"n": number, "text": "ü😀" * (number * 977 % 90_000)} for number in range(40)]
    assert read(json.dumps(items, ensure_ascii=False).encode()) == items


@pytest.mark.parametrize("piece", [b'{"a": "' + b"x" * 100_000 + b'"},', b"x" * 100_000])
def test_memory_holds_an_item_and_not_the_file(piece: bytes) -> None:
    # The second one is a single string of 100 MB within an item.
    file = Endless(b"[" if piece[:1] == b"{" else b'[{"a": "', piece, 1_000, b"7]")
    tracemalloc.start()
    try:
        for _ in json_items(cast("IO[bytes]", file), 2 * MEGABYTE):
            pass
        assert tracemalloc.get_traced_memory()[1] < 30 * MEGABYTE
    finally:
        tracemalloc.stop()
