"""The rules of the log: acts and the journal, threads, search terms and excerpts, and a conversation as Markdown."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.errors import CommandError
from chorus_cli.core.text.apart import APART, set_apart
from chorus_cli.log.rows.sqlite_words import expression
from chorus_cli.log.rules.acts import ACTS, Clear, Fold, Reversal, Subject
from chorus_cli.log.rules.journal import fold_is_undone
from chorus_cli.log.rules.log_acts import Act, Flash, ItemChange, ItemState, MemoryAct, MemoryChange
from chorus_cli.log.rules.messages import Message, Role, Status, expanded, runs
from chorus_cli.log.rules.operations import Operation
from chorus_cli.log.rules.search_query import (
    MARKS,
    MOST_WORDS,
    Term,
    Wanted,
    any_of,
    excerpt,
    marked_literals,
    required_query,
    search_query,
)
from chorus_cli.log.rules.speakers import Speakers
from chorus_cli.log.rules.threads import Exchange, Thread, ThreadState, last_exchange, number_in, state_of
from chorus_cli.log.rules.wording import Export, markdown
from tests.amount import examples
from tests.fakes import START


def folds(story: str) -> list[Operation]:
    """Read operations from words, numbered from 1, ``undo:1`` being the undo of the first."""
    operations: list[Operation] = []
    for number, word in enumerate(story.split(), 1):
        name, _, about = word.partition(":")
        kind = ACTS[name]
        subject = Subject(operation_id=int(about or 0))
        act: Act = kind(subject) if issubclass(kind, Reversal) else Fold(((1, number),)) if kind is Fold else kind()
        operations.append(Operation(number, act, None, 0, START, number=number))
    return operations


@pytest.mark.parametrize(
    ("story", "undone"),
    [
        ("", False),
        ("clear", False),
        ("compact", False),
        ("compact undo:1", True),
        ("compact undo:1 redo:1", False),
        ("compact undo:1 compact", False),
        ("compact compact undo:1", False),
        ("compact compact undo:2", True),
    ],
)
def test_a_fold_is_undone_while_the_newest_of_them_is(story: str, *, undone: bool) -> None:
    assert fold_is_undone(folds(story)) is undone


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


@pytest.mark.parametrize(
    ("ids", "written"), [((), ()), ((1, 2, 5, 6), ((1, 2), (5, 6))), ((3, 2, 1), ((3, 3), (2, 2), (1, 1)))]
)
def test_neighbours_are_one_run(ids: tuple[int, ...], written: tuple[tuple[int, int], ...]) -> None:
    assert runs(ids) == written


@given(st.lists(st.integers(1, 40), max_size=60))
def test_they_come_back_in_their_order(ids: list[int]) -> None:
    assert expanded(runs(ids)) == tuple(ids)


OPEN = Thread(7, 1, "", "Hello", START, None, 2, START)
NEW = OPEN._replace(messages=0, last_spoken=None)
CLOSED = OPEN._replace(closed_at=START)


@pytest.mark.parametrize(
    ("thread", "is_running", "waiting", "reply", "state"),
    [
        (OPEN, False, 0, None, ThreadState.IDLE),
        (NEW, False, 0, None, ThreadState.EMPTY),
        (NEW, False, 1, None, ThreadState.WAITING),
        (OPEN, False, 0, Status.COMPLETE, ThreadState.IDLE),
        (OPEN, True, 0, Status.STREAMING, ThreadState.RUNNING),
        (OPEN, True, 1, Status.INTERRUPTED, ThreadState.RUNNING),
        (OPEN, False, 1, Status.INTERRUPTED, ThreadState.WAITING),
        (OPEN, False, 0, Status.INTERRUPTED, ThreadState.INTERRUPTED),
        (OPEN, False, 0, Status.TRUNCATED, ThreadState.INTERRUPTED),
        (OPEN, False, 0, Status.FAILED, ThreadState.INTERRUPTED),
        (OPEN, False, 0, Status.STREAMING, ThreadState.INTERRUPTED),
        (CLOSED, True, 1, Status.STREAMING, ThreadState.CLOSED),
    ],
)
def test_the_state_of_a_thread(
    thread: Thread, *, is_running: bool, waiting: int, reply: Status | None, state: ThreadState
) -> None:
    assert state_of(thread, is_running=is_running, waiting=waiting, newest_reply=reply) is state


def row(id_: int, turn: int, role: Role, content: str, status: Status = Status.COMPLETE) -> Message:
    return Message(id_, "chorus", 7, turn, role, content, START, status=status)


def test_the_last_exchange_is_the_last_turn_without_its_calls_of_tools() -> None:
    rows = [
        row(1, 1, Role.USER, "Before"),
        row(2, 1, Role.ASSISTANT, "This"),
        row(3, 3, Role.USER, "Look it up"),
        row(4, 3, Role.ASSISTANT, "I look."),
        row(5, 3, Role.TOOL_USE, ""),
        row(6, 3, Role.TOOL_RESULT, "Found"),
        row(7, 3, Role.ASSISTANT, "It is", Status.INTERRUPTED)._replace(model="x"),
    ]
    assert last_exchange(rows) == Exchange(START, "Look it up", "I look.\n\nIt is", Status.INTERRUPTED, "x")
    rows[-1] = rows[-1]._replace(content="")
    assert last_exchange(rows) == Exchange(START, "Look it up", "I look.", Status.INTERRUPTED)
    assert last_exchange(rows[:5]) == Exchange(START, "Look it up", "I look.", Status.COMPLETE)
    assert last_exchange(rows[:1]) == Exchange(START, "Before", "", None)
    assert last_exchange([]) is None


@pytest.mark.parametrize(
    ("typed", "number"), [("3", 3), ("#3", 3), (" # 3 ", 3), ("", None), ("3a", None), ("-3", None), ("³", None)]
)
def test_a_number_is_read(typed: str, number: int | None) -> None:
    assert number_in(typed) == number


OPENING, CLOSING = MARKS


@pytest.mark.parametrize(
    ("typed", "condition", "literals"),
    [
        ("one ring  one", '"one" OR "ring"', ()),
        ("“speak friend”", '"speak friend"', ()),
        ('left"right side"', '"right side"', ()),
        ('never "closed', '"never" OR "closed"', ()),
        ('"how it begin"*', '"how it begin" *', ()),
        ("begin* +must", '"must"', ()),
        ("cats AND NOT dogs OR NEAR(a, b)", '"cats" OR "dogs" OR "NEAR(a" OR "b)"', ()),
        ("it's 100% C++", '"100%" OR "C++"', ()),
        ('rings -gold -"one ring" well-known', '("rings" OR "well-known") NOT ("gold" OR "one ring")', ()),
        ("What is the ring of Sauron's?", '"ring" OR "Sauron"', ()),
        ("-5", '"5"', ()),
        ("what was it", '"what" OR "was" OR "it"', ()),
        ("Was ist die Bürde", '"die" OR "Bürde"', ()),
        ("party 🎉 🎉", '"party"', ()),
        ('party "🎉" ->', '"party"', ("🎉",)),
        ("🎉 🎉", "", ("🎉",)),
        ("a\0b", '"a\u2400b"', ()),
        ("\ud800", "", ("\ufffd",)),
        ("東京", f'"{APART}東{APART}{APART}京{APART}"', ()),
    ],
)
def test_what_is_typed_becomes_an_expression_without_syntax(
    typed: str, condition: str, literals: tuple[str, ...]
) -> None:
    query = search_query(typed)
    terms = expression(Wanted(query.required) if query.required else any_of(query.words))
    without = expression(any_of(query.excluded))
    assert (f"({terms}) NOT ({without})" if without else terms, query.literals) == (condition, literals)


def test_a_sentence_without_blanks_is_looked_for_in_pairs_of_its_signs_too() -> None:
    assert [term.text for term in search_query("食べ物は何").words] == ["食べ物は何", "食べ", "べ物", "物は", "は何"]


@pytest.mark.parametrize(
    ("typed", "roles"),
    [
        ("role:user ring", ["user"]),
        ("ring ROLE:assistant", ["assistant"]),
        ("ring role:tool", ["tool_use", "tool_result"]),
        ("ring role:play", []),
        ('ring "role:user"', []),
    ],
)
def test_a_search_may_name_who_speaks(typed: str, roles: list[str]) -> None:
    assert [*search_query(typed).roles] == roles


def test_all_words_may_be_required_with_those_of_grammar() -> None:
    query = required_query('the -ring "speak friend" gand* 🎉')
    assert query.required == (Term("the"), Term("ring"), Term("speak friend"), Term("gand", begins=True))
    assert query.literals == ("🎉",)


def test_a_query_of_any_length_is_looked_for_in_part() -> None:
    query = search_query(" ".join(f"+a{number} -b{number} c{number}*" for number in range(100)))
    assert [*map(len, (query.required, query.excluded, query.words))] == [MOST_WORDS] * 3
    assert search_query("the " * 60_000 + "+late").required == ()


@pytest.mark.parametrize("typed", ["", "  ", '""', '"', '" "', '""*'])
def test_nothing_to_look_for_is_refused(typed: str) -> None:
    with pytest.raises(CommandError, match="nothing to look for"):
        search_query(typed)


@given(st.text())
@examples(200)
def test_setting_apart_adds_nothing_but_separators(text: str) -> None:
    assert set_apart(text).replace(APART, "") == text.replace(APART, "")


@pytest.mark.parametrize(
    ("marked", "shown"),
    [
        (f"The one\n\n  {OPENING}ring{CLOSING}\tto rule", "The one «ring» to rule"),
        (f"{APART}東{APART}{OPENING}{APART}京{APART}{CLOSING}", "東«京»"),
        ("x" * 1000 + f"{OPENING}ring{CLOSING}" + "y" * 1000, "…" + "x" * 80 + "«ring»" + "y" * 154 + "…"),
        (OPENING + "x" * 1000 + CLOSING, "«" + "x" * 239 + "»…"),
        (marked_literals("a 🎉 b 🎉 -> c", ("->", "🎉")), "a «🎉» b 🎉 -> c"),
        (marked_literals("a" * 1000 + "🎉", ("🎉",)), "…" + "a" * 80 + "«🎉»"),
    ],
    ids=["one line", "apart", "a long line", "a long word", "literals", "a late literal"],
)
def test_an_excerpt_is_one_line_cut_around_what_was_found_which_is_marked(marked: str, shown: str) -> None:
    assert excerpt(marked) == shown


@given(st.text(alphabet=st.sampled_from(f"ab \n{OPENING}{CLOSING}{APART}"), max_size=600))
@examples(200)
def test_an_excerpt_is_short_and_opens_and_closes_its_marks(marked: str) -> None:
    shown = excerpt(marked)
    assert len(shown) < 250
    assert not set(shown) & {"\n", OPENING, CLOSING, APART}


FRODO = Speakers("Frodo\nBaggins")
STAMP = f"{START.astimezone():%Y-%m-%d %H:%M:%S}"


def said(content: str, role: Role = Role.USER, status: Status = Status.COMPLETE, calls: str | None = None) -> Message:
    return Message(1, "frodo", 7, 1, role, content, START, tool_calls=calls, status=status)


def body(*entries: Message | Operation) -> str:
    """Return what stands below the head."""
    return markdown(Export("frodo", FRODO, 7, START, is_whole=True, entries=entries)).split("\n\n", 2)[2]


def test_the_head_says_whose_words_they_are_and_a_clear_is_a_line_between_messages() -> None:
    entries = (said("One"), Operation(1, Clear(), None, 1, START), said("Two"))
    text = markdown(Export("frodo", FRODO, 7, START, is_whole=True, entries=entries))
    head = f"Thread #7, everything that was said: 2 messages, exported on {STAMP}."
    assert text.startswith(f"# Frodo Baggins\n\n{head}\n\n## Human, {STAMP}")
    assert f"One\n\n---\n\n*[CONTEXT_CLEARED] {STAMP}*\n\n## Human" in text


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (said("\n  code?\n\n# no heading of ours\n"), f"## Human, {STAMP}\n\n  code?\n\n# no heading of ours\n"),
        (
            said("Half a", Role.ASSISTANT, Status.INTERRUPTED),
            f"## Frodo Baggins, {STAMP}\n\nHalf a\n\n*[interrupted]*\n",
        ),
        (said("", Role.ASSISTANT, Status.FAILED), f"## Frodo Baggins, {STAMP}\n\n*[failed]*\n"),
        (said("", Role.TOOL_USE, calls="[1]"), f"## Frodo Baggins calls a tool, {STAMP}\n\n```json\n[1]\n```\n"),
        (said("a ```` b", Role.TOOL_RESULT), f"## The tool answers, {STAMP}\n\n`````\na ```` b\n`````\n"),
        (said("", Role.TOOL_RESULT), f"## The tool answers, {STAMP}\n"),
    ],
)
def test_each_message_stands_below_a_heading(message: Message, expected: str) -> None:
    assert body(message) == expected
