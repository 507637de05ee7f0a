"""Macros are replaced as the specification of cards says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.memory.rules.recall import sent_items
from chorus_cli.personas.rules.macros import Names, replaced, sent
from chorus_cli.personas.rules.persona import Persona
from chorus_cli.settings.rules.table import Settings
from tests.memory.rules.memory_items import item

NAMES = Names("Mira", "Ada", "Be brief, {{char}}.")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{char}} and {{user}}", "Mira and Ada"),
        ("{{ CHAR }}, {{User}}, <bot>, <USER>, <Char>", "Mira, Ada, Mira, Ada, Mira"),
        ("{{original}} Now.", "Be brief, Mira. Now."),
        ("a{{// hidden}}b{{comment: c}}{{hidden_key:d}}", "ab"),
        ("{{reverse:abc}}", "cba"),
        ("{{random:x}}{{pick:y}}{{roll:1}}{{roll:D1}}", "xy11"),
        ("{{pick:{{char}},{{char}}}}", "Mira"),
        ("{{random:one\\,two}}", "one,two"),
        ("{{unknown}} {{roll:many}} {{}} {char} <p>", "{{unknown}} {{roll:many}} {{}} {char} <p>"),
    ],
)
def test_a_macro_is_replaced(text: str, expected: str) -> None:
    assert replaced(text, NAMES) == expected


def test_a_random_choice_is_one_of_the_values_and_the_same_each_time() -> None:
    text = "{{random:a,b,c}} {{pick:a,b,c}} {{roll:6}} {{roll:d20}}"
    first = replaced(text, NAMES)
    assert {*first.split()[:2]} <= {"a", "b", "c"}
    assert 1 <= int(first.split()[2]) <= 6
    assert all(replaced(text, NAMES) == first for _ in range(3))


@given(st.text("{}char<>user:,/\\ roliginal0", max_size=60))
def test_any_text_is_read(text: str) -> None:
    assert isinstance(replaced(text, NAMES), str)


@pytest.mark.parametrize(("has_card", "expected"), [(True, "Mira"), (False, "{{char}}")])
def test_only_the_texts_of_a_card_have_macros(*, has_card: bool, expected: str) -> None:
    persona = Persona("mira", Settings(name="Mira"), has_card=has_card)
    assert sent(persona, "{{char}}") == expected
    assert [each.content for each in sent_items(persona, [item(1, "{{char}}")])] == [expected]
