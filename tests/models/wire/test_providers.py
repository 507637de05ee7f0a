"""The table of providers: which model is asked where, with which key, and which one is left to litellm."""

from __future__ import annotations

import pytest

from chorus_cli.models.providers.failures import Asked, Failure, Trouble, model_error
from chorus_cli.models.providers.providers import PROVIDERS, Endpoint, ProtocolName, endpoint, lacks_key
from tests.models.providers.ways import MODEL_MAP

OPENAI = "https://api.openai.com/v1"
ANTHROPIC = "https://api.anthropic.com"
CLAUDE = Endpoint("anthropic", "c", "http://x", "", protocol=ProtocolName.ANTHROPIC)
AT_X = {"FIREWORKS_API_BASE": "http://x"}


@pytest.mark.parametrize(
    ("model", "environment", "asked"),
    [
        ("openai/m", {}, Endpoint("openai", "m", OPENAI, "")),
        ("openai/a/b", {"OPENAI_API_KEY": " k\n"}, Endpoint("openai", "a/b", OPENAI, "k")),
        ("gpt-4o", {"OPENAI_API_KEY": "k"}, Endpoint("openai", "gpt-4o", OPENAI, "k")),
        ("o3", {}, Endpoint("openai", "o3", OPENAI, "")),
        ("ft:gpt-4o:mine::7", {}, Endpoint("openai", "ft:gpt-4o:mine::7", OPENAI, "")),
        ("openai/m", {"OPENAI_BASE_URL": "http://x/v1/"}, Endpoint("openai", "m", "http://x/v1", "")),
        ("openai/m", {"OPENAI_BASE_URL": "", "OPENAI_API_BASE": "http://y"}, Endpoint("openai", "m", "http://y", "")),
        ("claude-x", {"ANTHROPIC_API_KEY": "k"}, CLAUDE._replace(model="claude-x", address=ANTHROPIC, key="k")),
        ("anthropic/c", {"ANTHROPIC_BASE_URL": "http://x/v1/messages"}, CLAUDE),
        ("groq/openai/g", {"GROQ_API_BASE": "http://x/chat/completions"}, Endpoint("groq", "openai/g", "http://x", "")),
        ("mistral/m", {"MISTRAL_API_BASE": "http://x"}, Endpoint("mistral", "m", "http://x/v1", "")),
        ("mistral/m", {"MISTRAL_API_BASE": "http://x/v1"}, Endpoint("mistral", "m", "http://x/v1", "")),
        ("fireworks_ai/m", AT_X, Endpoint("fireworks_ai", "accounts/fireworks/models/m", "http://x", "")),
        ("fireworks_ai/accounts/me/models/m", AT_X, Endpoint("fireworks_ai", "accounts/me/models/m", "http://x", "")),
        ("lm_studio/m", {}, Endpoint("lm_studio", "m", "http://localhost:1234/v1", "")),
    ],
)
def test_a_model_of_the_table_is_asked_at_its_providers_address(
    model: str, environment: dict[str, str], asked: Endpoint
) -> None:
    assert endpoint(model, environment) == asked


def test_every_other_model_is_left_to_litellm() -> None:
    names = (
        *("bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", "azure/gpt-4o", "cohere_chat/command-r-08-2024"),
        *("vertex_ai/gemini-2.5-pro", "ollama/llama3.2", "ollama_chat/llama3.2", "chorus/eliza", "command-r"),
        *("gemini-2.5-flash", "claude-3-5-sonnet@20240620", "text-completion-openai/davinci-002"),
        *("gpt-3.5-turbo-instruct", "anthropic/claude-2.1", "perplexity/openai/gpt-5.2", "xai/grok-4.20-multi-agent"),
        *("openai", ""),
    )
    assert [name for name in names if endpoint(name, {})] == []
    assert endpoint("openai/m", {"USE_LITELLM_PROXY": "True"}) is None
    assert endpoint("anthropic/claude-x", {"ANTHROPIC_FEDERATION_RULE_ID": "rule"}) is None


