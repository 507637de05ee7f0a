"""The full-text index: every row is in it exactly once after any failure, and it finds what a naive reading finds."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.errors import CommandError
from chorus_cli.log.rows import found_messages, search_index
from chorus_cli.log.rows.found_messages import COUNTED, Scope, found_in
from chorus_cli.log.rows.search_index import begin_anew, check, index_batch, progress
from chorus_cli.log.rows.words import IndexDamagedError
from chorus_cli.log.rules.findings import Findings
from chorus_cli.log.rules.search_query import search_query
from chorus_cli.storage import meta_rows
from chorus_cli.storage.port import Connection
from tests.amount import examples
from tests.fakes import START
from tests.storage.database import database, needs_server, quick

EVERYWHERE = Scope(None, None, 100)
Begun = Callable[[], AbstractContextManager[Connection]]


@pytest.fixture(scope="module")
def on_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Begun]:
    """Return what opens an empty log on a server, which is as it was afterwards."""

    @contextmanager
    def emptied() -> Iterator[Connection]:
        server.begin(to_write=True)
        server.execute("TRUNCATE messages RESTART IDENTITY CASCADE")
        try:
            yield server
        finally:
            server.rollback()

    with closing(quick(tmp_path_factory.mktemp("server") / "chorus.db").open()) as server:
        yield emptied


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=needs_server)])
def begun(request: pytest.FixtureRequest) -> Begun:
    """Return what opens an empty log of each engine."""
    if request.param == "sqlite":
        return lambda: closing(database())
    opens: Begun = request.getfixturevalue("on_server")
    return opens


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    """A log of SQLite, for tests of its own index."""
    with closing(database()) as opened:
        yield opened


@pytest.fixture
def log(begun: Begun) -> Iterator[Connection]:
    with begun() as connection:
        yield connection


def put(connection: Connection, *contents: str, status: str = "complete", persona: str = "frodo") -> None:
    connection.executemany(
        "INSERT INTO messages(persona, thread_id, role, content, timestamp, status) "
        "VALUES (?, 1, 'user', ?, '2026-02-12T14:30:00.000000Z', ?)",
        [(persona, content, status) for content in contents],
    )


def index_all(connection: Connection, rows: int = 3) -> None:
    while not index_batch(connection, rows).is_whole:
        pass


def find(connection: Connection, typed: str, scope: Scope = EVERYWHERE) -> Findings:
    return found_messages.find(connection, search_query(typed), scope)


def ids(connection: Connection, typed: str) -> list[int]:
    return [match.message.id for match in find(connection, typed).matches]


def indexed(connection: sqlite3.Connection) -> list[int]:
    """Return the numbers of the rows in the index, each as often as it is there."""
    connection.execute(
        "CREATE VIRTUAL TABLE IF NOT EXISTS temp.inside USING fts5vocab('main', 'message_words', 'instance')"
    )
    return [row for (row,) in connection.execute("SELECT doc FROM inside WHERE term = 'row' ORDER BY doc")]


# Filling


def test_a_reply_that_is_being_written_is_indexed_when_it_has_ended_and_holds_nothing_up(
    log: Connection,
) -> None:
    put(log, "a half ring", status="streaming")
    put(log, "another ring")
    index_all(log)
    assert ids(log, "ring") == [2]
    assert progress(log).is_whole
    log.execute("UPDATE messages SET status = 'interrupted', content = 'a half ring and more' WHERE id = 1")
    assert not progress(log).is_whole
    index_all(log)
    assert ids(log, "+ring +more") == [1]
    assert progress(log).is_whole


@given(st.lists(st.sampled_from(["put", "begin", "end", "index", "anew", "new format"]), max_size=40))
@examples(150)
def test_every_row_that_is_not_being_written_is_indexed_once(deeds: list[str]) -> None:
    with closing(database()) as connection:
        for deed in [*deeds, "index"]:
            match deed:
                case "put":
                    put(connection, "row")
                case "begin":
                    put(connection, "row", status="streaming")
                case "end":
                    connection.execute("UPDATE messages SET status = 'failed' WHERE id % 3 > 0")
                case "anew":
                    begin_anew(connection)
                case "new format":
                    meta_rows.store(connection, search_index.STATE, '{"format": 0, "through": 99}')
                case _:
                    index_batch(connection, 2)
        index_all(connection, 2)
        settled = connection.execute("SELECT id FROM messages WHERE status <> 'streaming' ORDER BY id").fetchall()
        assert indexed(connection) == [id_ for (id_,) in settled]


FILL = """
import sqlite3, sys
from chorus_cli.log.rows.search_index import index_batch
connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=10)
print("ready", flush=True)
while True:
    connection.execute("BEGIN IMMEDIATE")
    done = index_batch(connection, 5).is_whole
    connection.execute("COMMIT")
    if done:
        break
