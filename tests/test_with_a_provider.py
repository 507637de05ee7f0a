"""The real program against a real server on loopback: what is sent, what comes back, and what goes wrong.

A run that imports litellm takes seconds more: a story holds as much as it can."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from tests.mock_provider import MockProvider, free_port
from tests.models.providers.fake_ollama import Received, listening, ollama
from tests.terminal.command import PROGRAM, Outcome, finished
from tests.terminal.driver import Home

pytestmark = pytest.mark.usefixtures("_litellm")
KEY = "sk-test-0123456789abcdef"


ROWS = "SELECT role, content, status FROM messages ORDER BY id"


def chorus(home: Home, address: str, *arguments: str, stdin: str = "", **variables: str) -> Outcome:
    openai = {"OPENAI_BASE_URL": f"{address}/v1", "OPENAI_API_KEY": KEY}
    return finished([*PROGRAM, *arguments], {**home.environment, **openai, **variables}, stdin.encode())


def test_a_conversation_goes_on_from_run_to_run(home: Home, mock_provider: MockProvider) -> None:
    mock_provider.behave(type="reply", text="Hello from far away.")
    model = ("--model", "openai/x", "--persona", "reviewer")
    first = chorus(home, mock_provider.address, *model, "ask", "-c", "Hello")
    assert (first.code, first.output, first.errors) == (0, "Hello from far away.\n", "")

    home.say_by_sql("just inside", timedelta(hours=8, seconds=-30))
    home.say_by_sql("just outside", timedelta(hours=8, seconds=1))
    home.sql("UPDATE messages SET persona = 'reviewer'")
    told = chorus(home, mock_provider.address, *model, "context", "-c", "--json")
    assert [message["content"] for message in json.loads(told.output)["messages"][1:]] == [
        "Hello",
        "Hello from far away.",
        "just inside",
    ]

    mock_provider.behave(type="reply", text="Still here.")
    second = chorus(home, mock_provider.address, "ask", *model, "-c", "Are you there?", stdin="piped")
    assert (second.code, second.output) == (0, "Still here.\n")
    ((system, *messages),) = mock_provider.requests()
    assert system["role"] == "system"
    assert system["content"].startswith("You review code.")
    assert "# checklist.md" in system["content"]
    assert [(message["role"], message["content"]) for message in messages] == [
        ("user", "Hello"),
        ("assistant", "Hello from far away."),
        ("user", "just inside"),
        ("user", "Are you there?\n\npiped"),
    ]


def test_an_unreachable_server_and_an_unknown_model_are_told(home: Home) -> None:
    address = f"http://127.0.0.1:{free_port()}"
    refused = chorus(home, address, "--model", "openai/x", "ask", "-c", "Hello")
    assert refused.code == 1
    assert refused.errors.count("Retrying in") == 2
    assert f"Cannot reach openai/x at {address}/v1" in refused.errors
    unknown = chorus(home, address, "--model", "nosuch/x", "ask", "-c", "Hello")
    assert unknown.code == 1
    assert "Chorus does not know the model nosuch/x" in unknown.errors
    nowhere = chorus(home, "nonsense", "--model", "openai/x", "ask", "-c", "Hello")
    assert nowhere.code == 1
    assert "nonsense/v1, is not an http:// or https:// URL. Correct OPENAI_BASE_URL." in nowhere.errors
    assert [row[2] for row in home.sql(ROWS)] == ["complete", "failed"] * 3


def test_ollama_is_asked_what_its_model_could_hold_and_told_what_is_planned_for(home: Home) -> None:
    shown = {"model_info": {"general.architecture": "llama", "llama.context_length": 131_072}}
    received: list[Received] = []
    llama = ("--model", "ollama_chat/llama3.2")
    with listening(ollama(shown=shown, reply="Hello from the llama."), received) as address:

        def run(*arguments: str) -> str:
            done = chorus(home, "http://127.0.0.1:9", *llama, *arguments, OLLAMA_API_BASE=address)
            assert (done.code, done.errors) == (0, "")
            return done.output

        assert "16,384 tokens (Ollama's /api/show, 16,384 of 131,072)" in " ".join(run("context").split())
        assert run("ask", "-c", "Hello") == "Hello from the llama.\n"
        run("ask", "/settings set context_token_limit 32000")
        assert json.loads(run("context", "--json"))["limit"] == 32_000
        assert run("ask", "-c", "Hello again") == "Hello from the llama.\n"
    said = [json.loads(each.body) for each in received if each.path == "/api/chat"]
    assert [each["options"]["num_ctx"] for each in said] == [16_384, 32_000]
