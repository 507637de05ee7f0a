"""Which model answers, the providers that are known by their keys, and what /model makes of a name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.errors import ModelNameError
from chorus_cli.models.providers.model_files import package_folder
from chorus_cli.models.providers.model_map import ModelMap
from chorus_cli.models.rules.choice import (
    ELIZA,
    PROVIDERS,
    ModelChoice,
    Naming,
    Provider,
    detected_model,
    doubt_about,
    missing_key,
    way_to_a_model,
)
from tests.amount import examples

MODEL_MAP = ModelMap()
EVERY_KEY = {provider.key_variable: "key" for provider in PROVIDERS}
BY_GOOGLE = ModelChoice("gemini/gemini-3.8-flash", "because GOOGLE_API_KEY is set")


@pytest.mark.parametrize(
    ("option", "environment", "setting", "choice"),
    [
        ("a/b", {"CHORUS_MODEL": "c/d", **EVERY_KEY}, "e/f", ModelChoice("a/b", "--model")),
        (None, {"CHORUS_MODEL": "c/d", **EVERY_KEY}, "e/f", ModelChoice("c/d", "from CHORUS_MODEL")),
        (None, {"CHORUS_MODEL": " c/d\n"}, "e/f", ModelChoice("c/d", "from CHORUS_MODEL")),
        (None, {"CHORUS_MODEL": " ", **EVERY_KEY}, "e/f", ModelChoice("e/f", "from system.jsonc:3")),
        ("", EVERY_KEY, "e/f", ModelChoice("e/f", "from system.jsonc:3")),
        (None, EVERY_KEY, None, ModelChoice("anthropic/claude-sonnet-5", "because ANTHROPIC_API_KEY is set")),
        (None, {"GROQ_API_KEY": "key"}, "", ModelChoice("groq/openai/gpt-oss-120b", "because GROQ_API_KEY is set")),
        (None, {"GEMINI_API_KEY": " ", "GOOGLE_API_KEY": "key"}, None, BY_GOOGLE),
        (None, {}, None, None),
        (None, {"OPENAI_API_KEY": "", "MISTRAL_API_KEY": " "}, None, None),
    ],
)
def test_the_first_place_that_names_a_model_decides(
    option: str | None, environment: Mapping[str, str], setting: str | None, choice: ModelChoice | None
) -> None:
    assert Naming(option, environment, lambda: None).named(setting, {"model": "frodo/system.jsonc:3"}) == choice


def test_a_running_ollama_answers_when_nothing_names_a_model_and_else_eliza() -> None:
    choice = detected_model("ollama_chat/llama3.2")
    assert choice == ModelChoice("ollama_chat/llama3.2", "the most recent model of a running Ollama")
    assert detected_model(None) == ModelChoice(ELIZA, "no API key and no Ollama found")


def test_a_model_whose_key_is_missing_is_said_to_want_it() -> None:
    sentence = "There is no key for Anthropic, so messages will fail. Set ANTHROPIC_API_KEY."
    for environment in ({}, {"ANTHROPIC_API_KEY": " "}):
        assert missing_key("anthropic/brand-new", environment) == sentence
    assert missing_key("anthropic/brand-new", {"ANTHROPIC_AUTH_TOKEN": "key"}) == ""
    assert missing_key("openai/mine", {"OPENAI_BASE_URL": "http://localhost:8080/v1"}) == ""
    assert missing_key("fireworks_ai/mine", {"FIREWORKS_API_BASE": "http://localhost:8080/v1"}) == ""
    assert missing_key("mistral/large", {"MISTRAL_AZURE_API_KEY": "key"}) == ""
    assert missing_key("mistral/large", {"MISTRAL_AZURE_API_KEY": "", "OPENAI_API_KEY": "key"}) != ""
    assert {missing_key(name, {}) for name in ("ollama/llama3.2", "chorus/eliza")} == {""}


BY_FILE = ModelChoice(ELIZA, "from system.jsonc:3")


def test_how_a_language_model_comes_to_answer_for_eliza() -> None:
    ways = "For a real model: set a key such as OPENAI_API_KEY, start Ollama, or use a GGUF file"
    ways += " with /model local/FILE.gguf."
    assert way_to_a_model(detected_model(None), {}) == ways
    told = "ANTHROPIC_API_KEY is set: /model anthropic/claude-sonnet-5 switches to a language model."
    assert way_to_a_model(BY_FILE, {"ANTHROPIC_API_KEY": "key"}) == told
    assert way_to_a_model(BY_FILE, {}) == ways
    assert way_to_a_model(ModelChoice("openai/gpt-5", "from system.jsonc:3"), {}) == ""


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.name)
def test_every_default_model_is_in_the_map_chats_calls_tools_is_not_dear_and_has_no_end(provider: Provider) -> None:
    prefix, _, name = provider.default_model.partition("/")
    assert prefix in MODEL_MAP.providers()
    entry = shipped_map().get(provider.default_model) or shipped_map()[name]
    assert entry["mode"] == "chat"
    assert "deprecation_date" not in entry
    # Perplexity's models search by themselves and take no tools.
    assert entry.get("supports_function_calling") or provider.name == "Perplexity"
    cost = MODEL_MAP.input_cost(provider.default_model)
    assert cost is not None
    assert cost * 1_000_000 <= 2


def test_no_provider_variable_or_model_stands_twice_in_the_table() -> None:
    variables = [name for each in PROVIDERS for name in each.variables or (each.key_variable,)]
    assert {each.key_variable for each in PROVIDERS} <= {*variables}
    for column in (variables, [each.name for each in PROVIDERS], [each.default_model for each in PROVIDERS]):
        assert len(set(column)) == len(column)


@cache
def shipped_map() -> Mapping[str, Mapping[str, object]]:
    folder = package_folder("litellm")
    assert folder
    path = folder / "model_prices_and_context_window_backup.json"
    document: dict[str, Mapping[str, object]] = json.loads(path.read_bytes())
    return document


@pytest.mark.parametrize("typed", ["eliza", "ELIZA", "chorus/eliza"])
def test_eliza_alone_is_the_embedded_model(typed: str) -> None:
    assert Naming(typed, {}, lambda: None).named(None, {}) == ModelChoice(ELIZA, "--model")
    by_variable = Naming(None, {"CHORUS_MODEL": typed}, lambda: None).named(None, {})
    assert by_variable == ModelChoice(ELIZA, "from CHORUS_MODEL")
    assert Naming(None, {}, lambda: None).named(typed, {"model": "system.jsonc:3"}) == BY_FILE


NAMES = frozenset(
    {
        *("gpt-4o", "gpt-4", "claude-sonnet-5", "azure/gpt-4o", "deepseek/deepseek-chat", "groq/openai/gpt-oss-120b"),
        *("cerebras/gpt-oss-120b", "together_ai/openai/gpt-oss-120b", "sambanova/gpt-oss-120b"),
    }
)
KNOWN_PROVIDERS = frozenset({"openai", "ollama", "ollama_chat", "lm_studio", "together_ai", "hosted_vllm"})


def test_a_known_name_and_anything_of_a_known_provider_are_trusted() -> None:
    known = ("gpt-4o", "deepseek/deepseek-chat", "chorus/eliza")
    new = ("openai/gpt-99", "ollama_chat/llama3.2:latest", "hosted_vllm/my-org/my-model", "openai/ft:gpt-4o:org::1")
    assert {doubt_about(name, NAMES, KNOWN_PROVIDERS) for name in (*known, *new)} == {None}


NO_SIGNS = "Model names contain no spaces and no invisible characters"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("", "Model name missing: write provider/name, such as ollama/llama3.2."),
        ("gpt 4o", f"{NO_SIGNS}: 'gpt 4o'."),
        (" gpt-4o", f"{NO_SIGNS}: ' gpt-4o'."),
        ("gpt\n", f"{NO_SIGNS}: 'gpt\\n'."),
        ("a\x1b[31m", f"{NO_SIGNS}: 'a\\x1b[31m'."),
        ("openai/a\u200bb", f"{NO_SIGNS}: 'openai/a\\u200bb'."),
        ("a\ud800", f"{NO_SIGNS}: 'a\\ud800'."),
        ("openai/", "'openai/' is an incomplete model name: write provider/name, such as ollama/llama3.2."),
        ("/gpt-4o", "'/gpt-4o' is an incomplete model name: write provider/name, such as ollama/llama3.2."),
        ("chorus/parry", "There is no model 'chorus/parry': the only embedded model is chorus/eliza."),
    ],
)
def test_what_cannot_be_meant_is_refused(name: str, sentence: str) -> None:
    with pytest.raises(ModelNameError) as caught:
        doubt_about(name, NAMES, KNOWN_PROVIDERS)
    assert str(caught.value) == sentence


QUESTIONS = {
    "GPT-4O": "gpt-4o",
    "deepseek-chat": "deepseek/deepseek-chat",
    "DeepSeek-Chat": "deepseek/deepseek-chat",
    "eliza": "chorus/eliza",
    "claude-sonet-5": "claude-sonnet-5",
    "gpt4": "gpt-4 or gpt-4o",
    "banana": "",
    "gpt-oss-120b": "cerebras/gpt-oss-120b, sambanova/gpt-oss-120b or groq/openai/gpt-oss-120b",
}


@pytest.mark.parametrize(("name", "near"), QUESTIONS.items())
def test_an_unknown_name_without_a_provider_is_refused_and_what_is_near_is_named(name: str, near: str) -> None:
    with pytest.raises(ModelNameError) as caught:
        doubt_about(name, NAMES, KNOWN_PROVIDERS)
    assert str(caught.value) == (
        f"There is no model '{name}'. The name of a model begins with its provider: ollama/llama3.2."
        f"{f' Did you mean {near}?' if near else ''}"
    )


def test_of_those_that_are_near_the_likely_ones_are_named_first() -> None:
    likely = ("groq/openai/gpt-oss-120b", "anthropic/claude-sonnet-5", "anthropic/claude-opus-5")
    questions = {
        "claude": "anthropic/claude-sonnet-5 or anthropic/claude-opus-5?",
        "Opus": "anthropic/claude-opus-5?",
        "gpt-oss-120b": "groq/openai/gpt-oss-120b, cerebras/gpt-oss-120b or sambanova/gpt-oss-120b?",
        "GPT-4O": "gpt-4o?",
    }
    for name, question in questions.items():
        with pytest.raises(ModelNameError) as caught:
            doubt_about(name, NAMES | {*likely, "snowflake/claude-4-opus"}, KNOWN_PROVIDERS, likely)
        assert str(caught.value).endswith(f"Did you mean {question}")


def test_a_provider_that_litellm_does_not_know_is_doubted() -> None:
    meant = {"OpenAI/gpt-4o": "openai/gpt-4o", "lmstudio/qwen": "lm_studio/qwen", "fruit/banana": ""}
    for name, near in (meant | {"together/meta/llama": "together_ai/meta/llama"}).items():
        doubt = f"Chorus knows no provider '{name.partition('/')[0]}', so messages may fail."
        question = f" Did you mean {near}?" if near else ""
        assert doubt_about(name, NAMES, KNOWN_PROVIDERS) == doubt + question


def test_where_nothing_is_known_nothing_is_doubted_but_what_is_no_name_is_refused() -> None:
    assert {doubt_about(name, frozenset(), frozenset()) for name in ("gpt-4o", "banana", "fruit/banana")} == {None}
    with pytest.raises(ModelNameError, match="no spaces"):
        doubt_about("a b", frozenset(), frozenset())


@examples(200)
@given(st.text(max_size=40))
def test_every_text_is_trusted_doubted_or_refused_with_a_sentence_that_can_be_printed(name: str) -> None:
    try:
        sentence = doubt_about(name, NAMES, KNOWN_PROVIDERS)
    except ModelNameError as error:
        sentence = str(error)
    assert sentence is None or sentence.isprintable()
