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
from chorus_cli.log.rules.acts import Clear, Edit, Pin, Redo, Restore, Retry, Subject, Undo
from chorus_cli.log.rules.journal import ThreadJournal, thread_journal
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


def edit(id_: int, after: int, *members: int, at: datetime = NOW) -> Operation:
    return Operation(id_, Edit(members), THREAD, after, at)


def clear(id_: int, after: int, at: datetime = NOW) -> Operation:
    return Operation(id_, Clear(), None, after, at)


def retry(id_: int, *replaced: int) -> Operation:
    return Operation(id_, Retry(frozenset(replaced)), THREAD, max(replaced), NOW)


def pin(id_: int, member: int) -> Operation:
    return Operation(id_, Pin((member,)), THREAD, 0, NOW)


def undo(id_: int, operation: int | None = None, *, turn: int | None = None) -> Operation:
    return Operation(id_, Undo(Subject(operation, turn)), THREAD, 0, NOW)


def redo(id_: int, operation: int | None = None, *, turn: int | None = None) -> Operation:
    return Operation(id_, Redo(Subject(operation, turn)), THREAD, 0, NOW)


def ids(seen: View) -> list[int]:
    return [message.id for message in seen.messages]


def in_view(messages: list[Message], *operations: Operation, hours: float = 8) -> list[int]:
    return ids(view(messages, thread_journal(THREAD, operations), cutoff(NOW, hours)))


ONE, TWO, THREE = turn(1), turn(3), turn(5)
AGAIN, AGAIN_TWICE = row(3, 1, introduced_by=1), row(4, 1, introduced_by=2)
FIRST_WRITER, OTHER_WRITER = [row(1, 1), row(2, 1), row(5, 1), row(7, 1)], [row(3, 3), row(4, 3), row(6, 3)]
VIEWS: list[tuple[str, list[Message], list[Operation], list[int]]] = [
    ("an empty log", [], [], []),
    ("a row dated in the future counts as now", [row(1, 1, ago(-7000)), row(2, 2)], [], [1, 2]),
    ("a clock set back", [*turn(1, ago(0)), *turn(3, ago(5)), *turn(5, ago(2))], [], [1, 2, 3, 4, 5, 6]),
    ("two writers in one thread", [*OTHER_WRITER, *FIRST_WRITER], [], [1, 2, 5, 7, 3, 4, 6]),
    ("a clear counts by its place, not its time", [*turn(1), *turn(3, ago(3))], [clear(1, 2, ago(1000))], [3, 4]),
    ("a late reply stays out with its question", [row(1, 1), row(3, 1), *turn(4)], [clear(1, 2)], [4, 5]),
    ("a clear undone", ONE + TWO, [clear(1, 2), undo(2, 1)], [1, 2, 3, 4]),
    ("the newer clear undone", ONE + TWO + THREE, [clear(1, 2), clear(2, 4), undo(3, 2)], [3, 4, 5, 6]),
    ("a clear redone", ONE + TWO, [clear(1, 2), undo(2, 1), redo(3, 1)], [3, 4]),
    ("a turn put back", ONE + TWO, [undo(1, turn=1), redo(2, turn=1)], [1, 2, 3, 4]),
    ("a turn taken back, then edited in", ONE + TWO, [undo(1, turn=1), edit(2, 4, 1, 2)], [1, 2]),
    ("a turn taken back after an edit", ONE + TWO, [edit(1, 4, 1, 2, 3, 4), undo(2, turn=3)], [1, 2]),
    ("the order of an edit", ONE + TWO + THREE, [edit(1, 4, 4, 1)], [4, 1, 5, 6]),
    ("old messages in a young edit", turn(1, ago(500)), [edit(1, 2, 1, 2, at=ago(7))], [1, 2]),
    ("old messages in an old edit", turn(1, ago(500)), [edit(1, 2, 1, 2, at=ago(9))], []),
    ("an old edit is a boundary", [*turn(1, ago(20)), *turn(3, ago(1))], [edit(1, 2, 1, 2, at=ago(9))], [3, 4]),
    ("half of a turn left out", ONE + TWO, [edit(1, 4, 1, 4)], [1, 4]),
    ("said while the editor was open", ONE + TWO, [edit(1, 2, 2)], [2, 3, 4]),
    ("in an edit and after its boundary", ONE + TWO, [edit(1, 0, 3, 4)], [3, 4, 1, 2]),
    ("later rows of a turn that was kept", [row(1, 1), row(2, 1), row(3, 1)], [edit(1, 2, 1, 2)], [1, 2, 3]),
    ("a rewording", [*ONE, row(3, 3, introduced_by=1)], [edit(1, 2, 3, 2)], [3, 2]),
    ("a rewording undone", [*ONE, row(3, 3, introduced_by=1)], [edit(1, 2, 3, 2), undo(2, 1)], [1, 2]),
    ("a member without a row", ONE, [edit(1, 2, 99, 1)], [1]),
    ("a clear after an edit", ONE, [edit(1, 2, 1, 2), clear(2, 2)], []),
    ("a retry", [*ONE, *TWO, row(5, 1, introduced_by=1)], [retry(1, 2)], [1, 5, 3, 4]),
    ("a retry undone", [*ONE, AGAIN], [retry(1, 2), undo(2, 1)], [1, 2]),
    ("a pinned reply whose retry is undone", [*ONE, AGAIN], [retry(1, 2), pin(2, 3), undo(3, 1)], [1, 2]),
    ("an undone reply pinned", [*ONE, AGAIN], [retry(1, 2), undo(2, 1), pin(3, 3)], [1, 2]),
    ("a retry of a retry", [*ONE, AGAIN, AGAIN_TWICE], [retry(1, 2), retry(2, 3)], [1, 4]),
    ("that undone", [*ONE, AGAIN, AGAIN_TWICE], [retry(1, 2), retry(2, 3), undo(3, 2)], [1, 3]),
    ("a replaced reply edited in", [*ONE, AGAIN], [retry(1, 2), edit(2, 3, 1, 2)], [1, 2]),
    ("a new reply from before the boundary", [*ONE, AGAIN], [retry(1, 2), edit(2, 2, 1, 2)], [1, 2]),
]


