"""The table of providers, and requests: where models are asked, with which key and what, as litellm does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chorus_cli.core.errors import ModelError
from chorus_cli.models.litellm import library
from chorus_cli.models.litellm.client import LiteLLMClient
from chorus_cli.models.providers.failures import Asked, Failure, Trouble, model_error
from chorus_cli.models.providers.parameters import dialect
from chorus_cli.models.providers.providers import PROVIDERS, Endpoint, ProtocolName, endpoint, lacks_key, named
from chorus_cli.models.rules.choice import PROVIDERS as OFFERED
from chorus_cli.models.rules.choice import Provider
from chorus_cli.models.rules.declaration import Parameter, Tool
from chorus_cli.models.rules.request import ModelRequest, PromptMessage
from chorus_cli.models.wire.client import WireClient
from tests.models.providers.asked_models import BY_LITELLM, MODEL_MAP, STOP, over_wire
from tests.models.providers.asked_models import HELLO as ASKED
from tests.models.providers.fault_server import STREAM_HEAD, chunk, event, failure, serving
from tests.models.providers.fault_server import Asked as Received
from tests.models.wire.conversations import (
    ASKED_TOOL,
    COUNT,
    ECHO,
    HELLO,
    NOW,
    SYSTEM,
    TOOL_AFTER_TOOL,
    Recorded,
    assistant,
    called,
    recording,
    result,
    user,
)

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
def test_a_model_is_asked_at_its_providers_address(model: str, environment: dict[str, str], asked: Endpoint) -> None:
    assert endpoint(model, environment) == asked


OF_US = {"OPENAI_ORGANIZATION": "us", "OPENAI_PROJECT_ID": "p"}
LOGIN = {"authorization": "Bearer sk-ant-oat01-x", "anthropic-beta": "oauth-2025-04-20"}
LOGIN |= {"anthropic-dangerous-direct-browser-access": "true"}


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
        ("openai/m", OF_US | {"OPENAI_ORG_ID": "them"}, "", {"openai-organization": "us", "openai-project": "p"}),
        ("openai/m", {"OPENAI_ORG_ID": "them"}, "", {"openai-organization": "them"}),
        ("moonshot/m", {"OPENAI_ORGANIZATION": "us", "MOONSHOT_API_KEY": "k"}, "k", {}),
        ("anthropic/c", {"ANTHROPIC_AUTH_TOKEN": "t"}, "", {"authorization": "Bearer t"}),
        ("anthropic/c", {"ANTHROPIC_AUTH_TOKEN": "t", "ANTHROPIC_API_KEY": "k"}, "k", {}),
        ("anthropic/c", {"ANTHROPIC_FEDERATION_RULE_ID": "rule", "ANTHROPIC_API_KEY": "k"}, "k", {}),
        ("anthropic/c", {"ANTHROPIC_API_KEY": "sk-ant-oat01-x"}, "", LOGIN),
        ("gemini/g", {"GEMINI_API_KEY": "k"}, "k", {}),
    ],
)
def test_keys_and_accounts_are_read(model: str, environment: dict[str, str], key: str, headers: dict[str, str]) -> None:
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


def test_openais_models_that_think_are_asked_by_its_newer_protocol() -> None:
    at_x = {"OPENAI_BASE_URL": "http://x/v1"}
    newer = ("openai/gpt-5.4-mini", "o3-pro", "gpt-5-codex", "openai/gpt-6.2-sol", "openai/responses/gpt-4o")
    older = ("openai/gpt-5-chat-latest", "openai/gpt-4o", "openai/mine")
    asked = [endpoint(name, {}, MODEL_MAP.thinks) for name in (*newer, *older)]
    asked += [endpoint(name, at_x, MODEL_MAP.thinks) for name in ("openai/gpt-5.4-mini", "openai/responses/mine")]
    found = [(each.model, each.protocol is ProtocolName.RESPONSES) for each in asked if each is not None]
    expected = [*((name, True) for name in newer), *((name, False) for name in older)]
    assert found == [
        *((name.rpartition("/")[2], is_newer) for name, is_newer in expected),
        *(("gpt-5.4-mini", False), ("mine", True)),
    ]


pytestmark = [*BY_LITELLM, pytest.mark.usefixtures("fake_key")]

# litellm has the addresses of these in the code of its request, which is recorded below and elsewhere.
RECORDED = {"anthropic", "gemini", "minimax", "openai", "openrouter"}
# Variables that litellm does not read, and those that it reads in its request.
OWN = {"MISTRAL_API_BASE"}
MODES = ("chat", "responses")
# Chat models of OpenAI under names that nothing marks as OpenAI's, and one that litellm itself does not find.
UNMARKED = {"chat-latest", "computer-use-preview", "daybreak-red-latest", "daybreak-blue-latest", "ft:o4-mini"}


def found(model: str) -> tuple[str, str, str | None, str | None]:
    """Return the model, provider, key and address that litellm finds."""
    model, provider, key, address = library.load().get_llm_provider(model)
    return model, provider, key, address


@pytest.mark.parametrize("prefix", ["llamafile", "nvidia_nim"])
def test_the_address_of_a_provider_that_is_not_recorded_is_litellms(prefix: str) -> None:
    assert str(found(f"{prefix}/m")[3]).rstrip("/") == PROVIDERS[prefix].address


@pytest.mark.parametrize(
    ("prefix", "variable"),
    [
        (prefix, variable)
        for prefix, provider in PROVIDERS.items()
        for variable in provider.address_variables
        if prefix not in RECORDED and variable not in OWN
    ],
)
def test_the_variables_of_the_address_are_litellms(prefix: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "http://here.example/v1")
    assert found(f"{prefix}/m")[3] == "http://here.example/v1"


@pytest.mark.parametrize("prefix", sorted(PROVIDERS.keys() - RECORDED))
def test_the_variables_of_the_key_are_litellms_in_its_order(prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    variables = PROVIDERS[prefix].key_variables
    for variable in variables:
        monkeypatch.setenv(variable, f"key in {variable}")
    for variable in variables:
        assert found(f"{prefix}/m")[2] == f"key in {variable}"
        monkeypatch.delenv(variable)


def test_the_names_of_the_map_are_asked_as_litellm_asks_them() -> None:
    missed, missed_bare = set(), set()
    for name, entry in library.load().model_cost.items():
        prefix, slash, _ = name.partition("/")
        if entry.get("mode") not in MODES or (slash and prefix not in PROVIDERS):
            continue
        asked = endpoint(MODEL_MAP.meant(name), {})
        if asked is not None:
            (model, provider, *_), folder = found(name), PROVIDERS[asked.provider].folder
            ours = (asked.model.removeprefix(folder), asked.provider)
            assert ours == (model.removeprefix(folder), provider), name
        elif slash:
            missed.add((prefix, entry["mode"]))
        elif entry.get("litellm_provider") in {"openai", "anthropic"} and entry["mode"] == "chat":
            missed_bare.add(name.partition("-2025")[0])
    assert missed_bare == UNMARKED
    assert missed == {("perplexity", "responses"), ("xai", "responses")}


KEY = "sk-test-0123456789"
# The answer does not matter.
REFUSAL = failure(404, {"error": {"message": "no"}})
GEMINI = "https://generativelanguage.googleapis.com/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse"
RESPONSES = "https://api.openai.com/v1/responses"
# litellm asks Gemini from its third generation on by the version that is not yet stable.
BY_LITELLM_ALONE = {GEMINI: GEMINI.replace("v1beta", "v1alpha")}
# The others are asked below the address that the tests above compare with litellm's.
URLS = {
    "Anthropic": "https://api.anthropic.com/v1/messages",
    "Google": GEMINI,
    "Cohere": "https://api.cohere.com/v2/chat",
}
OPENROUTER = Provider("OpenRouter", "OPENROUTER_API_KEY", "openrouter/auto")
KEY_HEADERS = {"Anthropic": {"x-api-key": KEY}, "Google": {"x-goog-api-key": KEY}}
BEARER = {"authorization": f"Bearer {KEY}"}
KEY_HEADER_NAMES = {"authorization", "x-api-key", "x-goog-api-key", "api-key"}
LIBRARIES = ("litellm/", "AsyncOpenAI/", "AsyncAzureOpenAI/")


async def sent(model: str, environment: Mapping[str, str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Recorded:
    """Return the request for ``model`` as it would have left the machine."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    async with recording(folder, monkeypatch, REFUSAL) as proxy:
        router = over_wire(environment)
        with pytest.raises(ModelError):
            _ = [event async for event in router.stream(ModelRequest(model, ASKED))]
        await router.aclose()
    (asked,) = proxy.recorded
    return asked


