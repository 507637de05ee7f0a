"""A turn from before the window comes back in the real program, and stays in all later requests."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

import pytest

from tests.loopback_providers import calling
from tests.terminal.driver import PROMPT, Home

MONTH = timedelta(days=30)


def test_a_turn_of_a_month_ago_comes_by_other_words_once_and_for_good(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    with calling() as provider:
        for name, value in provider.environment("openai/test").items():
            monkeypatch.setenv(name, value)
        provider.say("Lisbon will suit her.")
        home.run("ask", "-c", "My sister Anna moved to Lisbon.")
        home.sql("UPDATE messages SET timestamp = strftime('%Y-%m-%dT%H:%M:%fZ', timestamp, '-30 days')")
        with home.chat() as chat:
            chat.ask("/set clock false", "clock")
            chat.ask("/set recall history", "recall")
            chat.ask("Hello, good morning!", "ok")
            chat.ask("Where does Anna live?", "Said earlier: #1 (")
            chat.ask("And does Anna like it?", "ok", times=3)
            chat.ask("/context", "shares rare words with message #5", times=2)
            chat.await_line(PROMPT)
            shown = chat.words()
    greeting, first, second = (request["messages"] for request in provider.asked[1:])
    day = f"{datetime.now(UTC) - MONTH:%Y-%m-%d}"
    asked = r"#1 \({0}, Human\): My sister Anna moved to Lisbon\.\n#2 \({0}, Chorus\): Lisbon will suit her\."
    assert greeting[-1]["content"] == "Hello, good morning!"
    assert re.fullmatch(rf"Said earlier:\n{asked.format(day)}\n\nWhere does Anna live\?", first[-1]["content"])
    assert json.dumps(second).startswith(json.dumps(first)[:-1])
    assert second[-1]["content"] == "And does Anna like it?"
    assert shown.count("Said earlier: #1 (") == 1