@pytest.mark.parametrize(
    ("log", "operations", "expected"), [case[1:] for case in VIEWS], ids=[case[0] for case in VIEWS]
)
def test_what_is_in_view(log: list[Message], operations: list[Operation], expected: list[int]) -> None:
    assert in_view(log, *operations) == expected


def test_a_view_holds_messages_of_its_thread_only_and_a_restore_puts_into_each_what_belongs_there() -> None:
    log = [*turn(1), *turn(3, thread=2)]
    assert in_view(log) == [1, 2]
    restore = Operation(1, Restore((3, 1, 4)), None, 4, NOW)
    assert in_view(log, restore) == [1]
    assert ids(view(log, thread_journal(2, [restore]), cutoff(NOW, 8))) == [3, 4]


def test_an_edit_that_left_a_wide_window_is_still_the_boundary() -> None:
    assert in_view([*turn(1, ago(20)), *turn(3, ago(1))], edit(1, 2, at=ago(9)), hours=100) == [3, 4]


BERLIN = ZoneInfo("Europe/Berlin")


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
def test_the_cutoff_is_strict_to_the_microsecond_also_of_an_edit(
    microseconds_younger: int, expected: list[int]
) -> None:
    at = ago(8) + timedelta(microseconds=microseconds_younger)
    assert in_view([row(1, 1, at)]) == in_view([row(1, 1, ago(50))], edit(1, 1, 1, at=at)) == expected


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


def test_a_turn_that_was_taken_back_is_out_and_told() -> None:
    seen = view(ONE + TWO + THREE, thread_journal(THREAD, [undo(1, turn=3)]), cutoff(NOW, 8))
    assert ids(seen) == [1, 2, 5, 6]
    assert [message.id for message in seen.taken_back] == [3, 4]


def test_a_view_begins_at_its_boundary_and_what_is_beyond_was_not_taken_back() -> None:
    seen = view(turn(1), thread_journal(THREAD, [clear(1, after=0), clear(2, after=2)]), cutoff(NOW, 8))
    assert seen.boundary == clear(2, after=2)
    assert seen.cutoff == ago(8)
    assert view(turn(1), thread_journal(THREAD, []), cutoff(NOW, 8)).boundary is None
    operations = undo(1, turn=1), clear(2, after=2)
    assert view(turn(1), thread_journal(THREAD, operations), cutoff(NOW, 8)).taken_back == ()


@pytest.mark.parametrize("status", Status)
def test_a_reply_is_in_view_however_far_it_has_come(status: Status) -> None:
    reply = Message(2, "chorus", THREAD, 1, Role.ASSISTANT, "", NOW, status=status)
    assert in_view([row(1, 1), reply]) == [1, 2]


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
        (6, 6, "Message #6 is still being answered. Fork the thread when the reply is done."),
        (6, 7, "Message #7 is not in context here. /search shows"),
    ],
)
def test_what_cannot_be_forked_is_a_sentence(number: int, through: int | None, sentence: str) -> None:
    seen = replace(RUNNING, messages=RUNNING.messages[6 - number :])
    with pytest.raises(JournalError, match=f"^{sentence}"):
        forkable(seen, through)


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Rome", "Rome (fork)"),
        ("Rome (fork 2)", "Rome (fork)"),
        ("two\nlines", "two lines (fork)"),
        ("w" * 80, "w" * 52 + "… (fork)"),
        ("", "(fork)"),
    ],
)
def test_the_title_says_that_it_is_a_fork(title: str, expected: str) -> None:
    assert title_of_fork(title) == expected
