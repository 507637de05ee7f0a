"""Tools in the real program, with a provider on loopback: seen by the user, repeated in the next request, cut off."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.calling_provider import CallingProvider, calling, piece, split_call
from tests.terminal.driver import Home

SEARCH = split_call("search_history", {"query": "ring", "since": "7d"})


@pytest.fixture
def provider() -> Iterator[CallingProvider]:
    with calling() as running:
        yield running


@pytest.fixture
def tooled(home: Home, provider: CallingProvider, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home whose programs talk to the provider."""
    variables = {"OPENAI_BASE_URL": provider.address, "OPENAI_API_KEY": "sk-of-nobody", "CHORUS_MODEL": "openai/test"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return home


def assert_begins_with(request: dict[str, Any], before: dict[str, Any]) -> None:
    """The provider's cache knows the beginning of a request: tools and messages are the same, byte for byte."""
    assert request["tools"] == before["tools"]
    known = json.dumps(before["messages"])[:-1]
    assert json.dumps(request["messages"]).startswith(known)


def test_a_tool_is_used_and_its_call_is_in_every_later_request(tooled: Home, provider: CallingProvider) -> None:
    provider.say("The ring lies in the river.")
    provider.call(*SEARCH, before="Let me *look*.")
    provider.call(
        piece('{"query": "zebra"', id_="a", name="search_history"), piece("{}", index=1, id_="a", name="read_thread")
    )
    provider.say("In the **river**.")
    with tooled.chat() as chat:
        chat.ask("Where is the ring?", "The ring lies in the river.")
        chat.ask("Where was that?", "In the river.")
        chat.say("Thanks")
        chat.until(lambda: len(provider.asked) == 5, "the last request")
    _, first, second, third, last = provider.asked
    assert [tool["function"]["name"] for tool in first["tools"]][:2] == ["search_history", "read_thread"]
    for before, after in [(first, second), (second, third), (third, last)]:
        assert_begins_with(after, before)
    called, result = second["messages"][-2:]
    assert called["content"] == "Let me *look*."
    assert called["tool_calls"][0]["function"]["arguments"] == '{"query": "ring", "since": "7d"}'
    assert (result["role"], result["tool_call_id"]) == ("tool", "c1")
    assert "The «ring» lies in the river." in result["content"]
    repaired, missing = third["messages"][-2:]
    assert [call["id"] for call in third["messages"][-3]["tool_calls"]] == [
        repaired["tool_call_id"],
        missing["tool_call_id"],
    ]
    assert repaired["content"].startswith("(The arguments were not valid JSON; they were understood as")
    assert missing["content"].startswith("The argument 'id' is missing")
    assert repaired["tool_call_id"] != missing["tool_call_id"]


def test_scripts_get_the_reply_alone_and_a_refusal_is_told_once(tooled: Home, provider: CallingProvider) -> None:
    provider.refuse(400, "registry.ollama.ai/library/gemma:2b does not support tools")
    provider.say("Hello!")
    first = tooled.run("ask", "Hi")
    assert (first.code, first.output) == (0, "Hello!\n")
    assert "openai/test takes no tools, so it is asked without them from now on." in first.errors
    second = tooled.run("ask", "Hi")
    assert (second.code, second.output, second.errors) == (0, "ok\n", "")
    assert ["tools" in request for request in provider.asked] == [True, False, False]
