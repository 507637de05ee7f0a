"""Requests as they are written, beyond those that litellm writes in the same way; the official SDKs judge them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from chorus_cli.log.rules.calls import ToolCall, calls_as_json
from chorus_cli.log.rules.messages import Thoughts
from chorus_cli.models.providers.model_map import ModelMap
from chorus_cli.models.providers.providers import PROVIDERS, Endpoint, endpoint
from chorus_cli.models.rules.request import ModelRequest, PromptMessage
from chorus_cli.models.wire.anthropic import AnthropicMessages
from chorus_cli.models.wire.chat_completions import ChatCompletions
from chorus_cli.models.wire.client import WireClient
from chorus_cli.models.wire.gemini import GeminiContents
from chorus_cli.models.wire.protocol import (
    EncodedMessages,
    Post,
    WireProtocol,
    bare_id,
    json_bytes,
    object_bytes,
)
from chorus_cli.models.wire.responses import OpenAIResponses
from tests.attached_files import attachment, loaded
from tests.models.providers.asked_models import STOP
from tests.models.providers.fault_server import STREAM_HEAD, chunk, serving
from tests.models.providers.ways import MODEL_MAP
from tests.models.wire.conversations import ASKED_TOOL, COUNT, ECHO, HELLO, NOW, SYSTEM, assistant, called, result, user
from tests.sdk_types import misfit_of_anthropic, misfit_of_chat, misfit_of_gemini, misfit_of_responses

Judge = Callable[[Mapping[str, Any]], str]

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


def shape(*messages: PromptMessage) -> list[str]:
    """Return the messages as they are written: each a role and its blocks in short."""
    asked = body(ModelRequest("anthropic/claude-of-tomorrow", messages, tools=(ECHO,)))
    blocks = (
        " ".join(str(block.get("text") or block.get("id") or block.get("tool_use_id")) for block in message["content"])
        for message in asked["messages"]
    )
    return [f"{message['role']}: {text}" for message, text in zip(asked["messages"], blocks, strict=True)]


@pytest.mark.parametrize(
    ("address", "path"),
    [
        ("https://api.anthropic.com", "/v1/messages"),
        ("http://localhost:4000/anthropic", "/v1/messages"),
        ("http://localhost:4000/v1", "/messages"),
        ("http://localhost:4000/v1/messages", ""),
    ],
)
def test_an_address_may_name_a_part_of_the_path(address: str, path: str) -> None:
    assert posted(CLAUDE, endpoint_of(CLAUDE)._replace(address=address)).path == path


def test_a_token_goes_into_a_header_in_place_of_the_key() -> None:
    fixed = {"anthropic-version": "2023-06-01", "accept": "application/json", "content-type": "application/json"}
    token = {"authorization": "Bearer a-token"}
    bare = endpoint_of(CLAUDE, key="")
    assert posted(CLAUDE, bare._replace(headers=tuple(token.items()))).headers == fixed | token
    assert posted(CLAUDE, bare).headers == fixed


@pytest.mark.parametrize(
    ("messages", "written"),
    [
        pytest.param([user("a"), assistant(" "), user("b")], ["user: a b"], id="a reply without a text"),
        pytest.param([PromptMessage("system", " \n"), HELLO], ["user: hello"], id="a system message without a text"),
        pytest.param([HELLO, assistant("hi \n")], ["user: hello", "assistant: hi"], id="blanks at the end"),
        pytest.param(
            [HELLO, assistant("hi "), HELLO], ["user: hello", "assistant: hi ", "user: hello"], id="blanks before"
        ),
        pytest.param([], [], id="nothing"),
    ],
)
def test_roles_alternate_and_no_text_is_empty(messages: list[PromptMessage], written: list[str]) -> None:
    assert shape(*messages) == written


@pytest.mark.parametrize("arguments", ["", "{", "[]", "NaN"])
def test_arguments_of_an_old_log_that_are_no_object_are_an_empty_one(arguments: str) -> None:
    messages = body(replace(CLAUDE, messages=(HELLO, called("a", arguments), result("a")), tools=(ECHO,)))["messages"]
    assert messages[1]["content"] == [{"type": "tool_use", "id": "a", "name": "echo", "input": {}}]


@pytest.mark.parametrize(
    ("request_", "tokens"),
    [
        (CLAUDE, 64_000),
        (replace(CLAUDE, max_output_tokens=7), 7),
        (replace(CLAUDE, context_tokens=200_000, prompt_tokens=180_000), 11_000),
        (replace(CLAUDE, model="anthropic/claude-haiku-4-5-next"), 64_000),
        (replace(CLAUDE, model="anthropic/a-model-of-tomorrow"), 4096),
    ],
    ids=["the longest reply", "the user's limit", "the room", "that of its family", "an unknown model"],
)
def test_every_request_limits_the_reply(request_: ModelRequest, tokens: int) -> None:
    assert body(request_)["max_tokens"] == tokens


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


@pytest.mark.parametrize(
    ("model", "id_", "sent_id", "signature"),
    [
        pytest.param("gemini-3-pro-preview", "c1__thought__QQ==", "c1", "QQ==", id="signed"),
        pytest.param("gemini-3-pro-preview", "c1", "c1", None, id="called by another provider's model"),
        pytest.param("gemini-pro", "c1", None, None, id="the oldest"),
    ],
)
def test_calls_go_back_with_their_ids_and_signatures_where_the_model_wants_them(
    model: str, id_: str, sent_id: str | None, signature: str | None
) -> None:
    request = ModelRequest(f"gemini/{model}", (HELLO, called(id_), result(id_)), tools=(ECHO,))
    _, asked, answered = body(request)["contents"]
    (call,), (answer,) = asked["parts"], answered["parts"]
    assert call["functionCall"].get("id") == sent_id
    assert call.get("thoughtSignature") == signature
    assert answer["functionResponse"].get("id") == sent_id
    assert answer["functionResponse"]["name"] == "echo"


def test_a_signature_that_came_alone_goes_back_alone() -> None:
    parts = [{"said": 4}, {"said": 0, "thoughtSignature": "c2ln"}]
    said = assistant("Gold")._replace(thoughts=Thoughts("", json.dumps({"form": "gemini", "parts": parts})))
    _, answer, _ = body(replace(GEMINI, messages=(HELLO, said, user("And?"))))["contents"]
    assert answer["parts"] == [{"text": "Gold"}, {"text": "", "thoughtSignature": "c2ln"}]


@pytest.mark.parametrize(
    ("text", "response"),
    [
        ("{}", {"content": "{}"}),
        ("{not JSON", {"content": "{not JSON"}),
    ],
)
def test_a_result_is_an_object(text: str, response: dict[str, object]) -> None:
    written = body(replace(GEMINI, messages=(HELLO, called("a"), result("a", text)), tools=(ECHO,)))
    assert written["contents"][2]["parts"] == [{"functionResponse": {"name": "echo", "response": response}}]


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


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ({"a": [1, "é"]}, '{"a":[1,"é"]}'.encode()),
        ("\ud83d\ude00", '"\U0001f600"'.encode()),
        ({"a": "\ud83d"}, '{"a":"\ufffd"}'.encode()),
    ],
)
def test_json_is_utf_8_without_halves_of_characters(value: object, written: bytes) -> None:
    assert json_bytes(value) == written


@pytest.mark.parametrize(("fields", "written"), [({}, b'{"a":[1]}'), ({"b": 2}, b'{"a":[1],"b":2}')])
def test_encoded_messages_become_part_of_an_object(fields: dict[str, object], written: bytes) -> None:
    assert object_bytes("a", b"[1]", fields) == written


def test_a_signature_is_taken_out_of_an_id() -> None:
    assert [bare_id(id_) for id_ in ("c1__thought__QQ==", "c1", "")] == ["c1", "c1", ""]


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


def test_so_many_bytes_of_encoded_messages_are_kept() -> None:
    encoded: list[str] = []

    def encode(message: str) -> bytes:
        encoded.append(message)
        return message.encode()

    messages = EncodedMessages(encode, most_bytes=10)
    for _ in range(2):
        assert messages.joined(["12345", "67890", "abcde"]) == b"[12345,67890,abcde]"
    assert encoded == ["12345", "67890", "abcde", "abcde"]


REASONING: dict[str, object] = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "hm"}],
    "encrypted_content": "QUJD",
}
THOUGHT: dict[str, list[dict[str, object]]] = {
    "anthropic": [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "ZGF0YQ=="},
        {"said": 9},
        {"called": "a"},
        {"called": "b"},
    ],
    "responses": [REASONING, {"said": 9, "phase": "commentary"}, {"called": "a"}, {"called": "b"}],
    "gemini": [{"said": 9, "thoughtSignature": "c2ln"}, {"called": "a", "thoughtSignature": "c2ln"}, {"called": "b"}],
    "chat": [],
}
JUDGES: dict[str, tuple[WireProtocol, Judge]] = {
    "anthropic": (AnthropicMessages(MODEL_MAP, loaded), misfit_of_anthropic),
    "responses": (OpenAIResponses(MODEL_MAP, loaded), misfit_of_responses),
    "gemini": (GeminiContents(MODEL_MAP, loaded), misfit_of_gemini),
    "chat": (ChatCompletions(MODEL_MAP, loaded), misfit_of_chat),
}
MODELS = {
    "anthropic/claude-sonnet-5": "anthropic",
    "anthropic/claude-opus-4-8": "anthropic",
    "anthropic/claude-haiku-4-5": "anthropic",
    "anthropic/claude-fable-5-1": "anthropic",
    "openai/gpt-5.4-mini": "responses",
    "openai/o3-pro": "responses",
    "openai/gpt-5": "responses",
    "openai/gpt-4o": "chat",
    "gemini/gemini-2.5-flash": "gemini",
    "gemini/gemini-3-pro-preview": "gemini",
    "gemini/gemini-2.0-flash": "gemini",
}


def talk(form: str) -> tuple[PromptMessage, ...]:
    calls = calls_as_json([ToolCall("a", "echo", '{"text": "gold"}'), ToolCall("b", "now", "{}")])
    parts = json.dumps({"form": form, "parts": THOUGHT[form]}) if THOUGHT[form] else ""
    called = PromptMessage("assistant", "I look it", tool_calls=calls, thoughts=Thoughts("hm", parts))
    files = HELLO._replace(attachments=(attachment("photo.png"), attachment("paper.pdf")))
    return (SYSTEM, files, called, result("a"), result("b", ""), PromptMessage("assistant", "So."), user("And?"))


@pytest.mark.parametrize(("model", "form"), MODELS.items())
@pytest.mark.parametrize("effort", [None, "none", "low", "medium", "high"])
def test_a_request_has_the_types_of_the_official_sdk(model: str, form: str, effort: str | None) -> None:
    protocol, misfit = JUDGES[form]
    asked = endpoint(model, {}, MODEL_MAP.thinks)
    assert asked is not None
    for may_call, temperature in product([True, False], [None, 0.5]):
        request = ModelRequest(
            model,
            talk(form),
            temperature=temperature,
            max_output_tokens=20_000,
            tools=(ECHO, COUNT, NOW),
            may_call=may_call,
            effort=effort,
        )
        body = json.loads(protocol.post(request, asked).body)
        assert misfit(body) == ""
        if THOUGHT[form]:
            assert "c2ln" in str(body) or "QUJD" in str(body)


def test_the_types_refuse_what_no_sdk_would_send() -> None:
    said = {"role": "user", "content": "hi"}
    whole = {"model": "m", "max_tokens": 1, "stream": True, "messages": [said]}
    assert misfit_of_anthropic(whole) == ""
    assert misfit_of_anthropic(whole | {"seed": 1})
    assert misfit_of_anthropic(whole | {"messages": [said | {"role": "system!"}]})
    assert misfit_of_chat({"model": "m", "stream": True, "messages": [said | {"reasoning_content": "hm"}]})
    assert misfit_of_responses({"model": "m", "stream": True, "input": [{"type": "function_call", "name": "f"}]})
    assert misfit_of_gemini({"contents": [{"role": "user", "parts": [{"words": "hi"}]}]})
