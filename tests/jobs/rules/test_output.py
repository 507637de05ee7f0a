"""The bounded output of a job: its beginning and its end, and its last lines."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chorus_cli.jobs.rules import MOST_BYTES, BoundedOutput, readable

PIECES = st.lists(st.binary(max_size=40), max_size=30)
TEXTS = st.lists(st.text(max_size=20), max_size=30)


def output_of(*pieces: bytes, most_bytes: int = MOST_BYTES) -> BoundedOutput:
    output = BoundedOutput(most_bytes)
    for piece in pieces:
        output.add(piece)
    return output


@given(pieces=PIECES, half=st.integers(min_value=1, max_value=200))
def test_as_many_bytes_are_kept_of_the_beginning_as_of_the_end(pieces: list[bytes], half: int) -> None:
    whole = b"".join(pieces)
    output = output_of(*pieces, most_bytes=2 * half)
    assert output.total_bytes == len(whole)
    if len(whole) <= 2 * half:
        assert output.text() == whole.decode(errors="replace")
        return
    head, left_out, tail = output.text().partition(" bytes left out here …]\n")
    assert left_out
    assert int(head.rpartition("[… ")[2].replace(",", "")) >= len(whole) - 2 * half
    assert whole[:half].decode(errors="replace").startswith(head.rpartition("\n[… ")[0].rstrip("\ufffd"))
    assert whole[-half:].decode(errors="replace").endswith(tail.lstrip("\ufffd"))


@given(texts=TEXTS, half=st.integers(min_value=8, max_value=60))
def test_no_character_is_cut_in_two(texts: list[str], half: int) -> None:
    whole = "".join(texts).replace("\ufffd", "")
    output = output_of(*(whole[place : place + 3].encode() for place in range(0, len(whole), 3)), most_bytes=2 * half)
    assert "\ufffd" not in output.text()
    kept = output.text()
    if len(whole.encode()) > 2 * half:
        head, _, rest = kept.rpartition("\n[… ")
        left_out, _, tail = rest.partition(" bytes left out here …]\n")
        assert whole.startswith(head)
        assert whole.endswith(tail)
        assert len(head.encode()) + len(tail.encode()) + int(left_out.replace(",", "")) == len(whole.encode())


@given(pieces=PIECES, most=st.integers(min_value=1, max_value=5))
@example(pieces=[b"a\n\x00"], most=1)
def test_the_last_lines_are_those_of_the_whole_output(pieces: list[bytes], most: int) -> None:
    whole = b"".join(pieces)
    lines = whole.decode(errors="replace").removesuffix("\n").split("\n") if whole else []
    output = output_of(*pieces)
    assert output.line_count == len(lines)
    # A continuation byte at the very beginning may be the rest of a character that was cut off.
    if not whole or whole[0] < 0x80 or whole[0] > 0xBF:
        assert output.last_lines(most, 10_000) == tuple(map(readable, lines[-most:]))


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("plain\n", "plain\n"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07shown", "shown"),
        ("\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("10 %\r50 %\r100 %\r\nnext", "100 %\nnext"),
        ("a\x00b\x07c\td", "abc\td"),
    ],
)
def test_a_line_is_readable_without_sequences_and_as_it_was_overwritten_last(text: str, seen: str) -> None:
    assert readable(text) == seen


def test_the_last_lines_have_a_bound_of_characters_too() -> None:
    output = output_of(b"first\nsecond\n" + b"x" * 100 + b"\n")
    assert output.last_lines(50, 20) == ("…" + "x" * 19,)
    assert output.last_lines(50, 120) == ("first", "second", "x" * 100)


def test_endless_output_keeps_to_its_bound() -> None:
    output = BoundedOutput()
    for _ in range(200):
        output.add(b"y\n" * 32_768)
    assert len(output.text()) <= MOST_BYTES + 50
    assert output.total_bytes == 200 * 65_536
    assert "[… 12,107,200 bytes left out here …]" in output.text()
    assert output.last_line() == "y"
