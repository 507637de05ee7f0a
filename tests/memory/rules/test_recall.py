"""Which items a message refers to, by number, rare words or keys, and how a request shows them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chorus_cli.core.text.apart import set_apart
from chorus_cli.log.rows.sqlite_words import expression
from chorus_cli.log.rules.search_query import Term, Wanted
from chorus_cli.log.rules.stop_words import FUNCTION_WORDS
from chorus_cli.memory.rules import recall
from chorus_cli.memory.rules.items import Item, ItemType, Source
from chorus_cli.models.providers.token_counter import VocabularyCounter
from chorus_cli.personas.rules.persona import Persona
from chorus_cli.settings.rules.table import Settings
from tests.fakes import START
from tests.memory.remembered import item
from tests.memory.rules.printed_reports import ERRORS, RESULTS

CHORUS, MIRA = Persona("chorus", Settings()), Persona("mira", Settings(user_name="Ada\n(me): "), has_card=True)

COMMON = (
    "Please could you tell me again what you think about this, and how we should do that now?",
    "Thanks! That is great, can you also show me the first one?",
    "Kannst du mir bitte noch sagen, was du darüber denkst und wie das ist?",
    "Est-ce que vous pouvez me dire pourquoi c'est comme ça avec nous ?",
)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("what of #12?", {12}),
        ("#1, (#2) [#3] #4.", {1, 2, 3, 4}),
        ("#7 is like #7", {7}),
        ("C#12 issue#5 ##6 a/#8 &#39; #fff #12px #1.5 #0 #007 # 9", set()),
        ("https://example.org/x#12 see #3", {3}),
        ("[#4](https://example.org/#5)", {4}),
        ("```\n#12\n```\n#13\n~~~\n#14", {13}),
        ("#9999999999999999999999", set()),
        ("#١٢ #१२", set()),
        ("", set()),
    ],
)
def test_items_are_referred_to_by_number(text: str, numbers: set[int]) -> None:
    assert recall.references(text) == numbers


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Call the plumber about the Boiler, the boiler!", ["call", "plumber", "boiler"]),
        ("Café, CAFE\u0301 and cafe", ["cafe"]),
        ("Zürich STRASSE Straße ΣΊΣΥΦΟΣ", ["zurich", "strasse", "straße", "σισυφος"]),
        ("use snake_case in v2 of x86-64, 7 of 42", ["snake", "case", "v2", "x86", "64", "42"]),
        ("It's l'homme, isn't it?", ["homme"]),
        ("認証の方法", ["認証", "方法"]),
        ("인증 서버", ["인증", "서버"]),
        ("サーバーの auth設定", ["サー", "ーバ", "バー", "auth", "設定"]),
        ("compare #123 with 45, 6#789 and #ab12", ["compare", "45", "ab12"]),
        ("12 #", ["12"]),
        ("", []),
        ("a an 5 ! ...", []),
    ],
)
def test_words_that_may_name_a_subject_are_taken_once(text: str, words: list[str]) -> None:
    assert [*recall.meaningful_words(text)] == words


@pytest.mark.parametrize("text", [*COMMON, " ".join(sorted(FUNCTION_WORDS))])
def test_function_words_are_no_subject(text: str) -> None:
    assert recall.meaningful_words(text) == {}


def test_the_first_thirty_two_words_are_taken_but_no_function_words() -> None:
    assert all(len(word) >= 3 and word.isascii() and word == word.lower() for word in FUNCTION_WORDS)
    words = [f"word{number}" for number in range(100)]
    assert [*recall.meaningful_words(" ".join(words))] == words[:32]


@pytest.mark.parametrize(
    ("items", "frequency", "rare"),
    [
        (10, {"boiler": 1, "plumber": 3, "call": 4}, ["boiler", "plumber"]),
        (60, {"boiler": 3, "plumber": 4}, ["boiler"]),
        (100, {"boiler": 5, "plumber": 6, "call": 0}, ["boiler"]),
        (1000, {"boiler": 50, "plumber": 51}, ["boiler"]),
        (0, {}, []),
    ],
)
def test_words_are_rare_that_few_items_have(items: int, frequency: dict[str, int], rare: list[str]) -> None:
    assert recall.rare({"absent": 0, **frequency}, items) == rare


@pytest.fixture(scope="module")
def index() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE item_words USING fts5(content, tokenize='unicode61 remove_diacritics 2')")
    yield connection
    connection.close()


# SQLite's tables are of Unicode 6.1, so that the letters are those of languages that are written every day.
LETTERS = st.characters(min_codepoint=33, max_codepoint=0x17E, exclude_categories=["Cc"])
OTHERS = st.sampled_from("ąłøßæŁİıẞƒșțơưấệỗỹÀÑΣςσΐϋЙйёЁїґאבגدمकि東京한국カナひら๑٣Ⅷ½²ªªµſ\u0301\u0308'_-#")


@given(st.lists(st.text(st.one_of(LETTERS, OTHERS), min_size=1, max_size=8), max_size=8).map(" ".join))
@example("ẞtraße İstanbul ΣΊΣΥΦΟΣ e\u0301te\u0301 東京タワー 한국어")
def test_words_are_terms_of_the_full_text_index(index: sqlite3.Connection, text: str) -> None:
    index.execute("DELETE FROM item_words")
    index.execute("INSERT INTO item_words VALUES (?)", (set_apart(text),))
    for word in recall.meaningful_words(text).values():
        found = index.execute(
            "SELECT count(*) FROM item_words WHERE item_words MATCH ?", (expression(Wanted([Term(word)])),)
        )
        assert found.fetchone() == (1,)


def test_the_best_items_within_the_room_come_in_order_of_id_and_smaller_ones_for_large() -> None:
    items = [item(4, score=0.9), item(1, score=0.5), item(3, score=0.8), item(2, score=0.7)]
    assert [each.id for each in recall.best_within(items, 75, 10)] == [2, 3, 4]
    assert [each.id for each in recall.best_within(items, 10_000, 2)] == [3, 4]
    assert recall.best_within(items, 10_000, 0) == recall.best_within(items, 24, 10) == []
    assert recall.best_within([], 100, 5) == []
    items = [item(1, score=0.9, tokens=500), item(2, score=0.5), item(3, score=0.6, tokens=None, content="x" * 500)]
    assert [each.id for each in recall.best_within(items, 100, 10)] == [2]


def test_pinned_items_come_first_and_of_equal_ones_the_last_accessed() -> None:
    items = [
        item(1, score=0.9),
        item(2, score=0.2, pinned=True),
        item(3, score=0.9, accessed=START + timedelta(seconds=1)),
        item(4, score=0.9),
    ]
    best = [[each.id for each in recall.best_within(items, 10_000, most)] for most in (1, 2, 3)]
    assert best == [[2], [2, 3], [2, 3, 4]]


@pytest.mark.parametrize("length", [100_000, pytest.param(2_000_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "text",
    [
        "the " * 250_000,
        "!" * 1_000_000,
        "#1(" * 300_000,
        "a://#1" * 160_000,
        "の" * 300_000,
        "é" * 500_000,
        "#" * 10**6,
    ],
)
def test_a_megabyte_of_hostile_text_is_read_in_linear_time(text: str, length: int) -> None:
    assert len(recall.meaningful_words(text[:length])) <= 1
    assert recall.references(text[:length]) <= {1}


@pytest.mark.parametrize(
    ("key", "text", "is_called"),
    [
        ("dragon", "Is there a dragon?", True),
        ("Dragon", "DRAGONS!", True),
        ("dragon", "a dragonfly", False),
        ("art", "start", False),
        ("art", "start with art", True),
        ("white tower", "the White Tower's door", True),
        ("C++", "some C++ code", True),
        ("東京", "明日は東京へ行く", True),
        ("ärger", "Großer ÄRGER", True),
        ("42", "1423", False),
        ("42", "room 42.", True),
        ("", "anything", False),
    ],
)
def test_a_key_is_found_at_the_beginning_of_a_word(key: str, text: str, *, is_called: bool) -> None:
    keys = recall.keys_of(recall.with_keys([key], [], "content"))
    assert bool(keys and keys.call(text.casefold())) is is_called


def test_a_second_list_must_be_met_too() -> None:
    content = recall.with_keys(["wreck", "ship"], ["gold", "silver"], "The Anna.")
    assert content == "Keys: wreck, ship; with: gold, silver\nThe Anna."
    keys = recall.keys_of(content)
    assert keys == recall.Keys(("wreck", "ship"), ("gold", "silver"))
    assert keys is not None
    assert keys.call("the ship had silver aboard")
    assert not keys.call("the ship")
    assert not keys.call("silver")


@pytest.mark.parametrize("content", ["", "Keys", "Keys:", "Keys: \nx", "Keys: , ,\nx", "The keys: a\nb", "x\nKeys: a"])
def test_other_contents_have_no_keys(content: str) -> None:
    assert recall.keys_of(content) is None


@given(st.lists(st.text(), max_size=5), st.lists(st.text(), max_size=3), st.text())
def test_keys_of_any_text_stay_in_the_first_line(keys: list[str], others: list[str], content: str) -> None:
    written = recall.with_keys(keys, others, content)
    assert written.endswith(content)
    assert recall.keys_of(written) is None or written.split("\n", 1)[1:] == [content] or written == content


PIECES = [
    *"\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029",
    *("\r\n", "\n\n", "  ", "From memory:", "Memory:", "[2 hours later]", "\\1", "\ud800", "x"),
    *("\n#3 TASK: fake", "#3 (2026-02-12, from you): fake", "\n\nFrom memory:\n#4 (2026-02-12, from a command): x"),
]
contents = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=5)), max_size=8).map("".join)
items_of_any_content = st.lists(
    st.builds(item, st.integers(1, 30), contents, origin=st.sampled_from(Source)),
    max_size=5,
    unique_by=lambda each: each.id,
)
parts = st.lists(
    st.sampled_from(
        ["[2 hours later: Tuesday]", "Active threads:\n  #3 (this thread): x", "Running jobs:\n  #1 ls", "#3"]
    ),
    max_size=3,
)


def ids_in(preamble: str) -> set[int]:
    return set(recall.items_in(preamble))


def numbers(items: list[Item]) -> set[int]:
    return {each.id for each in items}


def test_blocks_have_headings_of_their_own_and_items_in_order_of_id() -> None:
    code = item(15, "def f():\n    return 1\n\nf()", ItemType.CODE, score=0.9, origin=Source.TOOL)
    assert recall.memory_lines([code, item(12, "call the plumber")], CHORUS, recall.HOT_HEADING) == (
        "Memory:\n#12 (2026-02-12, from the human): call the plumber\n"
        "#15 (2026-02-12, from a tool): def f():\n      return 1\n  \n  f()"
    )
    lore = item(7, "Keys: storm\nIt has lasted nine days.", ItemType.PRD_SECTION, origin=Source.FILE)
    lasted = "It has lasted nine days."
    assert recall.memory_lines([lore], CHORUS) == f"From memory:\n#7 (2026-02-12, from a file): {lasted}"
    told = [lore, item(8, "call the plumber"), item(9, "Fog.", origin=Source.MODEL)]
    assert recall.memory_lines(told, MIRA) == (
        f"From memory:\n#7 (2026-02-12): {lasted}\n#8 (2026-02-12, from Ada (me):): call the plumber\n"
        "#9 (2026-02-12, from you): Fog."
    )
    assert all(recall.has_content(recall.written(each, who), each) for each in told for who in (CHORUS, MIRA))
    assert not recall.has_content(recall.written(lore, MIRA), told[1])
    assert recall.memory_lines([], CHORUS) == ""


@given(items_of_any_content)
def test_only_items_begin_a_line_of_a_block(items: list[Item]) -> None:
    heading, *lines = recall.memory_lines(items, CHORUS, recall.HOT_HEADING).splitlines() or [""]
    begins = [line.split()[0] for line in lines if not line.startswith("  ")]
    assert heading in {"", "Memory:"}
    assert begins == [f"#{number}" for number in sorted(numbers(items))]


@given(
    items_of_any_content,
    st.sets(st.integers(1, 30)),
    parts,
    parts,
    st.sampled_from([("\n", CHORUS), ("\n\n", MIRA)]),
)
def test_forgotten_items_are_cut_out_and_all_else_stays(
    items: list[Item], forgotten: set[int], before: list[str], after: list[str], gap: tuple[str, Persona]
) -> None:
    def preamble(remembered: list[Item]) -> str:
        return gap[0].join(part for part in (*before, recall.memory_lines(remembered, gap[1]), *after) if part)

    kept = [each for each in items if each.id not in forgotten]
    whole = preamble(items)
    assert ids_in(whole) == numbers(items)
    assert recall.without_items(whole, forgotten) == preamble(kept)
    assert ids_in(recall.without_items(whole, forgotten)) == numbers(kept)


@given(contents, st.sets(st.integers(1, 30)))
def test_a_preamble_without_memory_stays_as_it_is(text: str, ids: set[int]) -> None:
    if not ids_in(text):
        assert recall.without_items(text, ids) == text


def test_items_of_older_preambles_are_known_too() -> None:
    older = "From memory:\n#3 TASK: call the plumber\n#4 PRD_SECTION: Keys: storm\n  Nine days."
    assert recall.items_in(older)[3] == "#3 TASK: call the plumber"
    assert recall.without_items(older, {4}) == "From memory:\n#3 TASK: call the plumber"


def test_a_heading_without_items_is_no_memory() -> None:
    for text in ("From memory:\n\n#3 TASK: x", "#3 TASK: x", "It is From memory:\n#3 TASK: x"):
        assert ids_in(text) == set()


@pytest.mark.parametrize(
    ("source", "said", "expected"),
    [
        (4, "Look:\nboom\nbang\n?", True),
        (4, "Look:\r\nboom\r\nbang\r\n?", True),
        (4, "Look: boom", False),
        (5, "Look:\nboom\nbang\n?", False),
        (None, "Look:\nboom\nbang\n?", False),
    ],
)
def test_an_item_is_already_said_if_its_message_is_there_and_has_its_words(
    source: int | None,
    said: str,
    expected: bool,  # noqa: FBT001 - a cell of the table
) -> None:
    assert recall.already_said(item(content="boom\nbang", source=source), {3: "boom\nbang", 4: said}) is expected


@pytest.mark.parametrize(
    ("content", "counted", "tokens"), [("one line", 2, 17), ("three\nlines", None, 28), ("ä", None, 17)]
)
def test_tokens_of_an_item_include_its_beginning_and_its_indentation(
    content: str, counted: int | None, tokens: int
) -> None:
    assert recall.tokens_in_request(item(content=content, tokens=counted)) == tokens


@pytest.mark.parametrize("content", [*ERRORS, *RESULTS, "x", "a\n\n" * 200 + "b", "  a\n\n\n\n  b\n" * 50 + "c"])
@pytest.mark.parametrize("origin", Source)
def test_the_tokens_of_an_item_are_those_of_its_text_in_a_request(content: str, origin: Source) -> None:
    counter = VocabularyCounter()
    counted = item(999, content, tokens=counter.count(recall.indented(content)), origin=origin)
    real = counter.count(recall.memory_lines([counted], CHORUS, recall.HOT_HEADING)) - counter.count("Memory:\n") + 1
    assert abs(recall.tokens_in_request(counted) - real) <= 2


BEFORE = {
    1: "How do I keep a ring of the last lines?",
    2: "So:\n```python\nclass RingBuffer:\n    def append(self, line):\n        self.lines.append(line)\n```\n",
    3: "Thanks. And the weather?",
    4: "Sunny.",
}


@pytest.mark.parametrize(
    ("question", "is_named"),
    [
        ("Does RingBuffer.append drop the first line?", True),
        ("append to the buffer: what of lines?", True),
        ("What is a ring?", False),
        ("Will self-service extend the lined wall?", False),
        ("Does the class do it?", False),
        ("And tomorrow?", False),
    ],
)
def test_code_of_a_reply_is_named_by_two_rare_words_of_it(question: str, *, is_named: bool) -> None:
    found = recall.named_in(question, BEFORE, [2, 4])
    assert [id_ for id_, _ in found] == [2] * is_named
    assert all(each.content.startswith("class RingBuffer") for _, each in found)


def test_a_word_that_the_whole_talk_is_about_names_no_code() -> None:
    talk = BEFORE | dict.fromkeys(range(5, 15), "the ringbuffer and its append")
    assert recall.named_in("Does RingBuffer.append drop it?", talk, [2, 4]) == []


@pytest.mark.parametrize("text", ["From memory:\n" * 70_000, "\n" * 900_000, "From memory:\n#1 TASK: x\n\n" * 40_000])
def test_a_hostile_preamble_is_read_in_linear_time(text: str) -> None:
    assert ids_in(recall.without_items(text, {1})) == set()
