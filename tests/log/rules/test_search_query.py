"""What is typed to look for something: words, phrases, beginnings, and no syntax but that."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.errors import CommandError
from chorus_cli.log.rules.search_query import (
    APART,
    MARKS,
    SearchQuery,
    excerpt,
    marked_literals,
    search_query,
    set_apart,
)
from tests.amount import examples

OPEN, CLOSE = MARKS


@pytest.mark.parametrize(
    ("typed", "expression", "literals"),
    [
        ("ring", '"ring"', ()),
        ("one ring  one", '"one" "ring"', ()),
        ('"speak friend" enter', '"speak friend" "enter"', ()),
        ("“speak friend”", '"speak friend"', ()),
        ('left"right side"', '"left" "right side"', ()),
        ('never "closed', '"never" "closed"', ()),
        ("begin*", '"begin*" *', ()),
        ('"how it begin"*', '"how it begin" *', ()),
        ("cats AND NOT dogs OR NEAR(a, b)", '"cats" "AND" "NOT" "dogs" "OR" "NEAR(a," "b)"', ()),
        ("content:x -y ^z {a b}:c", '"content:x" "-y" "^z" "{a" "b}:c"', ()),
        ("it's 100% C++", '"it\'s" "100%" "C++"', ()),
        ("-> 🎉", "", ("->", "🎉")),
        ("party 🎉 🎉", '"party"', ("🎉",)),
        ("*", "", ("*",)),
        ("a\0b", '"a\u2400b"', ()),
        ("\ud800", "", ("\ufffd",)),
        ("東京", f'"{APART}東{APART}{APART}京{APART}"', ()),
    ],
)
def test_what_is_typed_becomes_an_expression_without_syntax(
    typed: str, expression: str, literals: tuple[str, ...]
) -> None:
    assert search_query(typed) == SearchQuery(expression, literals)


@pytest.mark.parametrize("typed", ["", "  ", '""', '"', '" "', '""*'])
def test_nothing_to_look_for_is_refused(typed: str) -> None:
    with pytest.raises(CommandError, match="nothing to look for"):
        search_query(typed)


@pytest.mark.parametrize(
    ("text", "apart"),
    [
        ("plain words, and naïve ones", "plain words, and naïve ones"),
        ("東京 tower", "|東||京| tower"),
        ("用Python写", "|用|Python|写|"),
        ("ไทย", "|ไ||ท||ย|"),
        ("서울에서", "|서||울||에||서|"),
    ],
)
def test_signs_of_scripts_without_blanks_are_set_apart(text: str, apart: str) -> None:
    assert set_apart(text) == apart.replace("|", APART)


@given(st.text())
@examples(200)
def test_setting_apart_adds_nothing_but_separators(text: str) -> None:
    assert set_apart(text).replace(APART, "") == text.replace(APART, "")


def test_an_excerpt_is_one_line_with_what_was_found_marked() -> None:
    assert excerpt(f"The one\n\n  {OPEN}ring{CLOSE}\tto rule") == "The one «ring» to rule"
    assert excerpt(f"{APART}東{APART}{OPEN}{APART}京{APART}{CLOSE}") == "東«京»"


def test_an_excerpt_of_a_long_word_is_cut_around_what_was_found() -> None:
    assert excerpt("x" * 1000 + f"{OPEN}ring{CLOSE}" + "y" * 1000) == "…" + "x" * 80 + "«ring»" + "y" * 154 + "…"
    assert excerpt(OPEN + "x" * 1000 + CLOSE) == "«" + "x" * 239 + "»…"


@given(st.text(alphabet=st.sampled_from(f"ab \n{OPEN}{CLOSE}{APART}"), max_size=600))
@examples(200)
def test_an_excerpt_is_short_and_opens_and_closes_its_marks(marked: str) -> None:
    shown = excerpt(marked)
    assert len(shown) < 250
    assert not set(shown) & {"\n", OPEN, CLOSE, APART}


def test_a_literal_is_marked_where_it_first_stands() -> None:
    assert excerpt(marked_literals("a 🎉 b 🎉 -> c", ("->", "🎉"))) == "a «🎉» b 🎉 -> c"
    assert excerpt(marked_literals("a" * 1000 + "🎉", ("🎉",))) == "…" + "a" * 80 + "«🎉»"
