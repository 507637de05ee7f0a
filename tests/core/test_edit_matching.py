"""What has become of the messages in the text that comes back from the editor."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from chorus_cli.core.edit_format import CONTEXT_LINE, END_LINE, parse
from chorus_cli.core.edit_matching import Added, ContextEdit, Kept, Reworded, Sheet, laid_out, matched
from chorus_cli.core.errors import EditFormatError
from chorus_cli.core.messages import Message, Role
from tests.core.test_edit_format import BODIES, LOSSLESS_EDITORS, without_trailing_blanks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from chorus_cli.core.edit_matching import Member

NOON = datetime(2026, 2, 12, 12, 0, 0, 123456, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")
ZONES = st.sampled_from([UTC, BERLIN, ZoneInfo("Asia/Kathmandu"), timezone(timedelta(hours=-11, seconds=7)), None])
MOMENTS = st.datetimes(datetime(1000, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001 - UTC is said
CALL = json.dumps([{"id": "a", "type": "function", "function": {"name": "search", "arguments": '{"q": "ring"}'}}])

EDITORS: dict[str, Callable[[str], str]] = {
    **LOSSLESS_EDITORS,
    "trailing blanks stripped": without_trailing_blanks,
    "trailing blanks stripped, CRLF": lambda text: without_trailing_blanks(text).replace("\n", "\r\n"),
}


def said(id_: int, content: str, seconds: float = 0, role: Role = Role.USER) -> Message:
    return Message(id_, "frodo", 1, id_, role, content, NOON + timedelta(seconds=seconds))


def call(id_: int, name: str, seconds: float = 0) -> Message:
    return said(id_, "", seconds, Role.TOOL_USE)._replace(turn_id=1, tool_calls=CALL, tool_call_id=name)


def result(id_: int, name: str, content: str = "three\nhits", seconds: float = 0) -> Message:
    return said(id_, content, seconds, Role.TOOL_RESULT)._replace(turn_id=1, tool_call_id=name)


def sheet_of(before: Sequence[Message], context: Sequence[Message]) -> Sheet:
    return laid_out("Frodo", before, context, UTC)


def edited(sheet: Sheet, *changes: tuple[str, str]) -> ContextEdit:
    """Replace each text, which must stand there once, and say what has become of the messages."""
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

# Whatever was said, and whatever editor saves it


@st.composite
def rows(draw: st.DrawFn) -> list[Message]:
    """Rows of a log with any text, tools among them, some alike, some in one second."""
    moments = st.sampled_from([NOON, NOON + timedelta(microseconds=1), NOON + timedelta(seconds=1)]) | MOMENTS
    texts = BODIES | st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(["a", "a\r\n", "a\rb", "a \r"])
    row = st.builds(
        Message,
        id=st.just(0),
        persona=st.just("frodo"),
        thread_id=st.just(1),
        turn_id=st.integers(1, 2),
        role=st.sampled_from(Role),
        content=texts,
        timestamp=moments,
        tool_calls=st.none() | st.just(CALL) | texts,
        tool_call_id=st.none() | st.sampled_from("ab"),
    )
    return [row._replace(id=number) for number, row in enumerate(draw(st.lists(row, max_size=8)), start=1)]


@given(rows(), st.integers(0, 8), ZONES, st.text(max_size=5))
@settings(max_examples=200)
def test_what_was_not_changed_is_unchanged_through_any_editor(
    log: list[Message], split: int, zone: timezone | None, name: str
) -> None:
    before, context = log[:split], log[split:]
    sheet = laid_out(name, before, context, zone)
    expected = ContextEdit(kept(*(row.id for row in context)), dropped=(), changed=False)
    for editor in EDITORS.values():
        assert matched(parse(editor(sheet.text), sheet.name), sheet) == expected


def test_a_message_of_a_megabyte_is_unchanged() -> None:
    sheet = sheet_of([], [said(1, f"{END_LINE}\r\n" * 40_000)])
    assert edited(sheet) == ContextEdit(kept(1), dropped=(), changed=False)


@dataclass(frozen=True)
class Fate:
    """What is to become of one message: where in the file it goes, and in which words."""

    row: Message
    place: int
    is_context: bool
    is_deleted: bool
    words: str | None


@st.composite
def fates(draw: st.DrawFn) -> list[Fate]:
    """Messages that no two share a second, those above the line first in the order of their fates."""
    texts = BODIES.filter(str.strip)
    count = draw(st.integers(0, 7))
    places = draw(st.permutations(range(count)))
    boundary = draw(st.integers(0, count))
    made: list[Fate] = []
    for number, place in enumerate(places):
        role = draw(st.sampled_from([Role.USER, Role.ASSISTANT]))
        row = said(number + 1, draw(texts), number, role)
        is_context = place >= boundary
        words = draw(st.none() | texts) if is_context else None
        made.append(Fate(row, place, is_context, draw(st.booleans()), words))
    return made


def after(text: str, sheet: Sheet, fates: list[Fate]) -> str:
    """Carry the fates out on the text: cut it at the headers, and put its pieces together again."""
    lines = text.split("\n")
    parsed = parse(text, sheet.name)
    end = lines.index(END_LINE)
    cuts = sorted([*(block.line - 1 for block in parsed.blocks), (parsed.context_line or 0) - 1, end])
    pieces = {start: lines[start:stop] for start, stop in pairwise(cuts)}
    chosen: list[tuple[int, list[str]]] = []
    for fate, block in zip(fates, parsed.blocks, strict=True):
        piece = pieces[block.line - 1]
        if fate.words is not None:
            rewritten = sheet_of([], [fate.row._replace(content=fate.words)]).text
            written = rewritten.split("\n")
            piece = written[parse(rewritten, sheet.name).blocks[0].line - 1 : written.index(END_LINE)]
        if not fate.is_deleted:
            chosen.append((fate.place, piece))
    boundary = sum(not fate.is_context for fate in fates)
    above = [line for place, piece in sorted(chosen) if place < boundary for line in piece]
    below = [line for place, piece in sorted(chosen) if place >= boundary for line in piece]
    return "\n".join([*lines[: cuts[0]], *above, CONTEXT_LINE, *below, *lines[end:]])


def trimmed(text: str) -> str:
    return without_trailing_blanks(text.replace("\r\n", "\n").replace("\r", "\n"))


@given(fates(), st.integers(0, 7))
@settings(max_examples=200)
def test_deleting_moving_and_rewording_do_exactly_that(messages: list[Fate], split: int) -> None:
    log = [fate.row for fate in messages]
    sheet = sheet_of(log[:split], log[split:])
    staying = sorted(
        (fate for fate in messages if fate.is_context and not fate.is_deleted), key=lambda fate: fate.place
    )
    expected: list[Member] = [
        Kept(fate.row.id)
        if fate.words is None or trimmed(fate.words) == trimmed(fate.row.content)
        else Reworded(fate.row.id, fate.words)
        for fate in staying
    ]
    in_context = [row.id for row in log[split:]]
    ids = {fate.row.id for fate in staying}
    edit = matched(parse(after(sheet.text, sheet, messages), sheet.name), sheet)
    assert list(edit.members) == expected
    assert edit.dropped == tuple(id_ for id_ in in_context if id_ not in ids)
    assert edit.changed == (expected != [Kept(id_) for id_ in in_context])


@given(rows(), st.integers(0, 8), st.data())
def test_whatever_is_deleted_the_rest_stays_in_its_order(log: list[Message], split: int, data: st.DataObject) -> None:
    """Also where messages are alike: then it is the same text that stays, if not the same row."""
    sheet = sheet_of(log[:split], log[split:])
    parsed = parse(sheet.text, sheet.name)
    stays = data.draw(st.lists(st.booleans(), min_size=len(parsed.blocks), max_size=len(parsed.blocks)))
    chosen = [number for number, stay in enumerate(stays) if stay]
    start = sum(number < parsed.context_start for number in chosen)
    blocks = tuple(parsed.blocks[number] for number in chosen)
    entries = [*sheet.before, *sheet.context]
    edit = matched(replace(parsed, blocks=blocks, context_start=start), sheet)
    texts = {row.id: (row.role, trimmed(row.content)) for row in log}
    left = [row_id for number in chosen[start:] for row_id in entries[number].row_ids]
    assert all(isinstance(member, Kept) for member in edit.members)
    assert [texts[member.message_id] for member in edit.members if isinstance(member, Kept)] == [
        texts[row_id] for row_id in left
    ]
    assert len(edit.dropped) == len(log[split:]) - len(left)


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


# Tools


def test_a_call_and_its_result_are_one_block() -> None:
    sheet = sheet_of([], [QUESTION, call(6, "a", 12), result(7, "a", "three\n\nhits", 13), ANSWER])
    assert '[2026-02-12 12:00:12] Frodo (tool): search {"q": "ring"}\n→ three\n\nhits\n\n' in sheet.text
    assert [entry.row_ids for entry in sheet.context] == [(3,), (6, 7), (4,)]


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
    assert [len(entry.row_ids) for entry in sheet.context] == sizes
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
    with pytest.raises(EditFormatError, match=r"what a tool did cannot be changed or made up") as caught:
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
        ('[{"function": {"name": "f", "arguments": "\\ud83d\\ude00 \\ud800"}}]', "f 😀 \ufffd"),
        ('[{"function": {"name": 7}}]', '[{"function": {"name": 7}}]'),
        ("not JSON", "not JSON"),
        ("[" * 100_000, "[" * 100_000),
        ("9" * 5_000, "9" * 5_000),
        ("[]", ""),
        (None, ""),
    ],
    ids=range(10),
)
def test_calls_are_shown_by_their_names_whatever_the_log_holds(tool_calls: str | None, shown: str) -> None:
    sheet = sheet_of([], [call(1, "a")._replace(tool_calls=tool_calls)])
    assert sheet.context[0].block.body == shown
    sheet.text.encode()
    assert not edited(sheet).changed


def test_what_is_said_before_a_call_is_shown_with_it() -> None:
    sheet = sheet_of([], [call(1, "a")._replace(content="Let me look.")])
    assert "Frodo (tool): Let me look.\nsearch " in sheet.text


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
