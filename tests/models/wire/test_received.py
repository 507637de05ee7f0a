"""Events of replies with any content: they are read, or refused as no reply."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.models.providers.failures import FailedError
from chorus_cli.models.rules.events import ReplyEnd
from chorus_cli.models.wire.anthropic import AnthropicReply
from chorus_cli.models.wire.gemini import GeminiReply
from chorus_cli.models.wire.protocol import count_at, json_objects, object_at, objects_at, text_at

_NAMES = st.sampled_from(
    [
        "type",
        "index",
        "delta",
        "content_block",
        "message",
        "usage",
        "text",
        "thinking",
        "partial_json",
        "id",
        "name",
        "input",
        "stop_reason",
        "candidates",
        "content",
        "parts",
        "functionCall",
        "args",
        "finishReason",
        "usageMetadata",
        "promptTokenCount",
        "error",
        "code",
        "thought",
    ]
)
_TEXTS = st.sampled_from(
    [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "message_delta",
        "message_stop",
        "message",
        "text",
        "text_delta",
        "tool_use",
        "input_json_delta",
        "thinking_delta",
        "STOP",
        "\ud83d",
    ]
)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=6),
    max_leaves=30,
)  # fmt: skip


@given(payloads=st.lists(_VALUES, max_size=4))
@pytest.mark.parametrize("reader", [AnthropicReply, GeminiReply])
def test_any_json_is_read_or_refused(reader: type[AnthropicReply | GeminiReply], payloads: list[object]) -> None:
    reply = reader()
    with suppress(FailedError):
        for payload in payloads:
            _ = list(reply.events(json.dumps(payload)))
    assert isinstance(list(reply.end())[-1], ReplyEnd)


@pytest.mark.parametrize(
    ("data", "objects"),
    [("", []), (" \n", []), ("[DONE]", []), ('{"a": 1}', [{"a": 1}]), ('[{"a": 1}, {}]', [{"a": 1}, {}]), ("[]", [])],
)
def test_the_objects_of_an_event_are_found(data: str, objects: list[object]) -> None:
    assert json_objects(data) == objects


def test_a_field_of_another_kind_counts_as_missing() -> None:
    event: dict[str, object] = {"text": 3, "object": [], "objects": [{}, 3], "count": True, "less": -1, "b": "b"}
    assert (text_at(event, "text"), text_at(event, "text", "b")) == ("", "b")
    assert (object_at(event, "object"), object_at(event, "nothing")) == ({}, {})
    assert (objects_at(event, "objects"), objects_at(event, "text")) == ([{}], [])
    assert (count_at(event, "count"), count_at(event, "less"), count_at(event, "text")) == (0, 0, 3)
