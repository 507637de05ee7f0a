"""Matching the edited text with the original messages."""

from __future__ import annotations

from datetime import UTC, datetime, timezone
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given

from chorus_cli.core.errors import EditFormatError
from chorus_cli.editing.rules.format import CONTEXT_LINE, END_LINE, parse
from chorus_cli.editing.rules.matching import laid_out
from chorus_cli.log.rules.messages import Role
from tests.editing.rules.edit_sheets import (
    ANSWER,
    BERLIN,
    MOMENTS,
    NOON,
    OLD,
    OLD_ANSWER,
    QUESTION,
    TALK,
    THANKS,
    ZONES,
    Added,
    ContextEdit,
    Kept,
    Reworded,
    edited,
    kept,
    matched,
    said,
    sheet_of,
)

if TYPE_CHECKING:
    from tests.editing.rules.edit_sheets import Member


# Case by case


def test_nothing_at_all_is_unchanged() -> None:
    assert edited(sheet_of([], [])) == ContextEdit((), dropped=(), changed=False)


def test_the_line_moved_up_brings_older_messages_in() -> None:
    text = TALK.text.replace(f"{CONTEXT_LINE}\n\n", "")
    text = text.replace("[2026-02-12 11:58:21] Frodo", f"{CONTEXT_LINE}\n\n[2026-02-12 11:58:21] Frodo")
    assert matched(parse(text, "Frodo"), TALK) == ContextEdit(kept(2, 3, 4, 5), dropped=(), changed=True)


def test_the_line_deleted_brings_all_in() -> None:
    assert edited(TALK, (f"{CONTEXT_LINE}\n", "")) == ContextEdit(kept(1, 2, 3, 4, 5), dropped=(), changed=True)


def test_the_line_moved_down_leaves_messages_out() -> None:
    edit = edited(TALK, (f"{CONTEXT_LINE}\n\n", ""), ("Thanks!\n", f"Thanks!\n\n{CONTEXT_LINE}\n"))
    assert edit == ContextEdit((), dropped=(3, 4, 5), changed=True)


def test_a_message_may_be_copied_down_and_stay_above() -> None:
    edit = edited(TALK, ("Thanks!\n", "Thanks!\n\n[2026-02-12 11:58:20] Human: Long ago\n"))
    assert edit == ContextEdit(kept(3, 4, 5, 1), dropped=(), changed=True)


def test_a_message_copied_within_the_context_is_a_new_one() -> None:
    edit = edited(TALK, ("Thanks!\n", "Thanks!\n\n[2026-02-12 12:00:20] Human: Thanks!\n"))
    assert edit.members == (*kept(3, 4, 5), Added(Role.USER, datetime(2026, 2, 12, 12, 0, 20, tzinfo=UTC), "Thanks!"))


def test_an_older_message_is_brought_in_and_reworded_at_once() -> None:
    edit = edited(TALK, (f"{CONTEXT_LINE}\n", ""), ("far away", "near by"))
    assert edit.members == (Kept(1), Reworded(2, "and near by"), *kept(3, 4, 5))


def test_a_new_text_is_a_rewording_and_drops_nothing() -> None:
    edit = edited(TALK, ("There.", "Here.\nOr there."))
    assert edit == ContextEdit((Kept(3), Reworded(4, "Here.\nOr there."), Kept(5)), dropped=(), changed=True)


def test_another_speaker_makes_a_new_message_and_drops_the_old_one() -> None:
    edit = edited(TALK, ("Frodo: There.", "Human: There."))
    added = Added(Role.USER, datetime(2026, 2, 12, 12, 0, 11, tzinfo=UTC), "There.")
    assert edit == ContextEdit((Kept(3), added, Kept(5)), dropped=(4,), changed=True)


def test_another_time_makes_a_new_message_even_in_the_future() -> None:
    edit = edited(TALK, ("[2026-02-12 12:00:11]", "[2126-02-12 12:00:11]"))
    added = Added(Role.ASSISTANT, datetime(2126, 2, 12, 12, 0, 11, tzinfo=UTC), "There.")
    assert edit == ContextEdit((Kept(3), added, Kept(5)), dropped=(4,), changed=True)


def test_order_alone_is_a_change() -> None:
    edit = edited(sheet_of([], [THANKS, ANSWER]))
    assert not edit.changed
    swapped = sheet_of([], [ANSWER, THANKS])
    assert matched(parse(swapped.text, "Frodo"), sheet_of([], [THANKS, ANSWER])) == ContextEdit(
        kept(4, 5), dropped=(), changed=True
    )


def test_deleting_and_moving_above_the_line_change_nothing() -> None:
    without = sheet_of([OLD_ANSWER], [QUESTION, ANSWER, THANKS])
    turned_round = sheet_of([OLD_ANSWER, OLD], [QUESTION, ANSWER, THANKS])
    for text in (without.text, turned_round.text):
        assert matched(parse(text, "Frodo"), TALK) == ContextEdit(kept(3, 4, 5), dropped=(), changed=False)


def test_carriage_returns_stay_in_a_message_that_is_left_alone_and_become_lines_in_one_that_is_not() -> None:
    sheet = sheet_of([], [said(1, "10 %\r20 %\r\nleft"), said(2, "10 %\rright", 1)])
    assert edited(sheet, ("right", "done")).members == (Kept(1), Reworded(2, "10 %\ndone"))


