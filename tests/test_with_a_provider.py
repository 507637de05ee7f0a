"""The real program against a real server on loopback: what is sent, what comes back, and what goes wrong.

A run that imports litellm takes seconds more: a story holds as much as it can.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from chorus_cli.core.time import timestamps
from tests.mock_provider import MockProvider, free_port
from tests.models.providers.fake_ollama import Received, listening, ollama, sending
from tests.models.providers.fault_server import DONE, HTML_ANSWER, STREAM_HEAD, chunk, serving
from tests.terminal.command import PROGRAM, finished
from tests.terminal.driver import Home

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("_litellm")
KEY = "sk-test-0123456789abcdef"


def chorus(
    home: Path, address: str, *arguments: str, stdin: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    openai = {"OPENAI_BASE_URL": f"{address}/v1", "OPENAI_API_KEY": KEY}
    done = finished([*PROGRAM, *arguments], {**Home(home).environment, **openai, **variables}, stdin.encode())
    return subprocess.CompletedProcess(arguments, done.code, done.output, done.errors)


def rows(home: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(home / "chorus.db")) as connection:
        return connection.execute("SELECT role, content, status FROM messages ORDER BY id").fetchall()


def put_in(home: Path, content: str, age: timedelta) -> None:
    """Put a row in with plain SQL, as anybody may."""
    moment = timestamps.to_text(datetime.now(UTC) - age)
    with closing(sqlite3.connect(home / "chorus.db")) as connection, connection:
        connection.execute(
            "INSERT INTO messages(persona, thread_id, role, content, timestamp) VALUES ('reviewer', 1, 'user', ?, ?)",
            (content, moment),
        )


def test_a_server_that_keeps_the_connection_open_tells_its_limit(tmp_path: Path) -> None:
    listed = json.dumps({"data": [{"id": "mine", "max_model_len": 32_768}]}).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(listed)
    with listening(sending(head, listed, hangs=True)) as address:
        told = chorus(tmp_path, address, "context", "--model", "openai/mine")
    assert "32,768" in told.stdout


def test_a_conversation_goes_on_from_run_to_run(tmp_path: Path, mock_provider: MockProvider) -> None:
    mock_provider.behave(type="reply", text="Hello from far away.")
    first = chorus(tmp_path, mock_provider.address, "--model", "openai/x", "--persona", "reviewer", "ask", "Hello")
    assert (first.returncode, first.stdout, first.stderr) == (0, "Hello from far away.\n", "")

    put_in(tmp_path, "just inside", timedelta(hours=8, seconds=-30))
    put_in(tmp_path, "just outside", timedelta(hours=8, seconds=1))
    told = chorus(tmp_path, mock_provider.address, "context", "--json")
    assert [message["content"] for message in json.loads(told.stdout)["messages"][1:]] == [
        "Hello",
        "Hello from far away.",
        "just inside",
    ]

    mock_provider.behave(type="reply", text="Still here.")
    second = chorus(tmp_path, mock_provider.address, "ask", "--model", "openai/x", "Are you there?", stdin="piped")
    assert (second.returncode, second.stdout) == (0, "Still here.\n")
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


@pytest.mark.parametrize(
    ("behaviour", "status", "words"),
    [
        ({"type": "fail", "status": 401, "times": None}, "failed", "OPENAI_API_KEY"),
        pytest.param({"type": "fail", "status": 404, "times": None}, "failed", "openai/x", marks=pytest.mark.slow),
        ({"type": "fail", "status": 500, "times": None}, "failed", "status 500"),
        ({"type": "fail", "status": 429, "retry_after": 0, "times": None}, "failed", "Retrying in"),
        ({"type": "stream_fault", "kind": "disconnect", "after_chunks": 3}, "truncated", "broke off"),
        pytest.param(
            {"type": "stream_fault", "kind": "truncate", "after_chunks": 3},
            "truncated",
            "broke off",
            marks=pytest.mark.slow,
        ),
    ],
    ids=lambda value: str(value.get("kind") or value.get("status")) if isinstance(value, dict) else "",
)
def test_a_failing_provider_costs_a_sentence_and_no_word(
    tmp_path: Path, mock_provider: MockProvider, behaviour: dict[str, Any], status: str, words: str
) -> None:
    mock_provider.behave(**behaviour)
    result = chorus(tmp_path, mock_provider.address, "--model", "openai/x", "ask", "Keep this")
    assert result.returncode == 1
    assert words in result.stderr
    assert KEY not in result.stderr
    assert "Traceback" not in result.stderr
    question, reply = rows(tmp_path)
    assert question == ("user", "Keep this", "complete")
    assert reply[2] == status
    assert result.stdout.strip() == reply[1].strip()
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        ((HTML_ANSWER,), "The model sent no reply"),
        ((STREAM_HEAD, chunk(finish_reason="stop"), DONE), "an empty reply"),
        ((STREAM_HEAD, chunk("Half of it")), "broke off"),
    ],
    ids=["a page of a captive portal", "an empty reply", "a cut without a finish reason"],
)
async def test_an_answer_that_is_none_is_told(tmp_path: Path, pieces: tuple[bytes, ...], words: str) -> None:
    async with serving(*pieces) as server:
        address = server.address.removesuffix("/v1")
        result = await asyncio.to_thread(chorus, tmp_path, address, "--model", "openai/x", "ask", "Keep this")
    assert result.returncode == 1
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    question, reply = rows(tmp_path)
    assert question == ("user", "Keep this", "complete")
    assert (reply[1], reply[2]) == (("Half of it", "truncated") if result.stdout else ("", "failed"))


def test_an_unreachable_server_and_an_unknown_model_are_told(tmp_path: Path) -> None:
    address = f"http://127.0.0.1:{free_port()}"
    refused = chorus(tmp_path, address, "--model", "openai/x", "ask", "Hello")
    assert refused.returncode == 1
    assert refused.stderr.count("Retrying in") == 2
    assert f"Cannot reach openai/x at {address}/v1" in refused.stderr
    unknown = chorus(tmp_path, address, "--model", "nosuch/x", "ask", "Hello")
    assert unknown.returncode == 1
    assert "litellm does not know the model nosuch/x" in unknown.stderr
    nowhere = chorus(tmp_path, "nonsense", "--model", "openai/x", "ask", "Hello")
    assert nowhere.returncode == 1
    assert "nonsense/v1, is not an http:// or https:// URL. Correct OPENAI_BASE_URL." in nowhere.stderr
    assert [row[2] for row in rows(tmp_path)] == ["complete", "failed"] * 3


def test_ollama_is_asked_what_its_model_could_hold_and_told_what_is_planned_for(tmp_path: Path) -> None:
    shown = {"model_info": {"general.architecture": "llama", "llama.context_length": 131_072}}
    received: list[Received] = []
    llama = ("--model", "ollama_chat/llama3.2")
    with listening(ollama(shown=shown, reply="Hello from the llama."), received) as address:

        def run(*arguments: str) -> str:
            finished = chorus(tmp_path, "http://127.0.0.1:9", *llama, *arguments, OLLAMA_API_BASE=address)
            assert (finished.returncode, finished.stderr) == (0, "")
            return finished.stdout

        assert "16,384 tokens (Ollama's /api/show, 16,384 of 131,072)" in " ".join(run("context").split())
        assert run("ask", "Hello") == "Hello from the llama.\n"
        run("ask", "/settings set context_token_limit 32000")
        assert json.loads(run("context", "--json"))["limit"] == 32_000
        assert run("ask", "Hello again") == "Hello from the llama.\n"
    said = [json.loads(each.body) for each in received if each.path == "/api/chat"]
    assert [each["options"]["num_ctx"] for each in said] == [16_384, 32_000]
