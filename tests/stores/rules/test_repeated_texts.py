"""A text is repeated by an equal one, and by one that contains it, if it is longer than common speech."""

from __future__ import annotations

import pytest

from chorus_cli.stores.rules.purging import Fingerprints, is_part, words_in_line

SHORT = "The gate is red"
LONG = " ".join(f"word{number}" for number in range(20))


@pytest.mark.parametrize(
    ("said", "other", "is_repeated"),
    [
        (SHORT, SHORT, True),
        (SHORT, "  the GATE\n is red ", True),
        (SHORT, f"I wonder:\n  >  the gate\n > is red\nIs that so? {'word ' * 200}", True),
        (SHORT, f"I say “{SHORT}!”, and the wall is green", True),
        (SHORT, "The gate is", False),
        (SHORT, "The gate, but not that, is red", False),
        (LONG, f"before {LONG} after", True),
        (LONG, LONG.removesuffix("9"), False),
        ("ok", "OK", True),
        ("ok", "first\nok\nlast", False),
        ("!?", " !?", True),
        ("", "", False),
    ],
)
def test_a_text_repeats_another(said: str, other: str, *, is_repeated: bool) -> None:
    assert Fingerprints([said]).are_in(other) is is_repeated
    assert Fingerprints(["something else here", said, "another text of some words"]).are_in(other) is is_repeated
    assert Fingerprints([said, *(f"one of many, {number}" for number in range(100))]).are_in(other) is is_repeated


@pytest.mark.parametrize(
    ("text", "is_within"), [("Gate is", True), ("the gate", True), ("ate is", False), ("", False), ("!", False)]
)
def test_a_part_is_some_words_in_a_row(text: str, *, is_within: bool) -> None:
    assert is_part(text, words_in_line(["Nothing", f"{SHORT}!"])) is is_within
