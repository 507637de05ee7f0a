"""Thoughts in chat completions: joined as they come, and sent back in the field of each provider."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.log.rules.calls import ToolCall
from chorus_cli.log.rules.messages import Thoughts
from chorus_cli.models.providers.providers import endpoint
from chorus_cli.models.rules.request import ModelRequest, PromptMessage
from chorus_cli.models.wire.chat_completions import ChatCompletions, ChatReader, short_id
from tests.models.providers.ways import MODEL_MAP
from tests.models.wire.conversations import ECHO, HELLO, result
from tests.models.wire.read_replies import end_of, read, reasoning_in

CALL = ToolCall("call_1", "echo", "{}")


def delta(**fields: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": None}]}


def parts_of(*deltas: dict[str, object]) -> tuple[str, Any]:
    """Return the readable thoughts of a reply, and the provider's own parts."""
    events = read(ChatReader(), *deltas, "[DONE]")
    written = end_of(events).thought_parts
    return reasoning_in(events), json.loads(written)["parts"] if written else []


def sent(model: str, thoughts: Thoughts | None, id_: str = "call_1", **environment: str) -> dict[str, Any]:
    """Return a reply with a call as it goes back to the provider of ``model``."""
    call = CALL._replace(id=id_)
    said = PromptMessage("assistant", "I look.", tool_calls=call.as_json, thoughts=thoughts)
    asked = endpoint(model, environment)
    assert asked is not None
    request = ModelRequest(model, (HELLO, said, result(id_)), tools=(ECHO,))
    messages = json.loads(ChatCompletions(MODEL_MAP).post(request, asked).body)["messages"]
    assert messages[2]["tool_call_id"] == messages[1]["tool_calls"][0]["id"]
    reply: dict[str, Any] = messages[1]
    return reply


def chat(*parts: dict[str, object]) -> str:
    return json.dumps({"form": "chat", "parts": [*parts, {"said": 7}]})


def test_details_are_joined_by_their_type_and_number() -> None:
    texts, parts = parts_of(
        delta(
            reasoning="One ", reasoning_details=[{"type": "reasoning.text", "index": 0, "text": "One ", "format": "f"}]
        ),
        delta(
            reasoning="two.",
            reasoning_details=[{"type": "reasoning.text", "index": 0, "text": "two.", "signature": "s"}],
        ),
        delta(reasoning_details=[{"type": "reasoning.encrypted", "index": 0, "data": "QU", "id": "rs_1"}]),
        delta(reasoning_details=[{"type": "reasoning.encrypted", "index": 0, "data": "JD", "id": None}]),
    )
    assert texts == "One two."
    assert [part for part in parts if "type" in part] == [
        {"type": "reasoning.text", "index": 0, "text": "One two.", "format": "f", "signature": "s"},
        {"type": "reasoning.encrypted", "index": 0, "data": "QUJD", "id": "rs_1"},
    ]


def test_details_that_come_whole_each_time_are_the_last_of_them() -> None:
    words = ["The", "user", "asks", "for", "tea,", "so", "I", "think", "of", "green."]
    pieces = [" ".join(words[:number]) for number in range(1, len(words) + 1)]
    pieces += pieces[-1:]
    details = [delta(reasoning_details=[{"type": "reasoning.text", "index": 0, "text": piece}]) for piece in pieces]
    texts, parts = parts_of(*details)
    assert texts == pieces[-1]
    assert [part["text"] for part in parts] == [pieces[-1]]


@pytest.mark.parametrize(
    ("pieces", "whole"),
    [
        (["", "The", " user", " asks."], "The user asks."),
        (["The", "The user", " asks", " for tea."], "The user asks for tea."),
        (["ha", "ha", "ha!"], "hahaha!"),
    ],
)
def test_details_that_come_in_pieces_lose_none(pieces: list[str], whole: str) -> None:
    details = [delta(reasoning_details=[{"type": "reasoning.text", "index": 0, "text": piece}]) for piece in pieces]
    texts, parts = parts_of(*details)
    assert (texts, [part["text"] for part in parts]) == (whole, [whole])


