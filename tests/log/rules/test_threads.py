"""States and last exchanges of threads."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from chorus_cli.log.rules.messages import Message, Role, Status
from chorus_cli.log.rules.threads import Exchange, Thread, ThreadState, last_exchange, named, number_in, state_of

AT = datetime(2026, 2, 12, 14, 30, tzinfo=UTC)
OPEN = Thread(7, 1, "", "Hello", AT, None, 2, AT)
NEW = OPEN._replace(messages=0, last_spoken=None)
CLOSED = OPEN._replace(closed_at=AT)
RUNNING, WAITING, INTERRUPTED, IDLE = (
    ThreadState.RUNNING,
    ThreadState.WAITING,
    ThreadState.INTERRUPTED,
    ThreadState.IDLE,
)


@pytest.mark.parametrize(
    ("thread", "is_running", "waiting", "reply", "state"),
    [
        (OPEN, False, 0, None, IDLE),
        (NEW, False, 0, None, ThreadState.EMPTY),
        (NEW, False, 1, None, WAITING),
        (OPEN, False, 0, Status.COMPLETE, IDLE),
        (OPEN, True, 0, Status.STREAMING, RUNNING),
        (OPEN, True, 1, Status.INTERRUPTED, RUNNING),
        (OPEN, False, 1, Status.INTERRUPTED, WAITING),
        (OPEN, False, 0, Status.INTERRUPTED, INTERRUPTED),
        (OPEN, False, 0, Status.TRUNCATED, INTERRUPTED),
        (OPEN, False, 0, Status.FAILED, INTERRUPTED),
        (OPEN, False, 0, Status.STREAMING, INTERRUPTED),
        (CLOSED, True, 1, Status.STREAMING, ThreadState.CLOSED),
    ],
)
def test_the_state_of_a_thread(
    thread: Thread, *, is_running: bool, waiting: int, reply: Status | None, state: ThreadState
) -> None:
    assert state_of(thread, is_running=is_running, waiting=waiting, newest_reply=reply) is state


def row(id_: int, turn: int, role: Role, content: str, status: Status = Status.COMPLETE) -> Message:
    return Message(id_, "chorus", 7, turn, role, content, AT, status=status)


def test_the_last_exchange_is_the_last_turn_without_its_calls_of_tools() -> None:
    rows = [
        row(1, 1, Role.USER, "Before"),
        row(2, 1, Role.ASSISTANT, "This"),
        row(3, 3, Role.USER, "Look it up"),
        row(4, 3, Role.ASSISTANT, "I look."),
        row(5, 3, Role.TOOL_USE, ""),
        row(6, 3, Role.TOOL_RESULT, "Found"),
        row(7, 3, Role.ASSISTANT, "It is", Status.INTERRUPTED),
    ]
    assert last_exchange(rows) == Exchange(AT, "Look it up", "I look.\n\nIt is", Status.INTERRUPTED)
    assert last_exchange(rows[:5]) == Exchange(AT, "Look it up", "I look.", Status.COMPLETE)
    assert last_exchange(rows[:1]) == Exchange(AT, "Before", "", None)
    assert last_exchange([]) is None


@pytest.mark.parametrize(
    ("typed", "number"), [("3", 3), ("#3", 3), (" # 3 ", 3), ("", None), ("3a", None), ("-3", None), ("³", None)]
)
def test_a_number_is_read(typed: str, number: int | None) -> None:
    assert number_in(typed) == number


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("Rome", [2]),
        ("ro", [2, 3]),
        ("ROTTER", [3]),
        ("the  OLD", [4]),
        ("rom", [2]),
        ("", []),
        ("x", []),
    ],
)
def test_titles_are_found_open_ones_first(typed: str, found: list[int]) -> None:
    titles = {2: "Rome", 3: "Rotterdam", 4: "The old\none", 5: "romeo"}
    threads = [OPEN._replace(number=number, title=title) for number, title in titles.items()]
    closed = [each._replace(closed_at=AT) if each.number in {4, 5} else each for each in threads]
    assert [thread.number for thread in named(closed, typed)] == found
