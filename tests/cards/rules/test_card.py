"""Cards of every version are read, and make a persona."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.cards.rules.card import (
    Card,
    LoreEntry,
    as_persona,
    card_of,
    examples,
    greeting,
    icon_entry,
    names_for,
    system_prompt,
)
from chorus_cli.core.json.jsonc import parse_object
from chorus_cli.personas.rules.persona import checked_name
from tests.cards.rules.made_cards import card


def read(version: int, **changes: object) -> Card:
    found = card_of(card(version, **changes))
    assert found is not None
    return found


@pytest.mark.parametrize("version", [1, 2, 3])
def test_each_version_has_the_texts_of_the_first(version: int) -> None:
    found = read(version)
    assert found.version == version
    assert (found.name, found.personality) == ("Mira", "dry, watchful")
    assert found.greetings[0] == "*{{char}} looks up.* You are wet, {{User}}."


def test_the_second_version_has_greetings_a_creator_and_a_lorebook() -> None:
    found = read(2)
    assert found.greetings[1:] == ("Who goes there, {{user}}?",)
    assert (found.creator, found.creator_notes) == ("somebody", "Best with patience.")
    assert found.lore == (
        LoreEntry((), "It is 1890.", constant=True),
        LoreEntry(("wreck",), "The Anna sank with its gold.", ("gold", "silver")),
        LoreEntry(("Lamp", "lens"), "The lamp was made in {{char}}'s youth."),
    )
    assert found.notes == ("1 entry of its lorebook is off or empty.",)


def test_the_third_version_has_a_nickname_decorators_and_notes_in_languages() -> None:
    found = read(3)
    assert (found.char, found.creator_notes) == ("Mi", "Patience, please.")
    assert found.lore == (
        LoreEntry(("fog",), "The fog horn is hoarse.", ("horn",)),
        LoreEntry(("/gull.*/",), "Gulls are thieves."),
        LoreEntry(("tide",), "The tide turns at six.", constant=True),
    )
    assert found.notes[1] == "1 entry has keys that are patterns, which are read as words."
    assert icon_entry(card(3)) == "assets/icon/main.png"


def test_the_fields_at_the_top_do_not_count_if_there_are_others() -> None:
    assert read(2).name == "Mira"
    both = card(2) | {"name": "Old", "first_mes": "Old"}
    found = card_of(both)
    assert found is not None
    assert found.name == "Mira"


def test_a_newer_version_is_read_and_said() -> None:
    newer = card(3) | {"spec": "chara_card_v4", "spec_version": "4.1"}
    found = card_of(newer)
    assert found is not None
    assert found.notes[0] == "It is of version 4 of the specification; the newest one known here is 3."


@pytest.mark.parametrize(
    "value",
    [None, [], {}, "text", {"name": "x"}, {"spec": "chara_card_v2"}, {"spec": "other", "data": {}}, {"mapping": {}}],
)
def test_other_values_are_no_cards(value: object) -> None:
    assert card_of(value) is None


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from([1, 2, 3]), st.data())
def test_a_field_of_any_type_does_no_harm(version: int, data: st.DataObject) -> None:
    made = card(version)
    fields = made.get("data", made)
    for key in data.draw(st.sets(st.sampled_from(sorted(fields)), min_size=1, max_size=3)):
        fields[key] = data.draw(JSON)
    found = card_of(made)
    if found is not None:
        persona = as_persona(found, next(names_for(found)) or "Character")
        json.dumps(persona.settings)
        assert all(len(each.content) <= 100_000 for each in persona.lore)


@given(st.lists(st.dictionaries(st.sampled_from(["keys", "content", "insertion_order", "enabled"]), JSON), max_size=4))
def test_an_entry_of_any_shape_does_no_harm(entries: list[object]) -> None:
    found = read(2, character_book={"entries": entries})
    assert len(found.lore) <= len(entries)


def test_a_persona_has_the_texts_of_its_card() -> None:
    found = read(2)
    assert system_prompt(found, "Mira") == (
        "{{original}} Speak little.\n\n{{char}} keeps the lighthouse.\n\n{{char}}'s personality: dry, watchful\n\n"
        "Scenario: A storm keeps {{user}} at the lighthouse.\n\nStay in the storm."
    )
    assert examples(found, "Mira") == (
        "How {{char}} writes, in examples:\n\n{{user}}: Is it far?\n{{char}}: Far enough.\n\n---\n\n"
        "<USER>: Tea?\n<BOT>: Always."
    )
    assert greeting(found, 0, "Ada") == "*Mira looks up.* You are wet, Ada."
    persona = as_persona(found, "Mira")
    assert [tuple(lore) for lore in persona.lore] == [
        ("It is 1890.", True),
        ("Keys: wreck; with: gold, silver\nThe Anna sank with its gold.", False),
        ("Keys: Lamp, lens\nThe lamp was made in {{char}}'s youth.", False),
    ]
    values = parse_object(persona.settings).values
    assert (values["name"], values["description"]) == ("Mira", "Mira keeps the lighthouse.")


def test_an_empty_system_prompt_is_the_programs_own() -> None:
    assert system_prompt(read(2, system_prompt=""), "Mira").startswith("{{original}}\n\n")


@pytest.mark.parametrize(("version", "name", "said"), [(2, "Mira 2", "Mira"), (3, "Mira", "Mi")])
def test_a_character_keeps_its_name_if_the_persona_has_another(version: int, name: str, said: str) -> None:
    found = read(version)
    assert f"{said} keeps the lighthouse." in system_prompt(found, name)
    assert f"<USER>: Tea?\n{said}: Always." in examples(found, name)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Mira", "Mira"),
        ("  A/B: [C] ", "A B C"),
        ("x" * 90, "x" * 40),
        ("\x1b[31mRed\u202e", "31mRed"),
        ("human", "Card human"),
        ("List of Ships", "Card List of Ships"),
        ("con", "Card con"),
        ("///", "Character"),
        ("", "Character"),
        ("🦊", "Card 🦊"),
    ],
)
def test_a_persona_may_have_the_first_name_that_is_allowed(name: str, expected: str) -> None:
    first, second, *_ = names_for(Card(2, name))
    assert (first, second) == (expected, f"{expected[:35]} 2")
    assert checked_name(first) == first
