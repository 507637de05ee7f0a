"""Any messages, saved by any editor: each one is matched again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta, timezone
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.text.code_points import without_nul
from chorus_cli.editing.rules.format import CONTEXT_LINE, END_LINE, parse
from chorus_cli.editing.rules.matching import Sheet, laid_out
from chorus_cli.log.rules.attachments import Attachment
from chorus_cli.log.rules.messages import Message, Role
from tests.amount import examples
from tests.editing.rules.test_edit_format import BODIES, LOSSLESS_EDITORS, without_trailing_blanks
from tests.editing.rules.test_edit_matching import (
    CALL,
    MOMENTS,
    NOON,
    ZONES,
    ContextEdit,
    Kept,
    Member,
    Reworded,
    kept,
    matched,
    said,
    sheet_of,
)

EDITORS: dict[str, Callable[[str], str]] = {
    **LOSSLESS_EDITORS,
    "trailing blanks stripped": without_trailing_blanks,
    "trailing blanks stripped, CRLF": lambda text: without_trailing_blanks(text).replace("\n", "\r\n"),
}


# Two of them have the same line, if it were not for a number.
ATTACHMENTS = st.sampled_from(
    [Attachment(name, "image/png", 1_200_000, digit * 64) for name, digit in (("a", "0"), ("a", "1"), ("b]\n[c", "2"))]
)


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
        attachments=st.lists(ATTACHMENTS, max_size=2, unique=True).map(tuple),
    )
    return [row._replace(id=number) for number, row in enumerate(draw(st.lists(row, max_size=8)), start=1)]


@given(rows(), st.integers(0, 8), ZONES, st.text(max_size=5))
@examples(200)
def test_what_was_not_changed_is_unchanged_through_any_editor(
    log: list[Message], split: int, zone: timezone | None, name: str
) -> None:
    before, context = log[:split], log[split:]
    sheet = laid_out(name, before, context, zone)
    expected = ContextEdit(kept(*(row.id for row in context)), dropped=(), changed=False)
    for editor in EDITORS.values():
        assert matched(parse(editor(sheet.text), sheet.name), sheet) == expected


@dataclass(frozen=True)
class Fate:
    """The change of one message: its new position in the text, and its new words."""

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
    cuts = sorted([*(block.line - 1 for block in parsed.blocks), lines.index(CONTEXT_LINE), end])
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
@examples(200)
def test_deleting_moving_and_rewording_do_exactly_that(messages: list[Fate], split: int) -> None:
    log = [fate.row for fate in messages]
    sheet = sheet_of(log[:split], log[split:])
    staying = sorted(
        (fate for fate in messages if fate.is_context and not fate.is_deleted), key=lambda fate: fate.place
    )
    expected: list[Member] = [
        Kept(fate.row.id)
        if fate.words is None or trimmed(fate.words) == trimmed(fate.row.content)
        else Reworded(fate.row.id, without_nul(fate.words))
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
    left = [row_id for number in chosen[start:] for row_id in [row.id for row in entries[number].rows]]
    assert all(isinstance(member, Kept) for member in edit.members)
    assert [texts[member.message_id] for member in edit.members if isinstance(member, Kept)] == [
        texts[row_id] for row_id in left
    ]
    assert len(edit.dropped) == len(log[split:]) - len(left)
