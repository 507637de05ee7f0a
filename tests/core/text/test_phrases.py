"""Phrases of sentences: lists of names, and texts whose middle is left out, which says how much is gone."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.text.phrases import cut_in_the_middle, enumerated
from tests.fakes import WordCounter

COUNT = WordCounter().count
MARK = re.compile(r"\n\[… ([0-9,]+) tokens left out here …\]\n")
MARK_TOKENS = 7


@pytest.mark.parametrize(
    ("names", "word", "written"),
    [
        ((), "and", ""),
        (("#1",), "or", "#1"),
        (("#1", "#2"), "and", "#1 and #2"),
        (("#1", "#2", "#3"), "and", "#1, #2 and #3"),
        (("#1", "#2", "#3"), "or", "#1, #2 or #3"),
    ],
)
def test_the_last_of_several_names_follows_a_word(names: tuple[str, ...], word: str, written: str) -> None:
    assert enumerated(names, word) == written


@given(st.text(alphabet="ab \n", max_size=400), st.integers(0, 120))
def test_what_stays_fits_and_is_of_the_text(text: str, allowed: int) -> None:
    whole = COUNT(text)
    shortened = cut_in_the_middle(text, whole, allowed, COUNT)
    if whole <= allowed:
        assert shortened == text
        return
    head, number, tail = MARK.split(shortened)
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + len(tail) < len(text)
    assert COUNT(shortened) <= max(allowed, MARK_TOKENS)
    assert int(number.replace(",", "")) == max(1, whole - COUNT(head) - COUNT(tail))
