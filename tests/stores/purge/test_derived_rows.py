"""Summaries that were made of a purged one go with it, however little of it they have; older ones and others stay."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from chorus_cli.context.rows import snapshot_rows
from chorus_cli.context.rules.view import Summary
from chorus_cli.log.rows import message_rows, operation_rows
from chorus_cli.log.rules.acts import Fold, Fork
from chorus_cli.log.rules.messages import MessageContent, Role, runs
from chorus_cli.log.rules.operations import NewOperation
from chorus_cli.stores.purge.concerned import concerned
from chorus_cli.stores.rules.purging import WantedPurge
from tests.fakes import START
from tests.storage.database import database

if TYPE_CHECKING:
    import sqlite3

    from chorus_cli.log.rules.log_acts import Act


def summarise(connection: sqlite3.Connection, act: Act, thread: int, base: int | None, text: str) -> None:
    """Store an operation with its summary; the first of them have the ids 1, 2 and so on."""
    operation = operation_rows.introduce(connection, NewOperation("frodo", act, START, thread))
    snapshot_rows.store(connection, "frodo", thread, Summary(operation.id, base, runs([1]), text, 3, "m", START))


@pytest.mark.parametrize(
    ("wanted", "gone"),
    [
        (WantedPurge(frozenset({1})), {1, 2, 4}),
        (WantedPurge(frozenset({2})), {2}),
        (WantedPurge(words="mill"), {1, 2, 4}),
        (WantedPurge(words="wind"), {2}),
        (WantedPurge(frozenset({3})), {3}),
        (WantedPurge(frozenset({4})), set()),
    ],
)
def test_a_purged_summary_takes_later_ones_and_copies_with_it(wanted: WantedPurge, gone: set[int]) -> None:
    with closing(database()) as connection:
        for number, thread in enumerate((1, 1, 2, 2)):
            said = MessageContent(thread, Role.USER, f"said {number}", START + timedelta(minutes=number), token_count=3)
            message_rows.insert_row(connection, "frodo", said)
        summarise(connection, Fold(runs([1])), 1, None, "About a mill.")
        summarise(connection, Fold(runs([2])), 1, None, "About the wind.")
        summarise(connection, Fold(runs([3])), 2, None, "About the sea.")
        summarise(connection, Fork((), 1, 1, 0), 3, 4, "About a mill.")
        assert concerned(connection, wanted).ids.summaries == gone
