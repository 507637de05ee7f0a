"""The benchmark of an endless talk measures it from inside, and compares its end with its beginning."""

from __future__ import annotations

import pytest

from benchmarks import endurance


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def test_a_talk_tells_how_its_turns_went() -> None:
    with endurance.serving() as address, endurance.talking(address) as talk:
        stretch = talk.take(2)
    assert len(stretch.seconds) == 2
    assert stretch.mebibytes > 10
    assert stretch.descriptors > 3


@pytest.mark.slow
def test_the_end_of_a_talk_is_measured_against_its_beginning() -> None:
    found = list(endurance.compare(4, 1, early_turn=2))
    assert [shown.name for shown in found] == ["turn 4", "memory after turn 4", "open descriptors after turn 4"]
    assert all(shown.ratio > 0 for shown in found)
