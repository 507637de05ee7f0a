"""litellm: kept offline and quiet, asked in its own ways, and its errors told as failures."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack

import httpx
import pytest

from chorus_cli.models.litellm import library
from chorus_cli.models.litellm.client import LiteLLMClient, _failure, effort_arguments
from chorus_cli.models.providers.failures import Asked, causes, model_error
from chorus_cli.models.rules.declaration import Parameter, Tool
from chorus_cli.models.rules.events import ModelEvent, ReplyEnd, TextDelta
from chorus_cli.models.rules.request import ModelRequest
from tests.models.providers.asked_models import BY_LITELLM, HELLO, MODEL_MAP, MakeClient, events_of, text_of
from tests.models.providers.fault_server import DONE, STREAM_HEAD, chunk, event, serving, usage_chunk
from tests.models.providers.fault_server import Asked as Received

pytestmark = BY_LITELLM


@pytest.mark.parametrize(
    ("model", "address"),
    [("lm_studio/qwen", "http://localhost:1234/v1"), ("hosted_vllm/qwen", "http://localhost:8000/v1")],
)
def test_what_is_meant_for_a_server_on_this_machine_does_not_go_to_openai(model: str, address: str) -> None:
    environment = {"OPENAI_BASE_URL": "https://llm.example/v1", "OPENAI_API_KEY": "sk-test"}
    # Not sent, for something may listen at these well-known ports.
    assert LiteLLMClient(environment, MODEL_MAP)._server_arguments(model) == {"api_base": address}


async def test_litellm_does_not_put_a_long_reply_together_again(fake_key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    litellm = library.load()
    put_together = litellm.stream_chunk_builder
    sizes: list[int] = []

    def counting(chunks: Sequence[object], **arguments: object) -> object:
        sizes.append(len(chunks))
        return put_together(chunks, **arguments)

    monkeypatch.setattr(litellm, "stream_chunk_builder", counting)
    words = [f" {number}" for number in range(300)]
    pieces = (*map(chunk, words), chunk(finish_reason="stop"), usage_chunk(5, 300), DONE)
    async with serving(STREAM_HEAD, *pieces) as server:
        events = await events_of(MakeClient("litellm", AsyncExitStack()), server.address, fake_key)
    assert text_of(events) == "".join(words)
    assert events[-1] == ReplyEnd("stop", {"prompt_tokens": 5, "completion_tokens": 300, "total_tokens": 305})
    assert sizes
    assert max(sizes) < 50


OWN = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}


@pytest.mark.parametrize(
    ("model", "effort", "environment", "arguments"),
    [
        ("zai/glm-5.3", "medium", {}, {"extra_body": {"reasoning_effort": "high"}}),
        ("minimax/MiniMax-M2.7", None, {}, {"extra_body": {"reasoning_split": True}}),
        ("deepseek/deepseek-v4-flash", None, {}, {}),
        ("anthropic/claude-sonnet-5", "low", {}, {"reasoning_effort": "low"}),
        ("bedrock/anthropic.claude-sonnet-5", "low", {}, {"reasoning_effort": "low"}),
        ("openai/gpt-5.5", "low", {}, {"reasoning_effort": "low", "store": False}),
        ("openai/responses/gpt-5.5", None, {}, {"store": False}),
        # A server of one's own is told of a store only by the protocol that has one.
        ("openai/m", None, OWN, {}),
        ("openai/responses/m", None, OWN, {"store": False}),
    ],
)
def test_arguments(model: str, effort: str | None, environment: dict[str, str], arguments: dict[str, object]) -> None:
    assert effort_arguments(ModelRequest(model, (), effort=effort), environment) == arguments


class HTTPStatusError(Exception):
    """The cause that has the provider's answer."""

    def __init__(self, response: httpx.Response) -> None:
        super().__init__("Client error")
        self.response = response


class RaisedError(Exception):
    """The error that litellm raises, with a status of its own."""

    def __init__(self, words: str, status_code: int | None = None, *, is_pre_first_chunk: bool = True) -> None:
        super().__init__(words)
        self.status_code = status_code
        self.is_pre_first_chunk = is_pre_first_chunk


LOST = RaisedError("Lost.", 500, is_pre_first_chunk=False)
SLOW = HTTPStatusError(httpx.Response(429, json={"error": {"message": "Slow down"}}, headers={"Retry-After": "7"}))
UNREAD = HTTPStatusError(httpx.Response(503, stream=httpx.ByteStream(b"any")))
FAILED = HTTPStatusError(httpx.Response(500))


