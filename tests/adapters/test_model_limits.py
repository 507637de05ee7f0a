"""What a model's context holds, by litellm's map or by where its server is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from chorus_cli.adapters.model_limits import context_limit
from chorus_cli.adapters.model_map import ModelMap
from chorus_cli.core.budget import Limit

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MAP = {"gpt-x": {"litellm_provider": "openai", "max_input_tokens": 100_000, "max_tokens": 4000}}


@pytest.fixture
def model_map(tmp_path: Path) -> ModelMap:
    (tmp_path / "model_prices_and_context_window_backup.json").write_text(json.dumps(MAP))
    return ModelMap(tmp_path)


@pytest.mark.parametrize(
    ("model", "environment", "limit"),
    [
        ("chorus/eliza", {}, Limit(128_000, "the embedded ELIZA")),
        ("openai/gpt-x", {}, Limit(100_000, "litellm's model map")),
        ("openai/gpt-x", {"OPENAI_BASE_URL": "http://localhost/v1"}, Limit(100_000, "litellm's model map")),
        ("openai/mine", {"OPENAI_BASE_URL": "http://localhost:8080/v1"}, Limit(8192, "a server on this machine")),
        ("openai/mine", {"OPENAI_API_BASE": "http://127.0.0.1:1"}, Limit(8192, "a server on this machine")),
        ("openai/mine", {"OPENAI_API_BASE": "https://llm.example/v1"}, Limit(128_000, "the default")),
        ("openai/mine", {}, Limit(128_000, "the default")),
        ("ollama/llama3.2", {}, Limit(8192, "a server on this machine")),
        ("ollama_chat/llama3.2", {"OLLAMA_API_BASE": "http://[::1]:11434"}, Limit(8192, "a server on this machine")),
        ("ollama/llama3.2", {"OLLAMA_API_BASE": "http://10.0.0.7:11434"}, Limit(128_000, "the default")),
        ("ollama_chat/llama3.2", {"OLLAMA_HOST": ":1234"}, Limit(8192, "a server on this machine")),
        ("ollama_chat/llama3.2", {"OLLAMA_HOST": "10.0.0.7:1234"}, Limit(128_000, "the default")),
        ("lm_studio/qwen", {}, Limit(8192, "a server on this machine")),
        ("hosted_vllm/qwen", {"HOSTED_VLLM_API_BASE": "http://gpu.example/v1"}, Limit(128_000, "the default")),
        ("nosuch", {"OPENAI_BASE_URL": "http://localhost:8080/v1"}, Limit(128_000, "the default")),
    ],
)
def test_the_limit_says_where_it_comes_from(
    model_map: ModelMap, model: str, environment: Mapping[str, str], limit: Limit
) -> None:
    assert context_limit(model, environment, model_map) == limit


def test_without_a_map_every_limit_is_a_default(tmp_path: Path) -> None:
    assert context_limit("gpt-x", {}, ModelMap(tmp_path)) == Limit(128_000, "the default")
