"""A fact in the real program: told, corrected a week later, and asked for in other words."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

import pytest

from tests.loopback_providers import calling, slow, split_call
from tests.terminal.driver import Home


def a_week_passes(home: Home) -> None:
    """Make all that was done and said a week older."""
    for table, columns in (("context_items", ("created_at", "last_accessed")), ("operations", ("created_at",)),
                           ("messages", ("timestamp",))):  # fmt: skip
        for column in columns:
            older = f"strftime('%Y-%m-%dT%H:%M:%fZ', {column}, '-7 days')"
            home.sql(f"UPDATE {table} SET {column} = {older}")  # noqa: S608 - the names are those above


def test_a_fact_that_is_corrected_a_week_later_is_sent_alone_and_its_story_is_shown(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    with calling() as provider:
        for name, value in provider.environment("openai/test").items():
            monkeypatch.setenv(name, value)
        provider.call(*split_call("remember", {"type": "task", "content": "The office is in Leeds."}))
        provider.say("Noted.")
        assert home.run("ask", "-c", "We work in Leeds.").errors.endswith(": #1; /memory forget 1 removes it\n")
        a_week_passes(home)
        moved = {"type": "task", "content": "The office is in York, near the station.", "replaces": 1}
        provider.call(*split_call("remember", moved))
        provider.say("Good luck there.")
        corrected = home.run("ask", "-c", "We have moved to York.")
        assert corrected.errors.endswith(": #2; /undo reopens #1\n")
        home.run("ask", "/new")
        home.run("ask", "-c", "How do I get to the office?")
        sent = json.dumps(provider.asked[-1]["messages"])
    today, before = (f"{datetime.now(UTC) - timedelta(days=days):%Y-%m-%d}" for days in (0, 7))
    assert f"#2 ({today}, from you): The office is in York, near the station." in sent
    assert "Leeds" not in sent
    story = home.run("memory", "show", "1").output
    old, new = (re.split(r"  +", line.strip()) for line in story.splitlines()[-2:])
    assert (old[0], old[1][4:14], old[-1]) == ("#1", before, "The office is in Leeds.")
    assert (new[0], new[1][4:14], new[-1]) == ("#2", today, "The office is in York, near the station.")
    assert home.run("memory", "list").output.count("#") == 2


def test_facts_are_proposed_after_their_price_and_sent_after_a_yes(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    with calling() as provider:
        for name, value in provider.environment().items():
            monkeypatch.setenv(name, value)
        provider.say("A fine town.")
        home.run("ask", "-c", "We live in York now, near the Minster.")
        refused = home.run("memory", "distil")
        assert (refused.code, refused.output) == (1, "")
        assert re.search(r"2 messages of thread #1 to openai/gpt-4o: ~\d+ tokens, about \$0\.01 with", refused.errors)
        assert refused.errors.endswith("Nothing was sent: agree at a terminal, or add --yes.\n")
        assert len(provider.asked) == 1
        fact = "The user lives near the Minster of York."
        provider.say(json.dumps([{"fact": fact, "message": 1}, {"fact": "An invention.", "message": 77}]))
        found = json.loads(home.run("memory", "distil", "--yes", "--json").output)
        assert [each["item"]["content"] for each in found["facts"]] == [fact]
        assert (found["dropped"], found["messages"]) == (1, 2)
        home.run("ask", "/new")
        home.run("ask", "-c", "What stands near the Minster?")
        assert fact not in json.dumps(provider.asked[-1]["messages"])
        assert fact in home.run("memory", "inbox").output
        assert home.run("memory", "inbox", "accept", "1").output == f'Accepted #1 "{fact}". /undo reverts this.\n'
        home.run("ask", "-c", "And who lives near the Minster?")
        assert f"from you): {fact}" in json.dumps(provider.asked[-1]["messages"])
        home.sql("UPDATE messages SET usage = ? WHERE role = 'assistant'", json.dumps({"prompt_tokens": 100_000}))
        home.run("set", "budget", "0.1")
        overspent = home.run("memory", "distil", "--yes")
        assert "Nothing was sent. chorus set budget N raises the budget" in overspent.errors
        assert len(provider.asked) == 4


def test_ctrl_c_stops_the_request_for_facts_and_nothing_is_stored(home: Home) -> None:
    with slow() as provider:
        provider.finish("hello")
        with home.chat(**provider.variables) as chat:
            chat.ask("hello there", "About hello: all.")
            chat.ask("/memory distil", "its price is not known.", "Send them? (y/n)")
            chat.say("y")
            chat.await_text("press Ctrl-C to stop")
            chat.stop("Stopped; nothing was done.")
            chat.ask("/memory inbox", "The inbox is empty.")
            chat.leave()
    assert home.sql("SELECT COUNT(*) FROM context_items") == [0]
