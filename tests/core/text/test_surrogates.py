"""Halves of surrogate pairs, and what else could not be stored or encoded."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.text.code_points import cleaned_input, join_surrogates
from tests.amount import examples
from tests.core.text.hostile_text import CANCEL, FLAG, any_character, fed, tags


def surrogate_halves(text: str) -> list[str]:
    encoded = text.encode("utf-16-le")
    return [encoded[start : start + 2].decode("utf-16-le", "surrogatepass") for start in range(0, len(encoded), 2)]


def test_tags_sent_as_surrogate_halves_are_decoded() -> None:
    shown, stream = fed(surrogate_halves(tags("ls")))
    assert (shown, stream.hidden_count, stream.decoded_tags) == ("", 2, "ls")


def test_the_longest_flag_sent_as_surrogate_halves_is_kept() -> None:
    flag = FLAG + tags("gbengl") + CANCEL
    shown, stream = fed(surrogate_halves(flag + flag))
    assert (shown, stream.hidden_count) == (flag + flag, 0)


@pytest.mark.parametrize(
    ("raw", "joined"),
    [
        ("plain \U0001f600", "plain \U0001f600"),
        ("\ud83d\ude00", "\U0001f600"),
        ("\ud83d \ude00", "\ufffd \ufffd"),
        ("\ud83d\ud83d\ude00\ude00", "\ufffd\U0001f600\ufffd"),
        ("bad byte \udcff", "bad byte \ufffd"),
    ],
)
def test_surrogate_pairs_are_joined_and_lone_ones_replaced(raw: str, joined: str) -> None:
    assert join_surrogates(raw) == joined


@examples(200)
@given(st.text(any_character))
def test_joined_text_can_be_encoded_and_keeps_what_could_be_already(text: str) -> None:
    joined = join_surrogates(text)
    joined.encode()
    assert re.sub("\ufffd|[^\0-\uffff]", "", joined) == re.sub("[\ud800-\udfff\ufffd]|[^\0-\uffff]", "", text)


@pytest.mark.parametrize(
    ("raw", "cleaned"),
    [
        ("as it is\n\x1b[31m\u202e\u200b", ("as it is\n\x1b[31m\u202e\u200b", False)),
        ("a\r\nb\rc\n", ("a\nb\nc\n", False)),
        ("\ud83d\ude00", ("\U0001f600", False)),
        ("\udcff", ("\ufffd", True)),
        ("already \ufffd", ("already \ufffd", False)),
        ("nul\0here", ("nul\u2400here", True)),
        ("", ("", False)),
    ],
)
def test_input_is_cleaned_only_where_it_could_not_be_stored(raw: str, cleaned: tuple[str, bool]) -> None:
    assert cleaned_input(raw) == cleaned
