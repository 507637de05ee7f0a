"""How the arguments of a server's prompt are typed, and how what it says becomes one text."""

from __future__ import annotations

import pytest

from chorus_cli.core.errors import CommandError
from chorus_cli.mcp.rules.offers import Argument, Prompt, arguments_of, joined

WEATHER = Prompt("weather", "", (Argument("city", is_required=True), Argument("day")))


@pytest.mark.parametrize(
    ("typed", "given"),
    [
        ("Rome", {"city": "Rome"}),
        ("Rome next Monday", {"city": "Rome", "day": "next Monday"}),
        ("city=New York day=next Monday", {"city": "New York", "day": "next Monday"}),
        ("day=Monday city=Rome", {"city": "Rome", "day": "Monday"}),
        ("New York day=Monday", {"city": "New York", "day": "Monday"}),
        ("it's year=5 a-day=3", {"city": "it's", "day": "year=5 a-day=3"}),
    ],
)
def test_arguments_come_in_their_order_or_by_name(typed: str, given: dict[str, str]) -> None:
    assert arguments_of(WEATHER, "/w:weather", typed) == given


@pytest.mark.parametrize(
    ("prompt", "typed", "refusal"),
    [
        (WEATHER, "", "/w:weather needs city, for example: /w:weather city=…"),
        (WEATHER, "day=Monday city=", "/w:weather needs city, for example: /w:weather city=…"),
        (
            Prompt("two", "", (Argument("a", is_required=True), Argument("b", is_required=True))),
            "",
            "/w:weather needs a and b, for example: /w:weather a=… b=…",
        ),
        (WEATHER, "Rome day=Monday city=Oslo", "/w:weather takes only city and day."),
        (Prompt("none"), "Rome", "/w:weather takes no argument."),
    ],
)
def test_what_is_missing_or_too_much_is_one_sentence(prompt: Prompt, typed: str, refusal: str) -> None:
    with pytest.raises(CommandError) as refused:
        arguments_of(prompt, "/w:weather", typed)
    assert str(refused.value) == refusal


def test_the_name_is_typed_as_one_word_without_slashes_or_signs_that_hide() -> None:
    assert Prompt("re view/a\x1b[2J\u202eß-1.b:c").word == "re_view_a_[2J_ß-1.b:c"


def test_several_speakers_are_named_and_one_is_not() -> None:
    assert joined([("user", "Hello."), ("user", ""), ("user", "Who are you?")]) == "Hello.\n\nWho are you?"
    assert joined([("user", "Hello."), ("assistant", "Hi.")]) == "user: Hello.\n\nassistant: Hi."
