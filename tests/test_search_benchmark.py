"""The benchmark of the search runs, and finds what its reference finds."""

from __future__ import annotations

from benchmarks import search


def test_the_search_is_measured_against_like() -> None:
    found = list(search.compare(search.Sizes(messages=50, rounds=1)))
    assert [shown.name for shown in found] == [
        "search 50 messages for a word",
        "search 50 messages for a part of a Chinese sentence",
    ]
    assert {shown.reference for shown in found} == {"LIKE"}
    assert all(shown.value > 0 for shown in found)
