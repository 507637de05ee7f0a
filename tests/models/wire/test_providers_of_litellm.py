"""The table of providers against litellm's own data: an update of litellm that moves an address is seen here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chorus_cli.models.litellm import library
from chorus_cli.models.providers.providers import PROVIDERS, endpoint
from chorus_cli.models.rules.choice import PROVIDERS as OFFERED
from tests.models.providers.asked_models import BY_LITELLM
from tests.models.providers.ways import MODEL_MAP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

pytestmark = [*BY_LITELLM, pytest.mark.usefixtures("test_key")]

# litellm finds the addresses of these elsewhere than for the others; see below.
APART: Mapping[str, Callable[[Any], str]] = {
    "anthropic": lambda litellm: litellm.AnthropicModelInfo.get_api_base(),
    "gemini": lambda litellm: f"{litellm.llms.gemini.common_utils.GeminiModelInfo.get_api_base()}/v1beta",
    "minimax": lambda litellm: litellm.MinimaxChatConfig.get_api_base(),
    "openai": lambda litellm: litellm.OpenAIGPTConfig().get_api_base(),
}
# litellm has these in the code of its request, or knows none: recorded in test_sent_requests.py.
RECORDED = {"openrouter", "lm_studio", "hosted_vllm"}
# Variables that litellm does not read, and those that it reads in its request.
OWN = {"MISTRAL_API_BASE"}
CHATS = ("chat", "responses")
# Chat models of OpenAI under names that nothing marks as OpenAI's, and one that litellm itself does not find.
UNMARKED = {"chat-latest", "computer-use-preview", "daybreak-red-latest", "daybreak-blue-latest", "ft:o4-mini"}


def found(model: str) -> tuple[str, str, str | None, str | None]:
    """Return the model, provider, key and address that litellm finds."""
    model, provider, key, address = library.load().get_llm_provider(model)
    return model, provider, key, address


@pytest.mark.parametrize("prefix", sorted(PROVIDERS.keys() - RECORDED))
def test_the_address_is_litellms(prefix: str) -> None:
    address = APART[prefix](library.load()) if prefix in APART else found(f"{prefix}/m")[3]
    assert str(address).rstrip("/") == PROVIDERS[prefix].address


@pytest.mark.parametrize(
    ("prefix", "variable"),
    [
        (prefix, variable)
        for prefix, provider in PROVIDERS.items()
        for variable in provider.address_variables
        if prefix not in {*APART, "openrouter"} and variable not in OWN
    ],
)
def test_the_variables_of_the_address_are_litellms(prefix: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "http://here.example/v1")
    assert found(f"{prefix}/m")[3] == "http://here.example/v1"


@pytest.mark.parametrize("prefix", sorted(PROVIDERS.keys() - {*APART, "openrouter"}))
def test_the_variables_of_the_key_are_litellms_in_its_order(prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    variables = PROVIDERS[prefix].key_variables
    for variable in variables:
        monkeypatch.setenv(variable, f"key in {variable}")
    for variable in variables:
        assert found(f"{prefix}/m")[2] == f"key in {variable}"
        monkeypatch.delenv(variable)


def names_of_chat_models() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the names of litellm's map that a chat may have, and their entries."""
    for name, entry in library.load().model_cost.items():
        if entry.get("mode") in CHATS:
            yield name, entry


def test_bare_names_are_asked_as_litellm_asks_them() -> None:
    providers = {"openai", "anthropic"}
    missed = set()
    for name, entry in names_of_chat_models():
        if "/" in name:
            continue
        asked = endpoint(MODEL_MAP.meant(name), {})
        provider = entry.get("litellm_provider")
        if asked is not None:
            assert found(name)[:2] == (asked.model, asked.provider), name
            assert entry["mode"] in {"chat", "responses"}, name
        elif provider in providers and entry["mode"] == "chat":
            missed.add(name.partition("-2025")[0])
    assert missed == UNMARKED


def test_names_with_a_prefix_are_asked_as_litellm_asks_them() -> None:
    missed = set()
    for name, entry in names_of_chat_models():
        prefix, slash, _ = name.partition("/")
        if not slash or prefix not in PROVIDERS:
            continue
        asked = endpoint(MODEL_MAP.meant(name), {})
        if asked is None:
            missed.add((prefix, entry["mode"]))
        else:
            model, provider, *_ = found(name)
            assert (asked.model.removeprefix(PROVIDERS[prefix].folder), asked.provider) == (
                model.removeprefix(PROVIDERS[prefix].folder),
                provider,
            )
            assert entry["mode"] in {"chat", "responses"}, name
    assert missed == {("perplexity", "responses"), ("xai", "responses")}


@pytest.mark.parametrize("offered", OFFERED, ids=lambda offered: offered.name)
def test_every_provider_that_is_recognised_by_its_key_is_in_the_table_but_cohere(offered: Any) -> None:
    asked = endpoint(offered.default_model, {offered.key_variable: "key"})
    if offered.name == "Cohere":
        assert asked is None
        return
    assert asked is not None
    assert asked.key == "key"
    assert set(PROVIDERS[asked.provider].key_variables) >= {offered.key_variable, *offered.other_variables}
