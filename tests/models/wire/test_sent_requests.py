"""The same request over the wire and through litellm, to each provider of chat completions: a server records both."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import pytest

from chorus_cli.models.litellm.client import LiteLLMClient
from chorus_cli.models.providers.providers import PROVIDERS, ProtocolName, named
from chorus_cli.models.rules.choice import PROVIDERS as OFFERED
from chorus_cli.models.rules.declaration import Parameter, Tool
from chorus_cli.models.rules.request import ModelRequest, PromptMessage
from chorus_cli.models.wire.client import WireClient
from tests.models.providers.asked_models import BY_LITELLM, HELLO, STOP
from tests.models.providers.fault_server import STREAM_HEAD, chunk, serving
from tests.models.providers.ways import MODEL_MAP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.models.providers.fault_server import Asked

pytestmark = BY_LITELLM

KEY = "sk-test-0123456789"
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
REQUESTS = {
    "plain": ModelRequest("", HELLO),
    "settings": ModelRequest("", CONVERSATION[:2], temperature=0.5, max_output_tokens=99),
    "tools": ModelRequest("", CONVERSATION, tools=(RECALL,)),
    "no more calls": ModelRequest("", CONVERSATION, tools=(RECALL,), may_call=False),
}


class Difference(NamedTuple):
    """A difference on purpose: the members of the body that only one client sends."""

    reason: str
    only_litellm: frozenset[str] = frozenset()
    only_wire: frozenset[str] = frozenset()


SAME = Difference("")
COSTS = Difference("litellm asks for the costs too, which nothing shows", only_litellm=frozenset({"usage"}))
UNMAPPED = "litellm lets only models of its map have this"
MEANT: Mapping[tuple[str, str], Difference] = {
    **{("openrouter/m", name): COSTS for name in REQUESTS},
    ("fireworks_ai/m", "no more calls"): Difference(UNMAPPED, only_wire=frozenset({"tool_choice"})),
    ("sambanova/m", "tools"): Difference(UNMAPPED, only_wire=frozenset({"tools"})),
    ("sambanova/m", "no more calls"): Difference(UNMAPPED, only_wire=frozenset({"tools", "tool_choice"})),
}
CHATS = [prefix for prefix, each in PROVIDERS.items() if each.protocol is ProtocolName.CHAT_COMPLETIONS]
MODELS = [
    *(each.default_model for each in OFFERED if each.prefix.removesuffix("/") in CHATS),
    *(f"{prefix}/m" for prefix in CHATS),
    *("gpt-4o", "openai/gpt-4o", "openai/gpt-5-mini", "openai/gpt-6-sol", "openai/gpt-5-chat-latest", "openai/o1"),
    *(
        "moonshot/moonshot-v1-8k",
        "deepseek/deepseek-reasoner",
        "mistral/magistral-medium-latest",
        "groq/qwen/qwen3-32b",
    ),
]


async def recorded(
    model: str, client: type[LiteLLMClient | WireClient], monkeypatch: pytest.MonkeyPatch
) -> dict[str, Asked]:
    """Return the requests as they came from ``client``."""
    provider = PROVIDERS[named(model).provider]
    async with serving(STREAM_HEAD, chunk("hi"), STOP) as server:
        environment = {provider.address_variables[0]: server.address, provider.key_variables[0]: KEY}
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        asking = client(environment, MODEL_MAP)
        for request in REQUESTS.values():
            _ = [event async for event in asking.stream(replace(request, model=model))]
        if isinstance(asking, WireClient):
            await asking.aclose()
        return dict(zip(REQUESTS, server.asked, strict=True))


def telling(asked: Asked) -> dict[str, str]:
    """Return the headers that tell the provider something."""
    return {
        name: value
        for name, value in asked.headers.items()
        if name not in OF_THE_LIBRARY and not name.startswith("x-stainless-")
    }


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.usefixtures("test_key")
async def test_both_clients_send_the_same(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from_litellm = await recorded(model, LiteLLMClient, monkeypatch)
    from_the_wire = await recorded(model, WireClient, monkeypatch)
    for name, theirs in from_litellm.items():
        ours = from_the_wire[name]
        assert (name, ours.path, telling(ours)) == (name, theirs.path, telling(theirs))
        meant = MEANT.get((model, name), SAME)
        assert (name, frozenset(theirs.body.keys() - ours.body.keys())) == (name, meant.only_litellm)
        assert (name, frozenset(ours.body.keys() - theirs.body.keys())) == (name, meant.only_wire)
        assert (name, without(ours, meant.only_wire)) == (name, without(theirs, meant.only_litellm))


def without(asked: Asked, names: frozenset[str]) -> dict[str, object]:
    return {name: value for name, value in asked.body.items() if name not in names}


@pytest.mark.usefixtures("test_key")
async def test_a_system_message_stays_one_though_litellm_makes_it_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = await recorded("openai/o3", LiteLLMClient, monkeypatch)
    ours = await recorded("openai/o3", WireClient, monkeypatch)
    assert [roles(asked["settings"]) for asked in (theirs, ours)] == [["user", "user"], ["system", "user"]]
    assert {**ours["settings"].body, "messages": None} == {**theirs["settings"].body, "messages": None}


def roles(asked: Asked) -> list[object]:
    messages = asked.body["messages"]
    assert isinstance(messages, list)
    return [message["role"] for message in messages]


@pytest.mark.parametrize("prefix", [prefix for prefix, each in PROVIDERS.items() if each.is_local])
@pytest.mark.usefixtures("test_key")
async def test_a_server_of_the_users_own_is_sent_no_key_where_litellm_invents_one(
    prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(STREAM_HEAD, chunk("hi"), STOP) as server:
        environment = {PROVIDERS[prefix].address_variables[0]: server.address}
        monkeypatch.setenv(PROVIDERS[prefix].address_variables[0], server.address)
        wire = WireClient(environment, MODEL_MAP)
        for client in (LiteLLMClient(environment, MODEL_MAP), wire):
            _ = [event async for event in client.stream(ModelRequest(f"{prefix}/m", HELLO))]
        await wire.aclose()
        sent = [asked.headers.get("authorization") for asked in server.asked]
    assert sent == ["Bearer fake-api-key", None]