"""


def test_two_processes_that_are_killed_again_and_again_index_every_row_once(tmp_path: Path) -> None:
    path = tmp_path / "chorus.db"
    with closing(database(str(path))) as connection:
        connection.execute("BEGIN")
        put(connection, *[f"row {number}" for number in range(2_000)])
        connection.execute("COMMIT")
        for _ in range(4):
            fillers = [
                subprocess.Popen([sys.executable, "-c", FILL, str(path)], stdout=subprocess.PIPE) for _ in range(2)
            ]
            for filler in fillers:
                assert filler.stdout
                assert filler.stdout.readline()
            time.sleep(0.05)
            for filler in fillers:
                os.kill(filler.pid, signal.SIGKILL)
                filler.communicate()
        index_all(connection, 500)
        assert indexed(connection) == list(range(1, 2_001))


# Damage


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE message_words_data SET block = zeroblob(length(block))",
        "UPDATE message_words_docsize SET sz = zeroblob(length(sz))",
        "INSERT INTO message_words(message_words) VALUES ('delete-all')",
        "UPDATE message_words_data SET block = (SELECT block FROM older) WHERE id = 10",
    ],
)
def test_an_index_that_lacks_words_is_told_and_a_sound_one_is_not(connection: sqlite3.Connection, damage: str) -> None:
    put(connection, "one", "two three", "many " * 70_000, "")
    index_all(connection, 20)
    connection.execute("CREATE TEMP TABLE older AS SELECT block FROM message_words_data WHERE id = 10")
    put(connection, "four five")
    put(connection, "half", status="streaming")
    index_all(connection, 20)
    check(connection)
    connection.execute(damage)
    # The connection forgets what it knows of the index, as if it were a new one.
    connection.execute("PRAGMA writable_schema = RESET")
    with pytest.raises(IndexDamagedError):
        check(connection)


def test_an_index_that_takes_no_more_is_told(connection: sqlite3.Connection) -> None:
    put(connection, *["row"] * 50)
    index_all(connection, 20)
    connection.execute("UPDATE message_words_data SET block = x'00' WHERE id = 10")
    put(connection, "row")
    with pytest.raises(IndexDamagedError):
        index_batch(connection)


def test_a_row_that_was_deleted_by_hand_is_not_found_and_one_that_was_changed_is_found_once_the_index_is_made_anew(
    log: Connection,
) -> None:
    put(log, "a ring", "a sword", "another ring")
    index_all(log)
    log.execute("DELETE FROM messages WHERE id = 3")
    log.execute("UPDATE messages SET content = 'a shield' WHERE id = 1")
    assert [match.excerpt for match in find(log, "ring").matches] == ["a shield"]
    begin_anew(log)
    index_all(log)
    assert ids(log, "ring") == []
    assert ids(log, "shield") == [1]


@pytest.mark.parametrize("state", ["", "null", "7", "{}", '{"format": 1}', '{"format": 1, "through": 1, "waiting": 3}'])
def test_a_state_that_cannot_be_read_begins_anew(connection: sqlite3.Connection, state: str) -> None:
    put(connection, "row", "row")
    index_all(connection)
    meta_rows.store(connection, search_index.STATE, state)
    index_all(connection)
    assert indexed(connection) == [1, 2]


# Excerpts


@pytest.mark.parametrize(
    ("content", "typed", "excerpt"),
    [
        ("ring " * 100_000, "ring", "«ring» «ring»"),
        ("hill " * 4_000 + "ring " * 50_000, "ring", "«ring» «ring»"),
        ("hill and " * 20_000 + "a ring", "hill ring", "«hill» and"),
        ("hill " + "and " * 20_000 + "a ring", "hill ring", "a «ring»"),
        ("x " * 1_000 + "y " * 1_000, f'"{"x " * 300}{"y " * 300}"', "x x x"),
        ("x " * 1_995 + " the one ring", '"the one ring"', "«the one ring»"),
    ],
    ids=["everywhere", "late", "one rarely", "far apart", "longer than a seam", "at a seam"],
)
def test_an_excerpt_of_a_long_message_takes_no_time(log: Connection, content: str, typed: str, excerpt: str) -> None:
    put(log, content)
    index_all(log)
    begun = time.thread_time()
    (match,) = find(log, typed).matches
    assert time.thread_time() - begun < 2
    assert excerpt in match.excerpt


def test_matches_in_any_case_are_found_newest_first_and_what_was_left_out_is_counted(
    log: Connection,
) -> None:
    put(log, "a ring", "no match", "the Ring!", "RING")
    index_all(log)
    assert ids(log, "ring") == [4, 3, 1]
    found = find(log, "ring", Scope(None, None, 1))
    assert ([match.excerpt for match in found.matches], found.more) == (["«RING»"], 2)


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
        ("else 🎉", 'else -"🎉"', "something «else»"),
    ],
)
def test_words_phrases_beginnings_and_parts_of_sentences_without_blanks_are_found(
    log: Connection, content: str, typed: str, shown: str
) -> None:
    put(log, "something else", content)
    index_all(log)
    assert [match.excerpt for match in find(log, typed).matches] == [shown]


def test_no_more_texts_than_a_search_counts_are_compared_and_each_once(connection: sqlite3.Connection) -> None:
    put(connection, "the universe of the parsers", *["universities with parsers"] * (COUNTED + 50))
    index_all(connection, COUNTED)
    statements: list[str] = []
    connection.set_trace_callback(statements.append)
    found = find(connection, "universit* pars*", Scope(None, None, 1))
    assert (len(found.matches), found.more) == (1, COUNTED + 1)
    assert sum("content ||" in each for each in statements) == COUNTED + 2


def test_what_only_stems_find_counts_for_nothing(log: Connection) -> None:
    put(log, "a university in town", "the universe and the town", "the universe")
    index_all(log)
    assert ids(log, "universit* town") == [1, 2]
    assert ids(log, "town -universit*") == [2]
    assert ids(log, '+"universit"* town') == [1]


def test_where_no_model_is_left_out_nothing_is_read(connection: sqlite3.Connection) -> None:
    statements: list[str] = []
    connection.set_trace_callback(statements.append)
    assert found_messages.without_turns_of(connection, [3, 1], "") == [3, 1]
    assert statements == []


@pytest.mark.parametrize("typed", ["ring", "🎉"])
def test_words_and_emoji_are_searched_within_a_time_and_a_persona(log: Connection, typed: str) -> None:
    put(log, "ring 🎉", "ring 🎉")
    put(log, "ring 🎉", persona="gone")
    log.execute("UPDATE messages SET timestamp = '2026-02-13T00:00:00.000000Z' WHERE id = 2")
    index_all(log)
    for scope, id_ in ((Scope(START, "frodo", 9), 2), (Scope(None, "gone", 9), 3)):
        assert [match.message.id for match in find(log, typed, scope).matches] == [id_]


# None of these letters ends an English word, so the words are their own stems.
WORDS = st.text(alphabet="abÄáÖ1日本ก", min_size=1, max_size=4)
TEXTS = st.text(alphabet="abABÄáÖ1日本ก _-*\"'():^+.\n", max_size=30)


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
    excluded=st.none() | st.tuples(st.lists(WORDS, min_size=1, max_size=2), st.booleans()),
    rows=st.integers(1, 4),
)
@examples(200)
def test_the_index_finds_what_a_naive_search_finds(
    begun: Begun,
    contents: list[str],
    terms: list[tuple[list[str], bool]],
    excluded: tuple[list[str], bool] | None,
    rows: int,
) -> None:
    def has(content: str, term: tuple[list[str], bool]) -> bool:
        return holds(content, " ".join(term[0]), begins=term[1])

    def typed(term: tuple[list[str], bool]) -> str:
        return f'"{" ".join(term[0])}"{"*" if term[1] else ""}'

    with begun() as connection:
        put(connection, *contents)
        index_all(connection, rows)
        expected = [
            number
            for number, content in enumerate(contents, 1)
            if all(has(content, term) for term in terms) and not (excluded and has(content, excluded))
        ]
        without = f" -{typed(excluded)}" if excluded else ""
        assert sorted(ids(connection, " ".join(map(typed, terms)) + without)) == expected


WORDS_AND_STEMS = ("the", "ring", "rings", "ringing", "Universe", "university", "naïve", "東京", "東京都", "a1", "x_y")
SAID = st.lists(st.sampled_from(WORDS_AND_STEMS))
TYPED = st.tuples(st.sampled_from(["", "+", "-"]), SAID.filter(bool), st.sampled_from(["", "*"]))


@needs_server
@given(
    contents=st.lists(SAID.map(" ".join), min_size=1, max_size=8),
    typed=st.lists(TYPED, min_size=1, max_size=3),
)
@examples(200)
def test_a_server_finds_what_sqlite_finds(
    on_server: Begun, contents: list[str], typed: list[tuple[str, list[str], str]]
) -> None:
    query = " ".join(f'{sign}"{" ".join(words)}"{star}' if sign else f"{words[0]}{star}" for sign, words, star in typed)
    found = []
    for opened in (on_server(), closing(database())):
        with opened as connection:
            put(connection, *contents)
            index_all(connection)
            found.append(sorted(ids(connection, query)))
    assert found[0] == found[1]


@pytest.mark.parametrize("times", [200, 300, 20_000])
def test_a_phrase_and_no_other_is_found_far_behind_in_a_long_text(log: Connection, times: int) -> None:
    put(log, "the hill " * times + "the ring of power", "the hill " * times + "ring the power of", "the ring")
    index_all(log)
    assert ids(log, '"the ring"') == [3, 1]
    assert ids(log, '+"hill the ring" power') == [1]
    assert ids(log, 'hill -"the ring"') == [2]
    assert ids(log, '"ring of pow"*') == [1]


def test_long_words_and_texts_of_many_words_are_found(log: Connection) -> None:
    long = "東" + "ä1" * 1_500
    put(log, f"{long} here", f"{long}x here", " ".join(f"word{number} " * 2 for number in range(100_000)))
    index_all(log)
    assert ids(log, f'"{long}"') == [1]
    assert ids(log, f'"{long[:2_000]}"*') == [2, 1]
    assert ids(log, "word7 word77") == [3]


@given(
    contents=st.lists(TEXTS, max_size=8),
    words=st.lists(st.text(alphabet="bÖ1日本ก", min_size=1, max_size=4), min_size=1, max_size=3),
)
@examples(200)
def test_any_of_the_words_finds_a_message(begun: Begun, contents: list[str], words: list[str]) -> None:
    with begun() as connection:
        put(connection, *contents)
        index_all(connection)
        having = [number for number, text in enumerate(contents, 1) if any(holds(text, w, begins=False) for w in words)]
        assert sorted(ids(connection, " ".join(words))) == having
        assert sorted(found_in(dict(enumerate(contents, 1)), search_query(" ".join(words)))) == having


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("play*", [1, 2]),
        ("refactori*", [3]),
        ("bus*", [4]),
        ("relatio*", [5]),
        ("sensibilit*", [6]),
        ("ring -bus*", [7]),
        ("ring* -busi*", [7, 4]),
    ],
)
def test_the_beginning_of_a_word_is_found_whatever_its_stem(log: Connection, typed: str, found: list[int]) -> None:
    put(log, "a player", "we play", "refactoring", "buses but no ring", "a relational view", "sensibility")
    put(log, "the rings built", "a place to refactor")
    index_all(log)
    assert sorted(ids(log, typed)) == sorted(found)


@given(typed=st.text(max_size=40) | st.text(alphabet="\"'*-:^(){}+,.\0 ANDORTE\ud800日\U0001e900🎉", max_size=40))
@examples(300)
def test_no_text_is_syntax_to_the_index(begun: Begun, typed: str) -> None:
    with begun() as connection:
        put(connection, "AND OR NOT NEAR content", typed.encode(errors="replace").decode())
        index_all(connection)
        try:
            find(connection, typed)
        except CommandError:
            assert not re.search(r"[^\W_]", typed)


@pytest.mark.parametrize(
    "typed", ["x" * 10_000, " ".join(f"w{n}" for n in range(2_000)), "🎉 -> " * 2_000, '"' * 10_000 + "a"]
)
def test_ten_thousand_characters_are_looked_for_like_any_others(log: Connection, typed: str) -> None:
    put(log, "x", f"before {typed} after")
    index_all(log)
    assert ids(log, typed)[-1:] == [2]


def test_a_text_that_says_what_was_typed_is_found_by_it(log: Connection) -> None:
    put(log, "nul \u2400 here", "nul\0 there")
    index_all(log)
    assert ids(log, "nul") == [2, 1]
