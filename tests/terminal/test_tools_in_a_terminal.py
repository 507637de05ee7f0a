"""Thoughts, tools and the memory in the real program: seen by the user, and in requests to a provider on loopback."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.loopback_providers import (
    ANSWER,
    THOUGHT_TOKENS,
    CallingProvider,
    ThinkingProvider,
    calling,
    piece,
    split_call,
    thinking,
)
from tests.terminal.driver import PROMPT, Home

SEARCH = split_call("search_history", {"query": "ring", "since": "7d"})


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


def assert_begins_with(request: dict[str, Any], before: dict[str, Any]) -> None:
    """The provider's cache knows the beginning of a request: tools and messages are the same, byte for byte."""
    assert request["tools"] == before["tools"]
    known = json.dumps(before["messages"])[:-1]
    assert json.dumps(request["messages"]).startswith(known)


def test_a_tool_is_used_and_its_call_is_in_every_later_request(talking: Home, provider: CallingProvider) -> None:
    provider.say("The ring lies in the river.")
    provider.call(*SEARCH, before="Let me *look*.")
    provider.call(
        piece('{"query": "zebra"', id_="a", name="search_history"), piece("{}", index=1, id_="a", name="read_thread")
    )
    provider.say("In the **river**.")
    with talking.chat() as chat:
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


def test_scripts_get_the_reply_alone_and_a_refusal_is_told_once(talking: Home, provider: CallingProvider) -> None:
    provider.refuse(400, "registry.ollama.ai/library/gemma:2b does not support tools")
    provider.say("Hello!")
    first = talking.run("ask", "Hi")
    assert (first.code, first.output) == (0, "Hello!\n")
    assert "openai/test takes no tools, so it is asked without them from now on." in first.errors
    second = talking.run("ask", "Hi")
    assert (second.code, second.output, second.errors) == (0, "ok\n", "")
    assert ["tools" in request for request in provider.asked] == [True, False, False]


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


def asked(home: Home, provider: CallingProvider, question: str) -> tuple[str, str]:
    assert home.run("ask", question).code == 0
    messages: list[dict[str, Any]] = provider.asked[-1]["messages"]
    return messages[0]["content"], messages[-1]["content"]


def test_a_task_goes_before_the_question_and_later_into_the_system_message(
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


WHILE_THINKING = "thinking … The user asks for tea. Green is best."
AFTERWARDS = re.compile(rf"^Green tea\.\nthought for [\d.]+ s, {THOUGHT_TOKENS} tokens$", re.MULTILINE)
NOTHING = "No reply in this thread has thoughts."
MANY = 100_000
MOST_BYTES, MOST_KILOBYTES = 200_000, 100_000


@pytest.fixture
def thinker() -> Iterator[ThinkingProvider]:
    with thinking() as running:
        yield running


def test_its_newest_words_are_seen_while_a_model_thinks_and_all_on_request(
    home: Home, thinker: ThinkingProvider
) -> None:
    with home.chat(**thinker.variables) as chat:
        chat.press("ctrl-t")
        chat.await_text(NOTHING)
        chat.say("Tea?")
        chat.await_text(WHILE_THINKING)
        chat.type("typed meanwhile")
        chat.await_text("typed meanwhile")
        thinker.may_answer.set()
        chat.await_line(f"{PROMPT} typed meanwhile")
        assert "thinking" not in chat.screen_text()
        assert AFTERWARDS.search(chat.screen_text())
        chat.press("ctrl-t", "ctrl-c")
        chat.await_line(PROMPT)
        chat.press("ctrl-t")
        chat.await_text("\nThe user asks for tea.\n\nGreen is best.\n")
        assert b"\x1b[2mthought for" in chat.drawn
        chat.await_line(PROMPT)
        chat.press("up")
        chat.await_line(f"{PROMPT} Tea?")
        assert "/thoughts" not in chat.screen_text()
        chat.press("ctrl-c")
        chat.say("/thoughts")
        printed = "\nThe user asks for tea.\n\nGreen is best.\n"
        chat.until(lambda: chat.screen_text().count(printed) == 2, "the thoughts once more")
    assert home.said() == ["Tea?"]


def test_a_script_gets_the_reply_alone_and_the_thoughts_as_json(
    home: Home, thinker: ThinkingProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in thinker.variables.items():
        monkeypatch.setenv(name, value)
    thinker.may_answer.set()
    assert home.run("ask", "/settings set show_thoughts true").code == 0
    outcome = home.run("ask", "Tea?")
    assert (outcome.output, outcome.errors) == (f"{ANSWER}\n", "")
    told = json.loads(home.run("ask", "--json", "Tea?").output)
    assert (told["reply"], told["thoughts"]) == (ANSWER, "".join(thinker.thoughts))
    assert (told["thought_seconds"] >= 0, told["thought_tokens"]) == (True, THOUGHT_TOKENS)
    (line,) = json.loads(home.run("cost", "--json").output)["lines"]
    assert line["reasoning_tokens"] == 2 * THOUGHT_TOKENS
    assert home.run("ask", "/thoughts").output.endswith("\nThe user asks for tea.\n\nGreen is best.\n")


def test_a_very_long_thought_leaves_the_screen_alive_and_is_stored(home: Home, thinker: ThinkingProvider) -> None:
    thinker.thoughts = [f" word{number}" for number in range(MANY)]
    with home.chat(**thinker.variables) as chat:
        chat.ask("/thoughts", NOTHING)
        drawn, resident = len(chat.drawn), kilobytes(chat.pid)
        chat.say("Tea?")
        chat.await_text("thinking … ")
        for number in range(8):
            chat.type(str(number))
            chat.await_text("01234567"[: number + 1], 5)
        chat.await_text(f" word{MANY - 1}")
        assert home.sql("SELECT status FROM messages WHERE reasoning LIKE ?", f"%word{MANY // 2}%") == ["streaming"]
        assert len(chat.drawn) - drawn < MOST_BYTES
        assert kilobytes(chat.pid) - resident < MOST_KILOBYTES
        chat.press("ctrl-c")
        chat.await_text("Stopped before the reply began; /retry asks again.", 5)


def kilobytes(process_id: int) -> int:
    status = Path(f"/proc/{process_id}/status").read_text(encoding="ascii")
    return int(status.partition("VmRSS:")[2].split()[0])
