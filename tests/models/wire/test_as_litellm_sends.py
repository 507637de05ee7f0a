"""Requests of the wire, compared with those of litellm as a server recorded them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from chorus_cli.models.litellm.client import LiteLLMClient
from chorus_cli.models.providers.providers import PROVIDERS, Endpoint, ProtocolName, named
from chorus_cli.models.rules.choice import PROVIDERS as OFFERED
from chorus_cli.models.rules.declaration import Parameter, Tool
from chorus_cli.models.rules.request import ModelRequest, PromptMessage
from chorus_cli.models.wire.anthropic import AnthropicMessages
from chorus_cli.models.wire.client import WireClient
from chorus_cli.models.wire.gemini import GeminiContents
from tests.models.providers.asked_models import BY_LITELLM, STOP
from tests.models.providers.asked_models import HELLO as ASKED
from tests.models.providers.fault_server import STREAM_HEAD, chunk, event, serving
from tests.models.providers.ways import MODEL_MAP
from tests.models.wire.conversations import (
    ASKED_TOOL,
    COUNT,
    ECHO,
    HELLO,
    NOW,
    SYSTEM,
    TOOL_AFTER_TOOL,
    assistant,
    called,
    result,
    user,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from chorus_cli.models.wire.protocol import Post, WireProtocol
    from tests.models.providers.fault_server import Asked

pytestmark = BY_LITELLM

END = {
    "anthropic": event({"type": "message_stop"}),
    "gemini": event({"candidates": [{"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP", "index": 0}]}),
}
PROTOCOLS: Mapping[str, WireProtocol] = {"anthropic": AnthropicMessages(MODEL_MAP), "gemini": GeminiContents(MODEL_MAP)}
OF_EVERY_REQUEST = {"host", "accept-encoding", "connection", "user-agent", "content-length"}

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


async def recorded(request: ModelRequest, provider: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Asked, str]:
    """Return the request of litellm as the server got it, and the address that it was told."""
    async with serving(STREAM_HEAD, END[provider]) as server:
        address = server.address if provider == "gemini" else server.address.removesuffix("/v1")
        monkeypatch.setenv(f"{provider.upper()}_API_BASE", address)
        monkeypatch.setenv(f"{provider.upper()}_API_KEY", "a-key")
        _ = [_ async for _ in LiteLLMClient({}, MODEL_MAP).stream(request)]
    return server.asked[0], address


def posted(request: ModelRequest, address: str) -> Post:
    provider, _, model = request.model.partition("/")
    return PROTOCOLS[provider].post(request, Endpoint(provider, model, address, "a-key"))


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


def without_showing_thoughts(body: dict[str, Any]) -> dict[str, Any]:
    """Return a body of the wire for Gemini, which asks for the thoughts to be shown; litellm never does."""
    configuration = dict(body.get("generationConfig", {}))
    if configuration.pop("thinkingConfig", None) == {"includeThoughts": True}:
        rest = {name: value for name, value in body.items() if name != "generationConfig"}
        return rest | ({"generationConfig": configuration} if configuration else {})
    return body


def expected(body: Mapping[str, object], request: ModelRequest) -> dict[str, Any]:
    told: dict[str, Any] = without_wrapping(body)
    if request.model == UNLISTED and told.items() >= LONGEST_REPLY.items():
        told |= SHORT_REPLY
    # litellm tells newer models of Gemini the temperature that they have by default.
    if request.temperature is None and told.get("generationConfig") == {"temperature": 1.0}:
        del told["generationConfig"]
    return told


@pytest.mark.parametrize("model", MODELS)
async def test_the_wire_sends_what_litellm_sends(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, request in ((name, replace(request, model=model)) for name, request in REQUESTS.items()):
        asked, address = await recorded(request, model.partition("/")[0], monkeypatch)
        post = posted(request, address)
        assert (name, without_showing_thoughts(json.loads(post.body))) == (name, expected(asked.body, request))
        assert address.partition("//")[2].partition("/")[2] in asked.path
        assert asked.path.endswith(post.path)
        theirs = {name: value for name, value in asked.headers.items() if name not in OF_EVERY_REQUEST}
        assert {"accept": "*/*"} | dict(post.headers) == theirs


async def test_empty_messages_are_left_out_for_which_litellm_writes_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = (user(""), assistant(" "), user("a"), assistant(""), user("  "))
    request = ModelRequest("anthropic/claude-sonnet-4-5", empty)
    asked, address = await recorded(request, "anthropic", monkeypatch)
    assert NO_TEXTS[0] in str(asked.body)
    assert [message["role"] for message in json.loads(posted(request, address).body)["messages"]] == ["user"]


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


async def chats_of(
    model: str, client: type[LiteLLMClient | WireClient], monkeypatch: pytest.MonkeyPatch
) -> dict[str, Asked]:
    """Return the requests as they came from ``client``."""
    provider = PROVIDERS[named(model).provider]
    async with serving(STREAM_HEAD, chunk("hi"), STOP) as server:
        environment = {provider.address_variables[0]: server.address, provider.key_variables[0]: "sk-test-0123456789"}
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        asking = client(environment, MODEL_MAP)
        for request in CHAT_REQUESTS.values():
            _ = [event async for event in asking.stream(replace(request, model=model))]
        if isinstance(asking, WireClient):
            await asking.aclose()
        return dict(zip(CHAT_REQUESTS, server.asked, strict=True))


def telling(asked: Asked) -> dict[str, str]:
    """Return the headers that tell the provider something."""
    told = {name: value for name, value in asked.headers.items() if not name.startswith("x-stainless-")}
    return {name: value for name, value in told.items() if name not in OF_THE_LIBRARY}


@pytest.mark.parametrize("model", CHAT_MODELS)
@pytest.mark.usefixtures("test_key")
async def test_both_clients_send_the_same(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from_litellm = await chats_of(model, LiteLLMClient, monkeypatch)
    from_the_wire = await chats_of(model, WireClient, monkeypatch)
    for name, theirs in from_litellm.items():
        ours = from_the_wire[name]
        assert (name, ours.path, telling(ours)) == (name, theirs.path, telling(theirs))
        only_theirs, only_ours = MEANT.get((model, name), (NONE, NONE))
        assert (name, theirs.body.keys() - ours.body.keys()) == (name, {*only_theirs})
        assert (name, ours.body.keys() - theirs.body.keys()) == (name, {*only_ours})
        assert (name, without(ours, only_ours)) == (name, without(theirs, only_theirs))


def without(asked: Asked, names: frozenset[str]) -> dict[str, object]:
    return {name: value for name, value in asked.body.items() if name not in names}


@pytest.mark.usefixtures("test_key")
async def test_a_system_message_stays_one_though_litellm_makes_it_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = await chats_of("openai/o3", LiteLLMClient, monkeypatch)
    ours = await chats_of("openai/o3", WireClient, monkeypatch)
    messages: list[Any] = [asked["settings"].body["messages"] for asked in (theirs, ours)]
    assert [[said["role"] for said in each] for each in messages] == [["user", "user"], ["system", "user"]]
    assert {**ours["settings"].body, "messages": None} == {**theirs["settings"].body, "messages": None}


@pytest.mark.parametrize("prefix", [prefix for prefix, each in PROVIDERS.items() if each.is_local])
@pytest.mark.usefixtures("test_key")
async def test_ones_own_server_is_sent_no_invented_key(prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(STREAM_HEAD, chunk("hi"), STOP) as server:
        environment = {PROVIDERS[prefix].address_variables[0]: server.address}
        monkeypatch.setenv(PROVIDERS[prefix].address_variables[0], server.address)
        wire = WireClient(environment, MODEL_MAP)
        for client in (LiteLLMClient(environment, MODEL_MAP), wire):
            _ = [event async for event in client.stream(ModelRequest(f"{prefix}/m", ASKED))]
        await wire.aclose()
        sent = [asked.headers.get("authorization") for asked in server.asked]
    assert sent == ["Bearer fake-api-key", None]
