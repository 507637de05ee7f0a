"""Requests as they come to providers: their address, their body, the markers for Claude's cache, and attachments."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Any

import pytest

from chorus_cli.core.errors import ModelError
from chorus_cli.models.rules.declaration import Tool
from chorus_cli.models.rules.events import ModelEvent, ReplyEnd, TextDelta
from chorus_cli.models.rules.request import ModelRequest, PromptMessage
from tests.attached_files import FILES, attachment
from tests.models.providers.asked_models import BY_LITELLM, HELLO, STOP, MakeClient, text_of
from tests.models.providers.fault_server import STREAM_HEAD, Asked, chunk, event, serving

pytestmark = BY_LITELLM


@pytest.mark.parametrize("model", ["openai/m", "lm_studio/qwen"])
async def test_a_server_here_needs_no_key(
    make_client: MakeClient, fake_key: str, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    async with serving(STREAM_HEAD, chunk("hi"), STOP) as server:
        client = make_client({f"{model.partition('/')[0].upper()}_API_BASE": server.address})
        events = [event async for event in client.stream(ModelRequest(model, HELLO))]
    assert text_of(events) == "hi"
    assert fake_key not in str(server.asked)


async def test_messages_and_settings_are_sent_in_openais_shape(make_client: MakeClient, fake_key: str) -> None:
    calls = '[{"id": "c1", "type": "function", "function": {"name": "recall_memory", "arguments": "{}"}}]'
    messages = (
        PromptMessage("system", "Be kind."),
        PromptMessage("user", "half a pair: \ud83d"),
        PromptMessage("assistant", "", tool_calls=calls),
        PromptMessage("tool", "nothing found", tool_call_id="c1"),
    )
    async with serving(STREAM_HEAD, chunk("hi"), STOP) as server:
        client = make_client({"OPENAI_BASE_URL": server.address, "OPENAI_API_KEY": fake_key})
        request = ModelRequest("openai/m", messages, temperature=0.5, max_output_tokens=99)
        _ = [event async for event in client.stream(request)]
    (asked,) = server.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["authorization"] == f"Bearer {fake_key}"
    assert asked.body["messages"] == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "half a pair: \ufffd"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "recall_memory", "arguments": "{}"}}],
        },
        {"role": "tool", "content": "nothing found", "tool_call_id": "c1"},
    ]
    assert (asked.body["temperature"], asked.body["max_tokens"]) == (0.5, 99)
    assert asked.body["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize("model", ["ollama/llama3.2", "ollama_chat/llama3.2"])
@pytest.mark.parametrize(("tokens", "options"), [(16_384, {"num_ctx": 16_384}), (None, {})])
async def test_ollama_is_told_how_much_to_hold(
    make_client: MakeClient, fake_key: str, model: str, tokens: int | None, options: Mapping[str, int]
) -> None:
    assert fake_key
    async with serving(STREAM_HEAD) as server:
        client = make_client({"OLLAMA_API_BASE": server.address})
        _ = [event async for event in client.stream(ModelRequest(model, HELLO, context_tokens=tokens))]
    assert [asked.body["options"] for asked in server.asked] == [options]


async def test_no_setting_is_sent_unset_nor_what_only_ollama_is_told(make_client: MakeClient, fake_key: str) -> None:
    async with serving(STREAM_HEAD, chunk("hi"), STOP) as server:
        client = make_client({"OPENAI_BASE_URL": server.address, "OPENAI_API_KEY": fake_key})
        _ = [event async for event in client.stream(ModelRequest("openai/m", HELLO, context_tokens=16_384))]
    (asked,) = server.asked
    assert set(asked.body) == {"model", "messages", "stream", "stream_options"}
    assert asked.headers["accept-encoding"] == "identity"


@dataclass(frozen=True, slots=True)
class Route:
    """A way to a Claude: the variable that names its address, and the secrets that litellm wants to see."""

    model: str
    address: str
    secrets: tuple[str, ...]


ANTHROPIC = Route("anthropic/claude-sonnet-4-5", "ANTHROPIC_API_BASE", ("ANTHROPIC_API_KEY",))
BARE = Route("claude-sonnet-4-5", "ANTHROPIC_API_BASE", ("ANTHROPIC_API_KEY",))
UNLISTED = Route("anthropic/claude-of-tomorrow", "ANTHROPIC_API_BASE", ("ANTHROPIC_API_KEY",))
UNRELATED = Route("anthropic/claude-1-of-old", "ANTHROPIC_API_BASE", ("ANTHROPIC_API_KEY",))
AZURE = Route("azure_ai/claude-sonnet-4-5", "AZURE_AI_API_BASE", ("AZURE_AI_API_KEY",))
BEDROCK = Route(
    "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "AWS_BEDROCK_RUNTIME_ENDPOINT",
    ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION_NAME"),
)
CONVERSATION = (
    PromptMessage("system", "Be kind."),
    PromptMessage("user", "one"),
    PromptMessage("assistant", "two"),
    PromptMessage("user", "three"),
    PromptMessage("assistant", "four"),
    PromptMessage("user", "five"),
)

CLAUDES_USAGE = {
    "input_tokens": 7,
    "cache_creation_input_tokens": 20,
    "cache_read_input_tokens": 100,
    "output_tokens": 1,
}
WHOLE_USAGE = {"prompt_tokens": 127, "completion_tokens": 3, "total_tokens": 130}
CLAUDES_REPLY = (
    {"type": "message_start", "message": {"id": "m", "model": "c", "content": [], "usage": CLAUDES_USAGE}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}},
    {"type": "message_stop"},
)


async def asked_of_claude(
    make_client: MakeClient, route: Route, key: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[Asked, list[ModelEvent]]:
    """Ask by ``route``, and return the request as it came and what became of the reply."""
    for name in route.secrets:
        monkeypatch.setenv(name, key)
    async with serving(STREAM_HEAD, *map(event, CLAUDES_REPLY)) as server:
        monkeypatch.setenv(route.address, server.address.removesuffix("/v1"))
        client = make_client(os.environ)
        events: list[ModelEvent] = []
        # Bedrock would frame its replies in another way.
        with suppress(ModelError) if route is BEDROCK else nullcontext():
            events = [each async for each in client.stream(ModelRequest(route.model, CONVERSATION))]
    (asked,) = server.asked
    return asked, events


def texts_and_markers(body: Mapping[str, Any]) -> list[tuple[str, bool]]:
    """Return each text of a request to Claude in its order, and whether a marker stands at it or right behind it."""
    blocks = [*body["system"], *(block for message in body["messages"] for block in message["content"])]
    found: list[tuple[str, bool]] = []
    for block in blocks:
        if block == {"cachePoint": {"type": "default"}}:
            found[-1] = (found[-1][0], True)
        else:
            assert set(block) - {"type"} in ({"text"}, {"text", "cache_control"})
            found.append((block["text"], block.get("cache_control") == {"type": "ephemeral"}))
    return found


@pytest.mark.parametrize(
    ("route", "path", "marked"),
    [
        (ANTHROPIC, "/v1/messages", {"Be kind.", "three", "five"}),
        (BARE, "/v1/messages", {"Be kind.", "three", "five"}),
        (AZURE, "/anthropic/v1/messages", {"Be kind.", "three", "five"}),
        (BEDROCK, "/converse-stream", {"Be kind.", "three", "five"}),
        (UNLISTED, "/v1/messages", {"Be kind.", "three", "five"}),
        (UNRELATED, "/v1/messages", set()),
    ],
    ids=lambda value: value.model if isinstance(value, Route) else "",
)
async def test_claude_is_told_what_to_keep_of_a_prompt(
    make_client: MakeClient, fake_key: str, monkeypatch: pytest.MonkeyPatch, route: Route, path: str, marked: set[str]
) -> None:
    asked, _ = await asked_of_claude(make_client, route, fake_key, monkeypatch)
    assert asked.path.endswith(path)
    assert texts_and_markers(asked.body) == [(each.content, each.content in marked) for each in CONVERSATION]


async def test_nobody_else_is_told_what_to_keep_of_a_prompt(make_client: MakeClient, fake_key: str) -> None:
    async with serving(STREAM_HEAD, chunk("hi"), STOP) as server:
        for model in ("openai/gpt-4o", "openai/claude-sonnet-4-5", "hosted_vllm/claude-sonnet-4-5"):
            environment = {"OPENAI_BASE_URL": server.address, "HOSTED_VLLM_API_BASE": server.address}
            client = make_client({**environment, "OPENAI_API_KEY": fake_key})
            _ = [event async for event in client.stream(ModelRequest(model, CONVERSATION))]
    plain = [{"role": each.role, "content": each.content} for each in CONVERSATION]
    assert [asked.body["messages"] for asked in server.asked] == [plain] * 3


async def test_what_is_kept_is_counted(make_client: MakeClient, fake_key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, events = await asked_of_claude(make_client, ANTHROPIC, fake_key, monkeypatch)
    assert events == [TextDelta("hi"), ReplyEnd("stop", WHOLE_USAGE | {"cached_tokens": 100, "cache_write_tokens": 20})]


CHAT, CLAUDE, GEMINI = "openai/gpt-4o", "anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-flash"
ENDS = {
    CHAT: chunk("hi") + STOP,
    CLAUDE: event({"type": "message_stop"}),
    GEMINI: event({"candidates": [{"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP", "index": 0}]}),
}
QUESTION = "What is this?"
FENCED = "notes.txt:\n````\none\n```\ntwo\n```\n````\n\n"


def in_base64(name: str) -> str:
    return b64encode(FILES[name]).decode()


SEE = Tool("see", "Look at it.")
CALLS = [{"id": id_, "type": "function", "function": {"name": "see", "arguments": "{}"}} for id_ in ("c1", "c2")]
CALLED = (
    PromptMessage("user", QUESTION),
    PromptMessage("assistant", "", tool_calls=json.dumps(CALLS)),
    PromptMessage("tool", "Here.", tool_call_id="c1", attachments=(attachment("photo.png"),)),
    PromptMessage("tool", "There.", tool_call_id="c2"),
)


def asking(*names: str, text: str = QUESTION) -> PromptMessage:
    return PromptMessage("user", text, attachments=tuple(map(attachment, names)))


@pytest.fixture
def sent(make_client: MakeClient, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Awaitable[Any]]:
    """Return what returns the content of a message as the server got it."""

    async def content_sent(model: str, *messages: PromptMessage) -> Any:
        async with serving(STREAM_HEAD, ENDS[model]) as server:
            bare = server.address.removesuffix("/v1")
            for name, address in (("OPENAI", server.address), ("ANTHROPIC", bare), ("GEMINI", f"{server.address}beta")):
                monkeypatch.setenv(f"{name}_API_BASE", address)
                monkeypatch.setenv(f"{name}_API_KEY", "0123456789abcdef")
            client = make_client(dict(os.environ))
            _ = [
                event
                async for event in client.stream(
                    ModelRequest(model, messages, tools=(SEE,) if messages == CALLED else ())
                )
            ]
        body: Any = server.asked[-1].body
        return body["contents"][-1]["parts"] if model == GEMINI else body["messages"][-1]["content"]

    return content_sent


@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("photo.png", "image/png"),
        ("photo.jpg", "image/jpeg"),
        ("moving.gif", "image/gif"),
        ("photo.webp", "image/webp"),
        ("paper.pdf", "application/pdf"),
    ],
)
async def test_a_picture_or_a_pdf_is_a_part(sent: Callable[..., Awaitable[Any]], name: str, media_type: str) -> None:
    is_pdf, data, asked = media_type == "application/pdf", in_base64(name), asking(name)
    address = f"data:{media_type};base64,{data}"
    as_file = {"type": "file", "file": {"filename": name, "file_data": address}}
    as_picture = {"type": "image_url", "image_url": {"url": address}}
    assert await sent(CHAT, asked) == [as_file if is_pdf else as_picture, {"type": "text", "text": QUESTION}]
    part, text = await sent(CLAUDE, asked)
    source = {"type": "base64", "media_type": media_type, "data": data}
    assert (part["type"], part["source"]) == ("document" if is_pdf else "image", source)
    assert text["text"] == QUESTION
    parts = await sent(GEMINI, asked)
    (inline,) = [part.get("inlineData") or part["inline_data"] for part in parts if "text" not in part]
    assert (inline.get("mimeType") or inline["mime_type"], inline["data"]) == (media_type, data)
    assert [part["text"] for part in parts if "text" in part] == [QUESTION]


async def test_the_picture_of_a_result_comes_in_a_message_after_the_results(
    sent: Callable[..., Awaitable[Any]],
) -> None:
    *_, part, text = await sent(CHAT, *CALLED)
    assert part["image_url"]["url"].endswith(in_base64("photo.png"))
    assert text["text"].startswith("(These files are the attachments named in the tool results")
    *results, part, _ = await sent(CLAUDE, *CALLED)
    assert [each["type"] for each in results] == ["tool_result", "tool_result"]
    assert r"Here.\n[attachment: photo.png 68 bytes]" in json.dumps(results[0])
    assert part["source"]["data"] == in_base64("photo.png")
    *_, part, _ = await sent(GEMINI, *CALLED)
    assert (part.get("inlineData") or part["inline_data"])["data"] == in_base64("photo.png")


@pytest.mark.parametrize("model", ENDS)
async def test_texts_are_fenced_missing_bytes_named_and_the_same_message_is_sent_word_for_word_again(
    sent: Callable[..., Awaitable[Any]], model: str
) -> None:
    gone = PromptMessage("user", QUESTION, attachments=(attachment("gone.png", FILES["photo.png"] + b" "),))
    named = f"{QUESTION}\n[attachment: gone.png 69 bytes]"
    for message, told in ((asking("notes.txt"), FENCED + QUESTION), (gone, named)):
        content = await sent(model, message)
        assert (content if isinstance(content, str) else content[0]["text"]) == told
    assert in_base64("photo.png") in json.dumps(await sent(model, asking("photo.png", text="")))
    asked = asking("photo.png", "notes.txt", "paper.pdf")
    assert await sent(model, asked) == await sent(model, asked)
