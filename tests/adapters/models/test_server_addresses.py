"""Where the servers are that answer for models, and which of them are on this machine."""

from __future__ import annotations

import pytest

from chorus_cli.adapters.models.server_addresses import address_problem, is_ollama, is_on_this_machine, server_address


@pytest.mark.parametrize(
    ("address", "here"),
    [
        ("http://localhost:11434", True),
        ("http://LocalHost/v1", True),
        ("localhost:11434", True),
        ("http://api.localhost", True),
        ("http://127.8.9.10:80/v1", True),
        ("http://[::1]:80", True),
        ("http://0.0.0.0:11434", True),
        ("http://user:word@127.0.0.1/v1", True),
        ("http://localhost.example", False),
        ("http://127.0.0.1.example", False),
        ("http://192.168.1.2:11434", False),
        ("https://api.openai.com/v1", False),
        ("http://[::1", False),
        ("", False),
    ],
)
def test_this_machine_is_known_by_its_loopback_addresses(address: str, here: bool) -> None:  # noqa: FBT001 - a table
    assert is_on_this_machine(address) is here


def test_the_first_variable_that_is_not_empty_names_the_server() -> None:
    environment = {"OPENAI_BASE_URL": " ", "OPENAI_API_BASE": "http://second/v1"}
    assert server_address("openai/x", environment) == "http://second/v1"
    assert server_address("ollama/x", environment) == "http://localhost:11434"
    assert server_address("ollama_chat/x", {"OLLAMA_HOST": "gpu:1"}) == "http://gpu:1"
    assert server_address("anthropic/x", environment) == ""
    assert server_address("openai", environment) == ""


@pytest.mark.parametrize(
    ("model", "asked"),
    [
        ("ollama/x", True),
        ("ollama_chat/x", True),
        ("ollama", False),
        ("ollama_cloud/x", False),
        ("openai/ollama/x", False),
    ],
)
def test_ollama_is_known_by_the_models_prefix(model: str, asked: bool) -> None:  # noqa: FBT001 - a table
    assert is_ollama(model) is asked


@pytest.mark.parametrize(
    ("model", "environment", "told"),
    [
        ("openai/x", {}, ""),
        ("openai/x", {"OPENAI_BASE_URL": "https://example.org/v1"}, ""),
        ("openai/x", {"OPENAI_BASE_URL": "nonsense"}, "Correct OPENAI_BASE_URL."),
        ("openai/x", {"OPENAI_BASE_URL": " ", "OPENAI_API_BASE": "localhost:8000/v1"}, "Correct OPENAI_API_BASE."),
        ("lm_studio/x", {}, ""),
        ("ollama_chat/x", {"OLLAMA_API_BASE": "localhost:11434"}, "Correct OLLAMA_API_BASE."),
        ("ollama_chat/x", {"OLLAMA_HOST": "gpu:1"}, ""),
        ("ollama_chat/x", {"OLLAMA_HOST": "ftp://gpu"}, "Correct OLLAMA_HOST."),
        ("anthropic/x", {"OPENAI_BASE_URL": "nonsense"}, ""),
    ],
)
def test_an_address_that_is_none_is_told_with_its_variable(model: str, environment: dict[str, str], told: str) -> None:
    problem = address_problem(model, environment)
    assert problem.endswith(told)
    assert bool(problem) is bool(told)
