"""Acts and the journal: their words and rows, and what redo takes; `test_view_stateful` has a naive model of both."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.log.rules.acts import ACTS, Fold, Reversal, Subject, Window
from chorus_cli.log.rules.journal import fold_is_undone, redoable
from chorus_cli.log.rules.log_acts import Act, Flash, ItemChange, ItemState, MemoryAct, MemoryChange
from chorus_cli.log.rules.messages import expanded, runs
from chorus_cli.log.rules.operations import Operation

NOW = datetime(2026, 2, 12, 14, 30, tzinfo=UTC)


def journal(story: str) -> list[Operation]:
    """Read operations from words, numbered from 1: ``clear`` or ``undo:1`` or ``redo:t5`` (a turn).

    ``say:9`` is no operation but the newest message from then on, a turn of that id. A star marks what came by itself.
    """
    operations: list[Operation] = []
    newest_message = 0
    for word in story.split():
        name, _, about = word.partition(":")
        if name == "say":
            newest_message = int(about)
            continue
        subject = Subject(turn_id=int(about[1:])) if about.startswith("t") else Subject(operation_id=int(about or 0))
        number = len(operations) + 1
        act = made(name.rstrip("*"), subject, number)
        is_automatic = name.endswith("*")
        operations.append(Operation(number, act, None, newest_message, NOW, is_automatic, number=number))
    return operations


def made(kind: str, subject: Subject, number: int) -> Act:
    act = ACTS[kind]
    if issubclass(act, Reversal):
        return act(subject)
    if issubclass(act, Window):
        return Window(8, 24)
    return Fold(((1, number),)) if issubclass(act, Fold) else act()


def newest_turn(story: str) -> int:
    return max((int(word.removeprefix("say:")) for word in story.split() if word.startswith("say:")), default=0)


def number(operation: Operation | None) -> int | None:
    return operation.id if operation else None


@pytest.mark.parametrize(
    ("story", "expected"),
    [
        ("", None),
        ("clear", None),
        ("clear undo:1", 2),
        ("clear undo:1 redo:1", None),
        ("clear undo:1 redo:1 undo:1", 4),
        ("clear window undo:2 undo:1", 4),
        ("clear window undo:2 undo:1 redo:1", 3),
        ("clear window undo:2 undo:1 redo:1 redo:2", None),
        pytest.param("clear undo:1 window", None, id="an operation has followed"),
        pytest.param("clear undo:1 window undo:3", 4, id="the undo of what followed can be redone, itself not"),
        pytest.param("clear undo:1 window undo:3 redo:3", None, id="what was followed stays so"),
        pytest.param("clear undo:1 compact* flash*", 2, id="what happens by itself follows nothing"),
        pytest.param("clear compact* undo:2", 3, id="an undone fold can be put back"),
        pytest.param("clear undo:1 compact", None, id="a fold by hand follows"),
        pytest.param("say:1 clear undo:1 say:3", None, id="a message has followed"),
        pytest.param("say:1 clear say:3 undo:1", 2, id="a message came before the undo"),
        pytest.param("say:1 clear window undo:2 say:3 undo:1", 4, id="the undo after the message can be redone"),
        pytest.param("say:1 clear window undo:2 say:3 undo:1 redo:1", None, id="the one before it cannot"),
        pytest.param("say:1 undo:t1", 1, id="a turn that was taken back"),
        pytest.param("say:1 undo:t1 redo:t1", None, id="a turn that was put back"),
        pytest.param("say:1 clear undo:t1 undo:1 redo:1", 2, id="a turn and an operation of one number"),
    ],
)
def test_redo_puts_back_the_newest_undo_that_nothing_has_followed(story: str, expected: int | None) -> None:
    assert number(redoable(journal(story), newest_turn(story))) == expected


@pytest.mark.parametrize(
    ("story", "undone"),
    [
        ("", False),
        ("clear", False),
        ("compact*", False),
        ("compact* undo:1", True),
        ("compact undo:1", True),
        ("compact* undo:1 redo:1", False),
        ("compact* undo:1 compact*", False),
        ("compact* compact* undo:1", False),
        ("compact* compact* undo:2", True),
    ],
)
def test_a_fold_is_undone_while_the_newest_of_them_is(story: str, *, undone: bool) -> None:
    assert fold_is_undone(journal(story)) is undone


HIDDEN, VISIBLE = ItemState(visible=False), ItemState(visible=True)
ONE = (ItemChange(12, HIDDEN, VISIBLE),)
TWO = (*ONE, ItemChange(13, HIDDEN, VISIBLE))

WORDS: list[tuple[MemoryAct, str]] = [
    (MemoryChange("add", ONE, "call the plumber"), 'remembered #12 "call the plumber"'),
    (MemoryChange("forget", ONE, "call"), 'forgot #12 "call"'),
    (MemoryChange("edit", ONE, "call"), 'edited #12 "call"'),
    (MemoryChange("pin", ONE, "call"), 'pinned #12 "call"'),
    (MemoryChange("unpin", ONE, "call"), 'unpinned #12 "call"'),
    (MemoryChange("add", ONE), "remembered #12 (a purged text)"),
    (MemoryChange("import", TWO, "prd.md"), "imported 2 memory items from prd.md"),
    (MemoryChange("capture", TWO, "message #7"), "captured 2 memory items from message #7"),
    (MemoryChange("restore", TWO, "checkpoint 3"), "restored 2 memory items from checkpoint 3"),
    (Flash(3, (12, 13)), "flash save, 2 memory items archived"),
    (Flash(3), "flash save"),
]


@pytest.mark.parametrize(("act", "words"), WORDS)
def test_an_act_names_itself_and_is_read_back_from_its_row(act: MemoryAct, words: str) -> None:
    assert act.describe() == words
    row = json.loads(json.dumps(act.detail()))
    assert ACTS[act.kind].from_detail(row, ()) == act
    assert act.inverse.inverse == act
    assert not act.breaks_prefix
    assert not act.changes_messages


def test_the_inverse_changes_every_item_back() -> None:
    change = ItemChange(12, ItemState(content="old"), ItemState(content="new"))
    assert MemoryChange("edit", (change,)).inverse.changes == (
        ItemChange(12, ItemState(content="new"), ItemState(content="old")),
    )
    assert Flash(3, (12,)).inverse.changes == (ItemChange(12, ItemState(archived=True), ItemState(archived=False)),)


@pytest.mark.parametrize(
    ("concerned", "agrees"),
    [
        (ItemState(), True),
        (ItemState(visible=True, content="a"), True),
        (ItemState(visible=False), False),
        (ItemState(content="b"), False),
    ],
)
def test_a_state_agrees_with_the_present_one_as_far_as_it_goes(concerned: ItemState, *, agrees: bool) -> None:
    present = ItemState(visible=True, archived=False, pinned=False, item_type="TASK", content="a")
    assert concerned.agrees_with(present) is agrees
    assert concerned.agrees_with(concerned.over(present))


@pytest.mark.parametrize(
    ("ids", "written"), [((), ()), ((1, 2, 5, 6), ((1, 2), (5, 6))), ((3, 2, 1), ((3, 3), (2, 2), (1, 1)))]
)
def test_neighbours_are_one_run(ids: tuple[int, ...], written: tuple[tuple[int, int], ...]) -> None:
    assert runs(ids) == written


@given(st.lists(st.integers(1, 40), max_size=60))
def test_they_come_back_in_their_order(ids: list[int]) -> None:
    assert expanded(runs(ids)) == tuple(ids)
