"""The part of a view that a fork begins with, and its title."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chorus_cli.context.rows.thread_views import forkable, title_of_fork
from chorus_cli.context.rules.view import View, view
from chorus_cli.core.errors import JournalError
from chorus_cli.log.rules.journal import ThreadJournal
from chorus_cli.log.rules.messages import Status
from tests.context.rules.small_logs import THREAD, ago, turn

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
