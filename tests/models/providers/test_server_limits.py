"""Context limits from servers: their answers, invalid answers, and servers that are not asked."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

from chorus_cli.models.providers.servers import server_limit
from chorus_cli.models.rules.budget import Limit
from tests.models.providers.fake_ollama import OK, Received, listening, ollama, sending

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.models.providers.fake_ollama import Answer

# Long enough for a busy machine; tests of the timeout use less.
PATIENCE_SECONDS = 5.0
IMPATIENCE_SECONDS = 0.2
NO_FIGURES: tuple[object, ...] = (0, -1, 255, 10**9, 1.5e5, True, "8192", [8192], {}, None)
NOT_CHOSEN: tuple[object, ...] = (
    'stop "num_ctx 512"',
    "num_ctx",
    "num_ctx 0",
    "num_ctx -4096",
    "num_ctx many",
    "num_ctx 4e3",
    f"num_ctx {'9' * 5000}",
    "",
    None,
    7,
    ["num_ctx 4096"],
)
MODELFILE = 'num_ctx                        8192\nstop                           "<|eot_id|>"'


def ollama_limit(answer: Answer, *, patience: float = PATIENCE_SECONDS) -> object:
    with listening(answer) as address:
        return server_limit("ollama_chat/llama3.2", {"OLLAMA_API_BASE": address}, patience)


def openai_limit(answer: Answer, *, patience: float = PATIENCE_SECONDS) -> object:
    with listening(answer) as address:
        return server_limit("openai/mine", {"OPENAI_BASE_URL": f"{address}/v1"}, patience)


def json_of(document: object) -> Answer:
    return sending(OK, json.dumps(document).encode())


def shown(context_length: object, parameters: object = "") -> dict[str, object]:
    """Return what Ollama shows of a model, as far as it matters here."""
    return {
        "parameters": parameters,
        "model_info": {"general.architecture": "llama", "llama.context_length": context_length},
    }


@pytest.mark.parametrize(
    ("document", "limit"),
    [
        (shown(2048), Limit(2048, "Ollama's /api/show")),
        (shown(16_384), Limit(16_384, "Ollama's /api/show")),
        (shown(131_072), Limit(16_384, "Ollama's /api/show, 16,384 of 131,072")),
        (shown(131_072, MODELFILE), Limit(8192, "num_ctx in Ollama's Modelfile")),
        (shown(131_072, "stop x\nnum_ctx 65536"), Limit(65_536, "num_ctx in Ollama's Modelfile")),
        (shown(131_072, "num_ctx 400000"), Limit(131_072, "num_ctx in Ollama's Modelfile")),
        ({"parameters": "num_ctx 65536"}, Limit(65_536, "num_ctx in Ollama's Modelfile")),
        *((shown(131_072, text), Limit(16_384, "Ollama's /api/show, 16,384 of 131,072")) for text in NOT_CHOSEN),
    ],
)
def test_ollama_tells_what_its_user_set_or_what_the_model_could_hold(document: object, limit: Limit) -> None:
    assert ollama_limit(ollama(shown=document)) == limit


@pytest.mark.parametrize(
    "document",
    [
        None,
        {},
        [],
        "131072",
        {"error": "model 'llama3.2' not found"},
        {"model_info": [131_072]},
        {"model_info": {"llama.context_length": 131_072}},
        {"model_info": {"general.architecture": "qwen", "llama.context_length": 131_072}},
        {"model_info": {"general.architecture": None, "None.context_length": "131072"}},
        *map(shown, NO_FIGURES),
    ],
)
def test_what_ollama_does_not_say_in_figures_is_not_guessed(document: object) -> None:
    assert ollama_limit(ollama(shown=document)) is None


@pytest.mark.parametrize("model", ["ollama/hf.co/bartowski/Llama-3.2:Q4", "ollama_chat/hf.co/bartowski/Llama-3.2:Q4"])
def test_ollama_is_asked_for_the_model_by_its_own_name(model: str) -> None:
    received: list[Received] = []
    with listening(ollama(root="/llm", shown=shown(131_072)), received) as address:
        environment = {"OLLAMA_API_BASE": f"{address}/llm/", "OLLAMA_API_KEY": "sk-ollama"}
        assert server_limit(model, environment, PATIENCE_SECONDS) is not None
    (asked,) = received
    assert (asked.method, asked.path) == ("POST", "/llm/api/show")
    assert json.loads(asked.body) == {"model": "hf.co/bartowski/Llama-3.2:Q4"}
    assert asked.headers["authorization"] == "Bearer sk-ollama"


VLLM = {"id": "mine", "object": "model", "max_model_len": 32_768}
LLAMA_CPP = {"id": "mine", "object": "model", "meta": {"n_ctx": 2048, "n_ctx_train": 4096}}


@pytest.mark.parametrize(
    ("models", "limit"),
    [
        ([VLLM], Limit(32_768, "the server's max_model_len")),
        ([{"id": "other", "max_model_len": 999}, 7, VLLM], Limit(32_768, "the server's max_model_len")),
        ([LLAMA_CPP], Limit(2048, "the server's n_ctx")),
        ([{"id": "mine", "meta": {"n_ctx_train": 4096}}], Limit(4096, "the server's n_ctx_train")),
        ([{"id": "mine", "meta": {"n_ctx": 0, "n_ctx_train": 4096}}], Limit(4096, "the server's n_ctx_train")),
        ([{"id": "mine", "max_model_len": None, "meta": {"n_ctx": 512}}], Limit(512, "the server's n_ctx")),
        ([{**LLAMA_CPP, "id": "tiny.gguf"}], Limit(2048, "the server's n_ctx")),
        ([{**VLLM, "id": "one"}, {**VLLM, "id": "two"}], None),
        ([{"id": "mine"}], None),
        ([{"id": "mine", "meta": [2048]}], None),
        *(([{"id": "mine", "max_model_len": it}], None) for it in NO_FIGURES),
        ([], None),
        ("mine", None),
        ({"mine": VLLM}, None),
        (None, None),
    ],
)
def test_a_server_with_the_openai_api_may_tell_in_its_list(models: object, limit: Limit | None) -> None:
    assert openai_limit(json_of({"object": "list", "data": models})) == limit


@pytest.mark.parametrize(
    ("model", "address", "key"),
    [
        ("openai/mine", "OPENAI_BASE_URL", "OPENAI_API_KEY"),
        ("openai/mine", "OPENAI_API_BASE", ""),
        ("hosted_vllm/mine", "HOSTED_VLLM_API_BASE", "HOSTED_VLLM_API_KEY"),
        ("lm_studio/mine", "LM_STUDIO_API_BASE", "LM_STUDIO_API_KEY"),
        ("llamafile/mine", "LLAMAFILE_API_BASE", "LLAMAFILE_API_KEY"),
    ],
)
def test_the_list_is_asked_for_with_the_key_if_there_is_one(model: str, address: str, key: str) -> None:
    received: list[Received] = []
    with listening(json_of({"data": [VLLM]}), received) as place:
        environment = {address: f"{place}/v1/", key: "sk-mine"}
        assert server_limit(model, environment, PATIENCE_SECONDS) == Limit(32_768, "the server's max_model_len")
    (asked,) = received
    assert (asked.method, asked.path) == ("GET", "/v1/models")
    assert asked.headers.get("authorization") == ("Bearer sk-mine" if key else None)


LISTED = json.dumps({"data": [VLLM]}).encode()
OPEN = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: keep-alive\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        sending(OPEN + b"Content-Length: %d\r\n\r\n" % len(LISTED), LISTED, hangs=True),
        sending(OPEN + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(LISTED), LISTED), hangs=True),
        sending(b"HTTP/1.1 100 Continue\r\n\r\n" + OK, LISTED),
    ],
    ids=["a length", "chunks", "another answer before"],
)
def test_a_server_that_keeps_the_connection_open_is_not_waited_for(answer: Answer) -> None:
    begun = time.monotonic()
    assert openai_limit(answer) == Limit(32_768, "the server's max_model_len")
    assert time.monotonic() - begun < PATIENCE_SECONDS / 2


@pytest.mark.parametrize("key", ["sk\r\nHost: elsewhere", "sk-\u00fc", "sk-\ud800"])
def test_a_key_that_is_no_header_is_not_sent(key: str) -> None:
    received: list[Received] = []
    with listening(json_of({"data": [VLLM]}), received) as place:
        environment = {"OPENAI_BASE_URL": place, "OPENAI_API_KEY": key}
        assert server_limit("openai/mine", environment, PATIENCE_SECONDS) is None
    assert received == []


@pytest.mark.parametrize(
    ("model", "environment"),
    [
        ("openai/gpt-x", {}),
        ("openai/gpt-x", {"OPENAI_BASE_URL": "https://api.openai.com/v1"}),
        ("openai/gpt-x", {"OPENAI_BASE_URL": "https://eu.api.openai.com/v1"}),
        ("openai/gpt-x", {"OPENAI_BASE_URL": "http://[::1"}),
        ("anthropic/claude-x", {"ANTHROPIC_API_BASE": "http://127.0.0.1:9"}),
        ("gpt-x", {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}),
        ("hosted_vllm/mine", {"HOSTED_VLLM_API_BASE": "http://127.0.0.1:9/v1"}),
        ("ollama/llama3.2", {"OLLAMA_API_BASE": "ftp://127.0.0.1:9"}),
        ("ollama/llama3.2", {"OLLAMA_API_BASE": "http://127.0.0.1:9"}),
    ],
)
def test_who_has_no_server_of_his_own_or_none_that_runs_is_told_nothing(
    model: str, environment: Mapping[str, str]
) -> None:
    # The guard around the tests would tell of a connection to anywhere else.
    assert server_limit(model, environment) is None


@pytest.mark.parametrize(
    "answer",
    [
        sending(hangs=True),
        sending(OK, b'{"data": [', hangs=True),
        sending(OK, *(b" " for _ in range(100)), pause_seconds=0.02),
        sending(b"HTTP/1.1 200 OK\r\nX-Slow: ", *(b"x" for _ in range(100)), pause_seconds=0.02),
        sending(b"SSH-2.0-OpenSSH_9.2\r\n"),
        sending(),
        sending(OK),
        sending(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\n\r\n"),
        sending(b"HTTP/1.1 401 No\r\n\r\n", json.dumps({"data": [VLLM]}).encode()),
        sending(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>Please log in</html>"),
        sending(OK, b"[" * 500_000),
        sending(OK, b'{"data": [{"id": "mine", "max_model_len": ', b"9" * 10_000, b"}]}"),
        sending(OK, b" " * 10_000_000, json.dumps({"data": [VLLM]}).encode()),
    ],
    ids=[
        "silence",
        "half an answer",
        "a dripping answer",
        "a dripping header",
        "not HTTP",
        "nothing",
        "no body",
        "a redirect",
        "a refusal",
        "a web page",
        "brackets without end",
        "a number without end",
        "ten megabytes",
    ],
)
def test_a_server_that_does_not_answer_properly_is_not_waited_for(answer: Answer) -> None:
    begun = time.monotonic()
    assert openai_limit(answer, patience=IMPATIENCE_SECONDS) is None
    assert ollama_limit(answer, patience=IMPATIENCE_SECONDS) is None
    assert time.monotonic() - begun < 2
