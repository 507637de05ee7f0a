"""Values of a memory item: what is accepted, and the sentence that refuses the rest."""

from __future__ import annotations

import pytest

from chorus_cli.core.errors import ChorusError, MemoryItemError
from chorus_cli.memory.rules.items import (
    WEIGHTS,
    ItemType,
    Tier,
    checked_content,
    checked_tier,
    checked_type,
    content_hash,
)

EMPTY = "Content cannot be empty or whitespace-only"
TOO_LONG = "Content exceeds maximum length of 100000 characters"


def sentence_of(problem: pytest.ExceptionInfo[MemoryItemError]) -> str:
    assert isinstance(problem.value, ChorusError)
    return str(problem.value)


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("x", "x"),
        ("x" * 100_000, "x" * 100_000),
        ("  " + "x" * 100_000 + "\n\n", "x" * 100_000),
        ("\n  first\n  second \n", "first\n  second"),
    ],
)
def test_content_is_kept_without_the_blanks_around_it(text: str, content: str) -> None:
    assert checked_content(text) == content


@pytest.mark.parametrize(
    ("text", "sentence"), [("", EMPTY), (" ", EMPTY), ("\n\t\u3000", EMPTY), ("x" * 100_001, TOO_LONG)]
)
def test_content_that_is_empty_or_too_long_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(MemoryItemError) as problem:
        checked_content(text)
    assert sentence_of(problem) == sentence


@pytest.mark.parametrize(
    ("text", "item_type"),
    [
        ("TASK", ItemType.TASK),
        ("code", ItemType.CODE),
        ("Error", ItemType.ERROR),
        ("test-result", ItemType.TEST_RESULT),
        (" Test Result ", ItemType.TEST_RESULT),
        ("prd_Section", ItemType.PRD_SECTION),
    ],
)
def test_a_type_is_known_in_any_case_and_with_hyphens(text: str, item_type: ItemType) -> None:
    assert checked_type(text) is item_type


@pytest.mark.parametrize("text", ["", "TASKS", "NOTE", "TEST", "ARCHIVED"])
def test_another_type_is_refused_with_the_list(text: str) -> None:
    with pytest.raises(MemoryItemError) as problem:
        checked_type(text)
    listed = "Invalid item type, must be one of: TASK, CODE, ERROR, TEST_RESULT, PRD_SECTION"
    assert sentence_of(problem) == listed


@pytest.mark.parametrize("tier", Tier)
def test_a_tier_is_known_in_any_case(tier: Tier) -> None:
    assert checked_tier(tier.lower()) is checked_tier(tier) is tier


def test_another_tier_is_refused_with_the_list() -> None:
    with pytest.raises(MemoryItemError) as problem:
        checked_tier("lukewarm")
    assert sentence_of(problem) == "Tier must be one of: HOT, WARM, COLD"


def test_types_have_the_weights_of_the_design() -> None:
    assert [*WEIGHTS.values()] == [1.0, 0.8, 0.7, 0.6, 0.5]
    assert list(ItemType) == ["TASK", "CODE", "ERROR", "TEST_RESULT", "PRD_SECTION"]


def test_equal_contents_have_equal_hashes_and_any_text_has_one() -> None:
    texts = ["", "a", "A", "a ", "ä", "\ud800", "x" * 100_000]
    assert len({content_hash(text) for text in texts}) == len(texts)
    assert content_hash("a") == content_hash("a")
    assert len(content_hash("a")) == 64
