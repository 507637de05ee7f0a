"""Requests in Gemini's own protocol, beyond those that litellm writes in the same way."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from chorus_cli.log.rules.messages import Thoughts
from chorus_cli.models.providers.providers import Endpoint
from chorus_cli.models.rules.request import ModelRequest, PromptMessage
from chorus_cli.models.wire.gemini import GeminiContents
from chorus_cli.models.wire.protocol import Post
from tests.models.providers.ways import MODEL_MAP
from tests.models.wire.conversations import ASKED_TOOL, ECHO, HELLO, SYSTEM, assistant, called, result, user

ADDRESS = "https://generativelanguage.googleapis.com/v1beta"
GEMINI = ModelRequest("gemini/gemini-2.5-flash", (SYSTEM, HELLO))


def posted(request: ModelRequest, *, key: str = "a-key", refused: frozenset[str] = frozenset()) -> Post:
    model = request.model.partition("/")[2]
    return GeminiContents(MODEL_MAP).post(request, Endpoint("gemini", model, ADDRESS, key, refused=refused))


def body(request: ModelRequest, *, refused: frozenset[str] = frozenset()) -> dict[str, Any]:
    written: dict[str, Any] = json.loads(posted(request, refused=refused).body)
    return written


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("gemini/gemini-2.5-flash", "/models/gemini-2.5-flash:streamGenerateContent?alt=sse"),
        ("gemini/a model?", "/models/a%20model%3F:streamGenerateContent?alt=sse"),
    ],
)
def test_the_path_names_the_model_and_asks_for_events(model: str, path: str) -> None:
    assert posted(replace(GEMINI, model=model)).path == path


def test_the_key_goes_into_a_header_never_into_the_path() -> None:
    assert posted(GEMINI).headers == {"content-type": "application/json", "x-goog-api-key": "a-key"}
    assert posted(GEMINI, key="").headers == {"content-type": "application/json"}


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
    ("messages", "roles"),
    [
        pytest.param([HELLO, assistant("hi"), HELLO], "user model user", id="talk"),
        pytest.param([user("a"), user("b")], "user", id="two questions"),
        pytest.param([user("a"), assistant(" "), user("b")], "user", id="a reply without a text"),
        pytest.param([HELLO, assistant("So."), called("a"), result("a"), HELLO], "user model user user", id="a call"),
        pytest.param([], "", id="nothing"),
    ],
)
def test_messages_from_one_side_are_one_content(messages: list[PromptMessage], roles: str) -> None:
    written = body(replace(GEMINI, messages=tuple(messages)))
    assert " ".join(content["role"] for content in written["contents"]) == roles


@pytest.mark.parametrize(
    ("model", "id_", "sent_id", "signature"),
    [
        pytest.param("gemini-2.5-flash", "c1", None, None, id="an older model"),
        pytest.param("gemini-2.5-flash", "c1__thought__QQ==", None, "QQ==", id="signed by an older model"),
        pytest.param("gemini-3-pro-preview", "c1__thought__QQ==", "c1", "QQ==", id="signed"),
        pytest.param("gemini-3-pro-preview", "c1", "c1", None, id="called by another provider's model"),
        pytest.param("gemini-flash-latest", "c1", "c1", None, id="the newest"),
        pytest.param("gemini-pro", "c1", None, None, id="the oldest"),
        pytest.param("gemma-3-27b-it", "c1", None, None, id="Gemma"),
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
        ("gold", {"content": "gold"}),
        ("", {"content": ""}),
        ("[1, 2]", {"content": "[1, 2]"}),
        ('{"a": 1}', {"a": 1}),
        ("{}", {"content": "{}"}),
        ("{not JSON", {"content": "{not JSON"}),
    ],
)
def test_a_result_is_an_object(text: str, response: dict[str, object]) -> None:
    written = body(replace(GEMINI, messages=(HELLO, called("a"), result("a", text)), tools=(ECHO,)))
    assert written["contents"][2]["parts"] == [{"functionResponse": {"name": "echo", "response": response}}]


def test_parameters_that_the_server_refused_are_left_out() -> None:
    request = replace(GEMINI, messages=ASKED_TOOL, tools=(ECHO,), may_call=False, temperature=0.5)
    whole = body(request)
    refused = body(request, refused=frozenset({"temperature", "tool_config"}))
    assert whole["toolConfig"] == {"functionCallingConfig": {"mode": "NONE"}}
    assert whole.keys() - refused.keys() == {"toolConfig"}
    assert (whole["generationConfig"].keys() - refused["generationConfig"].keys()) == {"temperature"}
    assert {"temperature", "tool_config"} <= posted(request).optional.keys()
    assert "tool_config" not in posted(replace(request, may_call=True)).optional
    assert "temperature" not in posted(request, refused=frozenset({"temperature"})).optional


def test_messages_of_the_request_before_are_written_in_the_same_bytes() -> None:
    protocol = GeminiContents(MODEL_MAP)
    endpoint = Endpoint("gemini", "gemini-2.5-flash", ADDRESS, "a-key")
    talk = (SYSTEM, HELLO, assistant("hi"), user("a"))
    before = protocol.post(replace(GEMINI, messages=talk), endpoint).body
    after = protocol.post(replace(GEMINI, messages=(*talk, assistant("b"), user("c"))), endpoint).body
    assert after == posted(replace(GEMINI, messages=(*talk, assistant("b"), user("c")))).body
    assert after.startswith(before.partition(b"]}]")[0])