@pytest.mark.parametrize(
    ("error", "cause", "told"),
    [
        # The status is that of the answer, whatever litellm invents.
        (RaisedError("Any."), SLOW, "openai/m is rate limited (Slow down). Try again in 7 s."),
        (RaisedError("Any.", 401), SLOW, "openai/m is rate limited (Slow down). Try again in 7 s."),
        (RaisedError("Any.", 500), SLOW, "openai/m is rate limited (Slow down). Try again in 7 s."),
        (
            RaisedError("litellm.InternalServerError: OpenAIException - Busy", 500),
            *(UNREAD, "The provider of openai/m is failing or overloaded, status 503 (Busy)."),
        ),
        (LOST, FAILED, "The reply of openai/m broke off (Lost)."),
        # A status that litellm invents is no answer.
        (RaisedError("Any.", 500), ConnectionRefusedError(), "Cannot reach openai/m (connection refused)."),
        (RaisedError("Any.", 500), TimeoutError(), "Cannot reach openai/m (no answer in time)."),
        (RaisedError("Any.", 500), None, "The provider of openai/m sent an invalid response (Any)."),
        (LOST, AttributeError("no attribute"), "The reply of openai/m broke off (not an event of this protocol)."),
        (ValueError("Odd."), None, "The request to openai/m failed (Odd)."),
    ],
)
def test_an_error_is_told_by_its_cause(error: Exception, cause: Exception | None, told: str) -> None:
    error.__cause__ = cause
    found = model_error(_failure(tuple(causes(error))), Asked("openai/m"))
    assert told in {found.problem, str(found)}


def test_litellm_is_kept_offline_but_its_log_level_is_the_users() -> None:
    environment = {"LITELLM_LOG": "DEBUG", "LITELLM_LOCAL_MODEL_COST_MAP": "False", "HF_HUB_OFFLINE": "0"}
    library.prepare_environment(environment)
    assert environment == {
        "LITELLM_LOG": "DEBUG",
        "LITELLM_MODE": "PRODUCTION",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
        "HF_HUB_OFFLINE": "1",
    }


def test_nobody_who_leaves_waits_for_the_import() -> None:
    async def leave() -> None:
        loading = asyncio.create_task(library.load_beside())
        await asyncio.sleep(0)
        loading.cancel()
        await asyncio.wait({loading})
        assert loading.cancelled()

    with library._importing:
        asyncio.run(leave())
    assert asyncio.run(library.load_beside()) is library.load()


def test_two_threads_may_import_litellm_at_once_and_nothing_is_fetched_or_printed() -> None:
    program = (
        "import socket, sys, threading\n"
        "def refuse(*_): raise SystemExit('a connection was opened')\n"
        "socket.socket.connect = refuse\n"
        "from chorus_cli.models.providers.model_files import package_folder\n"
        "from chorus_cli.models.litellm import client, library\n"
        "folder = package_folder('litellm')\n"
        "assert 'litellm' not in sys.modules\n"
        "threads = [threading.Thread(target=library.warm) for _ in range(2)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
        "assert library.load().__file__ == str(folder / '__init__.py')\n"
        "assert library.load().suppress_debug_info\n"
    )
    alone = {name: value for name, value in os.environ.items() if not name.startswith(("LITELLM_", "HF_"))}
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=alone)
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "", "")


RECALL = Tool("recall", "Recall.", (Parameter("query", "Words."),))
RESPONSE = {"id": "r", "object": "response", "created_at": 1, "model": "o3-pro", "output": [], "tools": []}
USAGE = {"input_tokens": 7, "output_tokens": 2, "total_tokens": 9}
REPLY = (
    {"type": "response.created", "sequence_number": 0, "response": RESPONSE | {"status": "in_progress"}},
    {
        "type": "response.output_text.delta",
        "sequence_number": 1,
        "item_id": "m",
        "output_index": 0,
        "content_index": 0,
        "delta": "hi",
    },
    {
        "type": "response.completed",
        "sequence_number": 2,
        "response": RESPONSE | {"status": "completed", "usage": USAGE},
    },
)


async def replied(model: str, key: str, *tools: Tool) -> tuple[Received, list[ModelEvent]]:
    async with serving(STREAM_HEAD, *map(event, REPLY)) as server:
        client = LiteLLMClient({"OPENAI_BASE_URL": server.address, "OPENAI_API_KEY": key}, MODEL_MAP)
        events = [each async for each in client.stream(ModelRequest(model, HELLO, tools=tools))]
    (asked,) = server.asked
    return asked, events


@pytest.mark.parametrize("tools", [(), (RECALL,)], ids=["without tools", "with tools"])
@pytest.mark.parametrize("model", ["openai/o3-pro", "openai/gpt-5-codex", "openai/responses/gpt-4o"])
async def test_a_model_of_the_responses_api_answers(fake_key: str, model: str, tools: tuple[Tool, ...]) -> None:
    asked, events = await replied(model, fake_key, *tools)
    assert asked.path == "/v1/responses"
    assert ("tools" in asked.body) == bool(tools)
    usage = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
    assert events == [TextDelta("hi"), ReplyEnd("stop", usage)]