def is_by_litellm(asked: Recorded) -> bool:
    return asked.headers["user-agent"].startswith(LIBRARIES)


def keys(asked: Recorded) -> dict[str, str]:
    return {name: value for name, value in asked.headers.items() if name in KEY_HEADER_NAMES}


@pytest.mark.parametrize("switch", ["", "off"], ids=["by the wire", "by litellm"])
@pytest.mark.parametrize("offered", [*OFFERED, OPENROUTER], ids=lambda offered: offered.name)
async def test_each_offered_model_is_asked_at_its_providers_address_with_its_key(
    offered: Provider, switch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {offered.key_variable: KEY, "CHORUS_WIRE": switch}
    asked = await sent(offered.default_model, environment, tmp_path, monkeypatch)
    by_the_newer_protocol = offered.name == "OpenAI" and switch != "off"
    prefix = offered.prefix.removesuffix("/")
    usual = URLS.get(offered.name) or f"{PROVIDERS[prefix].address}/chat/completions"
    url = RESPONSES if by_the_newer_protocol else usual
    assert asked.url == (BY_LITELLM_ALONE.get(url, url) if switch == "off" else url)
    assert is_by_litellm(asked) == (switch == "off" or offered.name == "Cohere")
    assert keys(asked) == KEY_HEADERS.get(offered.name, BEARER)
    assert KEY not in str(asked.body)
    offers = offered.variables or (offered.key_variable,)
    known = PROVIDERS[prefix].key_variables if prefix in PROVIDERS else offers
    assert tuple(variable for variable in known if variable in offers) == offers


@pytest.mark.parametrize(
    ("model", "environment", "url", "headers"),
    [
        (
            "azure/gpt-4o",
            {
                "AZURE_API_KEY": KEY,
                "AZURE_API_BASE": "https://mine.openai.azure.com",
                "AZURE_API_VERSION": "2024-10-21",
            },
            "https://mine.openai.azure.com/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21",
            {"api-key": KEY},
        ),
        (
            "bedrock/amazon.nova-lite-v1:0",
            {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": KEY, "AWS_REGION_NAME": "us-east-1"},
            "https://bedrock-runtime.us-east-1.amazonaws.com/model/amazon.nova-lite-v1%3A0/converse-stream",
            {},
        ),
    ],
)
async def test_other_models_are_asked_by_litellm(
    model: str,
    environment: Mapping[str, str],
    url: str,
    headers: Mapping[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = await sent(model, environment, tmp_path, monkeypatch)
    assert (asked.url, is_by_litellm(asked)) == (url, True)
    assert headers.items() <= keys(asked).items()
    assert KEY not in f"{asked.url} {asked.body}"


ENDS = {
    "anthropic": event({"type": "message_stop"}),
    "gemini": event({"candidates": [{"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP", "index": 0}]}),
}

# Differences that are meant. Gemini documents the names of its fields as on the left, and takes both.
AS_DOCUMENTED = {
    "systemInstruction": "system_instruction",
    "functionDeclarations": "function_declarations",
    "functionCall": "function_call",
    "functionResponse": "function_response",
    "maxOutputTokens": "max_output_tokens",
}
# litellm puts these in the place of empty texts, which the wire leaves out.
NO_TEXTS = ("[System: Empty message content sanitised to satisfy protocol]", "")
# litellm gives a call without a signature this one.
INVENTED_SIGNATURE = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="

REQUESTS = {
    "plain": ModelRequest("", (HELLO,)),
    "a system message": ModelRequest("", (SYSTEM, HELLO, assistant("Hi "), user("again"))),
    "a long talk": ModelRequest("", (SYSTEM, *(turn for _ in range(4) for turn in (HELLO, assistant("Hi."))), HELLO)),
    "temperature and length": ModelRequest("", (HELLO,), temperature=0.5, max_output_tokens=100),
    "temperature 1": ModelRequest("", (HELLO,), temperature=1.0),
    "two of each in a row": ModelRequest("", (user("a"), user("b"), assistant("c"), assistant("d"), user("e"))),
    "the reply is to be gone on with": ModelRequest("", (HELLO, assistant("Hi"))),
    "blanks at the end": ModelRequest("", (HELLO, assistant("hi \n"))),
    "begun by the model": ModelRequest("", (SYSTEM, assistant("Hi"), HELLO)),
    "tools": ModelRequest("", (HELLO,), tools=(ECHO, COUNT, NOW)),
    "a call": ModelRequest("", ASKED_TOOL, tools=(ECHO,)),
    "calls one after another": ModelRequest("", TOOL_AFTER_TOOL, tools=(ECHO,)),
    "a question after calls": ModelRequest("", (*TOOL_AFTER_TOOL, user("And?")), tools=(ECHO,)),
    "calls forbidden": ModelRequest("", ASKED_TOOL, tools=(ECHO,), may_call=False),
    "a call, but no tools": ModelRequest("", ASKED_TOOL),
    "an id in odd letters": ModelRequest("", (HELLO, called("c 1.ä"), result("c 1.ä")), tools=(ECHO,)),
    "a result without a text": ModelRequest("", (HELLO, called("c"), result("c", "")), tools=(ECHO,)),
    "a result in JSON": ModelRequest("", (HELLO, called("c"), result("c", '{"a": [1]}')), tools=(ECHO,)),
    "a result that is a list": ModelRequest("", (HELLO, called("c"), result("c", "[1, 2]")), tools=(ECHO,)),
    "a signed call": ModelRequest("", (HELLO, called("c__thought__QQ=="), result("c__thought__QQ==")), tools=(ECHO,)),
    "little room for the reply": ModelRequest("", (HELLO,), context_tokens=200_000, prompt_tokens=190_000),
    "halves of characters": ModelRequest("", (user("a \ud83d\ude00 \ud83d é \u2028"),)),
}
# Of a Claude of which it knows nothing litellm wants the longest reply that any gives, the wire one that each can give.
UNLISTED = "anthropic/claude-1-of-old"
LONGEST_REPLY, SHORT_REPLY = {"max_tokens": 128_000}, {"max_tokens": 4096}
MODELS = (
    "anthropic/claude-sonnet-4-5",
    "anthropic/claude-opus-4-7",
    UNLISTED,
    "gemini/gemini-2.5-flash",
    "gemini/gemini-flash-latest",
    "gemini/gemma-3-27b-it",
)


def without_wrapping(value: Any) -> Any:
    """Return JSON of litellm with documented names, and without the texts that stand for nothing."""
    match value:
        case dict():
            names = {written: name for name, written in AS_DOCUMENTED.items()}
            kept = {name: item for name, item in value.items() if item != INVENTED_SIGNATURE}
            return {names.get(name, name): without_wrapping(item) for name, item in kept.items()}
        case list():
            is_empty = [isinstance(item, dict) and item.get("text") in NO_TEXTS for item in value]
            return [without_wrapping(item) for item, empty in zip(value, is_empty, strict=True) if not empty]
        case _:
            return value


def without_showing_thoughts(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a body of the wire for Gemini, which asks for the thoughts to be shown; litellm never does."""
    configuration = dict(body.get("generationConfig", {}))
    if configuration.pop("thinkingConfig", None) == {"includeThoughts": True}:
        rest = {name: value for name, value in body.items() if name != "generationConfig"}
        return rest | ({"generationConfig": configuration} if configuration else {})
    return body


def expected(body: Mapping[str, object], request: ModelRequest, model: str) -> dict[str, Any]:
    told: dict[str, Any] = without_wrapping(body)
    if model == UNLISTED and told.items() >= LONGEST_REPLY.items():
        told |= SHORT_REPLY
    # litellm tells newer models of Gemini the temperature that they have by default.
    if request.temperature is None and told.get("generationConfig") == {"temperature": 1.0}:
        del told["generationConfig"]
    return told


# Headers that name a library or belong to the connection.
OF_THE_LIBRARY = {
    *("user-agent", "accept", "accept-encoding", "connection", "content-length", "host"),
    *("http-referer", "x-title", "x-novita-source", "x-pplx-integration"),
}
CALLS = '[{"id": "call12345", "type": "function", "function": {"name": "recall", "arguments": "{}"}}]'
CONVERSATION = (
    PromptMessage("system", "Be kind."),
    PromptMessage("user", "half a pair: \ud83d, a whole one: \U0001f600, an umlaut: ä"),
    PromptMessage("assistant", "I look it up.", tool_calls=CALLS),
    PromptMessage("tool", "nothing found", tool_call_id="call12345"),
    PromptMessage("assistant", "Nothing."),
    PromptMessage("user", "five"),
)
RECALL = Tool("recall", "Recall.", (Parameter("query", "Words."),))
CHAT_REQUESTS = {
    "plain": ModelRequest("", ASKED),
    "settings": ModelRequest("", CONVERSATION[:2], temperature=0.5, max_output_tokens=99),
    "tools": ModelRequest("", CONVERSATION, tools=(RECALL,)),
    "no more calls": ModelRequest("", CONVERSATION, tools=(RECALL,), may_call=False),
}


NONE: frozenset[str] = frozenset()
# What only litellm sends, and only the wire: litellm asks for the costs too, which nothing shows, and lets only models
# of its map have tools.
MEANT: Mapping[tuple[str, str], tuple[frozenset[str], frozenset[str]]] = {
    **{("openrouter/m", name): (frozenset({"usage"}), NONE) for name in CHAT_REQUESTS},
    ("fireworks_ai/m", "no more calls"): (NONE, frozenset({"tool_choice"})),
    ("sambanova/m", "tools"): (NONE, frozenset({"tools"})),
    ("sambanova/m", "no more calls"): (NONE, frozenset({"tools", "tool_choice"})),
}
CHATS = [prefix for prefix, each in PROVIDERS.items() if each.protocol is ProtocolName.CHAT_COMPLETIONS]
CHAT_MODELS = [
    *(each.default_model for each in OFFERED if each.prefix.removesuffix("/") in CHATS),
    *(f"{prefix}/m" for prefix in CHATS),
    *("gpt-4o", "openai/gpt-4o", "openai/gpt-5-mini", "openai/gpt-6-sol", "openai/gpt-5-chat-latest", "openai/o1"),
    *("moonshot/moonshot-v1-8k", "deepseek/deepseek-reasoner", "mistral/magistral-medium-latest"),
    "groq/qwen/qwen3-32b",
]


PARAMETERS: dict[str, Any] = {"temperature": 0.5, "max_tokens": 9, "tools": [RECALL.declaration], "tool_choice": "none"}
PARAMETERS |= {"stream": True, "stream_options": {"include_usage": True}}
# Of these, litellm looks up in its map whether a model takes tools, which the chat has done before.
BY_THE_MAP = {"fireworks_ai", "sambanova"}
# The map does not say that it takes a ban on calls; where a server refuses one, the wire leaves it out.
UNTOLD = {"gpt-6-cyber"}


@pytest.mark.parametrize("prefix", CHATS)
def test_each_model_of_the_map_is_sent_the_parameters_that_litellm_sends(prefix: str) -> None:
    litellm, calling = library.load(), {"unknown": True}
    for name, entry in litellm.model_cost.items():
        if entry.get("litellm_provider") == prefix and entry.get("mode") == "chat":
            meant = MODEL_MAP.meant(f"{prefix}/{name.removeprefix(f'{prefix}/')}").removeprefix(f"{prefix}/")
            calling[meant] = entry.get("supports_function_calling", False)
    for name, calls in calling.items():
        asked = endpoint(f"{prefix}/{name}", {})
        assert asked is not None
        ours = {dialect(asked).reply_limit, *PARAMETERS.keys() - {"max_tokens"}} - dialect(asked).omitted
        told = litellm.utils.get_optional_params(name, custom_llm_provider=prefix, drop_params=True, **PARAMETERS)
        theirs = {each for each, value in told.items() if value and each in {*PARAMETERS, "max_completion_tokens"}}
        # The others are never offered tools.
        ignored = set() if calls and prefix not in BY_THE_MAP else {"tools", "tool_choice"}
        ignored |= {"tool_choice"} if name in UNTOLD else set()
        assert (name, ours - ignored) == (name, theirs - ignored)


Client = LiteLLMClient | WireClient


async def sent_by(
    client: type[Client],
    model: str,
    requests: Mapping[str, ModelRequest],
    monkeypatch: pytest.MonkeyPatch,
    key: str = KEY,
) -> dict[str, Received]:
    """Return the requests as they came from ``client``."""
    prefix = named(model).provider
    provider = PROVIDERS[prefix]
    async with serving(STREAM_HEAD, ENDS.get(prefix, chunk("hi") + STOP)) as server:
        address = server.address.removesuffix("" if provider.path else "/v1")
        environment = {provider.address_variables[0]: address, provider.key_variables[0]: key}
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        asking = client(environment, MODEL_MAP)
        for request in requests.values():
            _ = [event async for event in asking.stream(replace(request, model=model))]
        if isinstance(asking, WireClient):
            await asking.aclose()
        return dict(zip(requests, server.asked, strict=True))


def telling(asked: Received) -> dict[str, str]:
    """Return the headers that tell the provider something."""
    told = {name: value for name, value in asked.headers.items() if not name.startswith("x-stainless-")}
    return {name: value for name, value in told.items() if name not in OF_THE_LIBRARY}


@pytest.mark.parametrize("model", MODELS)
async def test_the_wire_sends_what_litellm_sends(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from_litellm = await sent_by(LiteLLMClient, model, REQUESTS, monkeypatch)
    from_the_wire = await sent_by(WireClient, model, REQUESTS, monkeypatch)
    for name, theirs in from_litellm.items():
        ours = from_the_wire[name]
        assert (name, ours.path, telling(ours)) == (name, theirs.path, telling(theirs))
        told = expected(theirs.body, REQUESTS[name], model)
        assert (name, without_showing_thoughts(ours.body)) == (name, told)


@pytest.mark.parametrize("model", CHAT_MODELS)
@pytest.mark.usefixtures("fake_key")
async def test_both_clients_send_the_same(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from_litellm = await sent_by(LiteLLMClient, model, CHAT_REQUESTS, monkeypatch)
    from_the_wire = await sent_by(WireClient, model, CHAT_REQUESTS, monkeypatch)
    for name, theirs in from_litellm.items():
        ours = from_the_wire[name]
        assert (name, ours.path, telling(ours)) == (name, theirs.path, telling(theirs))
        only_theirs, only_ours = MEANT.get((model, name), (NONE, NONE))
        assert (name, theirs.body.keys() - ours.body.keys()) == (name, {*only_theirs})
        assert (name, ours.body.keys() - theirs.body.keys()) == (name, {*only_ours})
        assert (name, without(ours, only_ours)) == (name, without(theirs, only_theirs))


def without(asked: Received, names: frozenset[str]) -> dict[str, object]:
    return {name: value for name, value in asked.body.items() if name not in names}


@pytest.mark.usefixtures("fake_key")
async def test_a_system_message_stays_one_though_litellm_makes_it_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    requests = {"settings": CHAT_REQUESTS["settings"]}
    bodies: list[Any] = [
        (await sent_by(client, "openai/o3", requests, monkeypatch))["settings"].body
        for client in (LiteLLMClient, WireClient)
    ]
    roles = [[said["role"] for said in body.pop("messages")] for body in bodies]
    assert (roles, bodies[0]) == ([["user", "user"], ["system", "user"]], bodies[1])


@pytest.mark.parametrize("prefix", [prefix for prefix, each in PROVIDERS.items() if each.is_local])
@pytest.mark.usefixtures("fake_key")
async def test_ones_own_server_is_sent_no_invented_key(prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = {"plain": CHAT_REQUESTS["plain"]}
    sent = [await sent_by(client, f"{prefix}/m", requests, monkeypatch, "") for client in (LiteLLMClient, WireClient)]
    assert [each["plain"].headers.get("authorization") for each in sent] == ["Bearer fake-api-key", None]
