"""Model servers: where they are, what they are asked, the limit of a model, and whatever else may listen there."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

from chorus_cli.models.providers.model_map import ModelMap
from chorus_cli.models.providers.servers import (
    ModelLimits,
    is_ollama,
    is_on_this_machine,
    models,
    most_recent_model,
    ollama_address,
    request_address,
    request_problem,
    server_address,
    server_limit,
)
from chorus_cli.models.rules.budget import Limit
from tests.fakes import FakeClock
from tests.models.providers.fake_ollama import OK, Answer, Received, entry, listening, ollama, sending


def test_this_machine_is_known_by_its_loopback_addresses() -> None:
    here = (
        *("http://localhost:11434", "http://LocalHost/v1", "localhost:11434", "http://api.localhost"),
        *("http://127.8.9.10:80/v1", "http://[::1]:80", "http://0.0.0.0:11434", "http://user:word@127.0.0.1/v1"),
    )
    elsewhere = (
        *("http://localhost.example", "http://127.0.0.1.example", "http://192.168.1.2:11434"),
        *("https://api.openai.com/v1", "http://[::1", ""),
    )
    assert [address for address in (*here, *elsewhere) if is_on_this_machine(address)] == [*here]


def test_ollama_is_known_by_the_models_prefix() -> None:
    names = ("ollama/x", "ollama_chat/x", "ollama", "ollama_cloud/x", "openai/ollama/x")
    assert [is_ollama(name) for name in names] == [True, True, False, False, False]


HOSTS = {
    **dict.fromkeys(("gpu", "gpu:", "gpu:x", "gpu:65536", f"gpu:{'9' * 5000}"), "http://gpu:11434"),
    "gpu:1234": "http://gpu:1234",
    ":1234": "http://127.0.0.1:1234",
    "http://gpu": "http://gpu:80",
    "https://gpu": "https://gpu:443",
    "https://gpu:1234/ollama/": "https://gpu:1234/ollama",
    " '10.0.0.7:1234' ": "http://10.0.0.7:1234",
    "": "http://localhost:11434",
    "0.0.0.0": "http://127.0.0.1:11434",  # noqa: S104 - an address, nothing is bound
    "0.0.0.0:1234": "http://127.0.0.1:1234",
    "http://0.0.0.0:1234": "http://127.0.0.1:1234",
    "::": "http://[::1]:11434",
    "[::]:1234": "http://[::1]:1234",
    "fe80::7": "http://[fe80::7]:11434",
    "[fe80::7]:1234": "http://[fe80::7]:1234",
}


def test_the_address_is_read_as_litellm_and_ollama_read_it() -> None:
    for host, address in HOSTS.items():
        assert (host, ollama_address({"OLLAMA_HOST": host, "OLLAMA_API_BASE": " "})) == (host, address)
    assert ollama_address({}) == "http://localhost:11434"
    assert ollama_address({"OLLAMA_API_BASE": "http://gpu:1234/", "OLLAMA_HOST": "other"}) == "http://gpu:1234"


HERE = {"OPENAI_BASE_URL": "http://here/v1"}
SECOND = {"OPENAI_BASE_URL": " ", "OPENAI_API_BASE": "http://second/v1"}


@pytest.mark.parametrize(
    ("model", "environment", "asked", "of_any_make"),
    [
        ("openai/x", SECOND, "http://second/v1", "http://second/v1"),
        ("ollama/x", SECOND, "http://localhost:11434", "http://localhost:11434"),
        ("ollama_chat/x", {"OLLAMA_HOST": "gpu:1"}, "http://gpu:1", "http://gpu:1"),
        ("anthropic/x", SECOND, "", ""),
        ("openai", SECOND, "", ""),
        ("mistral/x", {}, "", ""),
        ("mistral/x", {"MISTRAL_API_BASE": "http://here"}, "http://here/v1", ""),
        ("anthropic/x", {"ANTHROPIC_BASE_URL": "http://here/"}, "http://here", ""),
        ("gpt-4o", HERE, "http://here/v1", "http://here/v1"),
        ("hosted_vllm/x", {}, "http://localhost:8000/v1", "http://localhost:8000/v1"),
        ("bedrock/x", HERE, "", ""),
    ],
)
def test_only_some_servers_are_asked(model: str, environment: dict[str, str], asked: str, of_any_make: str) -> None:
    assert (request_address(model, environment), server_address(model, environment)) == (asked, of_any_make)


OF_MISTRAL = "The address of mistral/x, nonsense, is not an http:// or https:// URL. Correct MISTRAL_API_BASE."
OF_OPENAI = "Correct OPENAI_BASE_URL."
ADDRESSES = ("https://example.org/v1", "http://[::1]:8000/v1", "HTTPS://example.org/v1")
NO_ADDRESSES = ("nonsense", "http://[::1/v1", "http://localhost:99999/v1", "http://exam ple/v1", "https:///v1")


@pytest.mark.parametrize(
    ("model", "environment", "told"),
    [
        ("openai/x", {}, ""),
        ("openai/x", {"OPENAI_BASE_URL": " ", "OPENAI_API_BASE": "localhost:8000/v1"}, "Correct OPENAI_API_BASE."),
        ("lm_studio/x", {}, ""),
        ("ollama_chat/x", {"OLLAMA_API_BASE": "localhost:11434"}, "Correct OLLAMA_API_BASE."),
        ("ollama_chat/x", {"OLLAMA_HOST": "gpu:1"}, ""),
        ("ollama_chat/x", {"OLLAMA_HOST": "ftp://gpu"}, "Correct OLLAMA_HOST."),
        ("anthropic/x", {"OPENAI_BASE_URL": "nonsense"}, ""),
        ("anthropic/x", {"ANTHROPIC_BASE_URL": "nonsense"}, "Correct ANTHROPIC_BASE_URL."),
        ("claude-x", {"ANTHROPIC_API_BASE": "nonsense"}, "Correct ANTHROPIC_API_BASE."),
        ("gemini/x", {"GEMINI_API_BASE": "localhost:1"}, "Correct GEMINI_API_BASE."),
        ("groq/x", {"GROQ_API_BASE": "localhost:1/v1"}, "Correct GROQ_API_BASE."),
        ("mistral/x", {"MISTRAL_API_BASE": "nonsense"}, OF_MISTRAL),
        ("bedrock/x", {"OPENAI_BASE_URL": "nonsense"}, ""),
        *(("openai/x", {"OPENAI_BASE_URL": address}, "") for address in ADDRESSES),
        *(("openai/x", {"OPENAI_BASE_URL": address}, OF_OPENAI) for address in NO_ADDRESSES),
        ("openai/x", {"OPENAI_API_KEY": " sk-1_2~\n"}, ""),
        ("openai/x", {"OPENAI_API_KEY": "schlüssel"}, "Set OPENAI_API_KEY again."),
        ("claude-x", {"ANTHROPIC_AUTH_TOKEN": "a\nb"}, "Set ANTHROPIC_AUTH_TOKEN again."),
        ("gemini/x", {"GEMINI_API_KEY": "a\u2026"}, "Set GEMINI_API_KEY again."),
        ("bedrock/x", {"OPENAI_API_KEY": "schlüssel"}, ""),
    ],
)
def test_an_impossible_address_or_key_is_told_by_variable(model: str, environment: dict[str, str], told: str) -> None:
    problem = request_problem(model, environment)
    assert problem.endswith(told)
    assert bool(problem) is bool(told)
    assert not any(value in problem for name, value in environment.items() if "API_KEY" in name)


# The limit of a model.

CHATS = {"mode": "chat", "supports_function_calling": True}
MAP = {
    "gpt-x": {"litellm_provider": "openai", "max_input_tokens": 100_000, "max_tokens": 4000},
    "claude-haiku-5": {"litellm_provider": "anthropic", "max_input_tokens": 300_000, **CHATS},
    "gpt-6-mini": {"litellm_provider": "openai", "max_input_tokens": 400_000, **CHATS},
    "ollama/listed": {"litellm_provider": "ollama", "max_input_tokens": 65_536, **CHATS},
}
LOCAL = {"OPENAI_BASE_URL": "http://localhost:8080/v1"}
TOLD = Limit(32_768, "the server's max_model_len")
LIKELY = Limit(8192, "a server on this machine")
DEFAULT = Limit(128_000, "the default")
LISTED = Limit(100_000, "litellm's model map")
OF_HAIKU, OF_MINI = Limit(300_000, "the limit of claude-haiku-5"), Limit(400_000, "the limit of gpt-6-mini")


@dataclass
class Servers:
    """Every server there is: what they say of models, how long that takes, and which models they were asked for."""

    says: dict[str, Limit] = field(default_factory=dict)
    seconds: float = 0.0
    asked: list[str] = field(default_factory=list)

    def ask(self, model: str, _environment: Mapping[str, str]) -> Limit | None:
        self.asked.append(model)
        time.sleep(self.seconds)
        return self.says.get(model)


@pytest.fixture
def model_map(tmp_path: Path) -> ModelMap:
    (tmp_path / "model_prices_and_context_window_backup.json").write_text(json.dumps(MAP))
    return ModelMap(tmp_path)


LIMITS: tuple[tuple[Limit, tuple[tuple[str, dict[str, str]], ...]], ...] = (
    (Limit(128_000, "the embedded ELIZA"), (("chorus/eliza", {}),)),
    (LISTED, (("openai/gpt-x", {}), ("openai/gpt-x", LOCAL))),
    (Limit(300_000, "litellm's model map"), (("anthropic/claude-haiku-5", {}),)),
    (OF_HAIKU, (("anthropic/claude-haiku-6", {}), ("bedrock/anthropic.claude-haiku-6", {}))),
    (OF_HAIKU, (("openrouter/anthropic/claude-haiku-6.5", {}),)),
    (OF_MINI, (("openai/gpt-6.9-mini", {}),)),
    (LIKELY, (("openai/mine", LOCAL), ("openai/gpt-6.9-mini", LOCAL), ("openai/claude-haiku-6", LOCAL))),
    (LIKELY, (("openai/mine", {"OPENAI_API_BASE": "http://127.0.0.1:1"}), ("ollama/llama3.2", {}))),
    (
        LIKELY,
        (("ollama_chat/x", {"OLLAMA_API_BASE": "http://[::1]:11434"}), ("ollama_chat/x", {"OLLAMA_HOST": ":1234"})),
    ),
    (LIKELY, (("lm_studio/qwen", {}), ("ollama/listed", {}))),
    (Limit(65_536, "the limit of ollama/listed"), (("ollama/listed", {"OLLAMA_HOST": "10.0.0.7"}),)),
    (DEFAULT, (("openai/mine", {"OPENAI_API_BASE": "https://llm.example/v1"}), ("openai/mine", {}), ("nosuch", LOCAL))),
    (DEFAULT, (("ollama/x", {"OLLAMA_API_BASE": "http://10.0.0.7:11434"}), ("ollama/x", {"OLLAMA_HOST": "10.0.0.7"}))),
    (DEFAULT, (("hosted_vllm/qwen", {"HOSTED_VLLM_API_BASE": "http://gpu.example/v1"}), ("anthropic/claude-2.1", {}))),
    (DEFAULT, (("huggingface/my/noclaude-3", {}),)),
)


def test_the_limit_says_where_it_comes_from_when_no_server_tells(model_map: ModelMap) -> None:
    for limit, asked in LIMITS:
        for model, environment in asked:
            found = ModelLimits(environment, model_map, Servers().ask, has_litellm=lambda: True).of_model(model)
            assert (model, environment, found) == (model, environment, limit)
            assert found.is_assumed is (limit.source not in {"the embedded ELIZA", "litellm's model map"})


def test_without_litellm_a_silent_ollama_is_trusted_with_its_own_default(model_map: ModelMap) -> None:
    found = ModelLimits({}, model_map, Servers().ask, has_litellm=lambda: False).of_model("ollama_chat/x")
    assert found == Limit(4096, "a server on this machine")


def test_without_a_map_every_limit_is_a_default(tmp_path: Path) -> None:
    assert ModelLimits({}, ModelMap(tmp_path), Servers().ask).of_model("gpt-x") == DEFAULT


def test_a_server_stands_over_what_is_likely_and_below_the_map(model_map: ModelMap) -> None:
    told = ("openai/mine", "openai/gpt-x", "openai/gpt-6.9-mini", "chorus/eliza", "ollama/listed")
    servers = Servers(dict.fromkeys(told, TOLD))
    limits = ModelLimits(LOCAL, model_map, servers.ask)
    assert limits.of_model("openai/mine") == limits.of_model("openai/gpt-6.9-mini") == TOLD
    assert not limits.of_model("openai/mine").is_assumed
    assert limits.of_model("openai/gpt-x") == LISTED
    assert limits.of_model("chorus/eliza") == Limit(128_000, "the embedded ELIZA")
    # The map knows what the model could hold, but not what Ollama gives it.
    assert limits.of_model("ollama/listed") == TOLD
    assert servers.asked == ["openai/mine", "openai/gpt-6.9-mini", "ollama/listed"]


def test_what_a_server_said_holds_and_a_silent_one_is_asked_again(model_map: ModelMap, clock: FakeClock) -> None:
    servers = Servers({"openai/mine": TOLD})
    limits = ModelLimits(LOCAL, model_map, servers.ask, clock.monotonic)
    for seconds, times_asked in [(0, 1), (0, 1), (59, 1), (2, 2), (59, 2), (2, 3)]:
        clock.advance(timedelta(seconds=seconds))
        assert (limits.of_model("openai/mine"), limits.of_model("openai/slow")) == (TOLD, LIKELY)
        assert servers.asked.count("openai/slow") == times_asked
    servers.says["openai/slow"] = TOLD
    clock.advance(timedelta(seconds=60))
    assert limits.of_model("openai/slow") == TOLD
    clock.advance(timedelta(days=1))
    assert limits.of_model("openai/slow") == TOLD
    assert (servers.asked.count("openai/mine"), servers.asked.count("openai/slow")) == (1, 4)


@pytest.mark.parametrize("said", [TOLD, None])
def test_whoever_comes_while_a_server_is_asked_waits_for_its_answer(model_map: ModelMap, said: Limit | None) -> None:
    servers = Servers({"openai/mine": said} if said else {}, seconds=0.05)
    limits = ModelLimits(LOCAL, model_map, servers.ask)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(limits.of_model, ["openai/mine"] * 8))
    assert found == [said or LIKELY] * 8
    assert servers.asked == ["openai/mine"]


# Long enough for a busy machine; tests of the timeout use less.
PATIENCE_SECONDS = 5.0
IMPATIENCE_SECONDS = 0.2


def newest(answer: Answer, patience: float = PATIENCE_SECONDS) -> str | None:
    with listening(answer) as address:
        return most_recent_model({"OLLAMA_API_BASE": address}, patience)


def all_of(answer: Answer, patience: float = PATIENCE_SECONDS) -> tuple[str, ...]:
    with listening(answer) as address:
        return models({"OLLAMA_API_BASE": address}, patience)


def ollama_limit(answer: Answer, patience: float = PATIENCE_SECONDS) -> Limit | None:
    with listening(answer) as address:
        return server_limit("ollama_chat/llama3.2", {"OLLAMA_API_BASE": address}, patience)


def openai_limit(answer: Answer, patience: float = PATIENCE_SECONDS) -> Limit | None:
    with listening(answer) as address:
        return server_limit("openai/mine", {"OPENAI_BASE_URL": f"{address}/v1"}, patience)


# Which model was used last.


def test_the_model_in_memory_that_expires_last_was_used_last() -> None:
    in_memory = [
        entry("early", "2026-02-12T10:00:00.123456789Z"),
        entry("late", "2026-02-12T13:30:00.5+01:00"),
        entry("middle", "2026-02-12T12:00:00Z"),
    ]
    stored = [entry("newest", "2026-03-01T00:00:00Z")]
    assert newest(ollama(in_memory=in_memory, stored=stored)) == "ollama_chat/late"


@pytest.mark.parametrize("in_memory", [[], None, [entry("nomic-embed-text:latest", "2026-02-12T10:00:00Z")]])
def test_with_no_model_for_chat_in_memory_the_newest_one_counts(in_memory: object) -> None:
    stored = [entry("old", "2025-01-01T00:00:00Z"), entry("new:7b", "2026-01-01T00:00:00Z"), entry("undated", "soon")]
    answer = ollama(in_memory=in_memory, stored=stored)
    assert newest(answer) == "ollama_chat/new:7b"
    assert all_of(answer) == ("ollama_chat/new:7b", "ollama_chat/old", "ollama_chat/undated")


@pytest.mark.parametrize(
    "unfit",
    [
        entry("my-vectors", details={"family": "bert"}),
        entry("my-vectors", details={"family": "nomic-bert-moe", "families": ["nomic-bert-moe"]}),
        entry("qwen3-embedding:8b", details={"family": "qwen3"}),
        entry("some-Reranker"),
        entry("vectors", capabilities=["embedding"]),
        entry("painter", capabilities=["image"], details={"family": "flux"}),
        *(entry("with blank"), entry("with\x1b[31mcolour"), entry(""), {"name": 7}, {}, "no object"),
    ],
)
def test_what_cannot_chat_or_is_no_model_is_passed_over(unfit: object) -> None:
    answer = ollama(in_memory=[unfit], stored=[unfit, entry("llama3.2", details=None)])
    assert (newest(answer), all_of(answer)) == ("ollama_chat/llama3.2", ("ollama_chat/llama3.2",))
    for nothing in (ollama(), ollama(in_memory=[unfit], stored=[unfit])):
        assert (newest(nothing), all_of(nothing)) == (None, ())


def test_what_the_server_says_of_a_model_stands_over_its_name() -> None:
    stored = [entry("embedded-systems-tutor", capabilities=["completion", "tools"])]
    assert all_of(ollama(stored=stored)) == ("ollama_chat/embedded-systems-tutor",)


def test_an_ollama_may_live_below_a_path_and_a_proxy_is_never_asked() -> None:
    proxies = dict.fromkeys(("http_proxy", "HTTP_PROXY", "ALL_PROXY"), "http://127.0.0.1:9")
    with listening(ollama(stored=[entry("llama3.2")], root="/ollama")) as address:
        for environment in ({"OLLAMA_API_BASE": f"{address}/ollama/"}, {"OLLAMA_HOST": f"{address}/ollama"}):
            assert most_recent_model(environment | proxies, PATIENCE_SECONDS) == "ollama_chat/llama3.2"


# How much a model holds.

NO_FIGURES: tuple[object, ...] = (0, -1, 255, 10**9, 1.5e5, True, "8192", [8192], {}, None)
NO_DOCUMENTS: tuple[object, ...] = (None, {}, [], "131072", {"error": "model 'llama3.2' not found"})
NOT_CHOSEN: tuple[object, ...] = (
    *('stop "num_ctx 512"', "num_ctx", "num_ctx 0", "num_ctx -4096", "num_ctx many", "num_ctx 4e3"),
    *(f"num_ctx {'9' * 5000}", "", None, 7, ["num_ctx 4096"]),
)
MODELFILE = 'num_ctx                        8192\nstop                           "<|eot_id|>"'
CAPPED = Limit(16_384, "Ollama's /api/show, 16,384 of 131,072")


def shown(context_length: object, parameters: object = "") -> dict[str, object]:
    """Return what Ollama shows of a model, as far as it matters here."""
    known = {"general.architecture": "llama", "llama.context_length": context_length}
    return {"parameters": parameters, "model_info": known}


@pytest.mark.parametrize(
    ("document", "limit"),
    [
        (shown(2048), Limit(2048, "Ollama's /api/show")),
        (shown(16_384), Limit(16_384, "Ollama's /api/show")),
        (shown(131_072), CAPPED),
        (shown(131_072, MODELFILE), Limit(8192, "num_ctx in Ollama's Modelfile")),
        (shown(131_072, "stop x\nnum_ctx 65536"), Limit(65_536, "num_ctx in Ollama's Modelfile")),
        (shown(131_072, "num_ctx 400000"), Limit(131_072, "num_ctx in Ollama's Modelfile")),
        ({"parameters": "num_ctx 65536"}, Limit(65_536, "num_ctx in Ollama's Modelfile")),
        *((shown(131_072, text), CAPPED) for text in NOT_CHOSEN),
        *((document, None) for document in NO_DOCUMENTS),
        ({"model_info": [131_072]}, None),
        ({"model_info": {"llama.context_length": 131_072}}, None),
        ({"model_info": {"general.architecture": "qwen", "llama.context_length": 131_072}}, None),
        ({"model_info": {"general.architecture": None, "None.context_length": "131072"}}, None),
        *((shown(figure), None) for figure in NO_FIGURES),
    ],
)
def test_ollama_tells_what_its_user_set_or_what_the_model_could_hold(document: object, limit: Limit | None) -> None:
    assert ollama_limit(ollama(shown=document)) == limit


@pytest.mark.parametrize("prefix", ["ollama", "ollama_chat"])
def test_ollama_is_asked_for_the_model_by_its_own_name(prefix: str) -> None:
    received: list[Received] = []
    with listening(ollama(root="/llm", shown=shown(131_072)), received) as address:
        environment = {"OLLAMA_API_BASE": f"{address}/llm/", "OLLAMA_API_KEY": " sk-ollama\n"}
        assert server_limit(f"{prefix}/hf.co/bartowski/Llama-3.2:Q4", environment, PATIENCE_SECONDS) is not None
    (asked,) = received
    assert (asked.method, asked.path) == ("POST", "/llm/api/show")
    assert json.loads(asked.body) == {"model": "hf.co/bartowski/Llama-3.2:Q4"}
    assert asked.headers["authorization"] == "Bearer sk-ollama"


VLLM = {"id": "mine", "object": "model", "max_model_len": 32_768}
OF_VLLM = Limit(32_768, "the server's max_model_len")
LLAMA_CPP = {"id": "mine", "object": "model", "meta": {"n_ctx": 2048, "n_ctx_train": 4096}}
NO_LISTS: tuple[object, ...] = ([], "mine", {"mine": VLLM}, None)
ONLY = json.dumps({"data": [VLLM]}).encode()


@pytest.mark.parametrize(
    ("listed", "limit"),
    [
        ([VLLM], OF_VLLM),
        ([{"id": "other", "max_model_len": 999}, 7, VLLM], OF_VLLM),
        ([LLAMA_CPP], Limit(2048, "the server's n_ctx")),
        ([{"id": "mine", "meta": {"n_ctx_train": 4096}}], Limit(4096, "the server's n_ctx_train")),
        ([{"id": "mine", "meta": {"n_ctx": 0, "n_ctx_train": 4096}}], Limit(4096, "the server's n_ctx_train")),
        ([{"id": "mine", "max_model_len": None, "meta": {"n_ctx": 512}}], Limit(512, "the server's n_ctx")),
        ([{**LLAMA_CPP, "id": "tiny.gguf"}], Limit(2048, "the server's n_ctx")),
        ([{**VLLM, "id": "one"}, {**VLLM, "id": "two"}], None),
        ([{"id": "mine"}], None),
        ([{"id": "mine", "meta": [2048]}], None),
        *(([{"id": "mine", "max_model_len": figure}], None) for figure in NO_FIGURES),
        *((nothing, None) for nothing in NO_LISTS),
    ],
)
def test_a_server_with_the_openai_api_may_tell_in_its_list(listed: object, limit: Limit | None) -> None:
    assert openai_limit(sending(OK, json.dumps({"object": "list", "data": listed}).encode())) == limit


@pytest.mark.parametrize("key", ["sk-mine", ""])
@pytest.mark.parametrize("prefix", ["openai", "hosted_vllm", "lm_studio", "llamafile"])
def test_the_list_is_asked_for_with_the_key_if_there_is_one(prefix: str, key: str) -> None:
    received: list[Received] = []
    with listening(sending(OK, ONLY), received) as place:
        environment = {f"{prefix.upper()}_API_BASE": f"{place}/v1/", f"{prefix.upper()}_API_KEY": key}
        assert server_limit(f"{prefix}/mine", environment, PATIENCE_SECONDS) == OF_VLLM
    (asked,) = received
    assert (asked.method, asked.path) == ("GET", "/v1/models")
    assert asked.headers.get("authorization") == (f"Bearer {key}" if key else None)


OPEN = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: keep-alive\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        sending(OPEN + b"Content-Length: %d\r\n\r\n" % len(ONLY), ONLY, hangs=True),
        sending(OPEN + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(ONLY), ONLY), hangs=True),
        sending(b"HTTP/1.1 100 Continue\r\n\r\n" + OK, ONLY),
    ],
    ids=["a length", "chunks", "another answer before"],
)
def test_a_server_that_keeps_the_connection_open_is_not_waited_for(answer: Answer) -> None:
    begun = time.monotonic()
    assert openai_limit(answer) == OF_VLLM
    assert time.monotonic() - begun < PATIENCE_SECONDS / 2


@pytest.mark.parametrize("key", ["sk\r\nHost: elsewhere", "sk-\u00fc", "sk-\ud800"])
def test_a_key_that_is_no_header_is_not_sent(key: str) -> None:
    received: list[Received] = []
    with listening(sending(OK, ONLY), received) as place:
        assert server_limit("openai/mine", {"OPENAI_BASE_URL": place, "OPENAI_API_KEY": key}, PATIENCE_SECONDS) is None
    assert received == []


@pytest.mark.parametrize(
    ("model", "environment"),
    [
        ("openai/gpt-x", {}),
        ("openai/gpt-x", {"OPENAI_BASE_URL": "http://[::1"}),
        ("anthropic/claude-x", {"ANTHROPIC_API_BASE": "http://127.0.0.1:9"}),
        ("gpt-x", {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}),
        ("hosted_vllm/mine", {"HOSTED_VLLM_API_BASE": "http://127.0.0.1:9/v1"}),
        ("ollama/llama3.2", {"OLLAMA_API_BASE": "ftp://127.0.0.1:9"}),
        ("ollama/llama3.2", {"OLLAMA_API_BASE": "http://127.0.0.1:9"}),
    ],
)
def test_who_has_no_server_or_none_that_runs_is_told_nothing(model: str, environment: Mapping[str, str]) -> None:
    assert server_limit(model, environment) is None


def test_openai_is_not_asked() -> None:
    def limit(address: str) -> Limit | None:
        # Nobody can wait less than no time for an answer, so to ask is an error.
        return server_limit("openai/gpt-x", {"OPENAI_BASE_URL": address}, -1)

    for host in "api.openai.com", "eu.api.openai.com", "openai.com":
        assert limit(f"https://{host}/v1") is None
    with pytest.raises(ValueError, match="timeout"):
        limit("http://127.0.0.1:9/api.openai.com")


# Whatever else may listen there.

QUESTIONS: dict[str, Callable[[Answer, float], object]] = {
    "the newest model": newest,
    "all models": all_of,
    "the limit at Ollama": ollama_limit,
    "the limit at a server": openai_limit,
}
BOTH = b'{"models": [{"name": "llama3.2"}], "data": [{"id": "mine", "max_model_len": 8192}]}'


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize(
    "answer",
    [
        sending(hangs=True),
        sending(b"HTTP/1.0 200 OK\r\n", hangs=True),
        sending(OK, b'{"models": [', hangs=True),
        sending(OK, *(b" " for _ in range(100)), pause_seconds=0.02),
        sending(*(b"H" for _ in range(100)), pause_seconds=0.02),
        sending(b"HTTP/1.1 200 OK\r\nX-Slow: ", *(b"x" for _ in range(100)), pause_seconds=0.02),
    ],
    ids=["silence", "half a head", "half an answer", "a dripping answer", "a dripping head", "a dripping header"],
)
def test_who_does_not_answer_in_time_is_not_waited_for(question: str, answer: Answer) -> None:
    begun = time.monotonic()
    assert not QUESTIONS[question](answer, IMPATIENCE_SECONDS)
    assert time.monotonic() - begun < 1


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(sending(), id="nothing"),
        pytest.param(sending(b"\x00\xff" * 50), id="noise"),
        pytest.param(sending(b"SSH-2.0-OpenSSH_9.2\r\n"), id="not HTTP"),
        pytest.param(sending(OK), id="no body"),
        pytest.param(sending(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>Log in</html>"), id="a page"),
        pytest.param(sending(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\n\r\n"), id="a redirect"),
        pytest.param(sending(b"HTTP/1.1 500 No\r\n\r\n", BOTH), id="a failure"),
        pytest.param(sending(b"HTTP/1.1 401 No\r\n\r\n", BOTH), id="a refusal"),
        pytest.param(sending(BOTH), id="no head"),
        pytest.param(sending(OK, BOTH[:-1]), id="half a document"),
        pytest.param(sending(OK, b'{"models": {"name": "llama3.2"}}'), id="an object for a list"),
        pytest.param(sending(OK, b'{"models": "llama3.2"}'), id="a text for a list"),
        pytest.param(sending(OK, b'["llama3.2"]'), id="a list for an object"),
        pytest.param(sending(OK, b'{"models": [{"name": "\xff"}]}'), id="no UTF-8"),
        pytest.param(sending(OK, b"[" * 500_000), id="brackets without end"),
        pytest.param(sending(OK, b"1" * 100_000), id="a number without end"),
        pytest.param(sending(OK, b" " * 10_000_000, BOTH), id="ten megabytes"),
    ],
)
def test_whoever_else_answers_tells_nothing(question: str, answer: Answer) -> None:
    begun = time.monotonic()
    assert not QUESTIONS[question](answer, PATIENCE_SECONDS)
    assert time.monotonic() - begun < 2


@pytest.mark.parametrize(
    "address",
    [
        *("http://127.0.0.1:9", "https://127.0.0.1:9", "ftp://127.0.0.1:9", "127.0.0.1:9", "http://", "http://[::1"),
        *("http://127.0.0.1:99999999", "http://127.0.0.1:port", f"http://{'a' * 64}.localhost"),
        *("http://127.0.0.1:9/\u00fc", "\ud800"),
    ],
)
def test_an_address_where_nobody_can_be_is_no_ollama(address: str) -> None:
    environment = {"OLLAMA_API_BASE": address}
    assert (most_recent_model(environment), models(environment)) == (None, ())
