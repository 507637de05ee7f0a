"""How large a request may be, and what was learned of how a model counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.models.rules import budget as rules
from chorus_cli.models.rules.budget import Budget, Calibration, Limit, Room

LIMIT = Limit(10_000, "a test")


@pytest.mark.parametrize(
    ("threshold", "output", "tokens", "aside", "undone"),
    [
        (0.8, None, 8_000, 7_000, 9_500),
        (0.8, 1_000, 8_000, 7_000, 9_000),
        (0.8, 3_000, 7_000, 6_125, 7_000),
        (0.5, None, 5_000, 4_375, 9_500),
        (0.8, 20_000, 0, 0, 0),
    ],
)
def test_room_is_left_for_the_reply(threshold: float, output: int | None, tokens: int, aside: int, undone: int) -> None:
    allowed = rules.budget(LIMIT, threshold, output, Calibration())
    assert (allowed.tokens, allowed.background_fold_tokens) == (tokens, aside)
    assert rules.budget(LIMIT, threshold, output, Calibration(), fold_is_undone=True).tokens == undone


def test_a_model_that_counts_more_leaves_less_room() -> None:
    allowed = Budget(LIMIT, 8_000, Calibration(1.6))
    assert allowed.room == Room(5_000, 3_125)
    assert allowed.corrected(1_000) == 1_600
    assert allowed.corrected(allowed.room.budget) <= allowed.tokens


@given(st.lists(st.integers(0, 10_000), max_size=6), st.floats(0.8, 2.0))
def test_expected_parts_add_up_to_what_is_expected_of_the_whole(parts: list[int], factor: float) -> None:
    allowed = Budget(LIMIT, 8_000, Calibration(factor))
    expected = allowed.corrected_parts(parts)
    assert sum(expected) == allowed.corrected(sum(parts))
    assert all(abs(got - factor * part) < 1.001 for part, got in zip(parts, expected, strict=True))


@pytest.mark.parametrize(
    ("before", "estimated", "reported", "factor", "error"),
    [
        pytest.param(Calibration(), 1_000, 1_200, 1.2, -0.167, id="the first is taken as it is"),
        pytest.param(Calibration(1.2, 0.0), 1_000, 1_200, 1.2, 0.0, id="as expected"),
        pytest.param(Calibration(1.0, 0.0), 1_000, 1_100, 1.03, -0.091, id="later ones little by little"),
        pytest.param(Calibration(1.1, 0.1), 50, 500, 1.1, 0.1, id="a small request says nothing"),
        pytest.param(Calibration(1.1, 0.1), 1_000, 30, 1.1, 0.1, id="a report without what was cached"),
        pytest.param(Calibration(), 1_000, 9_000, 2.0, -0.889, id="never more than twice"),
        pytest.param(Calibration(), 1_000, 600, 0.8, 0.667, id="never less than four fifths"),
    ],
)
def test_reports_correct_the_estimate(
    before: Calibration, estimated: int, reported: int, factor: float, error: float
) -> None:
    after = rules.learned_calibration(before, estimated, reported)
    assert (round(after.factor, 3), round(after.error or 0, 3)) == (factor, error)


@pytest.mark.parametrize("text", [None, "", "{", "[]", "3", '{"factor": 9, "error": 0}', '{"factor": "x", "error": 0}'])
def test_what_cannot_be_read_counts_as_nothing_learned(text: str | None) -> None:
    assert rules.read_calibration(text) == Calibration()


@given(st.floats(0.8, 2.0), st.none() | st.floats(-1, 5))
def test_what_is_written_is_read_back(factor: float, error: float | None) -> None:
    assert not rules.calibrations_differ(
        rules.read_calibration(rules.written_calibration(Calibration(factor, error))), Calibration(factor, error)
    )
