"""JSON as it is written for the wire, and signatures that travel in the ids of calls."""

from __future__ import annotations

import json

import pytest

from chorus_cli.models.providers.providers import Endpoint
from chorus_cli.models.rules.request import ModelRequest
from chorus_cli.models.wire.chat_completions import ChatCompletions
from chorus_cli.models.wire.protocol import bare_id, json_bytes, object_bytes, signature_in
from tests.models.providers.ways import MODEL_MAP
from tests.models.wire.conversations import ECHO, HELLO, called, result


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


@pytest.mark.parametrize(
    ("id_", "bare", "signature"), [("c1__thought__QQ==", "c1", "QQ=="), ("c1", "c1", ""), ("", "", "")]
)
def test_a_signature_is_taken_out_of_an_id(id_: str, bare: str, signature: str) -> None:
    assert (bare_id(id_), signature_in(id_)) == (bare, signature)


def test_another_provider_gets_a_call_of_gemini_without_its_signature() -> None:
    arguments = json.dumps({"text": "a__thought__b"})
    messages = (HELLO, called("c1__thought__QQ==", arguments), result("c1__thought__QQ=="))
    request = ModelRequest("openai/gpt-4o", messages, tools=(ECHO,))
    body = ChatCompletions(MODEL_MAP).post(request, Endpoint("openai", "gpt-4o", "https://api.openai.com/v1", "")).body
    _, asking, answer = json.loads(body)["messages"]
    (call,) = asking["tool_calls"]
    assert (call["id"], answer["tool_call_id"]) == ("c1", "c1")
    assert call["function"] == {"name": "echo", "arguments": arguments}
