"""Matching the edited text with the original messages, what tools did, and attachments."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chorus_cli.core.errors import EditFormatError
from chorus_cli.editing.rules import matching
from chorus_cli.editing.rules.format import CONTEXT_LINE, END_LINE, ParsedEdit, parse
from chorus_cli.editing.rules.matching import EditCounts, Sheet, edit_counts, laid_out
from chorus_cli.editing.rules.matching import Member as EditMember
from chorus_cli.log.rules.attachments import Attachment
from chorus_cli.log.rules.messages import Message, MessageContent, Role

NOON = datetime(2026, 2, 12, 12, 0, 0, 123456, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")
ZONES = st.sampled_from([UTC, BERLIN, ZoneInfo("Asia/Kathmandu"), timezone(timedelta(hours=-11, seconds=7)), None])
MOMENTS = st.datetimes(datetime(1000, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001 - UTC is said
CALL = json.dumps([{"id": "a", "type": "function", "function": {"name": "search", "arguments": '{"q": "ring"}'}}])


class Kept(NamedTuple):
    """A row that stays in the context, or enters it, unchanged."""

    message_id: int


class Reworded(NamedTuple):
    """A row with a new text, or other attachments."""

    message_id: int
    text: str
    attachments: tuple[Attachment, ...] = ()


class Added(NamedTuple):
    """A new message."""

    role: Role
    timestamp: datetime
    text: str
    attachments: tuple[Attachment, ...] = ()


Member = Kept | Reworded | Added


class ContextEdit(NamedTuple):
    """An edit: its members, and the rows that are no longer in context, in any wording."""

    members: tuple[Member, ...]
    dropped: tuple[int, ...]
    changed: bool


def matched(parsed: ParsedEdit, sheet: Sheet) -> ContextEdit:
    """Match a text that was read, and tell its members apart."""
    edit = matching.matched(parsed, sheet, 1)
    members = tuple(map(_told_apart, edit))
    inside = {member.message_id for member in members if not isinstance(member, Added)}
    ids = [row.id for entry in sheet.context for row in entry.rows]
    dropped = tuple(id_ for id_ in ids if id_ not in inside)
    assert edit_counts(edit, sheet.members).left_out == len(dropped)
    return ContextEdit(members, dropped, edit != sheet.members)


def _told_apart(member: int | MessageContent) -> Member:
    if isinstance(member, int):
        return Kept(member)
    if member.revises is None:
        return Added(member.role, member.timestamp, member.content, member.attachments)
    return Reworded(member.revises, member.content, member.attachments)


def said(id_: int, content: str, seconds: float = 0, role: Role = Role.USER) -> Message:
    return Message(id_, "frodo", 1, id_, role, content, NOON + timedelta(seconds=seconds))


def call(id_: int, name: str, seconds: float = 0) -> Message:
    return said(id_, "", seconds, Role.TOOL_USE)._replace(turn_id=1, tool_calls=CALL, tool_call_id=name)


def result(id_: int, name: str, content: str = "three\nhits", seconds: float = 0) -> Message:
    return said(id_, content, seconds, Role.TOOL_RESULT)._replace(turn_id=1, tool_call_id=name)


def sheet_of(before: Sequence[Message], context: Sequence[Message]) -> Sheet:
    return laid_out("Frodo", before, context, UTC)


def edited(sheet: Sheet, *changes: tuple[str, str]) -> ContextEdit:
    """Replace each text, which must occur once, and return the edit."""
    text = sheet.text
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return matched(parse(text, sheet.name), sheet)


def kept(*ids: int) -> tuple[Member, ...]:
    return tuple(map(Kept, ids))


QUESTION, ANSWER, THANKS = said(3, "Where?", 10), said(4, "There.", 11, Role.ASSISTANT), said(5, "Thanks!", 20)
OLD = said(1, "Long ago", -100)
OLD_ANSWER = said(2, "and far away", -99, Role.ASSISTANT)
TALK = sheet_of([OLD, OLD_ANSWER], [QUESTION, ANSWER, THANKS])


# Case by case

AT_20, AT_11 = datetime(2026, 2, 12, 12, 0, 20, tzinfo=UTC), datetime(2026, 2, 12, 12, 0, 11, tzinfo=UTC)
OLD_BELOW = ("Thanks!\n", "Thanks!\n\n[2026-02-12 11:58:20] Human: Long ago\n")
COPY = ("Thanks!\n", "Thanks!\n\n[2026-02-12 12:00:20] Human: Thanks!\n")

CASES: dict[str, tuple[list[tuple[str, str]], tuple[Member, ...], tuple[int, ...]]] = {
    "a message copied down stays above too": ([OLD_BELOW], kept(3, 4, 5, 1), ()),
    "one copied within the context is new": ([COPY], (*kept(3, 4, 5), Added(Role.USER, AT_20, "Thanks!")), ()),
    "another speaker": (
        [("Frodo: There.", "Human: There.")],
        (Kept(3), Added(Role.USER, AT_11, "There."), Kept(5)),
        (4,),
    ),
    "another time, even in the future": (
        [("[2026-02-12 12:00:11]", "[2126-02-12 12:00:11]")],
        (Kept(3), Added(Role.ASSISTANT, AT_11.replace(year=2126), "There."), Kept(5)),
        (4,),
    ),
}


@pytest.mark.parametrize(("changes", "members", "dropped"), CASES.values(), ids=CASES)
def test_an_edited_text_is_matched_with_the_messages(
    changes: list[tuple[str, str]], members: tuple[Member, ...], dropped: tuple[int, ...]
) -> None:
    assert edited(TALK, *changes) == ContextEdit(members, dropped, changed=True)


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
    with pytest.raises(EditFormatError, match=r"no message above the line") as caught:
        edited(TALK, (old, new))
    line = TALK.text.replace(old, new).split("\n")[caught.value.line - 1]
    assert line not in TALK.text.split("\n")


def test_a_message_reworded_and_left_out_is_refused() -> None:
    with pytest.raises(EditFormatError, match=r"no message above the line"):
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


# What tools did


def test_a_call_and_its_result_are_one_block_with_what_is_said_before() -> None:
    calling = call(6, "a", 12)._replace(content="Let me look.")
    sheet = sheet_of([], [QUESTION, calling, result(7, "a", "three\n\nhits", 13), ANSWER])
    shown = '[2026-02-12 12:00:12] Frodo (tool): Let me look.\nsearch {"q": "ring"}\n→ three\n\nhits\n\n'
    assert shown in sheet.text
    assert [tuple(row.id for row in entry.rows) for entry in sheet.context] == [(3,), (6, 7), (4,)]


@pytest.mark.parametrize(
    ("log", "sizes"),
    [
        ([call(1, "a"), result(2, "a"), call(3, "b"), result(4, "b")], [2, 2]),
        ([call(1, "a"), call(2, "b"), result(3, "a"), result(4, "b")], [4]),
        ([call(1, "a"), call(2, "b"), result(3, "b"), call(4, "c"), result(5, "c")], [1, 2, 2]),
        ([call(1, "a"), said(2, "stop"), result(3, "a")], [1, 1, 1]),
        ([result(1, "a"), call(2, "b"), result(3, "b")], [1, 2]),
        ([call(1, "a"), result(2, "a"), result(3, "x")], [2, 1]),
    ],
)
def test_calls_side_by_side_are_one_block_and_what_lacks_its_partner_is_alone(
    log: list[Message], sizes: list[int]
) -> None:
    sheet = sheet_of([], log)
    assert [len(entry.rows) for entry in sheet.context] == sizes
    assert edited(sheet) == ContextEdit(kept(*(row.id for row in log)), dropped=(), changed=False)


def test_a_tool_block_can_be_moved_and_deleted() -> None:
    tool = [call(6, "a", 12), result(7, "a", seconds=13)]
    sheet = sheet_of([], [QUESTION, *tool, ANSWER])
    moved = sheet_of([], [QUESTION, ANSWER, *tool]).text
    deleted = sheet_of([], [QUESTION, ANSWER]).text
    brought_out = sheet_of(tool, [QUESTION, ANSWER]).text
    assert matched(parse(moved, "Frodo"), sheet) == ContextEdit(kept(3, 4, 6, 7), dropped=(), changed=True)
    for text in (deleted, brought_out):
        assert matched(parse(text, "Frodo"), sheet) == ContextEdit(kept(3, 4), dropped=(6, 7), changed=True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("three", "four"),
        ("search", "find"),
        ("12:00:12", "12:00:13"),
        ("→ three\nhits\n", ""),
        ("There.\n", "There.\n\n[2026-02-12 12:00:12] Frodo (tool): made up\n"),
    ],
)
def test_a_tool_block_cannot_be_changed_or_made_up(old: str, new: str) -> None:
    sheet = sheet_of([], [QUESTION, call(6, "a", 12), result(7, "a", seconds=13), ANSWER])
    with pytest.raises(EditFormatError, match=r"tool calls cannot be changed or added") as caught:
        edited(sheet, (old, new))
    line = sheet.text.replace(old, new).split("\n")[caught.value.line - 1]
    assert line.startswith("[2026-02-12 12:00:1")
    assert "Frodo (tool)" in line


@pytest.mark.parametrize(
    ("tool_calls", "shown"),
    [
        (CALL, 'search {"q": "ring"}'),
        (json.dumps([json.loads(CALL)[0]] * 2), 'search {"q": "ring"}\nsearch {"q": "ring"}'),
        (CALL[1:-1], 'search {"q": "ring"}'),
        ('[{"id": "a", "function": {"name": "f", "arguments": "\\ud83d\\ude00 \\ud800"}}]', "f 😀 \ufffd"),
        ('[{"function": {"name": 7}}]', '[{"function": {"name": 7}}]'),
        ("not JSON", "not JSON"),
        ("[" * 100_000, "[" * 100_000),
        ("9" * 5_000, "9" * 5_000),
        (None, ""),
    ],
    ids=range(9),
)
def test_calls_are_shown_by_their_names_whatever_the_log_holds(tool_calls: str | None, shown: str) -> None:
    sheet = sheet_of([], [call(1, "a")._replace(tool_calls=tool_calls)])
    assert sheet.context[0].block.body == shown
    sheet.text.encode()
    assert not edited(sheet).changed


# Attachments

PHOTO = Attachment("photo.png", "image/png", 1_234_567, "0" * 64)
OTHER = PHOTO._replace(sha256="1" * 64)
LINE, OTHER_LINE = "[attachment: photo.png 1.2 MB]", "[attachment: photo.png 1.2 MB, 2]"
ASKED = QUESTION._replace(attachments=(PHOTO,))
ASKED_TALK = sheet_of([], [ASKED, ANSWER, THANKS])


def test_an_attachment_is_a_line_below_its_message_and_may_stand_anywhere_in_it() -> None:
    assert f"Human: Where?\n{LINE}\n\n" in ASKED_TALK.text
    for changes in ((), ((f"Where?\n{LINE}", f"Where?\n\n{LINE}\n  "),)):
        assert edited(ASKED_TALK, *changes) == ContextEdit(kept(3, 4, 5), dropped=(), changed=False)


NO_LINE = (f"\n{LINE}", "")
AT_12_01 = NOON.replace(minute=1, second=0, microsecond=0)


@pytest.mark.parametrize(
    ("changes", "members"),
    [
        ([NO_LINE], (Reworded(3, "Where?"), *kept(4, 5))),
        (
            [NO_LINE, ("Thanks!", f"Thanks!\n{LINE}")],
            (Reworded(3, "Where?"), Kept(4), Reworded(5, "Thanks!", (PHOTO,))),
        ),
        ([("Where?", "When?")], (Reworded(3, "When?", (PHOTO,)), *kept(4, 5))),
        ([("Where?", "")], (Reworded(3, "", (PHOTO,)), *kept(4, 5))),
        (
            [("Thanks!", f"Thanks!\n\n[2026-02-12 12:01:00] Human: Again:\n{LINE}")],
            (*kept(3, 4, 5), Added(Role.USER, AT_12_01, "Again:", (PHOTO,))),
        ),
    ],
)
def test_an_attachment_follows_its_line(changes: list[tuple[str, str]], members: tuple[Member, ...]) -> None:
    assert edited(ASKED_TALK, *changes).members == members


def test_attachments_with_the_same_name_and_size_are_told_apart() -> None:
    sheet = sheet_of([], [ASKED, ANSWER, THANKS._replace(attachments=(OTHER,))])
    edit = edited(sheet, (f"\n{OTHER_LINE}", ""), (f"\n{LINE}", f"\n{OTHER_LINE}"))
    assert edit.members == (Reworded(3, "Where?", (OTHER,)), Kept(4), Reworded(5, "Thanks!"))


def test_an_attachment_cannot_be_made_up() -> None:
    with pytest.raises(EditFormatError) as refused:
        edited(ASKED_TALK, ("Thanks!", "Thanks!\n[attachment: secret.png 1 kB]"))
    assert str(refused.value).startswith(r"Line ")
    assert r"no message here has the file [attachment: secret.png 1 kB]; put a \ before that line" in str(refused.value)


# Counts

NEW = MessageContent(1, Role.USER, "new", NOON)


def reworded(row_id: int) -> MessageContent:
    return NEW._replace(revises=row_id)


@pytest.mark.parametrize(
    ("members", "counts"),
    [
        ([3, 4, 5, 6, 7], EditCounts()),
        ([1, 2, 3, 4, 5, 6, 7], EditCounts()),
        ([3, 5, 7], EditCounts(left_out=2)),
        ([3, 4, reworded(5), 6, 7], EditCounts(reworded=1)),
        ([reworded(1), 3, 4, 5, 6, 7], EditCounts(reworded=1)),
        ([NEW, 3, 4, 5, 6, 7, NEW], EditCounts(added=2)),
        ([7, NEW, reworded(3), 5, 6], EditCounts(reworded=1, left_out=1, added=1)),
    ],
)
def test_each_change_is_counted_by_its_kind(members: list[EditMember], counts: EditCounts) -> None:
    assert edit_counts(members, [3, 4, 5, 6, 7]) == counts
