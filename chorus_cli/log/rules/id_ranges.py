"""Ids in a given order, written briefly: runs of neighbours as their first and last."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

Runs = tuple[tuple[int, int], ...]
"""Pairs of the first and the last of ids that follow one another without a gap."""


def runs(ids: Iterable[int]) -> Runs:
    """Write ids as runs; ``expanded`` gives them back in the same order."""
    found: list[tuple[int, int]] = []
    for id_ in ids:
        if found and found[-1][1] + 1 == id_:
            found[-1] = (found[-1][0], id_)
        else:
            found.append((id_, id_))
    return tuple(found)


def expanded(written: Runs) -> tuple[int, ...]:
    """Return the ids that runs stand for, in their order."""
    return tuple(id_ for first, last in written for id_ in range(first, last + 1))
