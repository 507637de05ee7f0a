"""Attachments in recorded requests: pictures, PDFs and texts, in the shape of each protocol."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from typing import TYPE_CHECKING, Any

import pytest

from chorus_cli.models.rules.request import ModelRequest, PromptMessage
from tests.attached_files import FILES, attachment
from tests.models.providers.asked_models import BY_LITELLM, STOP
from tests.models.providers.fault_server import STREAM_HEAD, chunk, event, serving

if TYPE_CHECKING:
    from tests.models.providers.ways import MakeClient

pytestmark = BY_LITELLM

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


def asking(*names: str, text: str = QUESTION) -> PromptMessage:
    return PromptMessage("user", text, attachments=tuple(map(attachment, names)))


async def content_sent(
    make_client: MakeClient, model: str, *messages: PromptMessage, monkeypatch: pytest.MonkeyPatch
) -> Any:
    """Return the content of the last message of a request as the server got it."""
    async with serving(STREAM_HEAD, ENDS[model]) as server:
        bare = server.address.removesuffix("/v1")
        for name, address in (("OPENAI", server.address), ("ANTHROPIC", bare), ("GEMINI", f"{server.address}beta")):
            monkeypatch.setenv(f"{name}_API_BASE", address)
            monkeypatch.setenv(f"{name}_API_KEY", "0123456789abcdef")
        client = make_client(dict(os.environ))
        _ = [event async for event in client.stream(ModelRequest(model, messages))]
    body: Any = server.asked[-1].body
    return body["contents"][-1]["parts"] if model == GEMINI else body["messages"][-1]["content"]


def as_chat_part(name: str, media_type: str) -> dict[str, Any]:
    address = f"data:{media_type};base64,{in_base64(name)}"
    if media_type == "application/pdf":
        return {"type": "file", "file": {"filename": name, "file_data": address}}
    return {"type": "image_url", "image_url": {"url": address}}


PARTS = [
    ("photo.png", "image/png"),
    ("photo.jpg", "image/jpeg"),
    ("moving.gif", "image/gif"),
    ("photo.webp", "image/webp"),
    ("paper.pdf", "application/pdf"),
]


@pytest.mark.parametrize(("name", "media_type"), PARTS)
async def test_a_picture_or_a_pdf_is_a_part_of_chat_completions(
    make_client: MakeClient, name: str, media_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = await content_sent(make_client, CHAT, asking(name), monkeypatch=monkeypatch)
    assert content == [as_chat_part(name, media_type), {"type": "text", "text": QUESTION}]


@pytest.mark.parametrize(("name", "media_type"), PARTS)
async def test_a_picture_or_a_pdf_is_a_block_of_anthropic(
    make_client: MakeClient, name: str, media_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    part, text = await content_sent(make_client, CLAUDE, asking(name), monkeypatch=monkeypatch)
    source = {"type": "base64", "media_type": media_type, "data": in_base64(name)}
    kind = "document" if media_type == "application/pdf" else "image"
    assert (part["type"], part["source"]) == (kind, source)
    assert text["text"] == QUESTION


@pytest.mark.parametrize(("name", "media_type"), PARTS)
async def test_a_picture_or_a_pdf_is_inline_data_of_gemini(
    make_client: MakeClient, name: str, media_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = await content_sent(make_client, GEMINI, asking(name), monkeypatch=monkeypatch)
    (data,) = [part.get("inlineData") or part["inline_data"] for part in parts if "text" not in part]
    assert (data.get("mimeType") or data["mime_type"], data["data"]) == (media_type, in_base64(name))
    assert [part["text"] for part in parts if "text" in part] == [QUESTION]


@pytest.mark.parametrize("model", ENDS)
async def test_a_text_is_fenced_under_its_name_before_the_question(
    make_client: MakeClient, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = await content_sent(make_client, model, asking("notes.txt"), monkeypatch=monkeypatch)
    told = content if isinstance(content, str) else content[0]["text"]
    assert told == FENCED + QUESTION


@pytest.mark.parametrize("model", ENDS)
async def test_an_attachment_whose_bytes_are_gone_is_named(
    make_client: MakeClient, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = PromptMessage("user", QUESTION, attachments=(attachment("gone.png", FILES["photo.png"] + b" "),))
    content = await content_sent(make_client, model, gone, monkeypatch=monkeypatch)
    told = content if isinstance(content, str) else content[0]["text"]
    assert told == f"{QUESTION}\n[attachment: gone.png 69 bytes]"


@pytest.mark.parametrize("model", ENDS)
async def test_a_message_of_a_picture_alone_is_sent(
    make_client: MakeClient, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = await content_sent(make_client, model, asking("photo.png", text=""), monkeypatch=monkeypatch)
    assert in_base64("photo.png") in json.dumps(content)


@pytest.mark.parametrize("model", ENDS)
async def test_a_message_is_sent_word_for_word_again(
    make_client: MakeClient, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = asking("photo.png", "notes.txt", "paper.pdf")
    first = await content_sent(make_client, model, asked, monkeypatch=monkeypatch)
    assert await content_sent(make_client, model, asked, monkeypatch=monkeypatch) == first
