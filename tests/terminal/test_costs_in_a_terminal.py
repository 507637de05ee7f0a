"""Costs and the budget of a day, in the real program: in the shell and at the keyboard."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.remembering_provider import remembering
from tests.terminal.driver import PROMPT, Home
from tests.terminal.small_model import furnish, say, talking

USAGE = '{"prompt_tokens": 1000000, "completion_tokens": 100000, "total_tokens": 1100000, "cached_tokens": 500000}'


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home whose one reply is of a model with a price, and has cost more than a cent."""
    home = Home(tmp_path / "home")
    assert home.run("ask", "I am unhappy").code == 0
    home.sql("UPDATE messages SET model = 'gpt-4o-mini', usage = ? WHERE role = 'assistant'", USAGE)
    return home


def test_costs_are_told_as_a_table_and_as_json(home: Home) -> None:
    table = home.run("cost", "--by", "persona", "--since", "1d").output
    assert [line.split()[0] for line in table.splitlines()] == ["Cost", "Persona", "chorus"]
    report = json.loads(home.run("cost", "--json").output)
    assert (report["by"], report["since"], [line["key"] for line in report["lines"]]) == (
        "model",
        None,
        ["gpt-4o-mini"],
    )
    assert report["total"]["cached_tokens"] == 500_000
    assert 0.01 < report["total"]["cost_usd"] < 10
    assert json.loads(home.run("cost", "--json", "--persona", "frodo").output)["lines"] == []
    assert home.run("cost", "--by", "moon").code == 2


@pytest.mark.parametrize("line", ["/feel happy", "/retry", "/bg I am happy", "/compact"])
def test_no_command_asks_the_model_once_the_budget_is_spent(home: Home, line: str) -> None:
    (home.path / "commands").mkdir()
    (home.path / "commands" / "feel.md").write_text("I am $ARGUMENTS")
    assert home.run("ask", "/settings set budget 0.01").code == 0
    outcome = home.run("ask", line)
    assert (outcome.code, outcome.output) == (1, "")
    assert "of your budget of $0.01. Nothing was sent." in outcome.errors
    assert (home.said(), len(home.replies())) == (["I am unhappy"], 1)


def test_the_chat_asks_before_each_message_once_the_budget_is_spent_and_shows_the_price(home: Home) -> None:
    for line in ("/settings set budget 0.01", "/settings set show_price true"):
        assert home.run("ask", line).code == 0
    with home.chat() as terminal:
        terminal.await_bottom_line("$0.")
        terminal.say("I am happy")
        terminal.await_text("Ask the model all the same?")
        terminal.say("n")
        terminal.await_text("Nothing was sent. /settings set budget N raises the budget")
        terminal.await_line(f"{PROMPT} I am happy")
        terminal.press("enter")
        terminal.await_text("Ask the model all the same?", times=2)
        terminal.say("y")
        terminal.until(lambda: len(home.replies()) == 2, "a second reply")
    assert home.said() == ["I am unhappy", "I am happy"]


def test_summaries_are_counted_from_the_keyboard_and_the_budget_asks_because_of_them(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    furnish(home, 10_000, "openai/gpt-4o-mini")
    with remembering() as provider, talking(home, provider.address) as chat:
        provider.tokens = (1_000_000, 100_000)
        chat.ask("/settings set budget 0.2", "budget is now 0.2")
        say(chat, "one!", "two!", "three!", "four!", more=3)
        chat.ask("/cost", "No reply with a known number of tokens.")
        chat.ask("/compact", "4 messages summarised")
        counts = "1,000,000 prompt and 100,000 completion tokens, cost $0.21"
        chat.ask("/cost", f"This includes 1 request for summaries ({counts}).")
        chat.say("five!")
        chat.await_text("The replies and summaries of today have cost $0.21, 105% of your budget of $0.20. Ask")
        chat.say("n")
        chat.await_text("Nothing was sent.")
    report = json.loads(home.run("cost", "--json", "--by", "thread").output)
    assert [(line["key"], line["replies"], line["summaries"]) for line in report["lines"]] == [("chorus #1", 0, 1)]
    assert report["summaries"]["cost_usd"] == report["total"]["cost_usd"] == pytest.approx(0.21)
    assert "This includes 1 request for summaries" in home.run("cost").output
