"""SillyTavern: the chosen swipe is live, the others are branches, and local times are read in a zone that is said."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from chorus_cli.imports.rules import silly_tavern
from chorus_cli.imports.rules.assembly import FileFacts
from chorus_cli.imports.rules.conversation import ForeignConversation
from chorus_cli.imports.rules.silly_tavern import moment
from chorus_cli.log.rules.messages import Role
from tests.imports.rules.exports import check, live, said

BERLIN = ZoneInfo("Europe/Berlin")
HEADER = {"user_name": "Ann", "character_name": "Seraphina", "create_date": "2024-7-12@01h31m37s", "chat_metadata": {}}
GREETING = {"name": "Seraphina", "send_date": "July 12, 2024 1:31am", "mes": "{{char}} greets {{user}}."}
QUESTION = {"name": "Ann", "is_user": True, "send_date": "2024-7-12@01h32m05s", "mes": "Hi, {{char}}!"}
REPLY = {
    "name": "Seraphina", "is_user": False, "send_date": "2024-7-12 @01h 33m 0s 7ms", "mes": "two",
    "swipes": ["one", "two", "three"], "swipe_id": 1, "extra": {"model": "mythomax", "reasoning": "hm"},
    "swipe_info": [{"send_date": 1720740720000, "extra": {"model": "old"}}, {}, {}],
}  # fmt: skip
AFTER = {"name": "Ann", "is_user": True, "send_date": "2024-7-12@01h34m00s", "mes": "bye"}
FULL = [HEADER, GREETING, QUESTION, REPLY, AFTER]


def conversation_of(header: Any, lines: list[Any], name: str = "", zone: tzinfo | None = None) -> ForeignConversation:
    return silly_tavern.conversation_of([header, *lines], FileFacts(name, zone))


def test_the_chosen_swipe_is_live_and_the_others_are_branches() -> None:
    found = conversation_of(HEADER, FULL[1:], name="Seraphina - 2024", zone=BERLIN)
    check(found)
    assert said(found) == [
        ("assistant", "Seraphina greets Ann."),
        ("user", "Hi, {{char}}!"),
        ("assistant", "two"),
        ("user", "bye"),
    ]
    swipes = [message for message in found.messages if message.key not in found.live]
    assert [(each.content, each.model) for each in swipes] == [("one", "old"), ("three", None)]
    assert {each.parent for each in swipes} == {found.live[1]}
    assert (found.title, live(found)[2].model, live(found)[2].reasoning) == ("Seraphina - 2024", "mythomax", "hm")
    assert found.created_at == datetime(2024, 7, 11, 23, 31, 37, tzinfo=UTC)
    assert found.guesses[0].startswith("SillyTavern writes times without a zone: Chorus read them in the zone Europe/B")


NO_DATES: tuple[object, ...] = ("Juny 19, 2023 2:20pm", "June 31, 2023 2:20pm", "2024-13-40@99h99m99s", None, [])


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("June 19, 2023 2:20pm", "2023-06-19T14:20:00"),
        ("December 1, 2023 12:05am", "2023-12-01T00:05:00"),
        ("Dec 1, 2023 12:05 PM", "2023-12-01T12:05:00"),
        ("2024-7-12@01h31m37s", "2024-07-12T01:31:37"),
        ("2024-6-5 @14h 56m 50s 682ms", "2024-06-05T14:56:50.682000"),
        ("2024-6-5 @14h 56m 50s 7ms", "2024-06-05T14:56:50.007000"),
        ("2025-01-02T03:04:05.678Z", "2025-01-02T05:04:05.678000"),
        (1720740720123, "2024-07-12T01:32:00.123000"),
        *((each, None) for each in NO_DATES),
    ],
)
def test_a_date_is_read_in_each_of_its_forms(written: object, expected: str | None) -> None:
    zone = timezone(timedelta(hours=2))
    found = moment(written, zone)
    assert (found and found.astimezone(zone).replace(tzinfo=None).isoformat()) == expected


def test_times_with_an_offset_are_no_guess() -> None:
    lines = [{**QUESTION, "send_date": "2025-01-02T03:04:05Z"}, {**AFTER, "send_date": 1720740720123}]
    assert conversation_of(HEADER, lines, zone=BERLIN).guesses == ()


def test_a_message_that_is_hidden_from_the_model_is_not_live() -> None:
    found = conversation_of(HEADER, [GREETING, {**QUESTION, "is_system": True}, AFTER])
    check(found)
    assert [role for role, _ in said(found)] == ["assistant", "user"]
    assert [each.is_hidden for each in found.messages] == [False, True, False]
    assert conversation_of(HEADER, [{**GREETING, "is_system": True}, {**QUESTION, "is_system": True}]).live == ()


UNKNOWN = "nods at {{original}} and {{// it}}."


def test_the_speakers_of_a_group_are_named() -> None:
    header = {"user_name": "unused", "character_name": "unused", "chat_metadata": {}}
    lines = [
        QUESTION,
        {**GREETING, "mes": "Welcome, {{user}}."},
        {**GREETING, "name": "Bob", "mes": f"{{{{CHAR}}}} {UNKNOWN}"},
    ]
    found = conversation_of(header, lines)
    assert said(found)[1:] == [("assistant", "Seraphina: Welcome, Ann."), ("assistant", f"Bob: Bob {UNKNOWN}")]
    assert found.character == ""


@pytest.mark.parametrize("more", [{"extra": {"type": "narrator"}}, {"is_system": True}])
def test_a_line_of_a_narrator_or_of_the_program_makes_no_group(more: dict[str, Any]) -> None:
    line = {"name": "System", "is_user": False, "send_date": "2024-7-12@01h35m00s", "mes": "It rains.", **more}
    found = conversation_of(HEADER, [GREETING, QUESTION, REPLY, line])
    check(found)
    assert [each.content for each in found.messages if each.role is Role.ASSISTANT] == [
        "Seraphina greets Ann.",
        "one",
        "three",
        "two",
        "System: It rains.",
    ]
    assert found.character == "Seraphina"


def test_a_chat_that_went_on_has_the_same_keys() -> None:
    before = conversation_of(HEADER, FULL[1:4], name="a")
    after = conversation_of(HEADER, [*FULL[1:3], {**REPLY, "swipe_id": 2, "mes": "three"}, AFTER], name="a")
    assert before.key == after.key != conversation_of(HEADER, FULL[1:], name="b").key
    assert {message.key for message in before.messages} <= {message.key for message in after.messages}


def test_pictures_are_named() -> None:
    lines = [
        {**QUESTION, "extra": {"image": "/user/images/Seraphina/a.png", "file": {"url": "/files/b.txt", "name": "b"}}}
    ]
    found = conversation_of(HEADER, lines)
    assert [file.name for file in found.messages[0].files] == ["a.png", "b"]
    assert found.messages[0].role is Role.USER
