"""Which text may replace which item, and which texts are near each other."""

from __future__ import annotations

import pytest

from chorus_cli.memory.rules.items import Source
from chorus_cli.memory.rules.replacing import NEAR_SHARE, keyed_as, shared, source_of_successor, why_kept, words_of
from tests.memory.remembered import item


@pytest.mark.parametrize(
    ("one", "other", "is_near"),
    [
        ("The office is in Leeds.", "the office is in York", True),
        ("The office is in Leeds.", "in Leeds, the office is", True),
        ("I live in Leeds", "I live in York", False),
        ("the cat eats fish", "the cat eats fish every day at noon", False),
        ("the the the the cat", "the cat", False),
        ("東京に住んでいる", "東京に住んでいた", True),
        ("東京に住んでいる", "大阪で働いている", False),
        ("", "", False),
    ],
)
def test_texts_are_near_if_they_have_the_same_words_but_for_a_fifth(one: str, other: str, *, is_near: bool) -> None:
    share = shared(words_of(one), words_of(other))
    assert share == shared(words_of(other), words_of(one))
    assert (share >= NEAR_SHARE) == is_near


@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize("of", Source)
@pytest.mark.parametrize("by", Source)
def test_no_model_replaces_what_is_pinned_and_no_text_of_a_tool_or_file_what_the_user_said(
    of: Source, by: Source, *, pinned: bool
) -> None:
    is_refused = by is not Source.YOU and (pinned or (of is Source.YOU and by in {Source.TOOL, Source.FILE}))
    reason = why_kept(item(12, origin=of, pinned=pinned), by)
    assert bool(reason) == is_refused
    assert reason.endswith("Only the user can replace it, with /memory replace 12 TEXT." if is_refused else "")


@pytest.mark.parametrize(
    ("of", "by", "kept"),
    [
        (Source.TOOL, Source.MODEL, Source.TOOL),
        (Source.FILE, Source.MODEL, Source.FILE),
        (Source.YOU, Source.MODEL, Source.MODEL),
        (Source.FILE, Source.TOOL, Source.TOOL),
        (Source.TOOL, Source.YOU, Source.YOU),
    ],
)
def test_a_model_that_rewords_the_text_of_a_tool_does_not_make_it_its_own(of: Source, by: Source, kept: Source) -> None:
    assert source_of_successor(by, item(origin=of)) is kept


def test_a_text_takes_the_keys_of_the_one_before_it_unless_it_has_its_own() -> None:
    assert keyed_as("Keys: storm, wind\nNine days.", "Ten days.") == "Keys: storm, wind\nTen days."
    assert keyed_as("Keys: storm\nNine days.", "Keys: gale\nTen days.") == "Keys: gale\nTen days."
    assert keyed_as("Nine days.", "Ten days.") == "Ten days."
