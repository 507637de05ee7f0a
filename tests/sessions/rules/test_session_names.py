"""How sessions are named, and which names are none."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.sessions.rules.format import LONGEST_SLUG, candidates, is_session_id, meant, slug
from tests.amount import examples


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        ("Auth refactor", "auth-refactor"),
        ("  Auth   refactor  ", "auth-refactor"),
        ("don't lose this!", "dont-lose-this"),
        ("JWT / OAuth: a & b", "jwt-oauth-a-b"),
        ("re-factor -- all", "re-factor-all"),
        ("Café Größe", "cafe-groe"),
        ("../../etc/passwd", "etcpasswd"),
        ("a" * 50, "a" * 40),
        (f"{'a' * 39} tail", "a" * 39),
        ("under_score", "underscore"),
    ],
)
def test_session_slug_generation_from_description(description: str, expected: str) -> None:
    assert slug(description, "Hello") == expected


@pytest.mark.parametrize("description", ["", "   ", "!!!", "日本語", "---"])
def test_session_slug_generation_auto(description: str) -> None:
    generated = slug(description, "Hello")
    assert len(generated) == 6
    assert set(generated) <= set("0123456789abcdef")
    assert generated == slug("", "Hello") != slug("", "Goodbye")


@examples(200)
@given(description=st.text(max_size=80), first=st.text(max_size=20))
def test_every_name_that_is_made_is_a_session_id(description: str, first: str) -> None:
    made = slug(description, first)
    assert 0 < len(made) <= LONGEST_SLUG
    assert all(is_session_id(name) for name in islice(candidates(f"2026-02-12_{made}"), 12))


def test_a_name_that_is_taken_is_numbered() -> None:
    names = list(islice(candidates("2026-02-12_auth"), 3))
    assert names == ["2026-02-12_auth", "2026-02-12_auth-2", "2026-02-12_auth-3"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "..",
        "2026-02-12",
        "2026-02-12_",
        "2026-02-12_-a",
        "2026-02-12_a-",
        "2026-02-12_A",
        "2026-02-12_a/b",
        "2026-02-12_a.json",
        "2026-02-12_a\n",
        "../2026-02-12_a",
        "2026-02-12_\0",
        "2026-02-12_é",
        "٢٠٢٦-02-12_a",
        f"2026-02-12_{'a' * 90}",
    ],
)
def test_what_is_no_session_id_is_never_one(text: str) -> None:
    assert not is_session_id(text)


KNOWN = ["2026-02-12_auth", "2026-02-12_auth-2", "2026-02-13_tests"]
KNOWN += ["2026-02-14_the-ring-10", "2026-02-14_the-ring-9", "2026-02-11_the-ring"]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("2026-02-12_auth", ["2026-02-12_auth"]),
        ("2026-02-12_AUTH-2", ["2026-02-12_auth-2"]),
        ("2026-02-12", ["2026-02-12_auth", "2026-02-12_auth-2"]),
        (" 2026-02-13 ", ["2026-02-13_tests"]),
        ("tests", ["2026-02-13_tests"]),
        ("The  ring!", ["2026-02-14_the-ring-10"]),
        ("the rin", []),
        ("", []),
        ("../../etc/passwd", []),
    ],
)
def test_a_name_is_meant_by_itself_by_how_it_begins_or_by_the_description(typed: str, expected: list[str]) -> None:
    assert meant(typed, KNOWN) == expected
