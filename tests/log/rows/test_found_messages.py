"""The full-text index finds the same messages as a naive reading of the log."""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.errors import CommandError
from chorus_cli.log.rows.search_index import COUNTED, Scope
from tests.amount import examples
from tests.fakes import START
from tests.log.rows.indexed_log import find, ids, index_all, put
from tests.storage.database import database


def test_the_newest_is_found_first_and_what_was_left_out_is_counted(connection: sqlite3.Connection) -> None:
    put(connection, "a ring", "no match", "the Ring!", "RING")
    index_all(connection)
    assert ids(connection, "ring") == [4, 3, 1]
    found = find(connection, "ring", Scope(None, None, 1))
    assert [hit.excerpt for hit in found.hits] == ["«RING»"]
    assert found.more == 2


def test_what_was_left_out_is_counted_no_further_than_somebody_wants_to_know(connection: sqlite3.Connection) -> None:
    put(connection, *["ring"] * (COUNTED + 20))
    index_all(connection, 5000)
    assert find(connection, "ring", Scope(None, None, 10)).more == COUNTED + 1


@pytest.mark.parametrize(
    ("content", "typed", "shown"),
    [
        ("Une idée NAÏVE", "idee naive", "Une «idée» «NAÏVE»"),
        ("The quick brown fox", '"quick brown"', "The «quick brown» fox"),
        ("refactoring", "refact*", "«refactoring»"),
        ("don't lose this", "don't", "«don't» lose this"),
        ("see core/search_query.py", "search_query.py", "see core/«search_query.py»"),
        ("我在東京都の図書館で", "東京", "我在«東京»都の図書館で"),
        ("我在東京都の図書館で", "図書 東京", "我在«東京»都の«図書»館で"),
        ("使用Python编程", "python", "使用«Python»编程"),
        ("ฉันชอบกินข้าว", "ชอบ", "ฉัน«ชอบ»กินข้าว"),
        ("서울에서 만나요", "서울", "«서울»에서 만나요"),
        ("done 🎉 -> next", "🎉 ->", "done «🎉» -> next"),
        ("done 🎉", "🎉 done", "«done» 🎉"),
    ],
)
def test_words_phrases_beginnings_and_parts_of_sentences_without_blanks_are_found(
    connection: sqlite3.Connection, content: str, typed: str, shown: str
) -> None:
    put(connection, "something else", content)
    index_all(connection)
    assert [hit.excerpt for hit in find(connection, typed).hits] == [shown]


@pytest.mark.parametrize("typed", ['"brown quick"', "quick missing", "qui", "東都", "🎉 quick", "uick*"])
def test_what_does_not_hold_all_of_it_is_not_found(connection: sqlite3.Connection, typed: str) -> None:
    put(connection, "The quick brown fox", "東京都")
    index_all(connection)
    assert ids(connection, typed) == []


def test_a_search_may_be_bounded_by_a_time_and_a_persona(connection: sqlite3.Connection) -> None:
    put(connection, "ring", "ring 🎉")
    put(connection, "ring", persona="gone")
    connection.execute("UPDATE messages SET timestamp = '2026-02-13T00:00:00.000000Z' WHERE id = 2")
    index_all(connection)
    assert [hit.message.id for hit in find(connection, "ring", Scope(START, None, 9)).hits] == [2]
    assert [hit.message.id for hit in find(connection, "🎉", Scope(START, "frodo", 9)).hits] == [2]
    assert [hit.message.id for hit in find(connection, "ring", Scope(None, "gone", 9)).hits] == [3]


WORDS = st.text(alphabet="abÄéÖ1日本ก", min_size=1, max_size=4)
TEXTS = st.text(alphabet="abABÄéÖ1日本ก _-*\"'():^+.\n", max_size=30)


def tokens(text: str) -> list[str]:
    """Cut a text into words in the plainest way: without accents and capitals, signs without blanks one by one."""
    plain = "".join(sign for sign in unicodedata.normalize("NFD", text.lower()) if not unicodedata.combining(sign))
    return re.findall(r"[日本ก]|[a-z0-9]+", plain)


def holds(content: str, phrase: str, *, begins: bool) -> bool:
    words, wanted = tokens(content), tokens(phrase)
    for place in range(len(words) - len(wanted) + 1):
        *whole, last = words[place : place + len(wanted)]
        if whole == wanted[:-1] and (last.startswith(wanted[-1]) if begins else last == wanted[-1]):
            return True
    return False


@given(
    contents=st.lists(TEXTS, max_size=8),
    terms=st.lists(st.tuples(st.lists(WORDS, min_size=1, max_size=2), st.booleans()), min_size=1, max_size=2),
    rows=st.integers(1, 4),
)
@examples(200)
def test_the_index_finds_what_a_naive_search_finds(
    contents: list[str], terms: list[tuple[list[str], bool]], rows: int
) -> None:
    typed = " ".join(f'"{" ".join(words)}"{"*" if begins else ""}' for words, begins in terms)
    with closing(database()) as connection:
        put(connection, *contents)
        index_all(connection, rows)
        expected = [
            number
            for number, content in enumerate(contents, 1)
            if all(holds(content, " ".join(words), begins=begins) for words, begins in terms)
        ]
        assert ids(connection, typed) == expected[::-1]


@given(typed=st.text(max_size=40) | st.text(alphabet="\"'*-:^(){}+,.\0 ANDORTE\ud800日\U0001e900🎉", max_size=40))
@examples(300)
def test_no_text_is_syntax_to_the_index(typed: str) -> None:
    with closing(database()) as connection:
        put(connection, "AND OR NOT NEAR content", typed.encode(errors="replace").decode())
        index_all(connection)
        try:
            find(connection, typed)
        except CommandError:
            assert not re.search(r"[^\W_]", typed)


@pytest.mark.parametrize(
    "typed", ["x" * 10_000, " ".join(f"w{n}" for n in range(2_000)), "🎉 -> " * 2_000, '"' * 10_000 + "a"]
)
def test_ten_thousand_characters_are_looked_for_like_any_others(connection: sqlite3.Connection, typed: str) -> None:
    put(connection, "x", f"before {typed} after")
    index_all(connection)
    assert ids(connection, typed)[-1:] == [2]


def test_a_text_that_says_what_was_typed_is_found_by_it(connection: sqlite3.Connection) -> None:
    put(connection, "nul \u2400 here", "nul\0 there")
    index_all(connection)
    assert ids(connection, "nul") == [2, 1]
