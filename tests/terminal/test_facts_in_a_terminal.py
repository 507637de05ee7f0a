"""A fact in the real program: told, corrected a week later, and asked for in other words."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

import pytest

from tests.loopback_providers import calling, split_call
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
