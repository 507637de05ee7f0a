"""Ids written as runs come back as they were."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.log.rules.messages import expanded, runs


@pytest.mark.parametrize(
    ("ids", "written"),
    [
        ((), ()),
        ((7,), ((7, 7),)),
        ((1, 2, 3), ((1, 3),)),
        ((1, 2, 5, 6), ((1, 2), (5, 6))),
        ((3, 2, 1), ((3, 3), (2, 2), (1, 1))),
    ],
)
def test_neighbours_are_one_run(ids: tuple[int, ...], written: tuple[tuple[int, int], ...]) -> None:
    assert runs(ids) == written


@given(st.lists(st.integers(1, 40), max_size=60))
def test_they_come_back_in_their_order(ids: list[int]) -> None:
    assert expanded(runs(ids)) == tuple(ids)
