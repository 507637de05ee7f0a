"""Where the servers are that answer for models, and which of them are on this machine."""

from __future__ import annotations

import pytest

from chorus_cli.models.providers.servers import (
    is_ollama,
    is_on_this_machine,
    request_address,
    request_problem,
    server_address,
)


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
    ("model", "environment", "asked", "of_any_make"),
    [
        ("mistral/x", {}, "", ""),
        ("mistral/x", {"MISTRAL_API_BASE": "http://here"}, "http://here/v1", ""),
        ("anthropic/x", {"ANTHROPIC_BASE_URL": "http://here/"}, "http://here", ""),
        ("gpt-4o", {"OPENAI_BASE_URL": "http://here/v1"}, "http://here/v1", "http://here/v1"),
        ("hosted_vllm/x", {}, "http://localhost:8000/v1", "http://localhost:8000/v1"),
        ("bedrock/x", {"OPENAI_BASE_URL": "http://here/v1"}, "", ""),
    ],
)
def test_only_a_server_of_any_make_is_asked_how_much_it_holds(
    model: str, environment: dict[str, str], asked: str, of_any_make: str
) -> None:
    assert request_address(model, environment) == asked
    assert server_address(model, environment) == of_any_make


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
        ("anthropic/x", {"ANTHROPIC_BASE_URL": "nonsense"}, "Correct ANTHROPIC_BASE_URL."),
        ("claude-x", {"ANTHROPIC_API_BASE": "nonsense"}, "Correct ANTHROPIC_API_BASE."),
        ("gemini/x", {"GEMINI_API_BASE": "localhost:1"}, "Correct GEMINI_API_BASE."),
        ("groq/x", {"GROQ_API_BASE": "localhost:1/v1"}, "Correct GROQ_API_BASE."),
        (
            "mistral/x",
            {"MISTRAL_API_BASE": "nonsense"},
            "The address of mistral/x, nonsense, is not an http:// or https:// URL. Correct MISTRAL_API_BASE.",
        ),
        ("bedrock/x", {"OPENAI_BASE_URL": "nonsense"}, ""),
        ("openai/x", {"OPENAI_BASE_URL": "http://[::1]:8000/v1"}, ""),
        ("openai/x", {"OPENAI_BASE_URL": "HTTPS://example.org/v1"}, ""),
        ("openai/x", {"OPENAI_BASE_URL": "http://[::1/v1"}, "Correct OPENAI_BASE_URL."),
        ("openai/x", {"OPENAI_BASE_URL": "http://localhost:99999/v1"}, "Correct OPENAI_BASE_URL."),
        ("openai/x", {"OPENAI_BASE_URL": "http://exam ple/v1"}, "Correct OPENAI_BASE_URL."),
        ("openai/x", {"OPENAI_BASE_URL": "https:///v1"}, "Correct OPENAI_BASE_URL."),
    ],
)
def test_an_address_that_is_none_is_told_with_its_variable(model: str, environment: dict[str, str], told: str) -> None:
    problem = request_problem(model, environment)
    assert problem.endswith(told)
    assert bool(problem) is bool(told)


@pytest.mark.parametrize(
    ("model", "environment", "told"),
    [
        ("openai/x", {}, ""),
        ("openai/x", {"OPENAI_API_KEY": " sk-1_2~\n"}, ""),
        ("openai/x", {"OPENAI_API_KEY": "schlüssel"}, "Set OPENAI_API_KEY again."),
        ("claude-x", {"ANTHROPIC_AUTH_TOKEN": "a\nb"}, "Set ANTHROPIC_AUTH_TOKEN again."),
        ("gemini/x", {"GEMINI_API_KEY": "a\u2026"}, "Set GEMINI_API_KEY again."),
        ("bedrock/x", {"OPENAI_API_KEY": "schlüssel"}, ""),
    ],
)
def test_a_key_that_is_none_is_told_with_its_variable_and_not_shown(
    model: str, environment: dict[str, str], told: str
) -> None:
    problem = request_problem(model, environment)
    assert problem.endswith(told)
    assert bool(problem) is bool(told)
    assert not any(key in problem for key in environment.values())
