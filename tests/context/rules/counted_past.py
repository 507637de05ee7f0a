"""A past whose messages the database counts without reading them, as the core does from the messages."""

from __future__ import annotations

from datetime import timedelta

from hypothesis.stateful import invariant

from chorus_cli.context.rows.thread_views import window_fill
from chorus_cli.core.time.timestamps import cutoff
from chorus_cli.log.rows import message_rows, operation_rows
from chorus_cli.log.rules.journal import log_marks
from chorus_cli.log.rules.messages import is_written
from tests.context.rules.imported_past import ImportedPast
from tests.context.rules.naive_view import PLACES, naive_last_spoken, said_in
from tests.log.rows.views import view_in


class CountedPast(ImportedPast):
    """Holds the counts and times of the database to the core."""

    @invariant()
    def the_counts_of_windows_are_those_of_their_views(self) -> None:
        for place in PLACES:
            cutoffs = cutoff(self.now, self.hours[place.persona]), cutoff(self.now, 168)
            fill = window_fill(self.connection, place.persona, place.thread, *cutoffs)
            views = (view_in(self.connection, place.persona, place.thread, since) for since in cutoffs)
            assert [fill.held, fill.reachable] == [sum(map(is_written, seen.messages)) for seen in views]

    @invariant()
    def the_times_are_those_of_what_was_neither_taken_back_nor_replaced(self) -> None:
        for place in PLACES:
            since = cutoff(self.now, self.hours[place.persona])
            rows = message_rows.rows(self.connection, [row.id for row in said_in(self.past, place.thread)])
            marks = log_marks(operation_rows.all_of(self.connection, place.persona, place.thread), place.thread)
            counting = [row for row in rows if row.revises is None and not marks.words(row) and row.timestamp > since]
            found = operation_rows.moments(self.connection, place.persona, place.thread, since)
            assert sorted(found) == sorted(row.timestamp for row in counting)

    @invariant()
    def the_last_time_is_that_of_the_newest_message_that_was_said_or_imported(self) -> None:
        for place in PLACES:
            found = operation_rows.last_spoken_at(self.connection, place.thread)
            expected = naive_last_spoken(self.past, place)
            assert (found is None) == (expected is None)
            # Of times in one second the text decides, which may have fewer digits.
            assert found is None or expected is None or abs(found - expected) < timedelta(seconds=1)
