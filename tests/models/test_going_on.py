"""Requests to go on with a reply: by prefill where the protocol has it, else in words and joined with a blank."""

from __future__ import annotations

from contextlib import aclosing

import pytest

from chorus_cli.models.rules.events import TextDelta
from chorus_cli.models.rules.request import ModelRequest, PromptMessage
from chorus_cli.models.wire.client import WireClient
from tests.models.providers.asked_models import MODEL_MAP, STOP, over_wire
from tests.models.providers.fault_server import STREAM_HEAD, chunk, event, serving

SAID = "The road goes ever"


def request(model: str, said: str = SAID, effort: str | None = None) -> ModelRequest:
    messages = (PromptMessage("user", "Sing"), PromptMessage("assistant", said))
    return ModelRequest(model, messages, effort=effort, goes_on=True)


@pytest.mark.parametrize(
    ("model", "effort", "prefills"),
    [
        ("anthropic/claude-haiku-4-5", None, True),
        ("claude-sonnet-4-5", "none", True),
        ("anthropic/claude-haiku-4-5", "low", False),
        ("anthropic/claude-sonnet-5", None, False),
        ("anthropic/claude-unheard-of", None, False),
        ("openai/gpt-4o", None, False),
        ("gemini/gemini-3.8-flash", None, False),
        ("mistral/mistral-large-latest", None, False),
    ],
)
def test_only_claudes_that_do_not_think_take_the_beginning_of_their_reply(
    model: str, effort: str | None, *, prefills: bool
) -> None:
    client = WireClient({"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}, MODEL_MAP)
    assert client.prefills(request(model, effort=effort)) is prefills


@pytest.mark.parametrize(
    ("said", "follows", "text"),
    [
        (SAID, "on and on", " on and on"),
        (SAID, " on and on", " on and on"),
        (SAID, "\nDown from", "\nDown from"),
        (SAID, ", on", ", on"),
        ("Done.", "Next", " Next"),
        ("Line\n", "Next", "Next"),
        ("(", "so", "so"),
        ("你好", "世界", "世界"),
        ("안녕하세요", "여러분", " 여러분"),
        ("*She smiles", "*", "*"),
        ("Done.", "*She smiles*", " *She smiles*"),
    ],
)
async def test_any_other_model_is_asked_in_words_and_its_words_are_joined(said: str, follows: str, text: str) -> None:
    async with serving(STREAM_HEAD, chunk(follows) + STOP) as server:
        client = over_wire({"OPENAI_BASE_URL": f"{server.address}/v1", "OPENAI_API_KEY": "k"})
        async with aclosing(client), aclosing(client.stream(request("openai/m", said))) as events:
            pieces = [each.text async for each in events if isinstance(each, TextDelta)]
    assert "".join(pieces) == text
    messages = server.asked[0].body["messages"]
    assert isinstance(messages, list)
    assert [(each["role"], each["content"][:27]) for each in messages] == [
        ("user", "Sing"),
        ("assistant", said),
        ("user", "(Go on with your last messa"),
    ]


async def test_a_claude_is_sent_the_reply_as_the_beginning_of_its_own() -> None:
    pieces = (
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "more"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    )
    async with serving(STREAM_HEAD, *map(event, pieces)) as server:
        client = over_wire({"ANTHROPIC_BASE_URL": server.address, "ANTHROPIC_API_KEY": "k"})
        asked = request("anthropic/claude-haiku-4-5", f"{SAID} ")
        async with aclosing(client), aclosing(client.stream(asked)) as events:
            assert [each.text async for each in events if isinstance(each, TextDelta)] == ["more"]
    messages = server.asked[0].body["messages"]
    assert isinstance(messages, list)
    assert messages[-1] == {"role": "assistant", "content": [{"type": "text", "text": SAID}]}