def test_a_message_without_text_stays_but_none_can_be_made() -> None:
    sheet = sheet_of([], [said(1, ""), said(2, "something", 1)])
    assert not edited(sheet).changed
    with pytest.raises(EditFormatError, match=r"has no text"):
        edited(sheet, ("something", " \n\\"))


# In one second


@pytest.mark.parametrize(
    ("texts", "members", "dropped"),
    [
        ("abc", kept(1, 2, 3), ()),
        ("abx", (*kept(1, 2), Reworded(3, "x")), ()),
        ("xbc", (Reworded(1, "x"), *kept(2, 3)), ()),
        ("xby", (Reworded(1, "x"), Kept(2), Reworded(3, "y")), ()),
        ("cxa", (Kept(3), Reworded(2, "x"), Kept(1)), ()),
        ("bc", kept(2, 3), (1,)),
        ("x", (Reworded(1, "x"),), (2, 3)),
        ("abcx", (*kept(1, 2, 3), Added(Role.USER, NOON.replace(microsecond=0), "x")), ()),
    ],
)
def test_the_kth_new_wording_belongs_to_the_kth_message(
    texts: str, members: tuple[Member, ...], dropped: tuple[int, ...]
) -> None:
    sheet = sheet_of([], [said(1, "a"), said(2, "b", 0.1), said(3, "c", 0.2)])
    other = sheet_of([], [said(9, text) for text in texts])
    edit = matched(parse(other.text, "Frodo"), sheet)
    assert (edit.members, edit.dropped) == (members, dropped)


def test_of_equal_messages_the_one_in_context_stays_there() -> None:
    sheet = sheet_of([said(1, "yes")], [said(2, "yes", 0.5)])
    block = "[2026-02-12 12:00:00] Human: yes\n\n"
    above, below = sheet.text.split(f"{CONTEXT_LINE}\n\n")
    for text in (f"{above.replace(block, '')}{CONTEXT_LINE}\n\n{below}", sheet.text):
        assert matched(parse(text, "Frodo"), sheet) == ContextEdit(kept(2), dropped=(), changed=False)
    emptied = f"{above}{CONTEXT_LINE}\n\n{below.replace(block, '')}"
    assert matched(parse(emptied, "Frodo"), sheet) == ContextEdit((), dropped=(2,), changed=True)


def test_a_new_wording_leaves_alone_what_still_stands_above() -> None:
    sheet = sheet_of([said(1, "yes")], [said(2, "no", 0.5)])
    assert edited(sheet, (": no", ": perhaps")).members == (Reworded(2, "perhaps"),)


# Above the line


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Long ago", "Yesterday"),
        ("Human: Long ago", "Frodo: Long ago"),
        ("11:58:20", "11:58:19"),
        (CONTEXT_LINE, f"[2026-02-12 12:00:00] Human: new\n\n{CONTEXT_LINE}"),
    ],
)
def test_words_that_nobody_would_see_are_refused(old: str, new: str) -> None:
    with pytest.raises(EditFormatError, match=r"nobody would see it here") as caught:
        edited(TALK, (old, new))
    line = TALK.text.replace(old, new).split("\n")[caught.value.line - 1]
    assert line not in TALK.text.split("\n")


def test_a_message_reworded_and_left_out_is_refused() -> None:
    with pytest.raises(EditFormatError, match=r"nobody would see it here"):
        edited(TALK, ("Where?", "When?"), (f"{CONTEXT_LINE}\n\n", ""), ("Thanks!\n", f"Thanks!\n\n{CONTEXT_LINE}\n"))


# Times


@given(MOMENTS, ZONES)
@example(datetime(2026, 10, 25, 1, 30, tzinfo=UTC), BERLIN)
def test_times_are_local_to_the_second(moment: datetime, zone: timezone | None) -> None:
    sheet = laid_out("Frodo", [], [THANKS._replace(timestamp=moment)], zone)
    shown = datetime.fromisoformat(sheet.context[0].block.time)
    assert shown == moment.astimezone(zone).replace(tzinfo=None, microsecond=0, fold=0)
    assert len(sheet.context[0].block.time) == len("2026-02-12 12:00:00")


@pytest.mark.parametrize(
    ("local", "utc"),
    [
        ("2026-02-12 12:00:00", datetime(2026, 2, 12, 11, tzinfo=UTC)),
        ("2026-07-12 12:00:00", datetime(2026, 7, 12, 10, tzinfo=UTC)),
        ("2026-10-25 02:30:00", datetime(2026, 10, 25, 0, 30, tzinfo=UTC)),
        ("2026-03-29 02:30:00", datetime(2026, 3, 29, 1, 30, tzinfo=UTC)),
        ("9998-12-31 23:59:59", datetime(9998, 12, 31, 22, 59, 59, tzinfo=UTC)),
    ],
    ids=["winter", "summer", "twice: the first", "skipped: as if the clock had not been set yet", "the last second"],
)
def test_a_new_message_has_the_local_time_that_was_written(local: str, utc: datetime) -> None:
    sheet = laid_out("Frodo", [], [], BERLIN)
    edit = edited(sheet, (END_LINE, f"[{local}] Frodo: new\n{END_LINE}"))
    assert edit == ContextEdit((Added(Role.ASSISTANT, utc, "new"),), dropped=(), changed=True)


def test_a_time_beyond_the_calendar_is_refused() -> None:
    sheet = laid_out("Frodo", [], [], BERLIN)
    with pytest.raises(EditFormatError, match=r"0001-01-01 00:00:00 is too far away"):
        edited(sheet, (END_LINE, f"[0001-01-01 00:00:00] Human: new\n{END_LINE}"))
