"""Requests of the wire are what the official SDKs would send: their own types say so."""

from __future__ import annotations

import json
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from chorus_cli.log.rules.calls import ToolCall, calls_as_json
from chorus_cli.log.rules.messages import Thoughts
from chorus_cli.models.providers.providers import endpoint
from chorus_cli.models.rules.request import ModelRequest, PromptMessage
from chorus_cli.models.wire.anthropic import AnthropicMessages
from chorus_cli.models.wire.chat_completions import ChatCompletions
from chorus_cli.models.wire.gemini import GeminiContents
from chorus_cli.models.wire.responses import OpenAIResponses
from tests.attached_files import attachment, loaded
from tests.models.providers.ways import MODEL_MAP
from tests.models.wire.conversations import COUNT, ECHO, HELLO, NOW, SYSTEM, result, user
from tests.sdk_types import misfit_of_anthropic, misfit_of_chat, misfit_of_gemini, misfit_of_responses

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from chorus_cli.models.wire.protocol import WireProtocol

    Judge = Callable[[Mapping[str, Any]], str]

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
