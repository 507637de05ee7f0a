"""Where the servers are that answer for models, and the limit of a model: by the map, its server, or where that is."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from chorus_cli.models.providers.model_map import ModelMap
from chorus_cli.models.providers.servers import (
    ModelLimits,
    is_ollama,
    is_on_this_machine,
    ollama_address,
    request_address,
    request_problem,
    server_address,
)
from chorus_cli.models.rules.budget import Limit

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.fakes import FakeClock


@pytest.mark.parametrize(
    ("addresses", "is_here"),
    [
        (("http://localhost:11434", "http://LocalHost/v1", "localhost:11434", "http://api.localhost"), True),
        (("http://127.8.9.10:80/v1", "http://[::1]:80", "http://0.0.0.0:11434", "http://user:word@127.0.0.1/v1"), True),
        (("http://localhost.example", "http://127.0.0.1.example", "http://192.168.1.2:11434"), False),
        (("https://api.openai.com/v1", "http://[::1", ""), False),
    ],
)
def test_this_machine_is_known_by_its_loopback_addresses(addresses: tuple[str, ...], *, is_here: bool) -> None:
    assert {is_on_this_machine(address) for address in addresses} == {is_here}


def test_ollama_is_known_by_the_models_prefix() -> None:
    names = ("ollama/x", "ollama_chat/x", "ollama", "ollama_cloud/x", "openai/ollama/x")
    assert [is_ollama(name) for name in names] == [True, True, False, False, False]


@pytest.mark.parametrize(
    ("environment", "address"),
    [
        ({}, "http://localhost:11434"),
        ({"OLLAMA_API_BASE": " ", "OLLAMA_HOST": ""}, "http://localhost:11434"),
        ({"OLLAMA_API_BASE": "http://gpu:1234/", "OLLAMA_HOST": "other"}, "http://gpu:1234"),
        *(({"OLLAMA_HOST": host}, "http://gpu:11434") for host in ("gpu", "gpu:", "gpu:x", "gpu:65536")),
        ({"OLLAMA_HOST": f"gpu:{'9' * 5000}"}, "http://gpu:11434"),
        ({"OLLAMA_HOST": "gpu:1234"}, "http://gpu:1234"),
        ({"OLLAMA_HOST": ":1234"}, "http://127.0.0.1:1234"),
        ({"OLLAMA_HOST": "http://gpu"}, "http://gpu:80"),
        ({"OLLAMA_HOST": "https://gpu"}, "https://gpu:443"),
        ({"OLLAMA_HOST": "https://gpu:1234/ollama/"}, "https://gpu:1234/ollama"),
        ({"OLLAMA_HOST": " '10.0.0.7:1234' "}, "http://10.0.0.7:1234"),
        ({"OLLAMA_HOST": "0.0.0.0"}, "http://127.0.0.1:11434"),  # noqa: S104 - an address, nothing is bound
        ({"OLLAMA_HOST": "0.0.0.0:1234"}, "http://127.0.0.1:1234"),
        ({"OLLAMA_HOST": "http://0.0.0.0:1234"}, "http://127.0.0.1:1234"),
        ({"OLLAMA_HOST": "::"}, "http://[::1]:11434"),
        ({"OLLAMA_HOST": "[::]:1234"}, "http://[::1]:1234"),
        ({"OLLAMA_HOST": "fe80::7"}, "http://[fe80::7]:11434"),
        ({"OLLAMA_HOST": "[fe80::7]:1234"}, "http://[fe80::7]:1234"),
    ],
)
def test_the_address_is_read_as_litellm_and_ollama_read_it(environment: Mapping[str, str], address: str) -> None:
    assert ollama_address(environment) == address


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
def test_only_a_server_of_any_make_is_asked_how_much_it_holds(
    model: str, environment: dict[str, str], asked: str, of_any_make: str
) -> None:
    assert (request_address(model, environment), server_address(model, environment)) == (asked, of_any_make)


OF_MISTRAL = "The address of mistral/x, nonsense, is not an http:// or https:// URL. Correct MISTRAL_API_BASE."
OF_OPENAI = "Correct OPENAI_BASE_URL."


@pytest.mark.parametrize(
    ("model", "environment", "told"),
    [
        ("openai/x", {}, ""),
        ("openai/x", {"OPENAI_BASE_URL": "https://example.org/v1"}, ""),
        ("openai/x", {"OPENAI_BASE_URL": "nonsense"}, OF_OPENAI),
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
        ("openai/x", {"OPENAI_BASE_URL": "http://[::1]:8000/v1"}, ""),
        ("openai/x", {"OPENAI_BASE_URL": "HTTPS://example.org/v1"}, ""),
        ("openai/x", {"OPENAI_BASE_URL": "http://[::1/v1"}, OF_OPENAI),
        ("openai/x", {"OPENAI_BASE_URL": "http://localhost:99999/v1"}, OF_OPENAI),
        ("openai/x", {"OPENAI_BASE_URL": "http://exam ple/v1"}, OF_OPENAI),
        ("openai/x", {"OPENAI_BASE_URL": "https:///v1"}, OF_OPENAI),
        ("openai/x", {"OPENAI_API_KEY": " sk-1_2~\n"}, ""),
        ("openai/x", {"OPENAI_API_KEY": "schlüssel"}, "Set OPENAI_API_KEY again."),
        ("claude-x", {"ANTHROPIC_AUTH_TOKEN": "a\nb"}, "Set ANTHROPIC_AUTH_TOKEN again."),
        ("gemini/x", {"GEMINI_API_KEY": "a\u2026"}, "Set GEMINI_API_KEY again."),
        ("bedrock/x", {"OPENAI_API_KEY": "schlüssel"}, ""),
    ],
)
def test_an_address_or_a_key_that_is_none_is_told_with_its_variable(
    model: str, environment: dict[str, str], told: str
) -> None:
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


@pytest.mark.parametrize(
    ("model", "environment", "limit"),
    [
        ("chorus/eliza", {}, Limit(128_000, "the embedded ELIZA")),
        ("openai/gpt-x", {}, LISTED),
        ("openai/gpt-x", LOCAL, LISTED),
        ("openai/mine", LOCAL, LIKELY),
        ("openai/mine", {"OPENAI_API_BASE": "http://127.0.0.1:1"}, LIKELY),
        ("openai/mine", {"OPENAI_API_BASE": "https://llm.example/v1"}, DEFAULT),
        ("openai/mine", {}, DEFAULT),
        ("ollama/llama3.2", {}, LIKELY),
        ("ollama_chat/llama3.2", {"OLLAMA_API_BASE": "http://[::1]:11434"}, LIKELY),
        ("ollama/llama3.2", {"OLLAMA_API_BASE": "http://10.0.0.7:11434"}, DEFAULT),
        ("ollama_chat/llama3.2", {"OLLAMA_HOST": ":1234"}, LIKELY),
        ("ollama_chat/llama3.2", {"OLLAMA_HOST": "10.0.0.7:1234"}, DEFAULT),
        ("lm_studio/qwen", {}, LIKELY),
        ("hosted_vllm/qwen", {"HOSTED_VLLM_API_BASE": "http://gpu.example/v1"}, DEFAULT),
        ("nosuch", LOCAL, DEFAULT),
        ("anthropic/claude-haiku-5", {}, Limit(300_000, "litellm's model map")),
        ("anthropic/claude-haiku-6", {}, OF_HAIKU),
        ("bedrock/anthropic.claude-haiku-6", {}, OF_HAIKU),
        ("openrouter/anthropic/claude-haiku-6.5", {}, OF_HAIKU),
        ("openai/gpt-6.9-mini", {}, OF_MINI),
        ("openai/gpt-6.9-mini", LOCAL, LIKELY),
        ("anthropic/claude-2.1", {}, DEFAULT),
        ("openai/claude-haiku-6", LOCAL, LIKELY),
        ("huggingface/my/noclaude-3", {}, DEFAULT),
    ],
)
def test_the_limit_says_where_it_comes_from_when_no_server_tells(
    model_map: ModelMap, model: str, environment: Mapping[str, str], limit: Limit
) -> None:
    found = ModelLimits(environment, model_map, Servers().ask).of_model(model)
    assert found == limit
    assert found.is_assumed is (limit.source not in {"the embedded ELIZA", "litellm's model map"})


def test_without_a_map_every_limit_is_a_default(tmp_path: Path) -> None:
    assert ModelLimits({}, ModelMap(tmp_path), Servers().ask).of_model("gpt-x") == DEFAULT


def test_a_server_stands_over_what_is_likely_and_below_the_map(model_map: ModelMap) -> None:
    servers = Servers(dict.fromkeys(("openai/mine", "openai/gpt-x", "openai/gpt-6.9-mini", "chorus/eliza"), TOLD))
    limits = ModelLimits(LOCAL, model_map, servers.ask)
    assert limits.of_model("openai/mine") == limits.of_model("openai/gpt-6.9-mini") == TOLD
    assert not limits.of_model("openai/mine").is_assumed
    assert limits.of_model("openai/gpt-x") == LISTED
    assert limits.of_model("chorus/eliza") == Limit(128_000, "the embedded ELIZA")
    assert servers.asked == ["openai/mine", "openai/gpt-6.9-mini"]


def test_what_a_server_said_holds_and_who_did_not_say_is_asked_again_after_a_minute(
    model_map: ModelMap, clock: FakeClock
) -> None:
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
