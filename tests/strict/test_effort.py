"""How much a model is to think, in the parameters of its provider, and what comes of a value that is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from chorus_cli.models.providers.failures import Failure
from chorus_cli.models.providers.parameters import refused_parameter
from chorus_cli.models.providers.providers import ProtocolName, endpoint
from chorus_cli.models.rules.request import ModelRequest
from chorus_cli.models.wire.anthropic import AnthropicMessages
from chorus_cli.models.wire.chat_completions import ChatCompletions
from chorus_cli.models.wire.gemini import GeminiContents
from chorus_cli.models.wire.protocol import Post, WireProtocol
from chorus_cli.models.wire.responses import OpenAIResponses
from tests.attached_files import attachment, loaded
from tests.models.providers.asked_models import MODEL_MAP
from tests.models.wire.conversations import ASKED_TOOL, COUNT, ECHO, HELLO, NOW, SYSTEM
from tests.sdk_types import misfit_of_anthropic, misfit_of_gemini, misfit_of_responses
from tests.strict.by_services import Stage
from tests.strict.claude import StrictClaude
from tests.strict.gemini import StrictGemini
from tests.strict.providers import PROVIDERS
from tests.strict.responses import StrictResponses
from tests.strict.server import Refuses, Reply, StrictProtocol

Parameters = dict[str, Any]

PROTOCOLS: dict[ProtocolName, WireProtocol] = {
    ProtocolName.ANTHROPIC: AnthropicMessages(MODEL_MAP, loaded),
    ProtocolName.CHAT_COMPLETIONS: ChatCompletions(MODEL_MAP, loaded),
    ProtocolName.GEMINI: GeminiContents(MODEL_MAP, loaded),
    ProtocolName.RESPONSES: OpenAIResponses(MODEL_MAP, loaded),
}
JUDGES: dict[ProtocolName, Callable[[Mapping[str, object]], str]] = {
    ProtocolName.ANTHROPIC: misfit_of_anthropic,
    ProtocolName.GEMINI: misfit_of_gemini,
    ProtocolName.RESPONSES: misfit_of_responses,
}
FILES = HELLO._replace(attachments=(attachment("photo.png"), attachment("paper.pdf")))
LEVELS = ("none", "low", "medium", "high")
THINKING = ("thinking", "reasoning_effort", "reasoning", "enable_thinking", "output_config", "reasoning_split")


def effort(*names: str) -> list[Parameters]:
    return [{"reasoning_effort": name} for name in names]


def switched(on: Parameters, off: Parameters) -> list[Parameters]:
    return [off, on, on, on]


def responses(*names: str) -> list[Parameters]:
    return [{"reasoning": {"effort": name, "summary": "auto"}} for name in names]


def adaptive(none: Parameters | None) -> list[Parameters]:
    shown = {"thinking": {"type": "adaptive", "display": "summarized"}}
    levels = [shown | {"output_config": {"effort": name}} for name in LEVELS[1:]]
    return [levels[0] if none is None else none, *levels]


def budgets(*tokens: int) -> list[Parameters]:
    return [{}, *({"thinking": {"type": "enabled", "budget_tokens": each}} for each in tokens)]


def gemini(name: str, *values: object) -> list[Parameters]:
    return [{"thinkingConfig": {"includeThoughts": True, name: value}} for value in values]


def off(kind: str) -> Parameters:
    return {"thinking": {"type": kind}}


NOTHING: list[Parameters] = [{}] * 4
ALL = effort(*LEVELS)
DEEPSEEK = [off("disabled"), *(off("enabled") | {"reasoning_effort": name} for name in LEVELS[1:])]
SPLIT: Parameters = {"reasoning_split": True}

EFFORTS: list[tuple[list[Parameters], str]] = [
    (DEEPSEEK, "deepseek/deepseek-v4-flash"),
    (effort("low", "low", "high", "high"), "moonshot/kimi-k3 zai/glm-5.3-flash cerebras/kimi-k3"),
    (switched(off("enabled"), off("disabled")), "moonshot/kimi-k2.6 moonshot/kimi-k2.5 zai/glm-4.6"),
    (
        NOTHING,
        (
            "moonshot/kimi-k2.7-code moonshot/kimi-k2-thinking xai/grok-4.20 mistral/magistral-small-2506 "
            "perplexity/sonar anthropic/claude-3-5-haiku-20241022 gemini/gemini-2.0-flash"
        ),
    ),
    (ALL, "zai/glm-5.2 xai/grok-4.3 fireworks_ai/deepseek-v4p1-flash hosted_vllm/qwen3"),
    ([SPLIT] * 4, "minimax/MiniMax-M2.7"),
    (switched(SPLIT | off("adaptive"), SPLIT | off("disabled")), "minimax/MiniMax-M3"),
    (switched({"enable_thinking": True}, {"enable_thinking": False}), "dashscope/qwen-plus"),
    (
        effort("low", "low", "medium", "high"),
        "xai/grok-4.6 mistral/mistral-large-4-0 groq/openai/gpt-oss-120b cerebras/gpt-oss-120b",
    ),
    (effort("none", "low", "high", "high"), "xai/grok-3-mini"),
    (effort("none", "high", "high", "high"), "mistral/magistral-medium-latest"),
    (effort("none", "default", "default", "default"), "groq/qwen/qwen3-32b"),
    ([{"reasoning_effort": "none"}, {}, {}, {}], "cerebras/zai-glm-4.7"),
    ([{"reasoning": {"enabled": False}}, *ALL[1:]], "together_ai/openai/gpt-oss-120b"),
    ([{"reasoning": {"effort": name}} for name in LEVELS], "openrouter/x/y"),
    (adaptive(None), "anthropic/claude-fable-5-2 anthropic/claude-mythos-5 anthropic/claude-opus-5-5"),
    (adaptive(off("between_tools")), "anthropic/claude-sonnet-5-5"),
    (adaptive(off("disabled")), "anthropic/claude-haiku-5-5 anthropic/claude-opus-5 anthropic/claude-sonnet-5"),
    (adaptive({}), "anthropic/claude-opus-4-8 anthropic/claude-sonnet-4-6"),
    (budgets(2_048, 8_192, 16_384), "anthropic/claude-opus-4-5 anthropic/claude-sonnet-4-5-20250929"),
    (responses("minimal", "low", "medium", "high"), "openai/gpt-5"),
    (responses(*LEVELS), "openai/gpt-5.1 openai/gpt-5.5"),
    (
        responses("low", "low", "medium", "high"),
        "openai/gpt-5.1-codex openai/responses/gpt-6-astra openai/responses/gpt-6.1-sol openai/o3 openai/o3-pro",
    ),
    (responses("high", "high", "high", "high"), "openai/gpt-5-pro"),
    (responses("medium", "medium", "medium", "high"), "openai/gpt-5.2-pro"),
    (gemini("thinkingBudget", 128, 1_024, 8_192, 24_576), "gemini/gemini-2.5-pro"),
    (gemini("thinkingBudget", 0, 1_024, 8_192, 24_576), "gemini/gemini-2.5-flash"),
    (gemini("thinkingLevel", "low", "low", "high", "high"), "gemini/gemini-3-pro-preview"),
    (gemini("thinkingLevel", "low", "low", "medium", "high"), "gemini/gemini-3.1-pro-preview"),
    (gemini("thinkingLevel", "minimal", "low", "medium", "high"), "gemini/gemini-3-flash-preview"),
    (gemini("thinkingLevel", "minimal", "high", "high", "high"), "gemini/gemma-4-31b-it"),
]
"""The parameters for no effort, low, medium and high, and the models that take them."""


def posted(model: str, level: str) -> Post:
    asked = endpoint(model, {}, MODEL_MAP.thinks)
    assert asked is not None
    request = ModelRequest(model, (SYSTEM, FILES, *ASKED_TOOL[2:]), 0.5, 20_000, tools=(COUNT, ECHO, NOW), effort=level)
    post = PROTOCOLS[asked.protocol].post(request, asked)
    if judge := JUDGES.get(asked.protocol):
        forbidding = PROTOCOLS[asked.protocol].post(replace(request, temperature=None, may_call=False), asked)
        assert {judge(json.loads(each.body)) for each in (post, forbidding)} == {""}
    return post


def parameters(model: str, level: str) -> Parameters:
    body = json.loads(posted(model, level).body)
    told = {name: value for name, value in body.items() if name in THINKING}
    config = body.get("generationConfig", {}).get("thinkingConfig")
    return told | ({"thinkingConfig": config} if config else {})


@pytest.mark.parametrize(("told", "models"), EFFORTS, ids=[models.split(" ")[0] for _, models in EFFORTS])
def test_each_level_has_the_parameters_of_the_provider(told: list[Parameters], models: str) -> None:
    for model in models.split(" "):
        assert (model, [parameters(model, level) for level in LEVELS]) == (model, told)


def in_error(message: str, **more: str) -> Parameters:
    return {"error": {"message": message, "type": "invalid_request_error", **more}}


LITERAL = {"type": "literal_error", "loc": ["body", "reasoning_effort"], "msg": "Input should be 'low' or 'high'"}
DISABLED = '"thinking.type.disabled" is not supported for this model. Use "thinking.type.adaptive" instead.'
BETWEEN = (
    'To turn thinking off on this model, send "thinking": {"type": "between_tools"} instead of {"type": "disabled"}.'
)
LEVEL = "Thinking level MINIMAL is not supported for this model. Please retry with other thinking level."
GROQS = (
    "for 'role:assistant' the following must be satisfied[('messages.4' : property 'reasoning_content' is unsupported)]"
)
MISSING = "The `reasoning_content` in the thinking mode must be passed back to the API."
FOUND = "Expected `thinking` or `redacted_thinking`, but found `text`."
SIGNATURE = "messages.1.content.0: Invalid `signature` in `thinking` block"
SUMMARY = "Your organization must be verified to generate reasoning summaries."
OF_SUMMARY = {"param": "reasoning.summary", "code": "unsupported_value"}
OF_EFFORT = {"param": "reasoning.effort", "code": "invalid_value"}

REFUSALS: list[tuple[str, str, object, str | None]] = [
    ("openrouter/x/y", "none", in_error("Reasoning is mandatory for this endpoint and cannot be disabled."), "none"),
    ("fireworks_ai/gpt-oss", "none", in_error("Invalid reasoning effort: none"), "none"),
    ("mistral/mistral-small", "low", {"message": "reasoning_effort='high' is not supported for this model"}, "low"),
    ("groq/openai/gpt-oss-120b", "none", in_error("`reasoning_effort` must be one of `low`, `medium`, `high`"), "none"),
    ("hosted_vllm/m", "none", {"detail": [LITERAL]}, "none"),
    ("openai/gpt-4o", "low", in_error("Unrecognized request argument supplied: reasoning_effort"), "low"),
    ("openai/o3", "none", in_error("Unsupported value: 'reasoning.effort' does not support 'none'."), "none"),
    ("openai/o3", "none", in_error("Invalid value: 'low'. Supported values are: 'medium'.", **OF_EFFORT), "none"),
    ("openai/o3", "low", in_error(SUMMARY, **OF_SUMMARY), "reasoning.summary"),
    ("anthropic/claude-sonnet-5", "none", in_error(DISABLED), "none"),
    ("anthropic/claude-sonnet-5", "none", in_error(BETWEEN), "none"),
    ("anthropic/claude-opus-4-8", "low", in_error("adaptive thinking is not supported on this model"), "low"),
    ("anthropic/claude-opus-4-8", "low", in_error("output_config.effort: Input should be 'high'"), "low"),
    ("gemini/gemini-3.1-pro-preview", "none", in_error(LEVEL), "none"),
    ("gemini/gemini-2.5-pro", "none", in_error("Budget 0 is invalid. This model only works in thinking mode."), "none"),
    ("gemini/gemini-2.5-flash", "low", in_error("Thinking is not enabled for this model"), "low"),
    # Of a history, no value is refused.
    ("deepseek/deepseek-v4-flash", "low", in_error(MISSING), None),
    ("moonshot/kimi-k2.6", "low", in_error("thinking is enabled but reasoning_content is missing in assistant"), None),
    ("anthropic/claude-sonnet-5", "low", in_error(SIGNATURE), None),
    ("anthropic/claude-sonnet-4-5", "low", in_error(FOUND), None),
    ("openai/o3", "low", in_error("Item 'rs_1' of type 'reasoning' was provided without its required item."), None),
    ("openai/o3", "low", in_error("The encrypted content for item rs_1 could not be verified."), None),
    ("groq/openai/gpt-oss-120b", "low", in_error(GROQS), "reasoning_content"),
]  # fmt: skip
"""Models, efforts, what their providers answer, and what is left out for that."""


@pytest.mark.parametrize(("model", "level", "body", "left_out"), REFUSALS)
def test_a_refused_value_is_known_by_its_words(model: str, level: str, body: object, left_out: str | None) -> None:
    post = posted(model, level)
    found = refused_parameter(Failure(status=400, body=body), post.optional)
    told = None if found is None else post.optional[found].removeprefix("effort ")
    assert told == left_out


@pytest.mark.parametrize(
    ("name", "protocol"),
    [
        ("vllm", PROVIDERS["vllm"].protocol),
        ("claude", StrictClaude(efforts=frozenset({"low"}))),
        ("responses", StrictResponses(frozenset({"low"}))),
        ("gemini-3", StrictGemini(levels=frozenset({"low"}))),
    ],
)
async def test_a_refused_value_is_left_out_and_told_once(name: str, protocol: StrictProtocol, stage: Stage) -> None:
    async with stage.players(name) as (player, (main,)):
        main.server.protocol = protocol
        await player.command("/set effort high --once", "effort")
        for number in range(3):
            main.server.will(Reply(calls=(main.search(str(number)),)), Reply(f"Answer {number}."))
            await player.say("And?", f"Answer {number}.")
        assert len(main.server.refused) == 1
        assert player.notices == [f"Chorus leaves out effort high, which {main.strict.model} does not accept."]
        assert len(main.server.asked) == 7


async def test_a_server_that_refuses_the_same_for_ever_is_told_of(stage: Stage) -> None:
    async with stage.players("responses") as (player, (main,)):
        main.server.refuses, main.server.sentence = Refuses.EVERYTHING, f"reasoning.summary is not supported: {SUMMARY}"
        assert "reasoning summaries" in await player.failure("Hello?")
        assert len(main.server.asked) == 2
