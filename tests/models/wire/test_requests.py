"""Requests as they are written: parameters in the way of each provider; the official SDKs judge them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from chorus_cli.models.providers.failures import Failure, Trouble
from chorus_cli.models.providers.model_map import ModelMap
from chorus_cli.models.providers.parameters import refused_parameter
from chorus_cli.models.providers.providers import PROVIDERS, Endpoint
from chorus_cli.models.providers.servers import ollama_endpoint
from chorus_cli.models.rules.events import Notice, ReplyEnd, TextDelta
from chorus_cli.models.rules.request import ModelRequest, PromptMessage
from chorus_cli.models.wire.anthropic import AnthropicMessages
from chorus_cli.models.wire.chat_completions import ChatCompletions
from chorus_cli.models.wire.client import WireClient
from chorus_cli.models.wire.gemini import GeminiContents
from chorus_cli.models.wire.protocol import EncodedMessages, Post, WireProtocol
from tests.attached_files import attachment, loaded
from tests.loopback_providers import calling
from tests.models.providers.asked_models import MODEL_MAP, STOP
from tests.models.providers.fault_server import STREAM_HEAD, chunk, serving
from tests.models.wire.conversations import (
    ASKED_TOOL,
    ASKING,
    ECHO,
    HELLO,
    SYSTEM,
    assistant,
    called,
    client_of,
    events_of,
    result,
    user,
)
from tests.sdk_types import misfit_of_anthropic, misfit_of_chat, misfit_of_gemini, misfit_of_responses

CLAUDE = ModelRequest("anthropic/claude-sonnet-4-5", (SYSTEM, HELLO))
GEMINI = ModelRequest("gemini/gemini-2.5-flash", (SYSTEM, HELLO))
PROTOCOLS: dict[str, Callable[[ModelMap], WireProtocol]] = {"anthropic": AnthropicMessages, "gemini": GeminiContents}


def endpoint_of(request: ModelRequest, *, key: str = "a-key", refused: frozenset[str] = frozenset()) -> Endpoint:
    provider, _, model = request.model.partition("/")
    return Endpoint(provider, model, PROVIDERS[provider].address, key, refused=refused)


def posted(request: ModelRequest, endpoint: Endpoint | None = None, protocol: WireProtocol | None = None) -> Post:
    asked = endpoint or endpoint_of(request)
    return (protocol or PROTOCOLS[asked.provider](MODEL_MAP)).post(request, asked)


def body(request: ModelRequest, endpoint: Endpoint | None = None) -> dict[str, Any]:
    written: dict[str, Any] = json.loads(posted(request, endpoint).body)
    return written


def test_an_address_may_name_a_part_of_the_path() -> None:
    here = "http://localhost:4000"
    paths = {"https://api.anthropic.com": "/v1/messages", f"{here}/anthropic": "/v1/messages"}
    for address, path in (paths | {f"{here}/v1": "/messages", f"{here}/v1/messages": ""}).items():
        assert (address, posted(CLAUDE, endpoint_of(CLAUDE)._replace(address=address)).path) == (address, path)


def test_a_token_goes_into_a_header_in_place_of_the_key() -> None:
    fixed = {"anthropic-version": "2023-06-01", "accept": "application/json", "content-type": "application/json"}
    token = {"authorization": "Bearer a-token"}
    bare = endpoint_of(CLAUDE, key="")
    assert posted(CLAUDE, bare._replace(headers=tuple(token.items()))).headers == fixed | token
    assert posted(CLAUDE, bare).headers == fixed


def test_messages_without_a_text_are_left_out() -> None:
    messages = (PromptMessage("system", " \n"), user(""), user("a"), assistant(" "), user("b"), assistant(""))
    assert body(replace(CLAUDE, messages=messages)) == body(replace(CLAUDE, messages=(user("a"), user("b"))))


@pytest.mark.parametrize("arguments", ["", "{", "[]", "NaN"])
def test_arguments_of_an_old_log_that_are_no_object_are_an_empty_one(arguments: str) -> None:
    messages = body(replace(CLAUDE, messages=(HELLO, called("a", arguments), result("a")), tools=(ECHO,)))["messages"]
    assert messages[1]["content"] == [{"type": "tool_use", "id": "a", "name": "echo", "input": {}}]


def test_the_key_goes_into_a_header_never_into_the_path() -> None:
    assert posted(GEMINI).headers == {"content-type": "application/json", "x-goog-api-key": "a-key"}
    assert posted(GEMINI, endpoint_of(GEMINI, key="")).headers == {"content-type": "application/json"}
    path = posted(replace(GEMINI, model="gemini/a model?")).path
    assert path == "/models/a%20model%3F:streamGenerateContent?alt=sse"


@pytest.mark.parametrize(
    ("model", "takes_system"),
    [("gemini-2.5-flash", True), ("gemini-of-tomorrow", True), ("gemma-3-27b-it", False), ("gemma-of-old", False)],
)
def test_a_model_without_system_messages_reads_them_in_the_question(model: str, *, takes_system: bool) -> None:
    written = body(replace(GEMINI, model=f"gemini/{model}"))
    asked = [part["text"] for part in written["contents"][0]["parts"]]
    assert asked == (["hello"] if takes_system else ["You are Frodo.", "hello"])
    assert ("systemInstruction" in written) is takes_system


def test_the_oldest_gemini_wants_no_ids_of_calls_back() -> None:
    request = ModelRequest("gemini/gemini-pro", (HELLO, called("c1"), result("c1")), tools=(ECHO,))
    assert '"id"' not in json.dumps(body(request)["contents"])


@pytest.mark.parametrize(("text", "response"), [("{}", {"content": "{}"}), ("{not JSON", {"content": "{not JSON"})])
def test_a_result_is_an_object(text: str, response: dict[str, object]) -> None:
    written = body(replace(GEMINI, messages=(HELLO, called("a"), result("a", text)), tools=(ECHO,)))
    assert written["contents"][2]["parts"] == [{"functionResponse": {"name": "echo", "response": response}}]


def test_ollama_is_told_of_no_tools_if_it_must_not_call_them() -> None:
    asked = ModelRequest("ollama_chat/llama3.2", ASKED_TOOL, tools=(ECHO,), may_call=False, context_tokens=4096)
    endpoint = ollama_endpoint(asked.model, {"OLLAMA_HOST": "0.0.0.0:1234", "OLLAMA_API_KEY": "k"})
    assert endpoint[1:4] == ("llama3.2", "http://127.0.0.1:1234/v1", "k")
    for may_call in (True, False):
        written = json.loads(posted(replace(asked, may_call=may_call), endpoint, ChatCompletions(MODEL_MAP)).body)
        assert ("tools" in written, "tool_choice" in written) == (may_call, False)


def test_parameters_that_the_server_refused_are_left_out() -> None:
    wanted: dict[str, Any] = {"messages": ASKED_TOOL, "tools": (ECHO,), "may_call": False, "temperature": 0.5}
    claude, gemini = (replace(request, **wanted) for request in (CLAUDE, GEMINI))
    whole, refused = body(claude), frozenset({"temperature", "tool_choice", "max_tokens"})
    assert whole["tool_choice"] == {"type": "none"}
    assert whole.keys() - body(claude, endpoint_of(claude, refused=refused)).keys() == {"temperature", "tool_choice"}
    assert posted(claude).optional.keys() == {"temperature", "tool_choice"}
    assert posted(replace(claude, may_call=True)).optional.keys() == {"temperature"}
    assert posted(CLAUDE).optional == {}
    whole = body(gemini)
    rest = body(gemini, endpoint_of(gemini, refused=frozenset({"temperature", "tool_config"})))
    assert whole["toolConfig"] == {"functionCallingConfig": {"mode": "NONE"}}
    assert whole.keys() - rest.keys() == {"toolConfig"}
    assert whole["generationConfig"].keys() - rest["generationConfig"].keys() == {"temperature"}
    assert {"temperature", "tool_config"} <= posted(gemini).optional.keys()
    assert "tool_config" not in posted(replace(gemini, may_call=True)).optional
    assert "temperature" not in posted(gemini, endpoint_of(gemini, refused=frozenset({"temperature"}))).optional


@pytest.mark.parametrize("request_", [CLAUDE, GEMINI], ids=["Claude", "Gemini"])
def test_messages_of_the_request_before_are_written_in_the_same_bytes(request_: ModelRequest) -> None:
    protocol = PROTOCOLS[endpoint_of(request_).provider](MODEL_MAP)
    talk = (SYSTEM, HELLO, assistant("hi"), user("a"))
    longer = replace(request_, messages=(*talk, assistant("b"), user("c")))
    before = posted(replace(request_, messages=talk), protocol=protocol).body
    after = posted(longer, protocol=protocol).body
    assert after == posted(longer).body
    # Up to the marker of Claude's newest question, which moves on.
    common = before.partition(b"]}]")[0] if request_ is GEMINI else before.partition(b',"cache_control"')[0]
    assert after.startswith(common if request_ is GEMINI else common[: common.rindex(b'{"type"')])


def test_another_provider_gets_a_call_of_gemini_without_its_signature() -> None:
    arguments = json.dumps({"text": "a__thought__b"})
    messages = (HELLO, called("c1__thought__QQ==", arguments), result("c1__thought__QQ=="))
    request = ModelRequest("openai/gpt-4o", messages, tools=(ECHO,))
    body = ChatCompletions(MODEL_MAP).post(request, Endpoint("openai", "gpt-4o", "https://api.openai.com/v1", "")).body
    _, asking, answer = json.loads(body)["messages"]
    (call,) = asking["tool_calls"]
    assert (call["id"], answer["tool_call_id"]) == ("c1", "c1")
    assert call["function"] == {"name": "echo", "arguments": arguments}


async def test_a_request_with_an_attachment_is_written_by_a_thread() -> None:
    threads: list[threading.Thread] = []

    def load(digest: str) -> bytes:
        threads.append(threading.current_thread())
        return loaded(digest)

    asked = PromptMessage("user", "what is it?", attachments=(attachment("photo.png"),))
    async with serving(STREAM_HEAD, chunk("hi") + STOP) as server:
        environment = {"OPENAI_API_BASE": server.address, "OPENAI_API_KEY": "0123456789abcdef"}
        client = WireClient(environment, MODEL_MAP, load=load)
        async with aclosing(client.stream(ModelRequest("openai/gpt-4o", (asked,)))) as events:
            _ = [event async for event in events]
        await client.aclose()
    assert len(threads) == 1
    assert threading.main_thread() not in threads


async def test_mistral_gets_the_picture_in_the_result_because_it_takes_no_message_of_the_user_after_one() -> None:
    seen = result("c1", "Here.")._replace(attachments=(attachment("photo.png"),))
    async with serving(STREAM_HEAD, chunk("hi") + STOP) as server:
        client = WireClient({"MISTRAL_API_BASE": server.address, "MISTRAL_API_KEY": "k"}, MODEL_MAP, load=loaded)
        request = ModelRequest("mistral/pixtral-large-latest", (HELLO, called("c1"), seen), tools=(ECHO,))
        async with aclosing(client.stream(request)) as events:
            _ = [event async for event in events]
        await client.aclose()
    messages: Any = server.asked[-1].body["messages"]
    told = messages[-1]
    assert (told["role"], [part["type"] for part in told["content"]]) == ("tool", ["image_url", "text"])


def test_so_many_bytes_of_encoded_messages_are_kept() -> None:
    encoded: list[str] = []

    def encode(message: str) -> bytes:
        encoded.append(message)
        return message.encode()

    messages = EncodedMessages(encode, most_bytes=10)
    for _ in range(2):
        assert messages.joined(["12345", "67890", "abcde"]) == b"[12345,67890,abcde]"
    assert encoded == ["12345", "67890", "abcde", "abcde"]


def test_the_types_refuse_what_no_sdk_would_send() -> None:
    said = {"role": "user", "content": "hi"}
    whole = {"model": "m", "max_tokens": 1, "stream": True, "messages": [said]}
    assert misfit_of_anthropic(whole) == ""
    assert misfit_of_anthropic(whole | {"seed": 1})
    assert misfit_of_anthropic(whole | {"messages": [said | {"role": "system!"}]})
    assert misfit_of_chat({"model": "m", "stream": True, "messages": [said | {"reasoning_content": "hm"}]})
    assert misfit_of_responses({"model": "m", "stream": True, "input": [{"type": "function_call", "name": "f"}]})
    assert misfit_of_gemini({"contents": [{"role": "user", "parts": [{"words": "hi"}]}]})


OPTIONAL = frozenset({"temperature", "max_tokens", "stream_options", "tool_choice"})
OK = [TextDelta("ok"), ReplyEnd("stop")]
NO_TEMPERATURE = "Unsupported parameter: 'temperature' is not supported with this model."
NO_MAX_TOKENS = "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."


@pytest.mark.parametrize(
    ("status", "body", "name"),
    [
        (400, {"error": {"message": NO_TEMPERATURE, "param": "temperature"}}, "temperature"),
        (400, {"error": {"message": NO_MAX_TOKENS, "code": "unsupported_parameter"}}, "max_tokens"),
        (400, {"error": {"message": "Unsupported value: 'temperature' does not support 0.2."}}, "temperature"),
        (400, {"error": {"type": "invalid_request_error", "message": "`temperature` is deprecated."}}, "temperature"),
        (
            422,
            {"detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options"], "input": {"temperature": 1}}]},
            "stream_options",
        ),
        (400, {"message": "Extra inputs are not permitted", "param": "stream_options"}, "stream_options"),
        (400, {"error": {"message": "body.tool_choice: Extra inputs are not permitted"}}, "tool_choice"),
        (400, {"error": "This server does not support tool choice."}, "tool_choice"),
        (500, "unknown field: max_tokens", "max_tokens"),
        (400, {"error": {"message": "temperature must be between 0 and 1"}}, None),
        (400, {"error": {"message": "maximum context length is 9; you asked for 8 and max_tokens of 2"}}, None),
        (400, {"error": {"message": "reasoning_effort is not supported"}}, None),
        (400, {"error": {"message": "'tools' is not supported with this model"}}, None),
        (401, {"error": {"message": NO_TEMPERATURE}}, None),
        (400, None, None),
    ],
)  # fmt: skip
def test_the_parameter_is_found_by_its_name(status: int, body: object, name: str | None) -> None:
    assert refused_parameter(Failure(status=status, body=body), OPTIONAL) == name


def test_a_lost_connection_refuses_nothing() -> None:
    assert refused_parameter(Failure(Trouble.BROKE_OFF, 400, NO_TEMPERATURE), OPTIONAL) is None


async def test_a_request_is_repeated_without_it_and_the_next_ones_are_sent_without_it() -> None:
    warm = replace(ASKING, temperature=0.2)
    with calling() as provider:
        provider.refuse(400, NO_TEMPERATURE)
        async with client_of(provider.address) as client:
            assert await events_of(client, warm) == [
                Notice("Chorus leaves out temperature, which openai/m does not accept."), *OK,
            ]  # fmt: skip
            assert await events_of(client, warm) == OK
            assert await events_of(client, replace(warm, model="openai/other")) == OK
    assert [body.get("temperature") for body in provider.asked] == [0.2, None, None, 0.2]


async def test_the_limit_of_the_reply_is_sent_by_its_newer_name_where_the_older_is_refused() -> None:
    with calling() as provider:
        provider.refuse(400, NO_MAX_TOKENS)
        async with client_of(provider.address) as client:
            events = await events_of(client, replace(ASKING, max_output_tokens=9))
    assert events == OK
    sent = [(body.get("max_tokens"), body.get("max_completion_tokens")) for body in provider.asked]
    assert sent == [(9, None), (None, 9)]
