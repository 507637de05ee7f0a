"""Lists of names in a sentence."""

from __future__ import annotations

import pytest

from chorus_cli.core.text.phrases import enumerated


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
