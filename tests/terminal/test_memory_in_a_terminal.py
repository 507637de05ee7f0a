"""Remembering and forgetting in the real program: at the keyboard, in the shell, and in the requests to a provider."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.calling_provider import CallingProvider, calling, split_call
from tests.terminal.driver import PROMPT, Home

TIERS = "SELECT tier, COUNT(*) FROM context_items WHERE forgotten_by IS NULL GROUP BY tier"


def test_a_text_is_remembered_shown_forgotten_and_brought_back(home: Home) -> None:
    with home.chat() as chat:
        chat.ask("/remember call the plumber", 'Remembered #1 "call the plumber" as TASK, HOT. /undo reverts this.')
        chat.ask("/memory", "Memory of Chorus")
        chat.ask("/memory list", ".40+.40+.01")
        chat.type("/memory show ")
        chat.press("tab")
        chat.await_text("TASK: call the plumber")
        chat.press("ctrl-c")
        chat.say("/memory forget 1")
        chat.await_text("(y/n)")
        chat.ask("y", 'Forgot #1 "call the plumber". /undo brings it back.')
        chat.ask("/memory list", "Nothing is remembered yet.")
        assert home.sql(TIERS) == []
        chat.ask("/undo", 'Undone: forgot #1 "call the plumber"')
        chat.await_line(PROMPT)
    assert home.sql("SELECT content FROM context_items WHERE forgotten_by IS NULL") == ["call the plumber"]


def test_chorus_memory_prints_what_is_remembered_as_text_or_as_one_json_value(home: Home) -> None:
    home.run("ask", "/remember call the plumber")
    home.run("ask", "/memory add code make test")
    assert home.run("memory").output.startswith("Memory of Chorus\n")
    value = json.loads(home.run("memory", "--json").output)
    figures = ("total_items", "hot_count", "warm_count", "cold_count", "archived_count", "total_tokens")
    assert [value[name] for name in figures] == [2, 1, 1, 0, 0, 5]
    assert [(item["id"], item["item_type"], item["tier"]) for item in value["items"]] == [
        (1, "TASK", "HOT"),
        (2, "CODE", "WARM"),
    ]
    assert json.loads(home.run("memory", "--persona", "frodo", "--json").output)["items"] == []


PLUMBER = "call the plumber about the boiler"


@pytest.fixture
def provider() -> Iterator[CallingProvider]:
    with calling() as running:
        yield running


@pytest.fixture
def talking(home: Home, provider: CallingProvider, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home whose programs talk to the provider."""
    variables = {"OPENAI_BASE_URL": provider.address, "OPENAI_API_KEY": "sk-of-nobody", "CHORUS_MODEL": "openai/test"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return home


def asked(home: Home, provider: CallingProvider, question: str) -> tuple[str, str]:
    assert home.run("ask", question).code == 0
    messages: list[dict[str, Any]] = provider.asked[-1]["messages"]
    return messages[0]["content"], messages[-1]["content"]


def test_a_task_goes_before_the_question_while_the_prefix_is_warm_then_into_the_system_message(
    talking: Home, provider: CallingProvider
) -> None:
    with talking.chat() as chat:
        chat.say("Hello")
        chat.until(lambda: len(provider.asked) == 1, "the first request")
        chat.await_line(PROMPT)
        chat.ask(f"/remember {PLUMBER}", "Remembered #1")
        chat.say("What next?")
        chat.await_text(f"From memory: #1 {PLUMBER}")
        chat.until(lambda: len(provider.asked) == 2, "the second request")
        chat.await_line(PROMPT)
    first, second = (request["messages"] for request in provider.asked)
    assert second[: len(first)] == first
    assert second[-1]["content"] == f"From memory:\n#1 TASK: {PLUMBER}\n\nWhat next?"
    system, question = asked(talking, provider, "And now?")
    assert system.endswith(f"\n\nMemory:\n#1 TASK: {PLUMBER}")
    assert question == "And now?"


def test_a_forgotten_item_is_in_no_request(talking: Home, provider: CallingProvider) -> None:
    with talking.chat() as chat:
        chat.say("Hello")
        chat.until(lambda: len(provider.asked) == 1, "the first request")
        chat.await_line(PROMPT)
        chat.ask(f"/remember {PLUMBER}", "Remembered #1")
        chat.say("What next?")
        chat.until(lambda: len(provider.asked) == 2, "the second request")
        chat.await_line(PROMPT)
        chat.say("/memory forget 1")
        chat.await_text("(y/n)")
        chat.ask("y", "Forgot #1")
        chat.say("Are you sure?")
        chat.until(lambda: len(provider.asked) == 3, "the third request")
        chat.await_line(PROMPT)
    assert "plumber" in str(provider.asked[1]["messages"])
    assert "plumber" not in str(provider.asked[2]["messages"])


def test_a_model_remembers_by_its_tool_and_the_next_request_has_it(talking: Home, provider: CallingProvider) -> None:
    provider.call(*split_call("remember", {"type": "TASK", "content": PLUMBER}))
    provider.say("I will remember that.")
    with talking.chat() as chat:
        chat.say("My boiler is broken.")
        chat.await_text("#1; /undo takes it back")
        chat.await_text("I will remember that.")
        chat.await_line(PROMPT)
    system, _ = asked(talking, provider, "Good.")
    assert system.endswith(f"\n\nMemory:\n#1 TASK: {PLUMBER}")
