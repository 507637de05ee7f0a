"""Cards of every version are read, make a persona with macros, and are written as version 3 with all that they had."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import assume, given
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
    note,
    parsed,
    system_prompt,
    written,
)
from chorus_cli.cards.rules.export import exported, for_older_programs
from chorus_cli.core.errors import ImportFormatError
from chorus_cli.core.json.jsonc import parse_object
from chorus_cli.memory.rules.recall import sent_items
from chorus_cli.personas.rules.macros import Names, replaced, sent
from chorus_cli.personas.rules.persona import Document, Persona, checked_name
from chorus_cli.settings.rules.table import Settings
from tests.cards.rules.made_cards import FIRST, card
from tests.imports.rules.exports import ANYTHING, SOUND
from tests.memory.remembered import item


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
        LoreEntry("It is 1890.", pinned=True),
        LoreEntry("Keys: wreck; with: gold, silver\nThe Anna sank with its gold."),
        LoreEntry("Keys: Lamp, lens\nThe lamp was made in {{char}}'s youth."),
    )
    assert found.notes == ()


def test_the_third_version_has_a_nickname_decorators_and_notes_in_languages() -> None:
    found = read(3)
    assert (found.char, found.creator_notes) == ("Mi", "Patience, please.")
    assert found.lore == (
        LoreEntry("Keys: fog; with: horn\nThe fog horn is hoarse."),
        LoreEntry("Keys: /gull.*/\nGulls are thieves."),
        LoreEntry("Keys: tide\nThe tide turns at six.", pinned=True),
    )
    assert found.notes == ("1 entry has patterns as keys; Chorus reads these patterns as plain words.",)
    assert icon_entry(card(3)) == "assets/icon/main.png"


def test_the_fields_at_the_top_do_not_count_if_there_are_others() -> None:
    found = card_of(card(2) | {"name": "Old", "first_mes": "Old"})
    assert found is not None
    assert found.name == "Mira"


@pytest.mark.parametrize(("version", "is_newer"), [("4.1", True), ("3.0", False), ("inf", False)])
def test_a_newer_version_is_read_and_said(version: str, *, is_newer: bool) -> None:
    found = card_of(card(3) | {"spec_version": version})
    assert found is not None
    note = f"The card follows version {version} of the specification; Chorus knows versions up to 3."
    assert (note in found.notes, len(found.notes)) == (is_newer, 1 + is_newer)


@pytest.mark.parametrize(
    "value",
    [None, [], {}, "text", {"name": "x"}, {"spec": "chara_card_v2"}, {"spec": "other", "data": {}}, {"mapping": {}}],
)
def test_other_values_are_no_cards(value: object) -> None:
    assert card_of(value) is None


@given(st.sampled_from([1, 2, 3]), st.data())
def test_a_field_of_any_type_does_no_harm(version: int, data: st.DataObject) -> None:
    made = card(version)
    fields = made.get("data", made)
    for key in data.draw(st.sets(st.sampled_from(sorted(fields)), min_size=1, max_size=3)):
        fields[key] = data.draw(ANYTHING)
    found = card_of(made)
    if found is not None:
        persona = as_persona(found, next(names_for(found)) or "Character")
        json.dumps(persona.settings)
        assert all(len(each.content) <= 100_000 for each in persona.lore)


@given(
    st.lists(st.dictionaries(st.sampled_from(["keys", "content", "insertion_order", "enabled"]), ANYTHING), max_size=4)
)
def test_an_entry_of_any_shape_does_no_harm(entries: list[object]) -> None:
    found = read(2, character_book={"entries": entries})
    assert len(found.lore) <= len(entries)


def test_a_persona_has_the_texts_of_its_card() -> None:
    found = read(2)
    assert system_prompt(found) == (
        "{{original}} Speak little.\n\n{{char}} keeps the lighthouse.\n\n{{char}}'s personality: dry, watchful\n\n"
        "Scenario: A storm keeps {{user}} at the lighthouse."
    )
    assert note(found) == ("Stay in the storm.", 0)
    assert examples(found) == (
        "How {{char}} writes, in examples:\n\n{{user}}: Is it far?\n{{char}}: Far enough.\n\n---\n\n"
        "<USER>: Tea?\n<BOT>: Always."
    )
    assert greeting(found.greetings[0], "Mira", "Ada") == "*Mira looks up.* You are wet, Ada."
    persona = as_persona(found, "Mira")
    assert persona.lore == found.lore
    values = parse_object(persona.settings).values
    assert (values["name"], values["description"]) == ("Mira", "Mira keeps the lighthouse.")


def test_an_empty_system_prompt_is_the_programs_own() -> None:
    assert system_prompt(read(2, system_prompt="")).startswith("{{original}}\n\n")


@pytest.mark.parametrize(
    ("version", "name", "nickname", "said"),
    [(2, "Mira", "", "Mira"), (2, "Mira 2", "Mira", "Mira"), (3, "Mira", "Mi", "Mi")],
)
def test_a_character_has_one_name_in_all_texts(version: int, name: str, nickname: str, said: str) -> None:
    persona = persona_of(card(version), name)
    assert persona.settings.nickname == nickname
    assert sent(persona, f"{persona.settings.system_prompt} {{{{char}}}} waves.").count(said) == 3
    assert f"User: Tea?\n{said}: Always." in sent(persona, persona.documents[0].content)


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


NOW = datetime(2026, 2, 12, 14, 30, tzinfo=UTC)
STAMP = int(NOW.timestamp())


def persona_of(document: object, name: str = "Mira") -> Persona:
    """Return the persona that a card makes, as its files are read."""
    found = card_of(document)
    assert found is not None
    made = as_persona(found, name)
    values = parse_object(made.settings).values
    keys = ("name", "nickname", "description", "note", "note_depth")
    chosen: dict[str, Any] = {"system_prompt": made.prompt} | {key: values[key] for key in keys if key in values}
    documents = tuple(each._replace(content=each.content.strip()) for each in made.documents)
    return Persona("mira", Settings(**chosen), documents, has_card=True)


def with_settings(persona: Persona, **changes: str) -> Persona:
    chosen: dict[str, Any] = dict(changes)
    return persona._replace(settings=persona.settings._replace(**chosen))


def test_a_card_of_version_3_comes_out_as_it_went_in() -> None:
    assert exported(persona_of(card(3)), card(3), NOW) == card(3)


def test_a_card_of_version_2_comes_out_with_all_that_it_had() -> None:
    before = card(2) | {"name": "Mira", "fav": True}
    after = exported(persona_of(before), before, NOW)
    assert after["data"] == before["data"] | {"group_only_greetings": []}
    assert (after["spec"], after["fav"]) == ("chara_card_v3", True)
    assert for_older_programs(after) == before | {"data": after["data"]}


def test_a_card_of_version_1_comes_out_as_one_of_version_3() -> None:
    after = exported(persona_of(card(1)), card(1), NOW)
    assert FIRST.items() <= after["data"].items()
    assert FIRST.items() <= after.items()
    assert exported(persona_of(after), after, NOW) == after


def test_a_persona_with_another_name_than_its_card_leaves_the_name_of_the_card() -> None:
    after = exported(persona_of(card(2), "Mira 2"), card(2), NOW)
    assert (after["data"]["name"], "modification_date" in after["data"]) == ("Mira", False)


def test_a_new_name_and_a_new_description_go_into_the_card() -> None:
    persona = with_settings(persona_of(card(2)), name="Miranda", description="The keeper.")
    data = exported(persona, card(2) | {"name": "Mira"}, NOW)
    assert data["name"] == data["data"]["name"] == "Miranda"
    assert data["data"]["modification_date"] == STAMP
    assert data["data"]["extensions"] == card(2)["data"]["extensions"] | {"chorus": {"description": "The keeper."}}
    assert persona_of(data, "Miranda").settings.description == "The keeper."


PROMPT = system_prompt(read(2))
FIELDS = ("system_prompt", "description", "personality", "scenario")


def prompt_fields(persona: Persona) -> dict[str, str]:
    """Return the fields that an export changes of those that make the system prompt."""
    after, before = exported(persona, card(2), NOW)["data"], card(2)["data"]
    assert (after["first_mes"], after["post_history_instructions"]) == (
        before["first_mes"],
        before["post_history_instructions"],
    )
    return {key: after[key] for key in FIELDS if after[key] != before[key]}


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("Speak little.", "Speak.", {"system_prompt": "{{original}} Speak."}),
        ("keeps the lighthouse", "sells shells", {"description": "{{char}} sells shells."}),
        ("dry, watchful", "wet", {"personality": "wet"}),
        ("A storm keeps", "Fog keeps", {"scenario": "Fog keeps {{user}} at the lighthouse."}),
        ("\n\nScenario", "\n\nShe limps.\n\nScenario", {"personality": "dry, watchful\n\nShe limps."}),
        ("{{char}}'s personality: dry, watchful\n\n", "", {"personality": ""}),
        (
            "Speak little.\n\n{{char}} keeps the lighthouse.",
            "Speak.\n\n{{char}} sells shells.",
            {"system_prompt": "{{original}} Speak.\n\n{{char}} sells shells.", "description": ""},
        ),
        (PROMPT, "Be short.", {"system_prompt": "Be short.", **dict.fromkeys(FIELDS[1:], "")}),
    ],
)
def test_after_an_edit_of_the_prompt_the_parts_that_are_recognised_keep_their_fields(
    old: str, new: str, changed: dict[str, str]
) -> None:
    before = persona_of(card(2))
    text = before.settings.system_prompt.replace(old, new)
    assert prompt_fields(with_settings(before, system_prompt=text)) == changed


@pytest.mark.parametrize("end", ["{{char}} waves.", "She limps."])
@pytest.mark.parametrize("form", ["{{char}}", "Mi"])
def test_words_at_the_end_of_a_prompt_change_only_the_last_field_of_a_card_with_a_nickname(end: str, form: str) -> None:
    made = card(3, description="{{char}} keeps the lamp.\n\n<BOT> is old.", scenario="{{char}} and {{user}} are wet.")
    whole = persona_of(made)
    # The first Chorus put the name into the prompt.
    text = whole.settings.system_prompt.replace("{{char}}", form).replace("<BOT>", form if form == "Mi" else "<BOT>")
    edited = with_settings(whole, system_prompt=f"{text}\n\n{end}")
    if form == "{{char}}" or end == "She limps.":
        last = f"{form} and {{{{user}}}} are wet.\n\n{end}"
        assert exported(edited, made, NOW)["data"] == made["data"] | {"scenario": last, "modification_date": STAMP}
    assert exported(with_settings(whole, system_prompt=text), made, NOW) == made


def test_another_nickname_goes_into_the_card() -> None:
    assert exported(with_settings(persona_of(card(3)), nickname="Mimi"), card(3), NOW)["data"]["nickname"] == "Mimi"


@given(st.integers(0, len(PROMPT)), st.integers(0, len(PROMPT)), st.text("aS:\n {}", max_size=9))
def test_the_card_of_an_edited_prompt_makes_a_prompt_of_the_same_words(start: int, end: int, text: str) -> None:
    edited = f"{PROMPT[:start]}{text}{PROMPT[end:]}".strip()
    # A label without a text is no part of a prompt.
    assume(not re.search(r"\n\n(\{\{char\}\}'s personality|Scenario):\s*(\n\n|$)", edited))
    once = exported(with_settings(persona_of(card(2)), system_prompt=edited), card(2), NOW)
    again = persona_of(once).settings.system_prompt.split()
    assert again in (edited.split(), ["{{original}}", *edited.split()])


DEPTH_PROMPT = {"depth_prompt": {"prompt": "{{char}} is wet.", "depth": 2, "role": "system"}}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"post_history_instructions": "", "extensions": DEPTH_PROMPT}, ("{{char}} is wet.", 2)),
        ({"extensions": DEPTH_PROMPT}, ("{{char}} is wet.\n\nStay in the storm.", 0)),
        ({"post_history_instructions": "{{original}}", "extensions": {"depth_prompt": {"depth": -1}}}, ("", 4)),
        (
            {"post_history_instructions": "", "extensions": {"depth_prompt": {"depth": True, "prompt": "x"}}},
            ("x", 4),
        ),
    ],
)
def test_the_note_of_a_card_is_the_note_of_its_persona_and_comes_out_again(
    changes: dict[str, Any], expected: tuple[str, int]
) -> None:
    made = card(2, **changes)
    persona = persona_of(made)
    assert (persona.settings.note, persona.settings.note_depth) == expected
    assert exported(persona, made, NOW)["data"] == made["data"] | {"group_only_greetings": []}
    other = exported(persona_of(made, "Mira 2"), made, NOW)["data"]
    assert other == made["data"] | {"group_only_greetings": []}


@pytest.mark.parametrize(
    ("words", "depth", "last", "at_depth"),
    [
        ("Dry up.", 0, "Dry up.", {"prompt": "", "depth": 2, "role": "system"}),
        ("Dry up.", 3, "", {"prompt": "Dry up.", "depth": 3, "role": "system"}),
        ("", 4, "", {"prompt": "", "depth": 4, "role": "system"}),
    ],
)
def test_a_changed_note_is_a_note_of_the_card(words: str, depth: int, last: str, at_depth: dict[str, Any]) -> None:
    made = card(2, extensions=DEPTH_PROMPT)
    changed = persona_of(made)
    changed = changed._replace(settings=changed.settings._replace(note=words, note_depth=depth))
    data = exported(changed, made, NOW)["data"]
    assert (data["post_history_instructions"], data["extensions"]["depth_prompt"]) == (last, at_depth)
    again = persona_of(exported(changed, made, NOW)).settings
    assert again.note == words
    assert again.note_depth == (depth if words else 4)


def test_a_note_of_all_personas_stays_out_of_a_card() -> None:
    every = Settings(note="Answer in rhyme.")
    persona = Persona("frodo", every, defaults=every)
    assert exported(persona, None, NOW)["data"]["extensions"] == {}
    own = exported(persona._replace(defaults=Settings()), None, NOW)["data"]["extensions"]
    assert own == {"depth_prompt": {"role": "system", "depth": 4, "prompt": "Answer in rhyme."}}


def test_documents_come_back_as_documents() -> None:
    documents = (Document("examples.md", "A: b"), Document("coast.md", "Rocks."), Document("house.md", "Stones."))
    once = exported(persona_of(card(2))._replace(documents=documents), card(2), NOW)
    assert once["data"]["mes_example"] == "A: b"
    again = persona_of(once)
    assert [document.name for document in again.documents] == ["examples.md", "coast.md", "house.md"]
    changed = (again.documents[0], Document("coast.md", "Sand."))
    entries = exported(again._replace(documents=changed), once, NOW)["data"]["character_book"]["entries"]
    own = [entry["content"] for entry in entries if "chorus" in entry["extensions"]]
    assert own == ["Sand."]
    assert entries[:4] == card(2)["data"]["character_book"]["entries"]


def test_a_persona_without_a_card_comes_back_the_same() -> None:
    settings = Settings(name="Frodo", system_prompt="You are Frodo.", description="A hobbit.")
    persona = Persona("frodo", settings, (Document("shire.md", "Green."),))
    document = exported(persona, None, NOW)
    assert document["data"]["creation_date"] == STAMP
    again = persona_of(document, "Frodo")
    assert (again.settings, again.documents) == (settings, persona.documents)


@pytest.mark.parametrize("name", ["../../evil.md", "/etc/passwd", "..", ".hidden.md", "a\\b.md", "x" * 300, "con\0.md"])
def test_the_name_of_a_document_is_never_a_path(name: str) -> None:
    entry = {"keys": [], "content": "x", "extensions": {"chorus": {"document": name}}}
    (document,) = persona_of(card(2, mes_example="", character_book={"entries": [entry]})).documents
    assert re.fullmatch(r"(?!\.)[^/\\]+\.md", document.name)
    assert len(document.name) < 100


UNREADABLE = {"bytes": b"\xff{}", "syntax": b'{"a": }', "nesting": b"[" * 100_000, "number": b"1" * 10_000}


@pytest.mark.parametrize("data", UNREADABLE.values(), ids=UNREADABLE)
def test_json_that_cannot_be_read_is_refused_in_one_sentence(data: bytes) -> None:
    with pytest.raises(ImportFormatError, match=r"^The card is not valid JSON: .*\.$"):
        parsed(data)


@pytest.mark.parametrize("text", ['"\\ud800"', "NaN", "1e999", '"\\u0000"', "1.50"])
def test_odd_values_can_be_written_again(text: str) -> None:
    assert parsed(written(parsed(text.encode()))) == parsed(text.encode())


UNKNOWN = st.dictionaries(st.text().filter(lambda name: name not in card(3)["data"]), SOUND, max_size=3)


@given(UNKNOWN, UNKNOWN)
def test_unknown_fields_stay_wherever_they_are(top: dict[str, Any], fields: dict[str, Any]) -> None:
    before = top | card(3)
    before["data"] = fields | before["data"]
    before["data"]["extensions"] = fields
    assert exported(persona_of(before), json.loads(written(before)), NOW) == before


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
        ("{{random::x::x}}{{pick::y,y}}{{pick::a,b::a,b}}{{roll:2d1}}{{roll::D1}}", "xya,b21"),
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
