"""The context limit of a model: by litellm's map, else by its server, else by where that server is."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from chorus_cli.models.providers.model_map import ModelMap
from chorus_cli.models.providers.servers import ModelLimits
from chorus_cli.models.rules.budget import Limit

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.fakes import FakeClock

CHATS = {"mode": "chat", "supports_function_calling": True}
MAP = {
    "gpt-x": {"litellm_provider": "openai", "max_input_tokens": 100_000, "max_tokens": 4000},
    "claude-haiku-5": {"litellm_provider": "anthropic", "max_input_tokens": 300_000, **CHATS},
    "gpt-6-mini": {"litellm_provider": "openai", "max_input_tokens": 400_000, **CHATS},
}
HERE = {"OPENAI_BASE_URL": "http://localhost:8080/v1"}
TOLD = Limit(32_768, "the server's max_model_len")
LIKELY = Limit(8192, "a server on this machine")


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
        ("openai/gpt-x", {}, Limit(100_000, "litellm's model map")),
        ("openai/gpt-x", HERE, Limit(100_000, "litellm's model map")),
        ("openai/mine", HERE, LIKELY),
        ("openai/mine", {"OPENAI_API_BASE": "http://127.0.0.1:1"}, LIKELY),
        ("openai/mine", {"OPENAI_API_BASE": "https://llm.example/v1"}, Limit(128_000, "the default")),
        ("openai/mine", {}, Limit(128_000, "the default")),
        ("ollama/llama3.2", {}, LIKELY),
        ("ollama_chat/llama3.2", {"OLLAMA_API_BASE": "http://[::1]:11434"}, LIKELY),
        ("ollama/llama3.2", {"OLLAMA_API_BASE": "http://10.0.0.7:11434"}, Limit(128_000, "the default")),
        ("ollama_chat/llama3.2", {"OLLAMA_HOST": ":1234"}, LIKELY),
        ("ollama_chat/llama3.2", {"OLLAMA_HOST": "10.0.0.7:1234"}, Limit(128_000, "the default")),
        ("lm_studio/qwen", {}, LIKELY),
        ("hosted_vllm/qwen", {"HOSTED_VLLM_API_BASE": "http://gpu.example/v1"}, Limit(128_000, "the default")),
        ("nosuch", HERE, Limit(128_000, "the default")),
        ("anthropic/claude-haiku-5", {}, Limit(300_000, "litellm's model map")),
        ("anthropic/claude-haiku-6", {}, Limit(300_000, "the limit of claude-haiku-5")),
        ("bedrock/anthropic.claude-haiku-6", {}, Limit(300_000, "the limit of claude-haiku-5")),
        ("openrouter/anthropic/claude-haiku-6.5", {}, Limit(300_000, "the limit of claude-haiku-5")),
        ("openai/gpt-6.9-mini", {}, Limit(400_000, "the limit of gpt-6-mini")),
        ("openai/gpt-6.9-mini", HERE, LIKELY),
        ("anthropic/claude-2.1", {}, Limit(128_000, "the default")),
        ("openai/claude-haiku-6", HERE, LIKELY),
        ("huggingface/my/noclaude-3", {}, Limit(128_000, "the default")),
    ],
)
def test_the_limit_says_where_it_comes_from_when_no_server_tells(
    model_map: ModelMap, model: str, environment: Mapping[str, str], limit: Limit
) -> None:
    assert ModelLimits(environment, model_map, Servers().ask).of_model(model) == limit


@pytest.mark.parametrize(
    ("model", "is_assumed"),
    [
        ("chorus/eliza", False),
        ("openai/gpt-x", False),
        ("openai/told", False),
        ("openai/mine", True),
        ("a/gpt-6.9-mini", True),
    ],
)
def test_a_limit_that_neither_map_nor_server_tells_is_assumed(
    model_map: ModelMap, model: str, *, is_assumed: bool
) -> None:
    servers = Servers({"openai/told": TOLD})
    assert ModelLimits(HERE, model_map, servers.ask).of_model(model).is_assumed is is_assumed


def test_without_a_map_every_limit_is_a_default(tmp_path: Path) -> None:
    limits = ModelLimits({}, ModelMap(tmp_path), Servers().ask)
    assert limits.of_model("gpt-x") == Limit(128_000, "the default")


def test_a_server_stands_over_what_is_likely_and_below_the_map(model_map: ModelMap) -> None:
    servers = Servers({"openai/mine": TOLD, "openai/gpt-x": TOLD, "openai/gpt-6.9-mini": TOLD, "chorus/eliza": TOLD})
    limits = ModelLimits(HERE, model_map, servers.ask)
    assert limits.of_model("openai/mine") == limits.of_model("openai/gpt-6.9-mini") == TOLD
    assert limits.of_model("openai/gpt-x") == Limit(100_000, "litellm's model map")
    assert limits.of_model("chorus/eliza") == Limit(128_000, "the embedded ELIZA")
    assert servers.asked == ["openai/mine", "openai/gpt-6.9-mini"]


def test_what_a_server_said_holds_and_who_did_not_say_is_asked_again_after_a_minute(
    model_map: ModelMap, clock: FakeClock
) -> None:
    servers = Servers({"openai/mine": TOLD})
    limits = ModelLimits(HERE, model_map, servers.ask, clock.monotonic)
    for seconds, times_asked in [(0, 1), (0, 1), (59, 1), (2, 2), (59, 2), (2, 3)]:
        clock.advance(timedelta(seconds=seconds))
        assert (limits.of_model("openai/mine"), limits.of_model("openai/slow")) == (TOLD, LIKELY)
        assert servers.asked.count("openai/slow") == times_asked
    servers.says["openai/slow"] = TOLD
    clock.advance(timedelta(seconds=60))
    assert limits.of_model("openai/slow") == TOLD
    clock.advance(timedelta(days=1))
    assert limits.of_model("openai/slow") == TOLD
    assert servers.asked.count("openai/mine") == 1
    assert servers.asked.count("openai/slow") == 4


@pytest.mark.parametrize("said", [TOLD, None])
def test_whoever_comes_while_a_server_is_asked_waits_for_its_answer(model_map: ModelMap, said: Limit | None) -> None:
    servers = Servers({"openai/mine": said} if said else {}, seconds=0.05)
    limits = ModelLimits(HERE, model_map, servers.ask)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(limits.of_model, ["openai/mine"] * 8))
    assert found == [said or LIKELY] * 8
    assert servers.asked == ["openai/mine"]
