"""The table of providers against litellm's own data, and the requests of each as a proxy records them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from chorus_cli.core.errors import ModelError
from chorus_cli.models.litellm import library
from chorus_cli.models.providers.providers import PROVIDERS, endpoint
from chorus_cli.models.rules.choice import PROVIDERS as OFFERED
from chorus_cli.models.rules.request import ModelRequest
from tests.models.providers.asked_models import BY_LITELLM, HELLO
from tests.models.providers.fault_server import failure
from tests.models.providers.ways import MODEL_MAP, over_wire
from tests.models.wire.servers import recording

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from chorus_cli.models.rules.choice import Provider
    from tests.models.wire.servers import Recorded

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


KEY = "sk-test-0123456789"
# The answer does not matter.
REFUSAL = failure(404, {"error": {"message": "no"}})
GEMINI = "https://generativelanguage.googleapis.com/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse"
RESPONSES = "https://api.openai.com/v1/responses"
# litellm asks Gemini from its third generation on by the version that is not yet stable.
BY_LITELLM_ALONE = {GEMINI: GEMINI.replace("v1beta", "v1alpha")}
URLS = {
    "Anthropic": "https://api.anthropic.com/v1/messages",
    "OpenAI": "https://api.openai.com/v1/chat/completions",
    "Google": GEMINI,
    "Mistral": "https://api.mistral.ai/v1/chat/completions",
    "DeepSeek": "https://api.deepseek.com/beta/chat/completions",
    "xAI": "https://api.x.ai/v1/chat/completions",
    "Cohere": "https://api.cohere.com/v2/chat",
    "Moonshot": "https://api.moonshot.ai/v1/chat/completions",
    "Z.ai": "https://api.z.ai/api/paas/v4/chat/completions",
    "MiniMax": "https://api.minimax.io/v1/chat/completions",
    "Alibaba Cloud": "https://dashscope.aliyuncs.com/compatible-mode/v1/chat/completions",
    "Perplexity": "https://api.perplexity.ai/chat/completions",
    "Groq": "https://api.groq.com/openai/v1/chat/completions",
    "Cerebras": "https://api.cerebras.ai/v1/chat/completions",
    "Together": "https://api.together.ai/v1/chat/completions",
    "Fireworks": "https://api.fireworks.ai/inference/v1/chat/completions",
    "DeepInfra": "https://api.deepinfra.com/v1/openai/chat/completions",
    "SambaNova": "https://api.sambanova.ai/v1/chat/completions",
    "Nebius": "https://api.studio.nebius.ai/v1/chat/completions",
    "Novita": "https://api.novita.ai/v3/openai/chat/completions",
}
KEY_HEADERS = {"Anthropic": {"x-api-key": KEY}, "Google": {"x-goog-api-key": KEY}}
BEARER = {"authorization": f"Bearer {KEY}"}
KEY_HEADER_NAMES = {"authorization", "x-api-key", "x-goog-api-key", "api-key"}
LIBRARIES = ("litellm/", "AsyncOpenAI/", "AsyncAzureOpenAI/")


class Route(NamedTuple):
    """A model that only litellm reaches, the environment that it needs, and the URL and headers of its request."""

    model: str
    environment: Mapping[str, str]
    url: str
    headers: Mapping[str, str]


ONLY_LITELLM = (
    Route("cohere_chat/command-r", {"COHERE_API_KEY": KEY}, URLS["Cohere"], BEARER),
    Route(
        "azure/gpt-4o",
        {"AZURE_API_KEY": KEY, "AZURE_API_BASE": "https://mine.openai.azure.com", "AZURE_API_VERSION": "2024-10-21"},
        "https://mine.openai.azure.com/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21",
        {"api-key": KEY},
    ),
    Route(
        "bedrock/amazon.nova-lite-v1:0",
        {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": KEY, "AWS_REGION_NAME": "us-east-1"},
        "https://bedrock-runtime.us-east-1.amazonaws.com/model/amazon.nova-lite-v1%3A0/converse-stream",
        {},
    ),
)


async def recorded(
    model: str, environment: Mapping[str, str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Recorded:
    """Return the request for ``model`` as it would have left the machine."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    async with recording(folder, monkeypatch, REFUSAL) as proxy:
        router = over_wire(environment, 300, 60)
        with pytest.raises(ModelError):
            _ = [event async for event in router.stream(ModelRequest(model, HELLO))]
        await router.aclose()
    (asked,) = proxy.recorded
    return asked


def is_by_litellm(asked: Recorded) -> bool:
    return asked.headers["user-agent"].startswith(LIBRARIES)


def keys(asked: Recorded) -> dict[str, str]:
    return {name: value for name, value in asked.headers.items() if name in KEY_HEADER_NAMES}


@pytest.mark.parametrize("switch", ["", "off"], ids=["by the wire", "by litellm"])
@pytest.mark.parametrize("offered", OFFERED, ids=lambda offered: offered.name)
async def test_each_offered_model_is_asked_at_its_providers_address_with_its_key(
    offered: Provider, switch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {offered.key_variable: KEY, "CHORUS_WIRE": switch}
    asked = await recorded(offered.default_model, environment, tmp_path, monkeypatch)
    by_the_newer_protocol = offered.name == "OpenAI" and switch != "off"
    url = RESPONSES if by_the_newer_protocol else URLS[offered.name]
    assert asked.url == (BY_LITELLM_ALONE.get(url, url) if switch == "off" else url)
    assert is_by_litellm(asked) == (switch == "off" or offered.name == "Cohere")
    assert keys(asked) == KEY_HEADERS.get(offered.name, BEARER)
    assert KEY not in str(asked.body)


@pytest.mark.parametrize("route", ONLY_LITELLM, ids=lambda route: route.model)
async def test_other_models_are_asked_through_litellm(
    route: Route, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = await recorded(route.model, route.environment, tmp_path, monkeypatch)
    assert is_by_litellm(asked)
    assert asked.url == route.url
    assert route.headers.items() <= keys(asked).items()
    assert KEY not in asked.url
    assert KEY not in str(asked.body)


@pytest.mark.parametrize("switch", ["", "off"], ids=["by the wire", "by litellm"])
async def test_openrouter_is_asked_at_its_address(switch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {"OPENROUTER_API_KEY": KEY, "CHORUS_WIRE": switch}
    asked = await recorded("openrouter/auto", environment, tmp_path, monkeypatch)
    assert is_by_litellm(asked) == (switch == "off")
    assert asked.url == "https://openrouter.ai/api/v1/chat/completions"
    assert keys(asked) == BEARER
