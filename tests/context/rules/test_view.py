"""The view, rule by rule: the window, clears, turns, threads, edits, retries, and the part that a fork begins with."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from chorus_cli.context.rows.thread_views import forkable, title_of_fork
from chorus_cli.context.rules.view import View, view
from chorus_cli.core.errors import JournalError
from chorus_cli.core.time.timestamps import cutoff
from chorus_cli.log.rules.acts import Clear, Edit, Fold, Redo, Restore, Retry, Subject, Undo, Window
from chorus_cli.log.rules.journal import ThreadJournal, thread_journal
from chorus_cli.log.rules.log_acts import Flash
from chorus_cli.log.rules.messages import Message, Role, Status
from chorus_cli.log.rules.operations import Operation
from chorus_cli.settings.rules.table import Settings

NOW = datetime(2026, 2, 12, 14, 30, tzinfo=UTC)
THREAD = 1


def ago(hours: float) -> datetime:
    return NOW - timedelta(hours=hours)


def row(id_: int, turn: int, at: datetime = NOW, *, thread: int = THREAD, introduced_by: int | None = None) -> Message:
    """Return a message; the one that gives its turn the name is the question."""
    role = Role.USER if id_ == turn else Role.ASSISTANT
    return Message(id_, "chorus", thread, turn, role, f"message {id_}", at, introduced_by=introduced_by)


def turn(id_: int, at: datetime = NOW, *, thread: int = THREAD) -> list[Message]:
    """Return a question and its reply, which has the next id."""
    return [row(id_, id_, at, thread=thread), row(id_ + 1, id_, at, thread=thread)]


def boundary(
    id_: int,
    after: int,
    members: tuple[int, ...] = (),
    *,
    kind: type[Edit | Restore] = Edit,
    at: datetime = NOW,
    thread: int | None = THREAD,
) -> Operation:
    return Operation(id_, kind(members), thread, after, at)


def clear(id_: int, after: int, at: datetime = NOW) -> Operation:
    return Operation(id_, Clear(), None, after, at)


def retry(id_: int, *replaced: int) -> Operation:
    return Operation(id_, Retry(frozenset(replaced)), THREAD, max(replaced), NOW)


def reversal(id_: int, kind: type[Undo | Redo], *, operation: int | None = None, turn: int | None = None) -> Operation:
    return Operation(id_, kind(Subject(operation, turn)), THREAD, 0, NOW)


def ids(seen: View) -> list[int]:
    return [message.id for message in seen.messages]


def in_view(messages: list[Message], *operations: Operation, hours: float = 8) -> list[int]:
    return ids(view(messages, thread_journal(THREAD, operations), cutoff(NOW, hours)))


BERLIN = ZoneInfo("Europe/Berlin")


# The window


def test_an_empty_log_has_an_empty_view() -> None:
    assert in_view([]) == []


def test_rolling_window_default_is_eight_hours() -> None:
    assert Settings().context_hours == 8
    assert cutoff(NOW, Settings().context_hours) == datetime(2026, 2, 12, 6, 30, tzinfo=UTC)


def test_rolling_window_returns_messages_within_window() -> None:
    assert in_view([*turn(1, ago(7.9)), *turn(3, ago(1)), *turn(5)]) == [1, 2, 3, 4, 5, 6]


def test_rolling_window_excludes_old_messages() -> None:
    assert in_view([*turn(1, ago(9)), *turn(3, ago(8.1)), *turn(5, ago(1))]) == [5, 6]


@pytest.mark.parametrize(("hours", "expected"), [(1, []), (2, [5]), (24, [3, 5]), (168, [1, 3, 5])])
def test_rolling_window_configurable(hours: int, expected: list[int]) -> None:
    assert in_view([row(1, 1, ago(100)), row(3, 3, ago(20)), row(5, 5, ago(1.5))], hours=hours) == expected


@pytest.mark.parametrize(("microseconds_younger", "expected"), [(-1, []), (0, []), (1, [1])])
def test_the_cutoff_is_strict_to_the_microsecond(microseconds_younger: int, expected: list[int]) -> None:
    assert in_view([row(1, 1, ago(8) + timedelta(microseconds=microseconds_younger))]) == expected


@pytest.mark.parametrize(("microseconds_younger", "expected"), [(-1, []), (0, []), (1, [1])])
def test_the_cutoff_is_as_strict_with_what_an_edit_put_in(microseconds_younger: int, expected: list[int]) -> None:
    made = ago(8) + timedelta(microseconds=microseconds_younger)
    assert in_view([row(1, 1, ago(50))], boundary(1, 1, (1,), at=made)) == expected


def test_a_row_dated_in_the_future_counts_as_now() -> None:
    assert in_view([row(1, 1, NOW + timedelta(days=300)), row(2, 2)]) == [1, 2]


def test_a_clock_set_back_reorders_nothing() -> None:
    assert in_view([*turn(1, ago(0)), *turn(3, ago(5)), *turn(5, ago(2))]) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("now", "eight_hours_before"),
    [
        pytest.param((2026, 3, 29, 8), (2026, 3, 28, 23), id="an hour is skipped: nine by the clock on the wall"),
        pytest.param((2026, 10, 25, 8), (2026, 10, 25, 1), id="an hour comes twice: seven by the clock on the wall"),
        pytest.param((2026, 7, 1, 8), (2026, 7, 1, 0), id="summer"),
    ],
)
def test_the_change_of_the_clocks_does_not_bend_the_window(
    now: tuple[int, int, int, int], eight_hours_before: tuple[int, int, int, int]
) -> None:
    local_now = datetime(*now, tzinfo=BERLIN)
    assert cutoff(local_now, 8) == datetime(*eight_hours_before, tzinfo=BERLIN).astimezone(UTC)
    assert cutoff(local_now, 8) == cutoff(local_now.astimezone(UTC), 8)


@pytest.mark.parametrize(("fold", "expected"), [(0, 22), (1, 23)])
def test_the_hour_that_comes_twice_is_told_apart(fold: int, expected: int) -> None:
    twice = datetime(2026, 10, 25, 2, 0, fold=fold, tzinfo=BERLIN)
    assert cutoff(twice, 2) == datetime(2026, 10, 24, expected, tzinfo=UTC)


# Clear


def test_clear_excludes_messages_before_clear_time() -> None:
    assert in_view(turn(1), clear(1, after=2)) == []


def test_messages_after_clear_are_included() -> None:
    assert in_view([*turn(1), *turn(3)], clear(1, after=2)) == [3, 4]


def test_multiple_clears_use_most_recent() -> None:
    log = [*turn(1), *turn(3), *turn(5)]
    assert in_view(log, clear(1, after=2), clear(2, after=4)) == [5, 6]
    assert in_view(log, clear(2, after=4), clear(1, after=2)) == [5, 6]


def test_context_window_bounded_by_clear_time_or_rolling_window() -> None:
    log = [*turn(1, ago(30)), *turn(3, ago(20)), *turn(5, ago(2))]
    clear_long_ago = clear(1, after=2, at=ago(25))
    assert in_view(log, clear_long_ago, hours=8) == [5, 6]
    assert in_view(log, clear_long_ago, hours=48) == [3, 4, 5, 6]


def test_a_clear_counts_by_its_place_in_the_log_whatever_the_clock_said() -> None:
    made_while_the_clock_was_wrong = clear(1, after=2, at=ago(1000))
    assert in_view([*turn(1, ago(0)), *turn(3, ago(3))], made_while_the_clock_was_wrong) == [3, 4]


def test_a_reply_that_lands_after_a_clear_stays_out_with_its_question() -> None:
    late_row_of_the_first_turn = row(3, 1)
    assert in_view([row(1, 1), late_row_of_the_first_turn, *turn(4)], clear(1, after=2)) == [4, 5]


def test_undoing_a_clear_brings_everything_back() -> None:
    assert in_view([*turn(1), *turn(3)], clear(1, after=2), reversal(2, Undo, operation=1)) == [1, 2, 3, 4]


def test_undoing_the_newest_clear_uncovers_the_one_before() -> None:
    operations = clear(1, after=2), clear(2, after=4), reversal(3, Undo, operation=2)
    assert in_view([*turn(1), *turn(3), *turn(5)], *operations) == [3, 4, 5, 6]


def test_redoing_a_clear_sets_it_where_it_was() -> None:
    operations = clear(1, after=2), reversal(2, Undo, operation=1), reversal(3, Redo, operation=1)
    assert in_view([*turn(1), *turn(3)], *operations) == [3, 4]


# Threads and turns


def test_a_view_holds_messages_of_its_thread_only() -> None:
    log = [*turn(1), *turn(3, thread=2), *turn(5)]
    assert in_view(log) == [1, 2, 5, 6]
    assert ids(view(log, thread_journal(2, []), cutoff(NOW, 8))) == [3, 4]


def test_two_writers_in_one_thread_are_told_apart_by_turn() -> None:
    first = [row(1, 1), row(2, 1), row(5, 1), row(7, 1)]
    second = [row(3, 3), row(4, 3), row(6, 3)]
    assert in_view([*second, *first]) == [1, 2, 5, 7, 3, 4, 6]


def test_a_turn_that_was_taken_back_is_out_and_told() -> None:
    undo = reversal(1, Undo, turn=3)
    seen = view([*turn(1), *turn(3), *turn(5)], thread_journal(THREAD, [undo]), cutoff(NOW, 8))
    assert ids(seen) == [1, 2, 5, 6]
    assert [message.id for message in seen.taken_back] == [3, 4]


def test_a_turn_that_was_put_back_stands_where_it_stood() -> None:
    operations = reversal(1, Undo, turn=1), reversal(2, Redo, turn=1)
    assert in_view([*turn(1), *turn(3)], *operations) == [1, 2, 3, 4]


def test_a_turn_taken_back_before_an_edit_can_be_brought_in_by_it() -> None:
    operations = reversal(1, Undo, turn=1), boundary(2, after=4, members=(1, 2))
    assert in_view([*turn(1), *turn(3)], *operations) == [1, 2]


def test_a_turn_taken_back_after_an_edit_leaves_what_the_edit_put_in() -> None:
    operations = boundary(1, after=4, members=(1, 2, 3, 4)), reversal(2, Undo, turn=3)
    assert in_view([*turn(1), *turn(3)], *operations) == [1, 2]


# The rest


@pytest.mark.parametrize("act", [Window(8, 24), Fold(), Flash()])
def test_operations_that_are_no_boundary_leave_the_view_alone(act: Window | Fold | Flash) -> None:
    assert in_view(turn(1), Operation(1, act, None, 2, NOW)) == [1, 2]


def test_a_view_says_what_it_begins_at() -> None:
    seen = view(turn(1), thread_journal(THREAD, [clear(1, after=0), clear(2, after=2)]), cutoff(NOW, 8))
    assert seen.boundary == clear(2, after=2)
    assert seen.cutoff == ago(8)
    assert view(turn(1), thread_journal(THREAD, []), cutoff(NOW, 8)).boundary is None


def test_what_is_beyond_the_boundary_does_not_count_as_taken_back() -> None:
    operations = reversal(1, Undo, turn=1), clear(2, after=2)
    assert view(turn(1), thread_journal(THREAD, operations), cutoff(NOW, 8)).taken_back == ()


@pytest.mark.parametrize("status", Status)
def test_a_reply_is_in_view_however_far_it_has_come(status: Status) -> None:
    reply = Message(2, "chorus", THREAD, 1, Role.ASSISTANT, "", NOW, status=status)
    assert in_view([row(1, 1), reply]) == [1, 2]


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


SEEN = view([*turn(1), *turn(3), *turn(5)], ThreadJournal(THREAD), ago(8))
RUNNING = replace(SEEN, messages=(*SEEN.messages[:5], SEEN.messages[5]._replace(status=Status.STREAMING)))


@pytest.mark.parametrize(
    ("seen", "through", "expected"),
    [
        (SEEN, None, [1, 2, 3, 4, 5, 6]),
        (SEEN, 1, [1, 2]),
        (SEEN, 4, [1, 2, 3, 4]),
        (RUNNING, None, [1, 2, 3, 4]),
        (RUNNING, 3, [1, 2, 3, 4]),
        (replace(SEEN, messages=(*SEEN.messages[4:], *SEEN.messages[:4])), 5, [5, 6]),
    ],
)
def test_a_fork_begins_with_complete_turns(seen: View, through: int | None, expected: list[int]) -> None:
    assert [row.id for row in forkable(seen, through).messages] == expected


@pytest.mark.parametrize(
    ("number", "through", "sentence"),
    [
        (0, None, "There is nothing to fork: nothing is in context here. /thread new opens an empty thread."),
        (2, None, "There is nothing to fork: only a turn that is still being answered is in context."),
        (6, 6, "The turn of message #6 is still being answered. Fork it when the reply is there."),
        (6, 7, "Message #7 is not in context here, so nothing was forked."),
    ],
)
def test_what_cannot_be_forked_is_a_sentence(number: int, through: int | None, sentence: str) -> None:
    seen = replace(RUNNING, messages=RUNNING.messages[6 - number :])
    with pytest.raises(JournalError, match=f"^{sentence}"):
        forkable(seen, through)


@pytest.mark.parametrize(
    ("title", "taken", "expected"),
    [
        ("Rome", (), "Rome (fork)"),
        ("Rome", ("Rome (fork)",), "Rome (fork 2)"),
        ("Rome (fork)", ("Rome (fork)", "Rome (fork 2)"), "Rome (fork 3)"),
        ("two\nlines", (), "two lines (fork)"),
        ("w" * 80, (), "w" * 52 + "… (fork)"),
        ("", (), "(fork)"),
    ],
)
def test_the_title_says_that_it_is_a_fork(title: str, taken: tuple[str, ...], expected: str) -> None:
    assert title_of_fork(title, taken) == expected
