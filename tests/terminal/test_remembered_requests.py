"""The memory in the requests of the real program, as a provider on loopback records them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.calling_provider import CallingProvider, calling, split_call
from tests.terminal.driver import PROMPT, Home

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
    """Ask in the shell; return the system message and the newest user message of the request."""
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
