"""Requests in the protocol of Anthropic's messages, beyond those that litellm writes in the same way."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from chorus_cli.models.providers.providers import Endpoint
from chorus_cli.models.rules.request import ModelRequest, PromptMessage
from chorus_cli.models.wire.anthropic import AnthropicMessages
from chorus_cli.models.wire.protocol import Post
from tests.models.providers.ways import MODEL_MAP
from tests.models.wire.conversations import ASKED_TOOL, ECHO, HELLO, SYSTEM, assistant, called, result, user

CLAUDE = ModelRequest("anthropic/claude-sonnet-4-5", (SYSTEM, HELLO))
ENDPOINT = Endpoint("anthropic", "claude-sonnet-4-5", "https://api.anthropic.com", "a-key")


def posted(request: ModelRequest, endpoint: Endpoint = ENDPOINT) -> Post:
    return AnthropicMessages(MODEL_MAP).post(request, endpoint)


def body(request: ModelRequest, endpoint: Endpoint = ENDPOINT) -> dict[str, Any]:
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
    assert posted(CLAUDE, ENDPOINT._replace(address=address)).path == path


@pytest.mark.parametrize(
    ("key", "headers", "sent"),
    [
        ("a-key", (), {"x-api-key": "a-key"}),
        ("", (("authorization", "Bearer a-token"),), {"authorization": "Bearer a-token"}),
        ("", (), {}),
    ],
    ids=["a key", "a token", "neither"],
)
def test_a_key_or_a_token_goes_into_a_header(
    key: str, headers: tuple[tuple[str, str], ...], sent: dict[str, str]
) -> None:
    found = posted(CLAUDE, ENDPOINT._replace(key=key, headers=headers)).headers
    assert found == {
        "anthropic-version": "2023-06-01",
        "accept": "application/json",
        "content-type": "application/json",
        **sent,
    }


@pytest.mark.parametrize(
    ("messages", "written"),
    [
        pytest.param([HELLO, assistant("hi"), HELLO], ["user: hello", "assistant: hi", "user: hello"], id="talk"),
        pytest.param([user("a"), user("b")], ["user: a b"], id="two questions"),
        pytest.param([user("a"), assistant(" "), user("b")], ["user: a b"], id="a reply without a text"),
        pytest.param([PromptMessage("system", " \n"), HELLO], ["user: hello"], id="a system message without a text"),
        pytest.param([HELLO, assistant("hi \n")], ["user: hello", "assistant: hi"], id="blanks at the end"),
        pytest.param(
            [HELLO, assistant("hi "), HELLO], ["user: hello", "assistant: hi ", "user: hello"], id="blanks before"
        ),
        pytest.param(
            [HELLO, assistant("So."), called("a"), result("a"), user("b")],
            ["user: hello", "assistant: So. a", "user: a b"],
            id="a call",
        ),
        pytest.param(
            [HELLO, called("a"), result("a"), called("b"), result("b", "")],
            ["user: hello", "assistant: a", "user: a", "assistant: b", "user: b"],
            id="calls",
        ),
        pytest.param(
            [HELLO, called("a__thought__QQ=="), result("a__thought__QQ==")],
            ["user: hello", "assistant: a", "user: a"],
            id="a call of Gemini",
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


def test_parameters_that_the_server_refused_are_left_out() -> None:
    request = replace(CLAUDE, messages=ASKED_TOOL, tools=(ECHO,), may_call=False, temperature=0.5)
    whole = body(request)
    refused = body(request, ENDPOINT._replace(refused=frozenset({"temperature", "tool_choice", "max_tokens"})))
    assert whole["tool_choice"] == {"type": "none"}
    assert whole.keys() - refused.keys() == {"temperature", "tool_choice"}
    assert posted(request).optional.keys() == {"temperature", "tool_choice"}
    assert posted(replace(request, may_call=True)).optional.keys() == {"temperature"}
    assert posted(CLAUDE).optional == {}


def test_messages_of_the_request_before_are_written_in_the_same_bytes() -> None:
    protocol = AnthropicMessages(MODEL_MAP)
    talk = (SYSTEM, HELLO, assistant("hi"))
    before = protocol.post(replace(CLAUDE, messages=(*talk, user("a"))), ENDPOINT).body
    after = protocol.post(replace(CLAUDE, messages=(*talk, user("a"), assistant("b"), user("c"))), ENDPOINT).body
    fresh = posted(replace(CLAUDE, messages=(*talk, user("a"), assistant("b"), user("c")))).body
    assert after == fresh
    # Up to the marker of the newest question, which moves on.
    common = before.partition(b',"cache_control"')[0]
    assert after.startswith(common[: common.rindex(b'{"type"')])
