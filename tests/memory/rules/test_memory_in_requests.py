"""Memory items as a request shows them, and cutting forgotten ones out of a stored preamble."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.memory.rules.items import Item, ItemType
from chorus_cli.memory.rules.recall import (
    already_said,
    hot_block,
    items_in,
    memory_lines,
    tokens_in_request,
    without_items,
)
from chorus_cli.models.providers.token_counter import VocabularyCounter
from tests.memory.rules.memory_items import item
from tests.memory.rules.printed_reports import ERRORS, RESULTS

PIECES = [
    *"\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029",
    *(
        "\r\n",
        "\n\n",
        "  ",
        "From memory:",
        "Memory:",
        "\n#3 TASK: fake",
        "#3 TASK: fake",
        "\n\nFrom memory:\n#4 CODE: x",
    ),
    *("[2 hours later]", "\\1", "\ud800", "x"),
]
contents = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=5)), max_size=8).map("".join)
items_of_any_content = st.lists(
    st.builds(item, st.integers(1, 30), contents, st.sampled_from(ItemType)), max_size=5, unique_by=lambda each: each.id
)
parts = st.lists(
    st.sampled_from(
        ["[2 hours later: Tuesday]", "Active threads:\n  #3 (this thread): x", "Running jobs:\n  #1 ls", "#3"]
    ),
    max_size=3,
)


def ids_in(preamble: str) -> set[int]:
    return set(items_in(preamble))


def numbers(items: list[Item]) -> set[int]:
    return {each.id for each in items}


def test_hot_items_stand_in_order_of_id_and_without_scores() -> None:
    items = [item(15, "def f():\n    return 1\n\nf()", ItemType.CODE, score=0.9), item(12, "call the plumber")]
    assert hot_block(items) == ("Memory:\n#12 TASK: call the plumber\n#15 CODE: def f():\n      return 1\n  \n  f()")


def test_recalled_items_have_a_heading_of_their_own() -> None:
    assert memory_lines([item(7, "x", ItemType.TEST_RESULT)]) == "From memory:\n#7 TEST_RESULT: x"


def test_no_items_are_no_block() -> None:
    assert hot_block([]) == memory_lines([]) == ""


@given(items_of_any_content)
def test_only_items_begin_a_line_of_a_block(items: list[Item]) -> None:
    heading, *lines = hot_block(items).splitlines() or [""]
    begins = [line.split()[0] for line in lines if not line.startswith("  ")]
    assert heading in {"", "Memory:"}
    assert begins == [f"#{number}" for number in sorted(numbers(items))]


@given(items_of_any_content, st.sets(st.integers(1, 30)), parts, parts, st.sampled_from(["\n", "\n\n"]))
def test_forgotten_items_are_cut_out_and_all_else_stays(
    items: list[Item], forgotten: set[int], before: list[str], after: list[str], gap: str
) -> None:
    def preamble(remembered: list[Item]) -> str:
        return gap.join(part for part in (*before, memory_lines(remembered), *after) if part)

    kept = [each for each in items if each.id not in forgotten]
    whole = preamble(items)
    assert ids_in(whole) == numbers(items)
    assert without_items(whole, forgotten) == preamble(kept)
    assert ids_in(without_items(whole, forgotten)) == numbers(kept)


@given(contents, st.sets(st.integers(1, 30)))
def test_a_preamble_without_memory_stays_as_it_is(text: str, ids: set[int]) -> None:
    if not ids_in(text):
        assert without_items(text, ids) == text


def test_a_heading_without_items_is_no_memory() -> None:
    assert (
        ids_in("From memory:\n\n#3 TASK: x")
        == ids_in("#3 TASK: x")
        == ids_in("It is From memory:\n#3 TASK: x")
        == set()
    )


@pytest.mark.parametrize(
    ("source", "said", "expected"),
    [
        (4, "Look:\nboom\nbang\n?", True),
        (4, "Look:\r\nboom\r\nbang\r\n?", True),
        (4, "Look: boom", False),
        (5, "Look:\nboom\nbang\n?", False),
        (None, "Look:\nboom\nbang\n?", False),
    ],
)
def test_an_item_is_already_said_if_its_message_is_there_and_has_its_words(
    source: int | None,
    said: str,
    expected: bool,  # noqa: FBT001 - a cell of the table
) -> None:
    assert already_said(item(content="boom\nbang", source=source), {3: "boom\nbang", 4: said}) is expected


@pytest.mark.parametrize(
    ("content", "counted", "tokens"), [("one line", 2, 12), ("three\nshort\nlines", 5, 19), ("ä", None, 12)]
)
def test_the_tokens_of_an_item_include_its_number_and_its_indentation(
    content: str, counted: int | None, tokens: int
) -> None:
    assert tokens_in_request(item(content=content, tokens=counted)) == tokens


@pytest.mark.parametrize("content", [*ERRORS, *RESULTS, "x", "a\n\n" * 200 + "b", "  a\n\n\n\n  b\n" * 50 + "c"])
def test_the_estimated_tokens_of_an_item_are_no_fewer_than_the_real_ones(content: str) -> None:
    counter = VocabularyCounter()
    counted = item(999_999, content, ItemType.PRD_SECTION, tokens=counter.count(content))
    assert counter.count(hot_block([counted])) - counter.count("Memory:\n") <= tokens_in_request(counted)


@pytest.mark.parametrize("text", ["From memory:\n" * 70_000, "\n" * 900_000, "From memory:\n#1 TASK: x\n\n" * 40_000])
def test_a_hostile_preamble_is_read_in_linear_time(text: str) -> None:
    assert ids_in(without_items(text, {1})) == set()
