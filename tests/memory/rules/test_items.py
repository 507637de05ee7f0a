"""Values of a memory item: what is accepted, scores and tiers, checkpoints, and which text may replace which."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from chorus_cli.core.errors import MemoryItemError
from chorus_cli.memory.rules import items as rules
from chorus_cli.memory.rules import recall
from chorus_cli.memory.rules.items import Item, ItemType, Source, Tier
from tests.fakes import START
from tests.memory.remembered import item

EMPTY = "Content cannot be empty or whitespace-only"
TOO_LONG = "Content exceeds maximum length of 100000 characters"


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
    assert rules.checked_content(text) == content


@pytest.mark.parametrize(
    ("text", "sentence"), [("", EMPTY), (" ", EMPTY), ("\n\t\u3000", EMPTY), ("x" * 100_001, TOO_LONG)]
)
def test_content_that_is_empty_or_too_long_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(MemoryItemError, match=f"^{sentence}$"):
        rules.checked_content(text)


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
    assert rules.checked_type(text) is item_type


@pytest.mark.parametrize("tier", Tier)
def test_a_tier_is_known_in_any_case(tier: Tier) -> None:
    assert rules.checked_tier(tier.lower()) is rules.checked_tier(tier) is tier


def test_another_tier_is_refused_with_the_list() -> None:
    with pytest.raises(MemoryItemError, match=r"^Tier must be one of: HOT, WARM, COLD$"):
        rules.checked_tier("lukewarm")


def test_equal_contents_have_equal_hashes_and_any_text_has_one() -> None:
    texts = ["", "a", "A", "a ", "ä", "\ud800", "x" * 100_000]
    assert len({rules.content_hash(text) for text in texts}) == len(texts)
    assert rules.content_hash("a") == rules.content_hash("a")
    assert len(rules.content_hash("a")) == 64


ACCESSES = (0, 1, 54, 403, 10_000)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
UNITS = {"s": timedelta(seconds=1), "h": HOUR, "d": DAY}
SCORES = """
TASK         0 s   0.800000 0.813863 0.880147 0.920028 0.984209
TASK         1 h   0.791753 0.805616 0.871900 0.911781 0.975962
TASK         1 d   0.642612 0.656475 0.722759 0.762641 0.826821
TASK         7 d   0.412079 0.425942 0.492226 0.532107 0.596288
TASK         30 d  0.400000 0.413863 0.480147 0.520028 0.584209
TASK         -1 d  0.800000 0.813863 0.880147 0.920028 0.984209
CODE         1 d   0.562612 0.576475 0.642759 0.682641 0.746821
CODE         30 d  0.320000 0.333863 0.400147 0.440028 0.504209
ERROR        1 d   0.522612 0.536475 0.602759 0.642641 0.706821
ERROR        30 d  0.280000 0.293863 0.360147 0.400028 0.464209
TEST_RESULT  1 d   0.482612 0.496475 0.562759 0.602641 0.666821
TEST_RESULT  30 d  0.240000 0.253863 0.320147 0.360028 0.424209
PRD_SECTION  1 d   0.442612 0.456475 0.522759 0.562641 0.626821
PRD_SECTION  30 d  0.200000 0.213863 0.280147 0.320028 0.384209
"""


def rows() -> list[tuple[ItemType, timedelta, list[str]]]:
    cells = [line.split() for line in SCORES.strip().splitlines()]
    return [(ItemType(name), int(number) * UNITS[unit], scores) for name, number, unit, *scores in cells]


@pytest.mark.parametrize(("item_type", "age", "scores"), rows())
def test_scores_to_six_decimals(item_type: ItemType, age: timedelta, scores: list[str]) -> None:
    computed = [rules.importance(item_type, START - age, number, START) for number in ACCESSES]
    assert [f"{score.total:.6f}" for score in computed] == scores


def test_a_score_shows_its_weighted_parts_and_counts_no_accesses_below_zero() -> None:
    score = rules.importance(ItemType.CODE, START - 2 * DAY, 9, START)
    assert [f"{part:.6f}" for part in score] == ["0.320000", "0.147152", "0.046052"]
    assert f"{score.total:.6f}" == "0.513203"
    assert rules.importance(ItemType.TASK, START, -5, START) == rules.importance(ItemType.TASK, START, 0, START)


@given(st.sampled_from(ItemType), st.timedeltas(-4000 * DAY, 4000 * DAY), st.integers(-10, 10**12))
def test_a_score_is_never_outside_its_bounds(item_type: ItemType, age: timedelta, accesses: int) -> None:
    assert 0.0 <= rules.importance(item_type, START - age, accesses, START).total <= 1.0


@pytest.mark.parametrize(
    ("score", "tier"),
    [
        (1.0, Tier.HOT),
        (0.8, Tier.HOT),
        (0.4 + 0.2 + 0.2, Tier.HOT),
        (0.1 * 8 - 1e-16, Tier.HOT),
        (0.799999, Tier.WARM),
        (0.7999999999, Tier.WARM),
        (0.4, Tier.WARM),
        (0.7 - 0.3, Tier.WARM),
        (0.399999, Tier.COLD),
        (0.0, Tier.COLD),
    ],
)
def test_the_tier_of_a_score(score: float, tier: Tier) -> None:
    assert rules.tier_of(score) is tier
    assert rules.tier_of(score, pinned=True) is Tier.HOT


def test_a_fresh_task_is_hot_without_an_access_for_less_than_a_microsecond() -> None:
    def tier(age: timedelta, accesses: int) -> Tier:
        return rules.tier_of(rules.importance(ItemType.TASK, START - age, accesses, START).total)

    assert tier(timedelta(), 0) is Tier.HOT
    assert tier(timedelta(microseconds=1), 0) is Tier.WARM
    assert tier(HOUR, 1) is Tier.HOT
    assert tier(30 * DAY, 10_000) is Tier.WARM


@pytest.mark.parametrize(
    ("pinned", "age", "tier"), [(False, timedelta(), Tier.WARM), (False, 7 * DAY, Tier.COLD), (True, 7 * DAY, Tier.HOT)]
)
def test_a_renewal_changes_score_and_tier_only(pinned: bool, age: timedelta, tier: Tier) -> None:  # noqa: FBT001 - a cell
    old = item(item_type=ItemType.PRD_SECTION, pinned=pinned, age=age, accesses=1, accessed=START - age)
    new = rules.renewed(old, START)
    assert new.tier is tier
    assert new.importance_score == rules.importance(ItemType.PRD_SECTION, START - age, 1, START).total
    assert new._replace(importance_score=old.importance_score, tier=old.tier) == old


def test_an_access_is_counted_dated_and_renews_unless_the_item_is_archived() -> None:
    old = item(accesses=0, age=HOUR, accessed=START - HOUR)
    new = rules.accessed(old, START)
    assert (new.access_count, new.last_accessed, new.tier) == (1, START, Tier.HOT)
    assert f"{new.importance_score:.6f}" == "0.805616"
    old = item(tier=Tier.ARCHIVED, pinned=True, score=0.1)
    assert rules.renewed(old, START) is old
    assert rules.accessed(old, START) == old._replace(access_count=1, last_accessed=START)


NOW = datetime(2025, 11, 14, 12, 30, 0, 999, tzinfo=timezone(timedelta(hours=1)))
ITEMS = [
    item(125, "boom", ItemType.ERROR, score=0.25, tier=Tier.COLD, tokens=5),
    item(123, "call the plumber", ItemType.TASK, score=0.95, tier=Tier.HOT, tokens=10),
    item(124, "x = 1", ItemType.CODE, score=0.65, tier=Tier.WARM, tokens=20),
    item(120, "long ago", ItemType.TASK, score=0.1, tier=Tier.ARCHIVED, tokens=400),
    item(126, "ok", ItemType.TEST_RESULT, score=0.2799999999, tier=Tier.COLD, tokens=None),
]
DOCUMENT = {
    "agent_id": "frodo",
    "context_state": {
        "hot_items": [{"id": 123, "type": "TASK", "content": "call the plumber", "score": 0.95}],
        "warm_items": [{"id": 124, "type": "CODE", "content": "x = 1", "score": 0.65}],
        "cold_items": [
            {"id": 125, "type": "ERROR", "content": "boom", "score": 0.25},
            {"id": 126, "type": "TEST_RESULT", "content": "ok", "score": 0.28},
        ],
    },
    "metrics": {"total_items": 4, "hot_count": 1, "warm_count": 1, "cold_count": 2, "total_tokens": 35},
    "timestamp": "2025-11-14T11:30:00Z",
}
items_of_any_content = st.lists(
    st.builds(item, st.integers(1, 99), st.text(), st.sampled_from(ItemType), tier=st.sampled_from(Tier)),
    unique_by=lambda each: each.id,
)


def test_a_checkpoint_has_the_shape_of_the_original_and_is_read_back_also_after_a_purge() -> None:
    text = rules.checkpoint_json("frodo", ITEMS, NOW)
    assert json.loads(text) == DOCUMENT
    assert list(json.loads(text)) == list(DOCUMENT)
    assert rules.ids_in(json.dumps(DOCUMENT)) == {123, 124, 125, 126}
    empty: dict[str, list[object]] = {f"{tier}_items": [] for tier in ("hot", "warm", "cold")}
    assert rules.ids_in(json.dumps(DOCUMENT | {"context_state": empty})) == set()


@given(items_of_any_content)
def test_no_item_is_lost_in_a_checkpoint(items: list[Item]) -> None:
    active = {each.id for each in items if each.tier is not Tier.ARCHIVED}
    assume(active)
    text = rules.checkpoint_json("frodo", items, START)
    assert rules.ids_in(text) == active
    cold = json.loads(text)["context_state"]["cold_items"]
    assert {each["id"]: each["content"] for each in cold} == {
        each.id: each.content for each in items if each.tier is Tier.COLD
    }


@pytest.mark.parametrize(
    "text", ["", "{", "[" * 100_000, "[]", "{}", '{"context_state": {"cold_items": null}}', '{"context_state": 5}']
)
def test_another_text_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(MemoryItemError, match=r"^The checkpoint cannot be read: it is not valid\."):
        rules.ids_in(text)


@pytest.mark.parametrize(
    ("before", "after", "percentage"), [(1000, 250, 75.0), (3, 2, 33.33), (10, 10, 0.0), (10, 0, 100.0), (0, 0, 0.0)]
)
def test_the_reduction_is_in_percent_of_the_tokens_before(before: int, after: int, percentage: float) -> None:
    report = rules.FlashReport(1, START, 4, 2, 1, before, after)
    assert report.reduction_percentage == percentage


def test_totals_are_those_of_active_items() -> None:
    tiers = {Tier.HOT: (1, 10), Tier.WARM: (1, 20), Tier.COLD: (2, 5), Tier.ARCHIVED: (1, 400)}
    totals = {tier: rules.TierTotal(*total) for tier, total in tiers.items()}
    assert rules.MemoryStatistics("frodo", totals, START).as_json() == {
        "persona": "frodo",
        "total_items": 4,
        "hot_count": 1,
        "warm_count": 1,
        "cold_count": 2,
        "archived_count": 1,
        "total_tokens": 35,
        "hot_tokens": 10,
        "warm_tokens": 20,
        "cold_tokens": 5,
        "archived_tokens": 400,
        "last_updated": "2026-02-12T14:30:00.000000Z",
    }


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
    assert rules.nearest(one, [(7, other)]) == rules.nearest(other, [(7, one)]) == (7 if is_near else 0)


@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize("of", Source)
@pytest.mark.parametrize("by", Source)
def test_no_model_replaces_what_is_pinned_and_no_text_of_a_tool_or_file_what_the_user_said(
    of: Source, by: Source, *, pinned: bool
) -> None:
    is_refused = by is not Source.YOU and (pinned or (of is Source.YOU and by in {Source.TOOL, Source.FILE}))
    reason = rules.why_kept(item(12, origin=of, pinned=pinned), by)
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
    assert rules.source_of_successor(by, item(origin=of)) is kept


def test_a_text_takes_the_keys_of_the_one_before_it_unless_it_has_its_own() -> None:
    assert recall.keyed_as("Keys: storm, wind\nNine days.", "Ten days.") == "Keys: storm, wind\nTen days."
    assert recall.keyed_as("Keys: storm\nNine days.", "Keys: gale\nTen days.") == "Keys: gale\nTen days."
    assert recall.keyed_as("Nine days.", "Ten days.") == "Ten days."
