"""Phrases of sentences, texts whose middle is left out, and lines that begin a private chat."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chorus_cli.core.text.command_signs import before_private, begins_private, is_message, typed_line, unescaped_line
from chorus_cli.core.text.phrases import cut_in_the_middle, enumerated
from tests.fakes import WordCounter

COUNT = WordCounter().count
MARK = re.compile(r"\n\[… ([0-9,]+) tokens left out here …\]\n")
MARK_TOKENS = 7


@pytest.mark.parametrize(
    ("names", "word", "written"),
    [
        *(((), "and", ""), (("#1",), "or", "#1"), (("#1", "#2"), "and", "#1 and #2")),
        *((("#1", "#2", "#3"), "and", "#1, #2 and #3"), (("#1", "#2", "#3"), "or", "#1, #2 or #3")),
    ],
)
def test_the_last_of_several_names_follows_a_word(names: tuple[str, ...], word: str, written: str) -> None:
    assert enumerated(names, word) == written


@given(st.text(alphabet="ab \n", max_size=400), st.integers(0, 120))
def test_what_stays_fits_and_is_of_the_text(text: str, allowed: int) -> None:
    whole = COUNT(text)
    shortened = cut_in_the_middle(text, whole, allowed, COUNT)
    if whole <= allowed:
        assert shortened == text
        return
    head, number, tail = MARK.split(shortened)
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + len(tail) < len(text)
    assert COUNT(shortened) <= max(allowed, MARK_TOKENS)
    assert int(number.replace(",", "")) == max(1, whole - COUNT(head) - COUNT(tail))


def test_a_line_that_begins_a_private_chat_is_known() -> None:
    typed = ("/private", "  /private  ", "/Private off", "/private and a text that is out of place", "/pr", "/priv")
    private = (*typed, " / \tprivate")
    others = ("/p", "/persona", "/privately", "//private", "private", "see /private", "/", "")
    assert tuple(filter(begins_private, (*private, *others))) == private


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        *(("one\ntwo", "one\ntwo"), ("one\n/private\nsecret", "one\n"), ("one\r/private\rsecret", "one\r")),
        *(("/private\nsecret", ""), ("", "")),
    ],
)
def test_the_lines_after_it_are_not_kept(typed: str, kept: str) -> None:
    assert before_private(typed) == kept


@pytest.mark.parametrize(
    ("line", "is_sent"),
    [
        *(("/etc/hosts is what?", True), ("/etc/", True), ("//new", True), ("/", False), ("/context 1/2", False)),
        *(("/search /etc/hosts", False), ("/new", False), ("!ls /etc", False)),
    ],
)
def test_a_line_that_begins_with_a_path_is_a_message(line: str, *, is_sent: bool) -> None:
    assert is_message(line) is is_sent


@given(st.text(alphabet="/!a\n ", min_size=1).map(str.strip).filter(bool))
@example("/new idea")
@example("!wow")
@example("//a")
@example("// a comment\na")
@example("//a\n")
def test_the_line_of_a_message_sends_that_message(message: str) -> None:
    line = typed_line(message)
    assert (is_message(line), unescaped_line(line)) == (True, message)
