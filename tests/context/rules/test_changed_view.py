"""The view of what an edit, a restore or a retry has put in the place of something else."""

from __future__ import annotations

from chorus_cli.context.rules.view import view
from chorus_cli.core.time.timestamps import cutoff
from chorus_cli.log.rules.acts import Restore, Undo
from chorus_cli.log.rules.journal import thread_journal
from tests.context.rules.small_logs import NOW, ago, boundary, clear, ids, in_view, retry, reversal, row, turn

# Edit and restore


def test_what_an_edit_put_in_stands_in_the_order_of_the_edit() -> None:
    assert in_view([*turn(1), *turn(3), *turn(5)], boundary(1, after=4, members=(4, 1))) == [4, 1, 5, 6]


def test_old_messages_count_as_having_entered_when_the_edit_was_made() -> None:
    log = turn(1, ago(500))
    assert in_view(log, boundary(1, after=2, members=(1, 2), at=ago(7))) == [1, 2]
    assert in_view(log, boundary(1, after=2, members=(1, 2), at=ago(9))) == []


def test_an_edit_that_left_the_window_is_still_the_boundary() -> None:
    log = [*turn(1, ago(20)), *turn(3, ago(1))]
    assert in_view(log, boundary(1, after=2, members=(1, 2), at=ago(9))) == [3, 4]
    assert in_view(log, boundary(1, after=2, at=ago(9)), hours=100) == [3, 4]


def test_what_an_edit_left_out_stays_out_although_its_turn_is_in() -> None:
    assert in_view([*turn(1), *turn(3)], boundary(1, after=4, members=(1, 4))) == [1, 4]


def test_what_was_said_while_the_editor_was_open_follows_the_edited_messages() -> None:
    file_was_written_after = 2
    assert in_view([*turn(1), *turn(3)], boundary(1, file_was_written_after, members=(2,))) == [2, 3, 4]


def test_what_is_both_in_an_edit_and_after_its_boundary_is_in_view_once() -> None:
    assert in_view([*turn(1), *turn(3)], boundary(1, after=0, members=(3, 4))) == [3, 4, 1, 2]


def test_later_rows_of_a_turn_that_an_edit_kept_are_in() -> None:
    assert in_view([row(1, 1), row(2, 1), row(3, 1)], boundary(1, after=2, members=(1, 2))) == [1, 2, 3]


def test_a_rewording_is_in_by_its_edit_only() -> None:
    edit = boundary(1, after=2, members=(3, 2))
    log = [*turn(1), row(3, 3, introduced_by=1)]
    assert in_view(log, edit) == [3, 2]
    assert in_view(log, edit, reversal(2, Undo, operation=1)) == [1, 2]


def test_a_restore_puts_into_each_thread_what_belongs_there() -> None:
    log = [*turn(1), *turn(3, thread=2)]
    restore = boundary(1, after=4, members=(3, 1, 4), kind=Restore, thread=None)
    assert in_view(log, restore) == [1]
    assert ids(view(log, thread_journal(2, [restore]), cutoff(NOW, 8))) == [3, 4]


def test_members_that_no_row_is_known_for_are_passed_over() -> None:
    assert in_view(turn(1), boundary(1, after=2, members=(99, 1))) == [1]


def test_a_clear_after_an_edit_takes_its_messages_out_again() -> None:
    assert in_view(turn(1), boundary(1, after=2, members=(1, 2)), clear(2, after=2)) == []


# Retry


def test_a_retry_puts_a_new_reply_in_the_place_of_the_old_one() -> None:
    log = [*turn(1), *turn(3), row(5, 1, introduced_by=1)]
    assert in_view(log, retry(1, 2)) == [1, 5, 3, 4]


def test_undoing_a_retry_brings_the_old_reply_back_and_takes_the_new_one_out() -> None:
    log = [*turn(1), row(3, 1, introduced_by=1)]
    assert in_view(log, retry(1, 2), reversal(2, Undo, operation=1)) == [1, 2]


def test_a_retry_of_a_retry_replaces_the_newest_reply() -> None:
    log = [*turn(1), row(3, 1, introduced_by=1), row(4, 1, introduced_by=2)]
    assert in_view(log, retry(1, 2), retry(2, 3)) == [1, 4]
    assert in_view(log, retry(1, 2), retry(2, 3), reversal(3, Undo, operation=2)) == [1, 3]


def test_an_edit_may_bring_back_what_a_retry_had_replaced() -> None:
    log = [*turn(1), row(3, 1, introduced_by=1)]
    assert in_view(log, retry(1, 2), boundary(2, after=3, members=(1, 2))) == [1, 2]


def test_a_new_reply_from_before_the_boundary_does_not_come_through() -> None:
    log = [*turn(1), row(3, 1, introduced_by=1)]
    assert in_view(log, retry(1, 2), boundary(2, after=2, members=(1, 2))) == [1, 2]
