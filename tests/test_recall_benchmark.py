"""The benchmark of the memory fills it as the program does, and measures the assembly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks import recall
from benchmarks.stored_log import PERSONA, stored_log
from chorus_cli.log.rows import operation_rows
from chorus_cli.memory.rows import item_rows

if TYPE_CHECKING:
    from pathlib import Path


def test_assembling_with_a_large_memory_is_measured_against_a_small_one() -> None:
    (found,) = recall.compare(recall.Sizes(messages=4, few=1, many=5, rounds=1))
    assert found.name == "assembling with 5 memory items"
    assert found.value > 0


def test_each_item_is_captured_in_an_operation_of_its_own(tmp_path: Path) -> None:
    with stored_log(tmp_path / "chorus.db", []) as connection:
        recall.fill_memory(connection, 3)
        assert item_rows.number(connection, PERSONA) == 3
        acts = [operation.act.describe() for operation in operation_rows.all_of(connection, PERSONA, None)]
    assert [act.split()[:2] for act in acts] == [["captured", f"#{number}"] for number in (1, 2, 3)]
