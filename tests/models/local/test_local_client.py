"""A local model's server is started when first asked, serves all requests, and ends with the run.

A library of the tests' own stands in place of llama.cpp; the process, its order and the wire are the real ones.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from chorus_cli.core.errors import ModelError
from chorus_cli.models.local import client as server
from chorus_cli.models.local.client import LoadedModel, LocalClient, LocalFiles
from chorus_cli.models.providers.model_map import ModelMap
from chorus_cli.models.rules.events import ReplyEnd, TextDelta
from chorus_cli.models.rules.request import ModelRequest, PromptMessage
from tests.models.local import model_files
from tests.models.local.model_files import library_in, written

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LocalClient]:
    # A proxy that reaches nothing: no request is to go through it.
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    environment = {**os.environ, **library_in(tmp_path)}
    client = LocalClient(environment, ModelMap(), LocalFiles(lambda _name: tmp_path))
    yield client
    await client.aclose()


def request(file: Path, text: str = "hello", context_tokens: int | None = None) -> ModelRequest:
    return ModelRequest(f"local/{file}", (PromptMessage("user", text),), context_tokens=context_tokens)


async def said(client: LocalClient, asked: ModelRequest) -> dict[str, Any]:
    """Return the facts that the server tells of itself."""
    events = [event async for event in client.stream(asked)]
    assert events[-1] == ReplyEnd("stop")
    told: dict[str, Any] = json.loads("".join(event.text for event in events if isinstance(event, TextDelta)))
    return told


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def is_listening(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


async def test_a_model_answers_and_its_server_serves_the_next_request_too(client: LocalClient, tmp_path: Path) -> None:
    file = written(tmp_path, "small model.gguf")
    first = await said(client, request(file))
    assert first == {"process": first["process"], "context": 8192, "model": "small model"}
    assert first["process"] != os.getpid()
    assert await said(client, request(file)) == first


async def test_two_questions_at_once_start_one_server(client: LocalClient, tmp_path: Path) -> None:
    file = written(tmp_path)
    first, second = await asyncio.gather(said(client, request(file)), said(client, request(file)))
    assert first == second


async def test_a_larger_context_starts_the_server_anew_and_a_smaller_does_not(
    client: LocalClient, tmp_path: Path
) -> None:
    file = written(tmp_path)
    contexts = [(await said(client, request(file, context_tokens=tokens)))["context"] for tokens in (2048, 4096, 1024)]
    assert contexts == [2048, 4096, 4096]


async def test_another_model_takes_the_place_of_the_one_in_memory(client: LocalClient, tmp_path: Path) -> None:
    one = await said(client, request(written(tmp_path, "one.gguf")))
    other = await said(client, request(written(tmp_path, "other.gguf")))
    assert not is_running(one["process"])
    assert is_running(other["process"])


async def test_a_model_that_writes_a_reply_stays_beside_another(client: LocalClient, tmp_path: Path) -> None:
    reply = client.stream(request(written(tmp_path, "one.gguf")))
    first = await anext(reply)
    assert isinstance(first, TextDelta)
    await said(client, request(written(tmp_path, "other.gguf")))
    assert [event async for event in reply] == [ReplyEnd("stop")]
    assert is_running(json.loads(first.text)["process"])
    await said(client, request(written(tmp_path, "third.gguf")))
    assert not is_running(json.loads(first.text)["process"])


async def test_the_servers_end_when_the_client_is_closed(client: LocalClient, tmp_path: Path) -> None:
    told = await said(client, request(written(tmp_path)))
    await client.aclose()
    assert not is_running(told["process"])


async def test_a_server_that_crashed_is_started_anew(client: LocalClient, tmp_path: Path) -> None:
    file = written(tmp_path)
    first = await said(client, request(file))
    os.kill(first["process"], signal.SIGKILL)
    await client._servers[0].process.wait()
    assert (await said(client, request(file)))["process"] != first["process"]


@pytest.mark.parametrize(
    ("weights", "cause"),
    [("damaged", "a tensor is missing"), ("crashing", "llama.cpp ended without a word, perhaps for want of memory")],
)
async def test_a_model_that_cannot_be_loaded_is_said_with_the_cause(
    weights: str, cause: str, client: LocalClient, tmp_path: Path
) -> None:
    file = written(tmp_path, content=model_files.gguf(weights=weights))
    with pytest.raises(ModelError) as error:
        await said(client, request(file))
    assert str(error.value) == f"{file} cannot be loaded: {cause}."


async def test_a_library_that_cannot_be_imported_is_said(tmp_path: Path) -> None:
    loaded = LoadedModel("local/m", written(tmp_path), 2048)
    (tmp_path / "xllamacpp.py").write_text("raise ImportError('built for another system')", encoding="utf-8")
    with pytest.raises(ModelError, match=r"model.gguf cannot be loaded: built for another system\."):
        await server.started(loaded, {**os.environ, "PYTHONPATH": str(tmp_path)})


async def test_a_model_that_takes_too_long_to_load_is_given_up(tmp_path: Path) -> None:
    file = written(tmp_path, content=model_files.gguf(weights="endless"))
    loaded = LoadedModel("local/m", file, 2048)
    sentence = r"local/m was not loaded within 0\.01 minutes\. Try a smaller model\."
    with pytest.raises(ModelError, match=sentence):
        await server.started(loaded, {**os.environ, **library_in(tmp_path)}, patience_seconds=0.6)


async def test_a_cancelled_question_ends_the_loading(client: LocalClient, tmp_path: Path) -> None:
    asking = asyncio.create_task(said(client, request(written(tmp_path, content=model_files.gguf(weights="endless")))))
    await asyncio.sleep(0.3)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert (await said(client, request(written(tmp_path, "other.gguf"))))["context"] == 8192


def test_a_server_ends_with_a_killed_chorus(tmp_path: Path) -> None:
    file = written(tmp_path)
    story = f"""
        import asyncio, os
        from pathlib import Path
        from chorus_cli.models.local.client import LoadedModel, started

        async def main():
            serving = await started(LoadedModel("local/m", Path({str(file)!r}), 2048), os.environ)
            print(serving.endpoint.address, flush=True)
            await asyncio.sleep(60)

        asyncio.run(main())
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(Path.cwd())])}
    library_in(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(story)], env=environment, stdout=subprocess.PIPE, text=True
    ) as chorus:
        assert chorus.stdout is not None
        port = int(urlsplit(chorus.stdout.readline()).port or 0)
        assert is_listening(port)
        chorus.kill()
    deadline = time.monotonic() + 20
    while is_listening(port):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_model_that_is_still_loading_ends_with_chorus(tmp_path: Path) -> None:
    file = written(tmp_path, content=model_files.gguf(weights="endless"))
    order = {"file": str(file), "context_tokens": 2048, "key": "invented"}
    loading = subprocess.run(
        [sys.executable, "-P", str(server._PROGRAM)],
        # Its standard input ends after the order, as if Chorus were killed.
        input=json.dumps(order).encode() + b"\n",
        env={**os.environ, **library_in(tmp_path)},
        timeout=20,
        check=False,
    )
    assert loading.returncode == 0
