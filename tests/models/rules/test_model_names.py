"""What /model makes of a name: known, taken on trust, doubted, or refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.errors import ModelNameError
from chorus_cli.models.rules.names import doubt_about
from tests.amount import examples

NAMES = frozenset(
    {
        "gpt-4o",
        "gpt-4",
        "claude-sonnet-5",
        "azure/gpt-4o",
        "deepseek/deepseek-chat",
        "groq/openai/gpt-oss-120b",
        "cerebras/gpt-oss-120b",
        "together_ai/openai/gpt-oss-120b",
        "sambanova/gpt-oss-120b",
    }
)
PROVIDERS = frozenset({"openai", "ollama", "ollama_chat", "lm_studio", "together_ai", "hosted_vllm"})


@pytest.mark.parametrize(
    "name",
    [
        "gpt-4o",
        "deepseek/deepseek-chat",
        "chorus/eliza",
        "openai/gpt-99",
        "ollama_chat/llama3.2:latest",
        "hosted_vllm/my-org/my-model",
        "openai/ft:gpt-4o:org::1",
    ],
)
def test_a_known_name_and_anything_of_a_known_provider_are_trusted(name: str) -> None:
    assert doubt_about(name, NAMES, PROVIDERS) is None


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("", "Model name missing: write provider/name, such as ollama/llama3.2."),
        ("gpt 4o", "Model names contain no spaces: 'gpt 4o'."),
        (" gpt-4o", "Model names contain no spaces: ' gpt-4o'."),
        ("gpt\n", "Model names contain no spaces: 'gpt\\n'."),
        ("a\x1b[31m", "Model names contain no invisible characters: 'a\\x1b[31m'."),
        ("openai/a\u200bb", "Model names contain no invisible characters: 'openai/a\\u200bb'."),
        ("a\ud800", "Model names contain no invisible characters: 'a\\ud800'."),
        ("openai/", "'openai/' is an incomplete model name: write provider/name, such as ollama/llama3.2."),
        ("/gpt-4o", "'/gpt-4o' is an incomplete model name: write provider/name, such as ollama/llama3.2."),
        ("chorus/parry", "There is no model 'chorus/parry': the only embedded model is chorus/eliza."),
    ],
)
def test_what_cannot_be_meant_is_refused(name: str, sentence: str) -> None:
    with pytest.raises(ModelNameError) as caught:
        doubt_about(name, NAMES, PROVIDERS)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("banana", ""),
        ("GPT-4O", " Did you mean gpt-4o?"),
        ("deepseek-chat", " Did you mean deepseek/deepseek-chat?"),
        ("DeepSeek-Chat", " Did you mean deepseek/deepseek-chat?"),
        ("eliza", " Did you mean chorus/eliza?"),
        ("claude-sonet-5", " Did you mean claude-sonnet-5?"),
        ("gpt4", " Did you mean gpt-4 or gpt-4o?"),
        ("gpt-oss-120b", " Did you mean cerebras/gpt-oss-120b, sambanova/gpt-oss-120b or groq/openai/gpt-oss-120b?"),
    ],
)
def test_an_unknown_name_without_a_provider_is_refused_and_what_is_near_is_named(name: str, question: str) -> None:
    with pytest.raises(ModelNameError) as caught:
        doubt_about(name, NAMES, PROVIDERS)
    assert str(caught.value) == (
        f"There is no model '{name}': a name without a provider must be one that litellm knows. "
        f"Write it as provider/name, such as ollama/{name}.{question}"
    )


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("claude", "Did you mean anthropic/claude-sonnet-5 or anthropic/claude-opus-5?"),
        ("Opus", "Did you mean anthropic/claude-opus-5?"),
        ("gpt-oss-120b", "Did you mean groq/openai/gpt-oss-120b, cerebras/gpt-oss-120b or sambanova/gpt-oss-120b?"),
        ("GPT-4O", "Did you mean gpt-4o?"),
    ],
)
def test_of_those_that_are_near_the_likely_ones_are_named_first(name: str, question: str) -> None:
    likely = ("groq/openai/gpt-oss-120b", "anthropic/claude-sonnet-5", "anthropic/claude-opus-5")
    with pytest.raises(ModelNameError) as caught:
        doubt_about(name, NAMES | {*likely, "snowflake/claude-4-opus"}, PROVIDERS, likely)
    assert str(caught.value).endswith(question)


@pytest.mark.parametrize(
    ("name", "provider", "question"),
    [
        ("fruit/banana", "fruit", ""),
        ("OpenAI/gpt-4o", "OpenAI", " Did you mean openai/gpt-4o?"),
        ("lmstudio/qwen", "lmstudio", " Did you mean lm_studio/qwen?"),
        ("together/meta/llama", "together", " Did you mean together_ai/meta/llama?"),
    ],
)
def test_a_provider_that_litellm_does_not_know_is_doubted(name: str, provider: str, question: str) -> None:
    assert doubt_about(name, NAMES, PROVIDERS) == (
        f"litellm knows no provider '{provider}', so messages may fail.{question}"
    )


@pytest.mark.parametrize("name", ["gpt-4o", "banana", "fruit/banana"])
def test_where_nothing_is_known_nothing_is_doubted(name: str) -> None:
    assert doubt_about(name, frozenset(), frozenset()) is None


def test_where_nothing_is_known_what_is_no_name_is_refused_all_the_same() -> None:
    with pytest.raises(ModelNameError, match="no spaces"):
        doubt_about("a b", frozenset(), frozenset())


@examples(200)
@given(st.text(max_size=40))
def test_every_text_is_trusted_doubted_or_refused_with_a_sentence_that_can_be_printed(name: str) -> None:
    try:
        sentence = doubt_about(name, NAMES, PROVIDERS)
    except ModelNameError as error:
        sentence = str(error)
    assert sentence is None or sentence.isprintable()
