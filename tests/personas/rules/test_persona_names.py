"""Names of personas, and the folder names made of them."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.cards import commands as cards
from chorus_cli.core.errors import PersonaError
from chorus_cli.personas.commands import persona
from chorus_cli.personas.rules.persona import COMMAND_WORDS, LONGEST_NAME, checked_name, folded, slug_of

GOOD = {
    "Ada": "ada",
    "  Ada  ": "ada",
    "é": "e",
    "Bób the Builder": "bob-the-builder",
    "O'Hara": "o-hara",
    "3": "3",
    "日本": "persona",
    "x" * LONGEST_NAME: "x" * (LONGEST_NAME - 4),
    "conrad": "conrad",
    "Cön": "con-2",
    "aux.": "aux-2",
    "Néw": "new-2",
}

BAD = {
    "at least one letter or digit": ("", "   ", "-.-", ".."),
    "none of the characters": ("../x", "a/b", "a\\b", "C:", "[x]"),
    "Windows reserves that name": ("CON", "com1"),
    "at most 40 characters, this one has 41": ("x" * 41,),
    "at most 40 characters, this one has 200": ("x" * 200,),
    "no control or invisible characters": ("a\nb", "a\x1b[31m", "a\u202eb"),
    "transcripts use that name for you": ("Human", " hUmAn "),
    "/persona new is a command": ("new", "New York"),
    "/persona delete is a command": ("Delete",),
}


def test_a_name_is_kept_as_it_is_composed() -> None:
    """Two names that look alike are one, whichever way the keyboard composed their letters."""
    assert checked_name("Rene\u0301") == "Ren\u00e9"


@pytest.mark.parametrize(("name", "slug"), GOOD.items())
def test_a_good_name_stays_and_names_its_folder(name: str, slug: str) -> None:
    assert checked_name(name) == name.strip()
    assert slug_of(checked_name(name), ()) == slug


@pytest.mark.parametrize(("name", "reason"), [(name, reason) for reason, names in BAD.items() for name in names])
def test_a_bad_name_is_refused_with_its_reason(name: str, reason: str) -> None:
    with pytest.raises(PersonaError, match=f"^A persona cannot be called .*{reason}"):
        checked_name(name)


def test_no_command_of_the_group_can_be_a_name() -> None:
    assert {*persona.GROUP.words, *cards.GROUP.words} - {""} == COMMAND_WORDS


def test_a_folder_that_is_taken_gets_a_number() -> None:
    assert slug_of("Bób", {"bob"}) == "bob-2"
    assert slug_of("bob!", {"bob", "bob-2", "frodo"}) == "bob-3"


def test_case_blanks_and_composition_do_not_count() -> None:
    assert folded("  Bo\u0301b   The ") == folded("B\u00f3B the")


@given(st.text(), st.sets(st.sampled_from(["a", "persona", "persona-2", "x"])))
def test_every_text_is_a_name_with_a_safe_new_folder_or_refused(text: str, taken: set[str]) -> None:
    with suppress(PersonaError):
        slug = slug_of(checked_name(text), taken)
        assert re.fullmatch(r"[a-z0-9][a-z0-9-]{0,39}", slug)
        assert slug not in taken | COMMAND_WORDS | {"con", "aux", "nul", "prn", "com1"}