@pytest.mark.parametrize(
    ("model", "environment", "key", "headers"),
    [
        ("openai/m", {"OPENAI_API_KEY": "k"}, "k", {}),
        (
            "openai/m",
            {"OPENAI_ORGANIZATION": "us", "OPENAI_ORG_ID": "them", "OPENAI_PROJECT_ID": "p"},
            "",
            {"openai-organization": "us", "openai-project": "p"},
        ),
        ("openai/m", {"OPENAI_ORG_ID": "them"}, "", {"openai-organization": "them"}),
        ("moonshot/m", {"OPENAI_ORGANIZATION": "us", "MOONSHOT_API_KEY": "k"}, "k", {}),
        ("anthropic/c", {"ANTHROPIC_AUTH_TOKEN": "t"}, "", {"authorization": "Bearer t"}),
        ("anthropic/c", {"ANTHROPIC_AUTH_TOKEN": "t", "ANTHROPIC_API_KEY": "k"}, "k", {}),
        ("anthropic/c", {"ANTHROPIC_FEDERATION_RULE_ID": "rule", "ANTHROPIC_API_KEY": "k"}, "k", {}),
        (
            "anthropic/c",
            {"ANTHROPIC_API_KEY": "sk-ant-oat01-x"},
            "",
            {
                "authorization": "Bearer sk-ant-oat01-x",
                "anthropic-beta": "oauth-2025-04-20",
                "anthropic-dangerous-direct-browser-access": "true",
            },
        ),
        ("gemini/g", {"GEMINI_API_KEY": "k"}, "k", {}),
    ],
)
def test_keys_tokens_and_accounts_come_from_the_environment(
    model: str, environment: dict[str, str], key: str, headers: dict[str, str]
) -> None:
    asked = endpoint(model, environment)
    assert asked is not None
    assert (asked.key, dict(asked.headers)) == (key, headers)


def test_a_key_is_wanted_at_the_providers_own_address() -> None:
    asked: tuple[tuple[str, dict[str, str]], ...] = (
        *(("openai/m", {}), ("anthropic/c", {}), ("openai/m", {"OPENAI_ORG_ID": "us"})),
        *(("openai/m", {"OPENAI_API_KEY": "k"}), ("openai/m", {"OPENAI_BASE_URL": "http://x/v1"})),
        *(("anthropic/c", {"ANTHROPIC_AUTH_TOKEN": "t"}), ("lm_studio/m", {})),
    )
    found = [endpoint(model, environment) for model, environment in asked]
    assert [each is not None and lacks_key(each) for each in found] == [True] * 3 + [False] * 4


def test_addresses_have_a_scheme_and_no_slash_at_their_end_and_a_missing_key_is_named() -> None:
    for prefix, provider in PROVIDERS.items():
        assert provider.address.startswith("http://" if provider.is_local else "https://")
        assert provider.address == provider.address.rstrip("/")
        assert provider.address.endswith(provider.path)
        sentence = str(model_error(Failure(Trouble.NO_KEY), Asked(f"{prefix}/m")))
        assert sentence.startswith(f"There is no key for {prefix}/m. Set ")
        assert any(f" {variable}," in sentence for variable in provider.key_variables)


@pytest.mark.parametrize(
    ("model", "environment", "is_by_responses"),
    [
        ("openai/gpt-5.4-mini", {}, True),
        ("o3-pro", {}, True),
        ("gpt-5-codex", {}, True),
        ("openai/gpt-6.2-sol", {}, True),
        ("openai/gpt-5-chat-latest", {}, False),
        ("openai/gpt-4o", {}, False),
        ("openai/mine", {}, False),
        ("openai/gpt-5.4-mini", {"OPENAI_BASE_URL": "http://x/v1"}, False),
        ("openai/responses/mine", {"OPENAI_BASE_URL": "http://x/v1"}, True),
        ("openai/responses/gpt-4o", {}, True),
    ],
)
def test_openais_models_that_think_are_asked_by_its_newer_protocol(
    model: str, environment: dict[str, str], *, is_by_responses: bool
) -> None:
    asked = endpoint(model, environment, MODEL_MAP.thinks)
    assert asked is not None
    assert asked.model == model.rpartition("/")[2]
    assert (asked.protocol is ProtocolName.RESPONSES) is is_by_responses
