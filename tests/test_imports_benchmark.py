"""The benchmark of imports runs, and all that it writes comes in."""

from __future__ import annotations

from benchmarks import imports


def test_an_import_is_measured_by_memory_time_and_a_search() -> None:
    memory, speed, searched = imports.compare(100_000)
    assert (memory.reference_value, memory.is_met) == (imports.MEMORY_CEILING_MEBIBYTES, True)
    assert "a second" in speed.name
    assert (searched.reference, searched.value > 0) == ("LIKE", True)
