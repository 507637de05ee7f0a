"""Tools in the real program, with a provider on loopback: seen by the user, repeated in the next request, cut off."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from tests.calling_provider import CallingProvider, calling, piece, split_call
from tests.terminal.driver import PROMPT, Home

LONG_TEXT = " ".join(f"word{number}" for number in range(100_000))
"""A message that takes a moment to index, during which others may read: time for a lock."""

LONG_ROWS = 5
LOOK_SECONDS = 0.002
HOLD_SECONDS = 1.0
PATIENCE_SECONDS = 60
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


def test_a_tool_is_used_in_a_chat_and_its_call_is_in_every_later_request(
    tooled: Home, provider: CallingProvider
) -> None:
    provider.say("The ring lies in the river.")
    provider.call(*SEARCH, before="Let me *look*.")
    provider.call(
        piece('{"query": "zebra"', id_="a", name="search_history"), piece("{}", index=1, id_="a", name="read_thread")
    )
    provider.say("In the **river**.")
    with tooled.chat() as chat:
        chat.say("Where is the ring?")
        chat.await_text("The ring lies in the river.")
        chat.await_line(PROMPT)
        chat.say("Where was that?")
        chat.await_text("In the river.")
        chat.await_line(PROMPT)
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


@contextmanager
def searching_for_long(home: Home, provider: CallingProvider) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a program whose tool is at work, and cannot go on because of a lock of the test, until shortly after.

    The lock is that of the very look which finds the call in progress, so the tool does not end in between.
    """
    # It makes the database, and needs no model for that.
    home.run("log")
    home.sql(
        "INSERT INTO messages(persona, thread_id, role, content, timestamp) "
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
        "SELECT 'other', 99, 'user', ?, '2026-01-01T00:00:00.000000Z' FROM n",
        *(LONG_ROWS, LONG_TEXT),
    )
    provider.call(*SEARCH, before="Let me look.")
    with home.running("ask", "Where is the ring?") as process:
        with locking_when_at_work(home):
            yield process
            time.sleep(HOLD_SECONDS)
        process.wait(PATIENCE_SECONDS)


@contextmanager
def locking_when_at_work(home: Home) -> Iterator[None]:
    """Wait until a call is in progress, and let nothing be written during the block."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    with closing(sqlite3.connect(home.path / "chorus.db", timeout=0, isolation_level=None)) as reader:
        while not sees_call_in_progress(reader):
            reader.rollback()
            assert time.monotonic() < deadline
            time.sleep(LOOK_SECONDS)
        yield


def sees_call_in_progress(reader: sqlite3.Connection) -> bool:
    """Begin a transaction, and return whether a call is in progress; while another program writes it is not known."""
    reader.execute("BEGIN")
    try:
        (found,) = reader.execute("SELECT COUNT(*) FROM messages WHERE role = 'tool_use' AND status = 'streaming'")
    except sqlite3.OperationalError:
        return False
    return bool(found[0])


def statuses(home: Home) -> list[str]:
    return list(home.sql("SELECT status FROM messages WHERE role = 'tool_use'"))


def test_a_kill_in_a_tool_leaves_a_turn_that_is_mended(tooled: Home, provider: CallingProvider) -> None:
    with searching_for_long(tooled, provider) as process:
        process.kill()
    assert statuses(tooled) == ["streaming"]
    tooled.run("ask", "Are you there?")
    assert statuses(tooled) == ["interrupted"]
    assert [(message["role"], message["content"]) for message in provider.asked[-1]["messages"][-3:]] == [
        ("user", "Where is the ring?"),
        ("assistant", "Let me look."),
        ("user", "Are you there?"),
    ]


def test_ctrl_c_in_a_tool_is_told_as_its_result(tooled: Home, provider: CallingProvider) -> None:
    with searching_for_long(tooled, provider) as process:
        process.send_signal(signal.SIGINT)
    assert statuses(tooled) == ["complete"]
    assert tooled.sql("SELECT status FROM messages ORDER BY id DESC LIMIT 1") == ["interrupted"]
    tooled.run("ask", "Are you there?")
    called, result, question = provider.asked[-1]["messages"][-3:]
    assert called["tool_calls"][0]["id"] == result["tool_call_id"] == "c1"
    assert result["content"] == "(The human stopped this tool before it was done.)"
    assert question["content"] == "Are you there?"
    assert_begins_with(provider.asked[-1], provider.asked[-2])