def test_chunks_of_mistral_are_one_with_the_newest_signature() -> None:
    def thinking(text: str, **more: object) -> dict[str, object]:
        return delta(content=[{"type": "thinking", "thinking": [{"type": "text", "text": text}], **more}])

    texts, parts = parts_of(thinking("One "), thinking("two.", signature="s", closed=True), delta(content="Hi"))
    assert texts == "One two."
    whole = {"type": "thinking", "thinking": [{"type": "text", "text": "One two."}], "signature": "s", "closed": True}
    assert parts == [whole, {"said": 2}]


CHUNK: dict[str, object] = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
DETAIL: dict[str, object] = {"type": "reasoning.text", "index": 0, "text": "hm"}
EXTRA = {"google": {"thought_signature": "QQ=="}}
OWN = {"OPENAI_BASE_URL": "http://localhost:8000/v1"}


@pytest.mark.parametrize(
    ("model", "thoughts", "fields"),
    [
        ("deepseek/deepseek-v4-flash", Thoughts("hm"), {"reasoning_content": "hm"}),
        ("deepseek/deepseek-v4-flash", None, {"reasoning_content": " "}),
        ("moonshot/kimi-k2.6", None, {"reasoning_content": " "}),
        ("zai/glm-5.3-flash", Thoughts("hm"), {"reasoning_content": "hm"}),
        ("zai/glm-5.3-flash", None, {}),
        ("groq/openai/gpt-oss-120b", Thoughts("hm"), {"reasoning": "hm"}),
        ("cerebras/gpt-oss-120b", Thoughts("hm"), {"reasoning": "hm"}),
        ("minimax/MiniMax-M3", Thoughts("hm", chat(DETAIL)), {"reasoning_details": [DETAIL]}),
        ("openrouter/anthropic/claude-sonnet-5", Thoughts("hm", chat(DETAIL)), {"reasoning_details": [DETAIL]}),
        ("openrouter/x/y", Thoughts("hm"), {"reasoning": "hm"}),
        (
            "mistral/magistral-medium-latest",
            Thoughts("hm", chat(CHUNK)),
            {"content": [CHUNK, {"type": "text", "text": "I look."}]},
        ),
        ("mistral/mistral-small-latest", Thoughts("hm"), {}),
        ("together_ai/deepseek-ai/DeepSeek-V4", Thoughts("hm", chat({"came_in": "reasoning"})), {"reasoning": "hm"}),
        ("hosted_vllm/m", Thoughts("hm", chat({"came_in": "reasoning"})), {"reasoning": "hm"}),
        ("hosted_vllm/m", Thoughts("hm"), {"reasoning_content": "hm"}),
        ("openai/gpt-4o", Thoughts("hm"), {}),
        ("xai/grok-4.3", Thoughts("hm"), {}),
    ],
)
def test_thoughts_go_back_in_the_field_of_the_provider(
    model: str, thoughts: Thoughts | None, fields: dict[str, object]
) -> None:
    plain: dict[str, object] = {"role": "assistant", "content": "I look."}
    reply = sent(model, thoughts)
    del reply["tool_calls"]
    assert reply == {**plain, **fields}


def test_what_google_adds_to_a_call_goes_back_with_it() -> None:
    called = {"index": 0, "id": "call_1", "function": {"name": "echo", "arguments": "{}"}, "extra_content": EXTRA}
    _, parts = parts_of(delta(content="I look."), delta(tool_calls=[called]))
    thoughts = Thoughts("", json.dumps({"form": "chat", "parts": parts}))
    (call,) = sent("openai/gemini-3-pro", thoughts, **OWN)["tool_calls"]
    assert call["extra_content"] == EXTRA


@given(st.text(), st.text())
def test_ids_of_nine_letters_are_told_apart(one: str, other: str) -> None:
    assert re.fullmatch("[a-zA-Z0-9]{9}", short_id(one))
    assert (short_id(one) == short_id(other)) == (one == other)
    assert short_id(short_id(one)) == short_id(one)


def test_mistral_gets_ids_of_nine_letters() -> None:
    assert len(sent("mistral/mistral-large-latest", None, "toolu_01ABC")["tool_calls"][0]["id"]) == 9
    assert sent("mistral/mistral-large-latest", None, "abcDEF123")["tool_calls"][0]["id"] == "abcDEF123"
    assert sent("openai/gpt-4o", None, "toolu_01ABC")["tool_calls"][0]["id"] == "toolu_01ABC"
