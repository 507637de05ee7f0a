"""A text of eight words is repeated by a part of it, a shorter one only by an equal text or by lines of their own."""

from __future__ import annotations

import pytest

from chorus_cli.stores.rules.traces import RUN_WORDS, Traces

SHORT = "The gate is red"
SEVEN = "one two three four five six seven"
EIGHT = f"{SEVEN} eight"


@pytest.mark.parametrize(
    ("said", "other", "is_repeated"),
    [
        (SHORT, SHORT, True),
        (SHORT, "  the GATE\n is red ", True),
        (SHORT, f"I wonder:\n{SHORT}\nIs that so?", True),
        (SHORT, "I wonder:\n  >  the gate   is red\nIs that so?", True),
        (SHORT, f"- “{SHORT}”\n- and blue", True),
        (SHORT, f"before\n\nThe gate\nis red\n\nafter {'word ' * 200}", True),
        ("The gate\nis red", f"before\n> The gate\n> is red\n{'word ' * 200}", True),
        (SHORT, f"thread #2, 2026-02-12 10:00, Human: {SHORT}\nthread #2, 2026-02-12 10:01, Human: x", True),
        (SHORT, f"[2026-02-12 10:00] Human: {SHORT}", True),
        (SHORT, f"From memory:\n#12 TASK: {SHORT}\n#13 TASK: x", True),
        (SHORT, f"I say {SHORT}", False),
        (SHORT, f"{SHORT}, and the wall is green", False),
        (SHORT, f"#12 people say: {SHORT}", False),
        (SHORT, "The gate\n\nbut not that\nis red", False),
        (SEVEN, f"before {SEVEN} after", False),
        (EIGHT, f"before {EIGHT} after", True),
        ("ok", "OK", True),
        ("ok", "first\nok\nlast", False),
    ],
)
def test_a_text_repeats_another(said: str, other: str, *, is_repeated: bool) -> None:
    assert Traces([said]).are_in(other) is is_repeated
    assert Traces(["something else here", said, "word " * RUN_WORDS * 2]).are_in(other) is is_repeated


@pytest.mark.parametrize("said", [SHORT, SEVEN, EIGHT])
def test_a_text_that_has_the_words_somewhere_has_a_run_of_them(said: str) -> None:
    assert Traces([said]).have_run_in(f"before {said.upper()} after")
    assert not Traces([said]).have_run_in("something else")


@pytest.mark.parametrize(("said", "is_short"), [(SHORT, True), (SEVEN, True), (EIGHT, False), ("ok", False)])
def test_only_short_texts_may_be_held_without_being_repeated(said: str, *, is_short: bool) -> None:
    assert Traces([said]).are_of_short_texts is is_short
