"""Which model answers, and the table of providers that are known by their keys."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING

import pytest

from chorus_cli.models.providers.model_map import ModelMap, installation_folder
from chorus_cli.models.rules.choice import (
    ELIZA,
    PROVIDERS,
    ModelChoice,
    Naming,
    Provider,
    detected_model,
    missing_key,
    way_to_a_model,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

MODEL_MAP = ModelMap()
EVERY_KEY = {provider.key_variable: "key" for provider in PROVIDERS}
DEAREST_USD_PER_MILLION_TOKENS = 2.0


@pytest.mark.parametrize(
    ("option", "environment", "setting", "choice"),
    [
        ("a/b", {"CHORUS_MODEL": "c/d", **EVERY_KEY}, "e/f", ModelChoice("a/b", "chosen for this run")),
        (None, {"CHORUS_MODEL": "c/d", **EVERY_KEY}, "e/f", ModelChoice("c/d", "from CHORUS_MODEL")),
        (None, {"CHORUS_MODEL": "", **EVERY_KEY}, "e/f", ModelChoice("e/f", "from system.jsonc:3")),
        ("", EVERY_KEY, "e/f", ModelChoice("e/f", "from system.jsonc:3")),
        (None, EVERY_KEY, None, ModelChoice("anthropic/claude-sonnet-5", "because ANTHROPIC_API_KEY is set")),
        (None, {"GROQ_API_KEY": "key"}, "", ModelChoice("groq/openai/gpt-oss-120b", "because GROQ_API_KEY is set")),
        (
            None,
            {"GEMINI_API_KEY": " ", "GOOGLE_API_KEY": "key"},
            None,
            ModelChoice("gemini/gemini-3.8-flash", "because GOOGLE_API_KEY is set"),
        ),
        (None, {}, None, None),
        (None, {"OPENAI_API_KEY": "", "MISTRAL_API_KEY": " "}, None, None),
    ],
)
def test_the_first_place_that_names_a_model_decides(
    option: str | None, environment: Mapping[str, str], setting: str | None, choice: ModelChoice | None
) -> None:
    assert Naming(option, environment, lambda: None).named(setting, {"model": "frodo/system.jsonc:3"}) == choice


def test_a_running_ollama_answers_when_nothing_names_a_model() -> None:
    choice = detected_model("ollama_chat/llama3.2")
    assert choice == ModelChoice("ollama_chat/llama3.2", "a running Ollama's most recently used model")


def test_eliza_answers_when_there_is_nobody_else() -> None:
    assert detected_model(None) == ModelChoice(ELIZA, "embedded: no provider's key is set and no Ollama answered")


NO_KEY = "There is no key for Anthropic, so messages will fail. Set ANTHROPIC_API_KEY."


@pytest.mark.parametrize(
    ("model", "environment", "sentence"),
    [
        ("anthropic/claude-sonnet-5", {}, NO_KEY),
        ("anthropic/brand-new", {"ANTHROPIC_API_KEY": " "}, NO_KEY),
        ("anthropic/brand-new", {"ANTHROPIC_AUTH_TOKEN": "key"}, ""),
        ("openai/mine", {"OPENAI_BASE_URL": "http://localhost:8080/v1"}, ""),
        ("ollama/llama3.2", {}, ""),
        ("chorus/eliza", {}, ""),
    ],
)
def test_a_model_whose_key_is_missing_is_said_to_want_it(
    model: str, environment: Mapping[str, str], sentence: str
) -> None:
    assert missing_key(model, environment) == sentence


BY_FILE = ModelChoice(ELIZA, "from system.jsonc:3")
ASK_FOR_A_KEY = (
    "For a language model set a provider's key, such as OPENAI_API_KEY, start Ollama, or download a GGUF file"
)


@pytest.mark.parametrize(
    ("choice", "environment", "sentence"),
    [
        (detected_model(None), {}, f"{ASK_FOR_A_KEY}; then say /model ollama/NAME or /model local/FILE.gguf."),
        (
            BY_FILE,
            {"ANTHROPIC_API_KEY": "key"},
            "ANTHROPIC_API_KEY is set: /model anthropic/claude-sonnet-5 switches to a language model.",
        ),
        (BY_FILE, {}, f"{ASK_FOR_A_KEY}; then say /model NAME."),
        (ModelChoice("openai/gpt-5", "from system.jsonc:3"), {}, ""),
    ],
)
def test_how_a_language_model_comes_to_answer_for_eliza(
    choice: ModelChoice, environment: Mapping[str, str], sentence: str
) -> None:
    assert way_to_a_model(choice, environment) == sentence


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.name)
def test_every_default_model_is_in_litellms_map_chats_calls_tools_and_has_no_announced_end(provider: Provider) -> None:
    entry = map_entry(provider.default_model)
    assert entry["mode"] == "chat"
    assert "deprecation_date" not in entry
    # Perplexity's models search by themselves and take no tools.
    assert entry.get("supports_function_calling") or provider.name == "Perplexity"


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.name)
def test_no_default_model_is_dear(provider: Provider) -> None:
    cost = MODEL_MAP.input_cost(provider.default_model)
    assert cost is not None
    assert cost * 1_000_000 <= DEAREST_USD_PER_MILLION_TOKENS


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.name)
def test_every_default_model_names_a_provider_of_litellm(provider: Provider) -> None:
    prefix, slash, _ = provider.default_model.partition("/")
    assert slash
    assert prefix in MODEL_MAP.providers()


def test_no_provider_variable_or_model_stands_twice_in_the_table() -> None:
    variables = [name for each in PROVIDERS for name in (each.key_variable, *each.other_variables)]
    for column in (
        variables,
        [provider.name for provider in PROVIDERS],
        [provider.default_model for provider in PROVIDERS],
    ):
        assert len(set(column)) == len(column)


def map_entry(model: str) -> Mapping[str, object]:
    """Return the entry of ``model`` in the installed litellm's map, under its name with or without the provider."""
    document = shipped_map()
    return document.get(model) or document[model.partition("/")[2]]


@cache
def shipped_map() -> Mapping[str, Mapping[str, object]]:
    document: dict[str, Mapping[str, object]] = json.loads(
        (installation_folder() / "model_prices_and_context_window_backup.json").read_bytes()
    )
    return document


@pytest.mark.parametrize("typed", ["eliza", "ELIZA", "chorus/eliza"])
def test_eliza_alone_is_the_embedded_model(typed: str) -> None:
    assert Naming(typed, {}, lambda: None).named(None, {}) == ModelChoice(ELIZA, "chosen for this run")
    assert Naming(None, {"CHORUS_MODEL": typed}, lambda: None).named(None, {}) == ModelChoice(
        ELIZA, "from CHORUS_MODEL"
    )
    assert Naming(None, {}, lambda: None).named(typed, {"model": "system.jsonc:3"}) == BY_FILE
